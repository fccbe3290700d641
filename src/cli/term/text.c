/* SPDX-License-Identifier: MIT */
/*
 * Widths come from libc's table of Unicode, by a locale of our own: that of the user may be "C",
 * where every character above ASCII has none.
 */
#include "cli/term/text.h"

#include "base/str.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wchar.h>

enum { ESCAPE = 0x1b, SEQUENCE_MAX = 64, TAB = 8 };

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t utf8_locale;

static void locale_make(void)
{
    utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* ---- characters ---- */

int text_char_width(uint32_t c)
{
    locale_t before;
    int width;

    if (c < 0x7f)
        return c >= 0x20 || c == '\t';
    pthread_once(&locale_once, locale_make);
    if (!utf8_locale)
        return 1;
    before = uselocale(utf8_locale);
    width = wcwidth((wchar_t)c);
    uselocale(before);
    return MAX(width, 0);
}

uint32_t text_char(const char *text, size_t len, size_t *ret_len)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    char one[5] = "";
    size_t n;
    uint32_t c;

    *ret_len = 1;
    if (len && (unsigned char)*text < 0x80)
        return (unsigned char)*text;
    memcpy(one, text, MIN(len, sizeof(one) - 1));
    n = str_character((const unsigned char *)one);
    if (n == 0)
        return 0xfffd;
    c = (unsigned char)one[0] & masks[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)one[i] & 0x3f);
    *ret_len = n;
    return c;
}

size_t text_sequence(const char *text, size_t len)
{
    size_t n = 2;

    if (len < 3 || text[0] != ESCAPE || text[1] != '[')
        return 0;
    while (n < len && n < SEQUENCE_MAX && text[n] && strchr("0123456789;", text[n]))
        n++;
    return n < len && text[n] == 'm' ? n + 1 : 0;
}

/* One sequence or character: its bytes, and its columns. */
static size_t unit(const char *text, size_t len, size_t *ret_width)
{
    size_t n = text_sequence(text, len);

    *ret_width = 0;
    if (n == 0)
        *ret_width = (size_t)text_char_width(text_char(text, len, &n));
    return n;
}

size_t text_width(const char *text, size_t len)
{
    size_t sum = 0, width;

    for (size_t at = 0; at < len; sum += width)
        at += unit(text + at, len - at, &width);
    return sum;
}

size_t text_fit(const char *text, size_t len, size_t width)
{
    size_t at = 0, sum = 0, columns;

    while (at < len) {
        size_t n = unit(text + at, len - at, &columns);

        if (sum + columns > width)
            break;
        sum += columns;
        at += n;
    }
    return at;
}

/* ---- lines ---- */

/* The lines being made of one text. */
struct wrapping {
    struct buf *ret;
    const struct text_wrap *wrap;
    const char *style; /* the sequence that is in force; NULL: plain */
    size_t style_len;
    bool is_first;
};

static bool is_plain(const char *sequence, size_t len)
{
    return len == 4 && memcmp(sequence, "\033[0m", 4) == 0;
}

static void style_note(struct wrapping *w, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = text_sequence(text + at, len - at);

        if (n) {
            w->style = is_plain(text + at, n) ? NULL : text + at;
            w->style_len = n;
        }
        at += n ? n : 1;
    }
}

/* One line: what is before it, the style that goes on, the text, and plain again. */
static int line_put(struct wrapping *w, const char *text, size_t len)
{
    const char *before = w->is_first ? w->wrap->first : w->wrap->rest;
    size_t before_len = strlen(before);

    w->is_first = false;
    while (len == 0 && before_len && before[before_len - 1] == ' ')
        before_len--;
    if (buf_append(w->ret, before, before_len) < 0 ||
        (w->style && len && buf_append(w->ret, w->style, w->style_len) < 0))
        return -1;
    if (len)
        style_note(w, text, len);
    if (buf_append(w->ret, text, len) < 0 ||
        (w->style && len && buf_append_str(w->ret, "\033[0m") < 0))
        return -1;
    return buf_append_byte(w->ret, '\n');
}

static size_t width_left(const struct wrapping *w)
{
    const char *before = w->is_first ? w->wrap->first : w->wrap->rest;
    size_t used = text_width(before, strlen(before));

    return w->wrap->width > used + 1 ? w->wrap->width - used : 1;
}

/* Prose may be broken behind a space, and behind a wide character (Chinese has no spaces). */
static bool may_break(const char *text, size_t at)
{
    size_t start = at - 1, len;

    if (text[at - 1] == ' ')
        return true;
    while (start && at - start < 4 && ((unsigned char)text[start] & 0xc0) == 0x80)
        start--;
    return text_char_width(text_char(text + start, at - start, &len)) == 2 && start + len == at;
}

/* Where to break a text that is too long: behind the last space that fits, else after what fits. */
static size_t break_find(const struct wrapping *w, const char *text, size_t len)
{
    size_t fit = text_fit(text, len, width_left(w)), at = fit, width;

    if (fit == len)
        return len;
    if (!w->wrap->hard) {
        if (text[at] == ' ')
            return at;
        while (at && !may_break(text, at))
            at--;
        if (text_width(text, at))
            return at;
    }
    /* A wide character in a single column goes there all the same. */
    return text_width(text, fit) ? fit : fit + unit(text + fit, len - fit, &width);
}

static size_t spaces_at_end(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[len - 1 - n] == ' ')
        n++;
    return n;
}

/* A line of the text, which has no '\n'. */
static int paragraph_wrap(struct wrapping *w, const char *text, size_t len)
{
    bool is_more = true;

    while (is_more) {
        size_t at = w->wrap->width ? break_find(w, text, len) : len, next = at;
        size_t spaces = w->wrap->hard ? 0 : spaces_at_end(text, at);

        if (line_put(w, text, at - spaces) < 0)
            return -1;
        while (!w->wrap->hard && next < len && text[next] == ' ')
            next++;
        is_more = next < len;
        text += next;
        len -= next;
    }
    return 0;
}

int text_wrap(struct buf *ret, const char *text, size_t len, const struct text_wrap *wrap)
{
    struct wrapping w = {.ret = ret, .wrap = wrap, .is_first = true};

    for (;;) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;

        if (paragraph_wrap(&w, text, n) < 0)
            return -1;
        if (!end || n + 1 == len)
            return 0;
        text += n + 1;
        len -= n + 1;
    }
}

int text_repeat(struct buf *ret, const char *s, size_t count)
{
    int r = 0;

    while (r == 0 && count--)
        r = buf_append_str(ret, s);
    return r;
}

int text_expand(struct buf *ret, const char *text, size_t len)
{
    size_t column = 0, width;

    for (size_t at = 0, n; at < len; at += n) {
        int r;

        n = unit(text + at, len - at, &width);
        if (text[at] == '\t') {
            width = TAB - column % TAB;
            r = text_repeat(ret, " ", width);
        } else {
            r = buf_append(ret, text + at, n);
        }
        if (r < 0)
            return -1;
        column = text[at] == '\n' ? 0 : column + width;
    }
    return 0;
}

int text_pad(struct buf *ret, const char *text, size_t len, size_t width)
{
    size_t columns = text_width(text, len);

    if (columns > width) {
        len = width ? text_fit(text, len, width - 1) : 0;
        columns = text_width(text, len);
        if (buf_append(ret, text, len) < 0 || buf_append_str(ret, width ? "…" : "") < 0)
            return -1;
        if (memchr(text, ESCAPE, len) && buf_append_str(ret, "\033[0m") < 0)
            return -1;
        columns += width > 0;
    } else if (buf_append(ret, text, len) < 0) {
        return -1;
    }
    return text_repeat(ret, " ", width - columns);
}
