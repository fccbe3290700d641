/* SPDX-License-Identifier: MIT */
/*
 * The cells that are used are one list; a box is a part of it. The box with the most pixels that
 * can be divided is sorted along its longest side and cut where half of its pixels are.
 */
#include "picture/palette.h"

#include <stdbool.h>
#include <string.h>

struct cell {
    uint64_t count, sum[3];
    unsigned char at[3]; /* its place in the cube */
    unsigned short index;
};

struct box {
    size_t first, count;
    uint64_t pixels;
    unsigned axis, extent; /* the longest side */
};

struct cutting {
    struct cell *cells, *spare;
    size_t cell_count;
    struct box boxes[PALETTE_COLORS];
    unsigned box_count;
};

static void box_measure(const struct cutting *c, struct box *b)
{
    unsigned low[3] = {31, 31, 31}, high[3] = {0};

    b->pixels = 0;
    b->extent = 0;
    for (size_t i = b->first; i < b->first + b->count; i++) {
        b->pixels += c->cells[i].count;
        for (unsigned a = 0; a < 3; a++) {
            low[a] = MIN(low[a], (unsigned)c->cells[i].at[a]);
            high[a] = MAX(high[a], (unsigned)c->cells[i].at[a]);
        }
    }
    for (unsigned a = 0; a < 3; a++) {
        if (high[a] - low[a] > b->extent) {
            b->extent = high[a] - low[a];
            b->axis = a;
        }
    }
}

/* By counting: libc's qsort() asks the system for the size of memory, which ends us. */
static void box_sort(struct cutting *c, const struct box *b)
{
    size_t start[PALETTE_SIDE + 1] = {0};
    struct cell *cells = c->cells + b->first;

    for (size_t i = 0; i < b->count; i++)
        start[cells[i].at[b->axis] + 1]++;
    for (size_t i = 1; i < PALETTE_SIDE; i++)
        start[i] += start[i - 1];
    for (size_t i = 0; i < b->count; i++)
        c->spare[start[cells[i].at[b->axis]]++] = cells[i];
    memcpy(cells, c->spare, b->count * sizeof(*cells));
}

static void box_cut(struct cutting *c, struct box *b)
{
    struct box *other = &c->boxes[c->box_count++];
    uint64_t half = 0;
    size_t n = 0;

    box_sort(c, b);
    while (n + 1 < b->count && (n == 0 || half + c->cells[b->first + n].count <= b->pixels / 2))
        half += c->cells[b->first + n++].count;
    *other = (struct box){.first = b->first + n, .count = b->count - n};
    b->count = n;
    box_measure(c, b);
    box_measure(c, other);
}

static struct box *box_largest(struct cutting *c)
{
    struct box *best = NULL;

    for (unsigned i = 0; i < c->box_count; i++) {
        struct box *b = &c->boxes[i];

        if (b->count > 1 && (!best || b->pixels * b->extent > best->pixels * best->extent))
            best = b;
    }
    return best;
}

/* All colours of the picture, by cell; the list has only those that occur. */
static void cells_fill(struct cutting *c, const unsigned char *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++, pixels += 3) {
        struct cell *cell = &c->cells[palette_cell(pixels)];

        cell->count++;
        for (unsigned a = 0; a < 3; a++)
            cell->sum[a] += pixels[a];
    }
    for (unsigned i = 0; i < PALETTE_CELLS; i++) {
        struct cell cell = c->cells[i];

        if (cell.count == 0)
            continue;
        cell.index = (unsigned short)i;
        cell.at[0] = (unsigned char)(i >> 10);
        cell.at[1] = i >> 5 & 31;
        cell.at[2] = i & 31;
        c->cells[c->cell_count++] = cell;
    }
}

static void color_take(const struct cutting *c, const struct box *b, unsigned number,
                       struct palette *ret)
{
    uint64_t sum[3] = {0};

    for (size_t i = b->first; i < b->first + b->count; i++) {
        ret->number[c->cells[i].index] = (unsigned char)number;
        for (unsigned a = 0; a < 3; a++)
            sum[a] += c->cells[i].sum[a];
    }
    for (unsigned a = 0; a < 3; a++)
        ret->rgb[number][a] = (unsigned char)((sum[a] + b->pixels / 2) / MAX(b->pixels, 1u));
}

int palette_make(const unsigned char *pixels, size_t count, struct palette *ret,
                 struct error *reterr)
{
    auto_free struct cell *cells = calloc(PALETTE_CELLS, sizeof(*cells));
    auto_free struct cell *spare = calloc(PALETTE_CELLS, sizeof(*spare));
    struct cutting c = {.cells = cells, .spare = spare, .box_count = 1};
    struct box *b;

    if (!cells || !spare)
        return error_no_memory(reterr);
    memset(ret, 0, sizeof(*ret));
    cells_fill(&c, pixels, count);
    c.boxes[0] = (struct box){.count = c.cell_count};
    box_measure(&c, &c.boxes[0]);
    while (c.box_count < PALETTE_COLORS && (b = box_largest(&c)))
        box_cut(&c, b);
    ret->count = c.cell_count ? c.box_count : 0;
    for (unsigned i = 0; i < ret->count; i++)
        color_take(&c, &c.boxes[i], i, ret);
    return 0;
}
