/* SPDX-License-Identifier: MIT */
/*
 * Area reduction in integers. Lengths are counted so that they divide: a row of the source is
 * out.height long and a row of the result height, so every overlap is a whole number and the
 * weights of a pixel add up to width * height of the source. A pixel that is covered by one source
 * pixel alone comes out as it was.
 */
#include "shrink/picture.h"

#include <string.h>

void picture_done(struct picture *p)
{
    free(TAKE_PTR(p->pixels));
}

void picture_look(const struct picture *p, bool *ret_opaque, bool *ret_gray)
{
    size_t count = (size_t)p->width * p->height;
    const unsigned char *at = p->pixels;

    *ret_opaque = *ret_gray = true;
    for (size_t i = 0; i < count && (*ret_opaque || *ret_gray); i++, at += 4) {
        *ret_opaque &= at[3] == 255;
        *ret_gray &= at[0] == at[1] && at[1] == at[2];
    }
}

static uint32_t side_scaled(uint32_t side, uint32_t longest, uint32_t limit)
{
    uint64_t scaled = ((uint64_t)side * limit + longest / 2) / longest;

    return longest <= limit ? side : (uint32_t)MAX(scaled, 1u);
}

int reduction_init(struct reduction *r, uint32_t width, uint32_t height, uint32_t side,
                   struct error *reterr)
{
    uint32_t longest = MAX(width, height);
    struct picture *out = &r->out;

    *r = (struct reduction){.width = width, .height = height};
    out->width = side_scaled(width, longest, side);
    out->height = side_scaled(height, longest, side);
    r->line = calloc(out->width, 4 * sizeof(*r->line));
    r->sum = calloc(out->width, 4 * sizeof(*r->sum));
    out->pixels = malloc((size_t)out->width * out->height * 4);
    return r->line && r->sum && out->pixels ? 0 : error_no_memory(reterr);
}

void reduction_done(struct reduction *r)
{
    free(TAKE_PTR(r->line));
    free(TAKE_PTR(r->sum));
    picture_done(&r->out);
}

static void pixel_add(uint64_t *to, const unsigned char *rgba, uint64_t weight)
{
    uint64_t alpha = rgba[3] * weight;

    to[0] += rgba[0] * alpha;
    to[1] += rgba[1] * alpha;
    to[2] += rgba[2] * alpha;
    to[3] += alpha;
}

/* One row of the source into `line`, across. */
static void line_reduce(struct reduction *r, const unsigned char *rgba)
{
    uint64_t *to = r->line, room = r->width;
    uint32_t out_width = r->out.width;

    memset(r->line, 0, (size_t)out_width * 4 * sizeof(*r->line));
    for (uint32_t x = 0; x < r->width; x++, rgba += 4) {
        uint64_t first = MIN((uint64_t)out_width, room);

        pixel_add(to, rgba, first);
        room -= first;
        if (room)
            continue;
        to += 4;
        room = r->width;
        if (first < out_width) {
            pixel_add(to, rgba, out_width - first);
            room -= out_width - first;
        }
    }
}

static void sum_add(struct reduction *r, uint64_t weight)
{
    for (size_t i = 0; i < (size_t)r->out.width * 4; i++)
        r->sum[i] += r->line[i] * weight;
    r->filled += weight;
}

static void sum_write(struct reduction *r)
{
    unsigned char *to = r->out.pixels + (size_t)r->done * r->out.width * 4;
    uint64_t area = (uint64_t)r->width * r->height;

    for (uint32_t x = 0; x < r->out.width; x++, to += 4) {
        const uint64_t *sum = r->sum + (size_t)x * 4;
        uint64_t alpha = sum[3];

        for (int i = 0; i < 3; i++)
            to[i] = alpha ? (unsigned char)((sum[i] + alpha / 2) / alpha) : 0;
        to[3] = (unsigned char)((alpha + area / 2) / area);
    }
    memset(r->sum, 0, (size_t)r->out.width * 4 * sizeof(*r->sum));
    r->filled = 0;
    r->done++;
}

void reduction_row(struct reduction *r, const unsigned char *rgba)
{
    uint64_t left = r->out.height;

    if (r->row >= r->height)
        return;
    r->row++;
    line_reduce(r, rgba);
    while (left) {
        uint64_t part = MIN(left, r->height - r->filled);

        sum_add(r, part);
        left -= part;
        if (r->filled == r->height)
            sum_write(r);
    }
}

int picture_reduce(struct picture *p, uint32_t side, struct error *reterr)
{
    auto_reduction struct reduction r;
    int n = reduction_init(&r, p->width, p->height, side, reterr);

    if (n < 0)
        return n;
    for (uint32_t y = 0; y < p->height; y++)
        reduction_row(&r, p->pixels + (size_t)y * p->width * 4);
    picture_done(p);
    *p = r.out;
    r.out.pixels = NULL;
    return 0;
}
