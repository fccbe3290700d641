/* SPDX-License-Identifier: MIT */
/* Splitting; see chat_words.h. One walker serves commands and completion. */
#include "cli/chat_words.h"

#include "base/str.h"

static const char spaces[] = " \t\n";

/* The state within a word. */
struct walk {
    const char *at;
    char quote; /* the one that is open, or 0 */
};

/* The next character of the word, or -1 at its end. */
static int walk_next(struct walk *w)
{
    for (;;) {
        char c = *w->at;

        if (!c || (!w->quote && strchr(spaces, c)))
            return -1;
        w->at++;
        if (c == w->quote) {
            w->quote = 0;
        } else if (!w->quote && (c == '"' || c == '\'')) {
            w->quote = c;
        } else if (c == '\\' && w->quote != '\'' && *w->at) {
            return (unsigned char)*w->at++;
        } else {
            return (unsigned char)c;
        }
    }
}

int chat_words_split(const char *text, struct chat_words *ret, struct error *reterr)
{
    struct walk w = {.at = text};
    char *to;
    int c;

    *ret = (struct chat_words){.text = malloc(strlen(text) + 1)};
    if (!ret->text)
        return error_no_memory(reterr);
    to = ret->text;
    while (w.at += strspn(w.at, spaces), *w.at) {
        if (ret->count == CHAT_WORDS_MAX)
            return error_set(reterr, ERR_INVALID, "more than %d words", CHAT_WORDS_MAX);
        ret->words[ret->count++] = to;
        while ((c = walk_next(&w)) >= 0)
            *to++ = (char)c;
        if (w.quote)
            return error_set(reterr, ERR_INVALID, "a quote is not closed: %c", w.quote);
        *to++ = 0;
    }
    return 0;
}

void chat_words_done(struct chat_words *w)
{
    free(w->text);
    *w = (struct chat_words){};
}

int chat_words_last(const char *line, size_t *ret_from, char *ret, size_t size)
{
    struct walk w = {.at = line};
    size_t len;
    int c;

    do {
        w.at += strspn(w.at, spaces);
        *ret_from = (size_t)(w.at - line);
        for (len = 0; (c = walk_next(&w)) >= 0; len++) {
            if (len + 1 >= size)
                return -1;
            ret[len] = (char)c;
        }
    } while (*w.at);
    ret[len] = 0;
    return 0;
}

int chat_word_quote(const char *word, char *ret, size_t size)
{
    size_t len = 0;

    for (; *word; word++) {
        bool special = strchr(" \t\"'\\", *word) != NULL;

        if (len + (special ? 2 : 1) >= size)
            return -1;
        if (special)
            ret[len++] = '\\';
        ret[len++] = *word;
    }
    if (len >= size)
        return -1;
    ret[len] = 0;
    return 0;
}
