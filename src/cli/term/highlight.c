/* SPDX-License-Identifier: MIT */
/*
 * A scanner over one line at a time. It knows words, quotes and comments of five languages, and no
 * grammar: what runs in a sandbox is short, and a colour that is wrong does no harm.
 */
#include "cli/term/highlight.h"

#include "base/str.h"
#include "cli/term/text.h"

enum { ESCAPE = 0x1b };

struct quote {
    const char *start, *end;
    bool multiline; /* goes on over the end of a line */
    bool raw;       /* a backslash is nothing special */
    bool comment;
};

struct language {
    const char *names; /* each between spaces */
    const char *keywords;
    const char *line_comment;
    const struct quote *quotes; /* longer starts first; ends with a start of NULL */
    const char *word_extra;     /* characters of words beside letters, digits and '_' */
    bool has_functions;
};

static const struct quote python_quotes[] = {
    {"\"\"\"", "\"\"\"", true}, {"'''", "'''", true}, {"\"", "\""}, {"'", "'"}, {NULL}};
static const struct quote script_quotes[] = {
    {"/*", "*/", true, true, true}, {"`", "`", true}, {"\"", "\""}, {"'", "'"}, {NULL}};
static const struct quote r_quotes[] = {{"\"", "\"", true}, {"'", "'", true}, {NULL}};
static const struct quote bash_quotes[] = {{"\"", "\"", true}, {"'", "'", true, true}, {NULL}};
static const struct quote json_quotes[] = {{"\"", "\""}, {NULL}};

static const struct language languages[] = {
    [HIGHLIGHT_PYTHON] =
        {" python py python3 ipython ",
         " False None True and as assert async await break case class continue def del elif else "
         "except finally for from global if import in is lambda match nonlocal not or pass raise "
         "return self try while with yield ",
         "#", python_quotes, "", true},
    [HIGHLIGHT_JAVASCRIPT] =
        {" javascript js node nodejs mjs cjs jsx typescript ts tsx ",
         " async await break case catch class const continue debugger default delete do else enum "
         "export extends false finally for from function get if implements import in instanceof "
         "interface let new null of return set static super switch this throw true try type typeof "
         "undefined var void while with yield ",
         "//", script_quotes, "$", true},
    [HIGHLIGHT_R] = {" r rscript ",
                     " FALSE Inf NA NA_character_ NA_integer_ NA_real_ NULL NaN TRUE break else "
                     "for function if "
                     "in library next repeat require return while ",
                     "#", r_quotes, ".", true},
    [HIGHLIGHT_BASH] =
        {" bash sh shell zsh console terminal ",
         " alias break case cd continue declare do done echo elif else esac eval exec exit export "
         "fi for function if in local printf read readonly return select set shift source test "
         "then time trap unset until while ",
         "#", bash_quotes, "-", false},
    [HIGHLIGHT_JSON] = {" json jsonc json5 jsonl ndjson ", " true false null ", "", json_quotes, "",
                        false},
};

enum highlight_language highlight_find(const char *name, size_t len)
{
    char word[32];

    if (len == 0 || len > sizeof(word) - 3)
        return HIGHLIGHT_NONE;
    word[0] = ' ';
    for (size_t i = 0; i < len; i++) {
        if (name[i] == ' ')
            return HIGHLIGHT_NONE;
        word[i + 1] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
    }
    word[len + 1] = ' ';
    word[len + 2] = 0;
    for (size_t i = 1; i < ARRAY_LEN(languages); i++) {
        if (strstr(languages[i].names, word))
            return (enum highlight_language)i;
    }
    return HIGHLIGHT_NONE;
}

/* ---- scanning ---- */

struct scan {
    const struct highlight *h;
    const struct language *language;
    const char *at, *end;
    struct buf *ret;
};

static size_t left(const struct scan *s)
{
    return (size_t)(s->end - s->at);
}

static bool looks_at(const struct scan *s, const char *text)
{
    size_t len = strlen(text);

    return len && left(s) >= len && memcmp(s->at, text, len) == 0;
}

/* From a sequence to the one that ends its style; 0: there is none. */
static size_t marked_length(const char *text, size_t len)
{
    size_t n = text_sequence(text, len), end;

    if (n == 0)
        return 0;
    while (n < len && !(end = text_sequence(text + n, len - n)))
        n++;
    return n < len ? n + end : n;
}

/* What is marked in the token keeps its own looks. */
static int token_put(struct scan *s, size_t len, enum style_role role)
{
    const char *end = s->at + len;

    while (s->at < end) {
        const char *mark = memchr(s->at, ESCAPE, (size_t)(end - s->at));
        size_t n = (size_t)((mark ? mark : end) - s->at);

        if (n && style_text(s->ret, role, s->h->color, s->at, n) < 0)
            return -1;
        s->at += n;
        n = mark ? MAX(marked_length(mark, left(s)), 1u) : 0;
        if (buf_append(s->ret, s->at, n) < 0)
            return -1;
        s->at += n;
    }
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(const struct scan *s, char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c && strchr(s->language->word_extra, c)) || (unsigned char)c >= 0x80;
}

static size_t word_length(const struct scan *s)
{
    size_t n = 0;

    while (n < left(s) && is_word(s, s->at[n]))
        n++;
    return n;
}

static bool is_keyword(const struct scan *s, size_t len)
{
    char word[32];

    if (len > sizeof(word) - 3)
        return false;
    word[0] = ' ';
    memcpy(word + 1, s->at, len);
    word[len + 1] = ' ';
    word[len + 2] = 0;
    return strstr(s->language->keywords, word) != NULL;
}

static int word_put(struct scan *s)
{
    size_t n = word_length(s);
    bool is_call = s->language->has_functions && n < left(s) && s->at[n] == '(';

    if (is_keyword(s, n))
        return token_put(s, n, STYLE_KEYWORD);
    return token_put(s, n, is_call ? STYLE_FUNCTION : STYLE_PLAIN);
}

/* 12, 0xff, 1_000, 3.5, 1e-9, 10L */
static int number_put(struct scan *s)
{
    size_t n = 1;

    while (n < left(s)) {
        char c = s->at[n], before = s->at[n - 1];
        bool is_sign =
            (c == '-' || c == '+') && (before == 'e' || before == 'E') && s->at[1] != 'x';

        if (!(c == '.' || c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') ||
              (c >= 'A' && c <= 'Z') || is_sign))
            break;
        n++;
    }
    return token_put(s, n, STYLE_NUMBER);
}

/* From behind the start of a quote to behind its end; `ret_open` when the line ends before. */
static size_t quote_length(const struct scan *s, const struct quote *q, size_t from, bool *ret_open)
{
    size_t end = strlen(q->end), n = from;

    *ret_open = false;
    while (n < left(s)) {
        if (left(s) - n >= end && memcmp(s->at + n, q->end, end) == 0)
            return n + end;
        n += s->at[n] == '\\' && !q->raw && n + 1 < left(s) ? 2 : 1;
    }
    *ret_open = q->multiline;
    return n;
}

/* A key of a JSON object is no text but a name. */
static enum style_role quote_role(const struct scan *s, const struct quote *q, size_t len)
{
    if (q->comment)
        return STYLE_COMMENT;
    while (len < left(s) && s->at[len] == ' ')
        len++;
    if (s->language == &languages[HIGHLIGHT_JSON] && len < left(s) && s->at[len] == ':')
        return STYLE_FUNCTION;
    return STYLE_STRING;
}

static int quote_put(struct scan *s, struct highlight *h, unsigned number, size_t from)
{
    const struct quote *q = &s->language->quotes[number];
    bool is_open;
    size_t n = quote_length(s, q, from, &is_open);

    h->open = is_open ? number + 1 : 0;
    return token_put(s, n, quote_role(s, q, n));
}

/* The number of the quote that begins here, or -1. */
static int quote_find(const struct scan *s)
{
    const struct quote *quotes = s->language->quotes;

    for (int i = 0; quotes[i].start; i++) {
        if (looks_at(s, quotes[i].start))
            return i;
    }
    return -1;
}

/* In a shell '#' begins a comment only where a word could begin. */
static bool is_comment(const struct scan *s, const char *line)
{
    return looks_at(s, s->language->line_comment) &&
           (s->language != &languages[HIGHLIGHT_BASH] || s->at == line || s->at[-1] == ' ' ||
            s->at[-1] == '\t' || s->at[-1] == ';');
}

static int token_take(struct scan *s, struct highlight *h, const char *line)
{
    int quote = quote_find(s);
    size_t n = 1;

    if (is_comment(s, line))
        return token_put(s, left(s), STYLE_COMMENT);
    if (quote >= 0)
        return quote_put(s, h, (unsigned)quote, strlen(s->language->quotes[quote].start));
    if (is_digit(*s->at))
        return number_put(s);
    if (is_word(s, *s->at))
        return word_put(s);
    while (n < left(s) && s->at[n] == ' ')
        n++;
    return token_put(s, n, STYLE_PLAIN);
}

int highlight_line(struct highlight *h, const char *line, size_t len, struct buf *ret)
{
    struct scan s = {.h = h, .at = line, .end = line + len, .ret = ret};

    if (h->language == HIGHLIGHT_NONE || h->color == TERM_COLOR_NONE)
        return buf_append(ret, line, len);
    s.language = &languages[h->language];
    if (h->open && len && quote_put(&s, h, h->open - 1, 0) < 0)
        return -1;
    while (s.at < s.end) {
        if (token_take(&s, h, line) < 0)
            return -1;
    }
    return 0;
}

int highlight_text(struct highlight *h, const char *text, size_t len, struct buf *ret)
{
    for (;;) {
        const char *newline = memchr(text, '\n', len);
        size_t n = newline ? (size_t)(newline - text) : len;

        if (highlight_line(h, text, n, ret) < 0)
            return -1;
        if (!newline)
            return 0;
        if (buf_append_byte(ret, '\n') < 0)
            return -1;
        text = newline + 1;
        len -= n + 1;
    }
}
