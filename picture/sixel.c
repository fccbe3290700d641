/* SPDX-License-Identifier: MIT */
/*
 * A character is a column of six pixels in one colour. So each band is written once for each colour
 * that is in it, and a run of equal characters as its length.
 */
#include "picture/sixel.h"

#include "picture/palette.h"

#include <string.h>

enum { BAND = 6, RUN_MIN = 4, SIXEL_ZERO = '?' };

struct sixels {
    struct buf *ret;
    struct palette palette;
    uint32_t width, height;
    unsigned char *rgb;     /* three bytes a pixel */
    unsigned char *numbers; /* the colour of each pixel */
};

static void sixels_done(struct sixels **s)
{
    if (!*s)
        return;
    free((*s)->rgb);
    free((*s)->numbers);
    free(*s);
}

static void flatten(const struct picture *p, unsigned char *rgb)
{
    const unsigned char *from = p->pixels;

    for (size_t i = 0; i < (size_t)p->width * p->height; i++, from += 4) {
        for (int c = 0; c < 3; c++)
            *rgb++ = (unsigned char)((from[c] * from[3] + 255 * (255 - from[3]) + 127) / 255);
    }
}

static int header_write(struct sixels *s)
{
    if (buf_printf(s->ret, "\"1;1;%u;%u", s->width, s->height) < 0)
        return -1;
    for (unsigned i = 0; i < s->palette.count; i++) {
        const unsigned char *c = s->palette.rgb[i];

        /* Parts are in per cent. */
        if (buf_printf(s->ret, "#%u;2;%u;%u;%u", i, (c[0] * 100u + 127) / 255,
                       (c[1] * 100u + 127) / 255, (c[2] * 100u + 127) / 255) < 0)
            return -1;
    }
    return 0;
}

static int run_write(struct buf *ret, char c, size_t count)
{
    if (count >= RUN_MIN)
        return buf_printf(ret, "!%zu%c", count, c);
    while (count--) {
        if (buf_append_byte(ret, (unsigned char)c) < 0)
            return -1;
    }
    return 0;
}

static char column(const struct sixels *s, uint32_t x, uint32_t top, uint32_t rows,
                   unsigned char number)
{
    const unsigned char *at = s->numbers + (size_t)top * s->width + x;
    unsigned bits = 0;

    for (uint32_t y = 0; y < rows; y++, at += s->width)
        bits |= (unsigned)(*at == number) << y;
    return (char)(SIXEL_ZERO + bits);
}

/* One colour of a band, up to its last pixel there. */
static int color_write(struct sixels *s, uint32_t top, uint32_t rows, unsigned char number)
{
    char last = SIXEL_ZERO;
    size_t count = 0;

    if (buf_printf(s->ret, "#%u", number) < 0)
        return -1;
    for (uint32_t x = 0; x < s->width; x++) {
        char c = column(s, x, top, rows, number);

        if (c != last && run_write(s->ret, last, count) < 0)
            return -1;
        count = c == last ? count + 1 : 1;
        last = c;
    }
    return last == SIXEL_ZERO ? 0 : run_write(s->ret, last, count);
}

static int band_write(struct sixels *s, uint32_t top)
{
    uint32_t rows = MIN((uint32_t)BAND, s->height - top);
    const unsigned char *at = s->numbers + (size_t)top * s->width;
    bool used[PALETTE_COLORS] = {0}, is_first = true;

    for (size_t i = 0; i < (size_t)rows * s->width; i++)
        used[at[i]] = true;
    for (unsigned i = 0; i < s->palette.count; i++) {
        if (!used[i])
            continue;
        if ((!is_first && buf_append_byte(s->ret, '$') < 0) ||
            color_write(s, top, rows, (unsigned char)i) < 0)
            return -1;
        is_first = false;
    }
    return buf_append_byte(s->ret, '-');
}

int sixel_write(const struct picture *p, struct buf *ret, struct error *reterr)
{
    auto_cleanup(sixels_done) struct sixels *s = calloc(1, sizeof(*s));
    size_t count = (size_t)p->width * p->height;
    int r;

    if (!s)
        return error_no_memory(reterr);
    s->ret = ret;
    s->width = p->width;
    s->height = p->height;
    s->rgb = calloc(count, 3);
    s->numbers = malloc(count);
    if (!s->rgb || !s->numbers)
        return error_no_memory(reterr);
    flatten(p, s->rgb);
    if ((r = palette_make(s->rgb, count, &s->palette, reterr)) < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        s->numbers[i] = s->palette.number[palette_cell(s->rgb + 3 * i)];
    r = header_write(s);
    for (uint32_t top = 0; top < s->height && r == 0; top += BAND)
        r = band_write(s, top);
    return r < 0 ? error_set(reterr, ERR_LIMIT, "more sixels than can be drawn") : 0;
}
