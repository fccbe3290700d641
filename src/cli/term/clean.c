/* SPDX-License-Identifier: MIT */
/*
 * A terminal obeys what it is sent: it changes titles and modes, and answers questions as if the
 * answer had been typed. So sequences are taken apart here as a terminal would, and thrown away;
 * colours are not passed on but understood and written anew. A sequence that does not end is over
 * at the end of the line, so it cannot swallow what follows.
 */
#include "cli/term/clean.h"

#include "base/str.h"
#include "cli/term/text.h"

#include <stdio.h>
#include <string.h>

enum {
    BELL = 0x07,
    CANCEL = 0x18,
    SUBSTITUTE = 0x1a,
    ESCAPE = 0x1b,
    MARKS_MAX = 8, /* combining characters on one other */
    FEED_PIECE = 16 * 1024,
};

enum state {
    IN_TEXT,
    IN_ESCAPE,
    IN_CHARSET, /* ESC and bytes below '0': one final byte follows */
    IN_CONTROL, /* CSI */
    IN_STRING,  /* OSC, DCS, APC, PM, SOS */
    IN_STRING_ESCAPE,
};

/* ---- characters that are not seen ---- */

static const struct range {
    uint32_t first, last;
} hidden_ranges[] = {
    {0x00ad, 0x00ad}, {0x034f, 0x034f},   {0x061c, 0x061c},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f}, {0x200b, 0x200f},   {0x202a, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
    {0xfdd0, 0xfdef}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0xfffe, 0xffff}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_hidden(uint32_t c)
{
    size_t low = 0, high = ARRAY_LEN(hidden_ranges);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c > hidden_ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ARRAY_LEN(hidden_ranges) && c >= hidden_ranges[low].first;
}

/* Persian and Indian scripts are spelt with joiners: one, behind a letter of theirs. */
static bool is_joiner(uint32_t c, uint32_t last)
{
    return (c == 0x200c || c == 0x200d) && last >= 0x0600 && last <= 0x0dff;
}

/* ---- output ---- */

static int style_show(struct clean *c, const struct style *style, struct buf *ret)
{
    if (style_equal(style, &c->shown))
        return 0;
    c->shown = *style;
    return style_put(ret, style, c->color);
}

static int newline_put(struct clean *c, struct buf *ret)
{
    c->last = '\n';
    c->marks = 0;
    return style_show(c, style_of(STYLE_PLAIN), ret) < 0 ? -1 : buf_append_byte(ret, '\n');
}

static int visible_put(const struct clean *c, uint32_t value, struct buf *ret)
{
    static const struct style inverse = {.attrs = STYLE_INVERSE};

    if (style_put(ret, &inverse, c->color) < 0 ||
        buf_printf(ret, value < 0x100 ? "\\x%02x" : "<U+%04X>", value) < 0)
        return -1;
    return style_put(ret, style_of(STYLE_PLAIN), c->color);
}

/* A character as it stands, unless it is one mark too many. */
static int character_put(struct clean *c, uint32_t value, const char *bytes, size_t len,
                         struct buf *ret)
{
    c->marks = text_char_width(value) == 0 ? c->marks + 1 : 0;
    c->last = value;
    if (c->marks > MARKS_MAX)
        return c->mode == CLEAN_VISIBLE ? visible_put(c, value, ret) : 0;
    return style_show(c, &c->style, ret) < 0 ? -1 : buf_append(ret, bytes, len);
}

/* ---- colours ---- */

struct numbers {
    unsigned count;
    unsigned value[CLEAN_SEQUENCE_MAX];
};

/* Digits between ';' or ':'; an empty one is 0. False when there is anything else. */
static bool numbers_parse(const char *text, size_t len, struct numbers *ret)
{
    ret->count = 1;
    ret->value[0] = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned *n = &ret->value[ret->count - 1];

        if (text[i] == ';' || text[i] == ':') {
            if (ret->count == ARRAY_LEN(ret->value))
                return false;
            ret->value[ret->count++] = 0;
        } else if (text[i] < '0' || text[i] > '9' || *n > 1000) {
            return false;
        } else {
            *n = *n * 10 + (unsigned)(text[i] - '0');
        }
    }
    return true;
}

/* 38 or 48 with what follows; how many numbers behind it belong to it. */
static unsigned color_parse(const unsigned *n, unsigned left, uint32_t *ret)
{
    if (left >= 2 && n[0] == 5) {
        *ret = STYLE_INDEX(n[1] & 0xff);
        return 2;
    }
    if (left >= 4 && n[0] == 2) {
        *ret = STYLE_RGB((n[1] & 0xff) << 16 | (n[2] & 0xff) << 8 | (n[3] & 0xff));
        return 4;
    }
    return left;
}

/* 1 to 9, and 21 to 29, which end them. */
static void attr_set(struct style *s, unsigned n)
{
    static const unsigned attrs[10] = {
        [1] = STYLE_BOLD,      [2] = STYLE_DIM,     [3] = STYLE_ITALIC,
        [4] = STYLE_UNDERLINE, [7] = STYLE_INVERSE, [9] = STYLE_STRIKE,
    };

    if (n < 10)
        s->attrs |= attrs[n];
    else if (n == 22)
        s->attrs &= ~(unsigned)(STYLE_BOLD | STYLE_DIM);
    else
        s->attrs &= ~attrs[n % 10];
}

/* One number that stands for itself. */
static void style_change(struct style *s, unsigned n)
{
    if (n == 0)
        *s = (struct style){};
    else if (n < 10 || (n > 20 && n < 30))
        attr_set(s, n);
    else if (n >= 30 && n <= 37)
        s->fg = STYLE_INDEX(n - 30);
    else if (n == 39)
        s->fg = 0;
    else if (n >= 40 && n <= 47)
        s->bg = STYLE_INDEX(n - 40);
    else if (n == 49)
        s->bg = 0;
    else if (n >= 90 && n <= 97)
        s->fg = STYLE_INDEX(n - 90 + 8);
    else if (n >= 100 && n <= 107)
        s->bg = STYLE_INDEX(n - 100 + 8);
}

/* Text in the colour of what is behind it would be there without being seen. */
static void colors_apply(struct clean *c)
{
    struct numbers n;

    if (c->len > sizeof(c->held) || !numbers_parse(c->held, c->len, &n))
        return;
    for (unsigned i = 0; i < n.count; i++) {
        if (n.value[i] == 38)
            i += color_parse(n.value + i + 1, n.count - i - 1, &c->style.fg);
        else if (n.value[i] == 48)
            i += color_parse(n.value + i + 1, n.count - i - 1, &c->style.bg);
        else
            style_change(&c->style, n.value[i]);
    }
    if (c->style.bg == c->style.fg)
        c->style.bg = 0;
}

/* ---- sequences ---- */

/* The state that a character begins, or IN_TEXT. The second half are single characters (C1). */
static enum state introduced(uint32_t c)
{
    if (c == '[' || c == 0x9b)
        return IN_CONTROL;
    if (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X')
        return IN_STRING;
    if (c == 0x90 || c == 0x98 || c == 0x9d || c == 0x9e || c == 0x9f)
        return IN_STRING;
    return IN_TEXT;
}

static bool ends_line(uint32_t c)
{
    return c == '\n' || c == '\r';
}

/*
 * Each takes one character in its state, after the state was set back to IN_TEXT; false when the
 * character is not of the sequence, and must be looked at again.
 */
typedef bool take_fn(struct clean *c, uint32_t value);

static bool escape_take(struct clean *c, uint32_t value)
{
    if (value < 0x20 || value >= 0x7f)
        return false;
    c->state = (unsigned char)(value < 0x30 ? IN_CHARSET : introduced(value));
    return true;
}

static bool charset_take(struct clean *c, uint32_t value)
{
    if (value < 0x20 || value >= 0x7f)
        return false;
    if (value < 0x30)
        c->state = IN_CHARSET;
    return true;
}

static bool control_take(struct clean *c, uint32_t value)
{
    if (value < 0x20 || value >= 0x7f)
        return false;
    if (value < 0x40) {
        c->state = IN_CONTROL;
        if (c->len < sizeof(c->held))
            c->held[c->len] = (char)value;
        c->len += c->len <= sizeof(c->held);
    } else if (value == 'm' && c->mode == CLEAN_COLORS) {
        colors_apply(c);
    }
    return true;
}

static bool string_take(struct clean *c, uint32_t value)
{
    if (ends_line(value))
        return false;
    if (value == ESCAPE)
        c->state = IN_STRING_ESCAPE;
    else if (value != BELL && value != 0x9c && value != CANCEL && value != SUBSTITUTE)
        c->state = IN_STRING;
    return true;
}

/* ESC \ ends the string; any other sequence does, too, and begins. */
static bool string_escape_take(struct clean *c, uint32_t value)
{
    return value == '\\' || escape_take(c, value);
}

static bool sequence_take(struct clean *c, uint32_t value)
{
    static take_fn *const takers[] = {
        [IN_ESCAPE] = escape_take,
        [IN_CHARSET] = charset_take,
        [IN_CONTROL] = control_take,
        [IN_STRING] = string_take,
        [IN_STRING_ESCAPE] = string_escape_take,
    };
    take_fn *take = takers[c->state];

    c->state = IN_TEXT;
    return take(c, value);
}

/* ---- one character ---- */

static int control_put(struct clean *c, uint32_t value, struct buf *ret)
{
    const char caret[2] = {'^', (char)(value ^ 0x40)};

    c->len = 0; /* of a CSI that follows */
    if (value == ESCAPE)
        c->state = IN_ESCAPE;
    else if (value >= 0x80)
        c->state = (unsigned char)introduced(value);
    else if (style_show(c, &c->style, ret) < 0 || buf_append(ret, caret, sizeof(caret)) < 0)
        return -1;
    return 0;
}

static int text_put(struct clean *c, uint32_t value, const char *bytes, size_t len, struct buf *ret)
{
    bool is_control = value < 0x20 || (value >= 0x7f && value < 0xa0);

    bool is_separator = value == 0x2028 || value == 0x2029; /* lines end there for JavaScript */

    if (is_separator && c->mode == CLEAN_VISIBLE && visible_put(c, value, ret) < 0)
        return -1;
    if (value == '\n' || is_separator)
        return newline_put(c, ret);
    if (value == '\t')
        return character_put(c, value, bytes, len, ret);
    if (c->mode == CLEAN_VISIBLE && (is_control || is_hidden(value)))
        return visible_put(c, value, ret);
    if (is_control)
        return control_put(c, value, ret);
    if (is_hidden(value) && !is_joiner(value, c->last))
        return 0;
    return character_put(c, value, bytes, len, ret);
}

/* A '\r' is decided by what follows it. */
static int return_decide(struct clean *c, uint32_t next, struct buf *ret)
{
    c->is_return = false;
    if (next == '\n')
        return 0;
    if (!c->keep_return)
        return newline_put(c, ret);
    return style_show(c, style_of(STYLE_PLAIN), ret) < 0 ? -1 : buf_append_byte(ret, '\r');
}

static int character_take(struct clean *c, uint32_t value, const char *bytes, size_t len,
                          struct buf *ret)
{
    if (c->is_return && value == '\r')
        return 0;
    if (c->is_return && return_decide(c, value, ret) < 0)
        return -1;
    if (c->state != IN_TEXT && sequence_take(c, value))
        return 0;
    if (value == '\r' && c->mode != CLEAN_VISIBLE) {
        c->is_return = true;
        return 0;
    }
    return text_put(c, value, bytes, len, ret);
}

/* ---- all ---- */

static int repaired_take(struct clean *c, const char *text, size_t len, struct buf *ret)
{
    for (size_t at = 0, n; at < len; at += n) {
        uint32_t value = text_char(text + at, len - at, &n);

        if (character_take(c, value, text + at, n, ret) < 0)
            return -1;
    }
    return 0;
}

int clean_feed(struct clean *c, const void *data, size_t len, struct buf *ret)
{
    const char *from = data;
    auto_buf struct buf repaired;

    buf_init(&repaired, 4 * (size_t)FEED_PIECE); /* a bad byte becomes three */
    while (len) {
        size_t n = MIN(len, (size_t)FEED_PIECE);

        buf_clear(&repaired);
        if (utf8_repair_feed(&c->repair, from, n, &repaired) < 0 ||
            repaired_take(c, buf_str(&repaired), repaired.len, ret) < 0)
            return -1;
        from += n;
        len -= n;
    }
    return 0;
}

int clean_finish(struct clean *c, struct buf *ret)
{
    auto_buf struct buf rest;

    buf_init(&rest, 8);
    if (utf8_repair_finish(&c->repair, &rest) < 0 ||
        repaired_take(c, buf_str(&rest), rest.len, ret) < 0)
        return -1;
    if (c->is_return && return_decide(c, 0, ret) < 0)
        return -1;
    c->state = IN_TEXT;
    c->style = (struct style){};
    return style_show(c, style_of(STYLE_PLAIN), ret);
}

int clean_text(const char *text, size_t len, enum clean_mode mode, struct buf *ret)
{
    struct clean c = {.mode = mode};

    return clean_feed(&c, text, len, ret) < 0 || clean_finish(&c, ret) < 0 ? -1 : 0;
}

int clean_line(const char *text, size_t columns, struct buf *ret)
{
    auto_buf struct buf one;
    size_t len = strlen(text);
    size_t bytes = utf8_cut(text, len, 16 * columns + CLEAN_SEQUENCE_MAX), fit;

    buf_init(&one, 4 * bytes + 16);
    if (clean_text(text, bytes, CLEAN_STRIP, &one) < 0)
        return -1;
    for (size_t i = 0; i < one.len; i++) {
        if (one.data[i] == '\n' || one.data[i] == '\t')
            one.data[i] = ' ';
    }
    fit = text_fit(buf_str(&one), one.len, columns);
    if (fit == one.len && bytes == len)
        return buf_append(ret, buf_str(&one), one.len);
    fit = columns ? text_fit(buf_str(&one), one.len, columns - 1) : 0;
    return buf_append(ret, buf_str(&one), fit) < 0 ? -1 : buf_append_str(ret, columns ? "…" : "");
}
