/* SPDX-License-Identifier: MIT */
/* Fenced code of Markdown, as CommonMark has it: of backticks or tildes, ended by as many or by the
 * end of the text. */
#include "llm/direct-internal.h"

#include <string.h>
#include <strings.h>

struct language_word {
    const char *word;
    enum direct_language language;
};

static const struct language_word language_words[] = {
    {"python", DIRECT_PYTHON},  {"py", DIRECT_PYTHON},
    {"python3", DIRECT_PYTHON}, {"ipython", DIRECT_PYTHON},
    {"node", DIRECT_NODE},      {"nodejs", DIRECT_NODE},
    {"js", DIRECT_NODE},        {"javascript", DIRECT_NODE},
    {"mjs", DIRECT_NODE},       {"r", DIRECT_R},
    {"rscript", DIRECT_R},      {"sh", DIRECT_SHELL},
    {"bash", DIRECT_SHELL},     {"shell", DIRECT_SHELL},
    {"terminal", DIRECT_SHELL},
};

enum direct_language direct_language_find(const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(language_words); i++) {
        if (strlen(language_words[i].word) == len &&
            strncasecmp(language_words[i].word, word, len) == 0)
            return language_words[i].language;
    }
    return DIRECT_NONE;
}

const char *direct_runtime(enum direct_language language)
{
    return language == DIRECT_NODE ? "node" : language == DIRECT_R ? "r" : "python";
}

/* ---- lines ---- */

static size_t line_length(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? (size_t)(end - line) + 1 : strlen(line);
}

/* How many fence characters begin the line, behind at most three spaces; 0 for no fence. */
static size_t fence_length(const char *line, char *ret_char, const char **ret_after)
{
    size_t n = 0;

    line += MIN(strspn(line, " "), 3);
    if (*line != '`' && *line != '~')
        return 0;
    while (line[n] == *line)
        n++;
    *ret_char = *line;
    *ret_after = line + n;
    return n >= 3 ? n : 0;
}

/* The first word behind an opening fence: "python", or in braces as R Markdown has it. */
static size_t word_find(const char *after, const char **ret)
{
    after += strspn(after, " \t{.");
    *ret = after;
    return strcspn(after, " \t\r\n{},;:");
}

static bool fence_opens(const char *line, size_t len, char *ret_char, size_t *ret_count,
                        const char **ret_after)
{
    *ret_count = fence_length(line, ret_char, ret_after);
    if (*ret_count == 0)
        return false;
    /* Code within a line may begin like a fence. */
    return *ret_char == '~' || !memchr(*ret_after, '`', (size_t)(line + len - *ret_after));
}

static bool fence_closes(const char *line, char c, size_t count)
{
    const char *after;
    char found;
    size_t n = fence_length(line, &found, &after);

    if (n < count || found != c)
        return false;
    after += strspn(after, " \t\r");
    return *after == '\n' || *after == 0;
}

/* ---- blocks ---- */

static bool is_blank(const char *text, size_t len)
{
    return strspn(text, " \t\r\n") >= len;
}

static void block_add(struct direct_blocks *blocks, enum direct_language language, const char *code,
                      size_t len)
{
    if (language == DIRECT_NONE || is_blank(code, len))
        return;
    if (blocks->count == DIRECT_BLOCKS_MAX) {
        blocks->truncated = true;
        return;
    }
    blocks->items[blocks->count++] =
        (struct direct_block){.language = language, .code = code, .len = len};
}

/* From the line behind the opening fence; returns where the text goes on. */
static const char *body_take(struct direct_blocks *blocks, enum direct_language language,
                             const char *code, char c, size_t count)
{
    const char *line = code;

    while (*line && !fence_closes(line, c, count))
        line += line_length(line);
    block_add(blocks, language, code, (size_t)(line - code));
    return line + line_length(line);
}

void direct_blocks_find(const char *text, enum direct_language fallback, struct direct_blocks *ret)
{
    const char *at = text, *after, *word;
    size_t count;
    char c;

    *ret = (struct direct_blocks){};
    while (*at) {
        const char *line = at;
        size_t len;

        at += line_length(at);
        if (!fence_opens(line, (size_t)(at - line), &c, &count, &after))
            continue;
        ret->fenced = true;
        len = word_find(after, &word);
        at = body_take(ret, len ? direct_language_find(word, len) : fallback, at, c, count);
    }
    if (!ret->fenced)
        block_add(ret, fallback, text, strlen(text));
}
