/* SPDX-License-Identifier: MIT */
/*
 * Every sequence begins with 0, which forgets what was before: so none of them depends on another,
 * and what is cut, wrapped or moved keeps its looks.
 */
#include "cli/term/style.h"

#include "base/str.h"

enum { RED = 1, GREEN, YELLOW, BLUE, MAGENTA, CYAN, BRIGHT = 8 };

static const struct style styles[STYLE_ROLE_COUNT] = {
    [STYLE_PLAIN] = {},
    [STYLE_HEADING] = {.attrs = STYLE_BOLD, .fg = STYLE_INDEX(CYAN)},
    [STYLE_STRONG] = {.attrs = STYLE_BOLD},
    [STYLE_FAINT] = {.fg = STYLE_INDEX(BRIGHT)},
    [STYLE_CODE] = {.fg = STYLE_INDEX(YELLOW)},
    [STYLE_LINK] = {.attrs = STYLE_UNDERLINE, .fg = STYLE_INDEX(BLUE)},
    [STYLE_MATH] = {.attrs = STYLE_ITALIC, .fg = STYLE_INDEX(CYAN)},
    [STYLE_MARK] = {.fg = STYLE_INDEX(CYAN)},
    [STYLE_COMMENT] = {.fg = STYLE_INDEX(BRIGHT)},
    [STYLE_STRING] = {.fg = STYLE_INDEX(GREEN)},
    [STYLE_NUMBER] = {.fg = STYLE_INDEX(CYAN)},
    [STYLE_KEYWORD] = {.fg = STYLE_INDEX(MAGENTA)},
    [STYLE_FUNCTION] = {.fg = STYLE_INDEX(BLUE)},
    [STYLE_RUNNING] = {.fg = STYLE_INDEX(CYAN)},
    [STYLE_OK] = {.fg = STYLE_INDEX(GREEN)},
    [STYLE_ERROR] = {.fg = STYLE_INDEX(RED)},
    [STYLE_WARNING] = {.fg = STYLE_INDEX(YELLOW)},
    [STYLE_USER] = {.attrs = STYLE_BOLD, .fg = STYLE_INDEX(GREEN)},
};

const struct style *style_of(enum style_role role)
{
    return &styles[(unsigned)role < STYLE_ROLE_COUNT ? role : STYLE_PLAIN];
}

bool style_equal(const struct style *a, const struct style *b)
{
    return a->attrs == b->attrs && a->fg == b->fg && a->bg == b->bg;
}

/* ---- fewer colours ---- */

static const uint32_t palette[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                     0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                     0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};

static unsigned part(uint32_t rgb, int shift)
{
    return rgb >> shift & 0xff;
}

static unsigned distance(uint32_t a, uint32_t b)
{
    unsigned sum = 0;

    for (int shift = 0; shift < 24; shift += 8) {
        int d = (int)part(a, shift) - (int)part(b, shift);

        sum += (unsigned)(d * d);
    }
    return sum;
}

/* What xterm and all that follow it mean by the numbers from 16 on: a cube, and greys. */
static uint32_t index_rgb(unsigned index)
{
    static const unsigned steps[6] = {0, 95, 135, 175, 215, 255};
    unsigned grey;

    if (index < 16)
        return palette[index];
    if (index < 232) {
        index -= 16;
        return steps[index / 36] << 16 | steps[index / 6 % 6] << 8 | steps[index % 6];
    }
    grey = (index - 232) * 10 + 8;
    return grey << 16 | grey << 8 | grey;
}

static unsigned nearest(uint32_t rgb, unsigned first, unsigned end)
{
    unsigned best = first;

    for (unsigned i = first; i < end; i++) {
        if (distance(rgb, index_rgb(i)) < distance(rgb, index_rgb(best)))
            best = i;
    }
    return best;
}

static uint32_t color_reduce(uint32_t value, enum term_color color)
{
    bool is_index = (value & STYLE_INDEX(0)) != 0;
    uint32_t rgb = value & 0xffffff;

    if (value == 0 || (is_index && (rgb < 16 || color >= TERM_COLOR_256)) ||
        color == TERM_COLOR_TRUE)
        return value;
    if (color == TERM_COLOR_256)
        return STYLE_INDEX(nearest(rgb, 16, 256));
    return STYLE_INDEX(nearest(is_index ? index_rgb(rgb & 0xff) : rgb, 0, 16));
}

/* ---- sequences ---- */

/* `base` is 30 for the text and 40 for what is behind it. */
static int color_put(struct buf *ret, uint32_t value, unsigned base)
{
    uint32_t n = value & 0xffffff;

    if (value == 0)
        return 0;
    if (value & STYLE_RGB(0))
        return buf_printf(ret, ";%u;2;%u;%u;%u", base + 8, part(n, 16), part(n, 8), part(n, 0));
    if (n >= 16)
        return buf_printf(ret, ";%u;5;%u", base + 8, n);
    return buf_printf(ret, ";%u", n < 8 ? base + n : base + 60 + n - 8);
}

int style_put(struct buf *ret, const struct style *style, enum term_color color)
{
    static const unsigned numbers[] = {1, 2, 3, 4, 7, 9}; /* of enum style_attr */

    if (color == TERM_COLOR_NONE)
        return 0;
    if (buf_append_str(ret, "\033[0") < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (style->attrs & 1u << i && buf_printf(ret, ";%u", numbers[i]) < 0)
            return -1;
    }
    if (color_put(ret, color_reduce(style->fg, color), 30) < 0 ||
        color_put(ret, color_reduce(style->bg, color), 40) < 0)
        return -1;
    return buf_append_byte(ret, 'm');
}

int style_text(struct buf *ret, enum style_role role, enum term_color color, const char *text,
               size_t len)
{
    if (role == STYLE_PLAIN)
        return buf_append(ret, text, len);
    if (style_put(ret, style_of(role), color) < 0 || buf_append(ret, text, len) < 0)
        return -1;
    return style_put(ret, style_of(STYLE_PLAIN), color);
}
