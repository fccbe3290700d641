/* SPDX-License-Identifier: MIT */
/*
 * Pictures in memory, and the reduction to a smaller one. Each new pixel is the mean of the area
 * that it covers. The mean is taken of the values as they are coded and not of the light: dark
 * lines of a plot on white then keep their contrast when they become thinner than a pixel.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct picture {
    uint32_t width, height;
    unsigned char *pixels; /* rows of RGBA, alpha not multiplied in */
};

void picture_done(struct picture *p);

/* Whether all pixels are opaque, and whether all are grey. */
void picture_look(const struct picture *p, bool *ret_opaque, bool *ret_gray);

/* A reduction that is fed row by row; `out` is complete when all rows are in. */
struct reduction {
    uint32_t width, height; /* of the source */
    uint32_t row;           /* of the source: the next one */
    uint32_t done;          /* rows of `out` that are complete */
    uint64_t filled;        /* how much of the next row's height is in */
    uint64_t *line, *sum;   /* 4 values a pixel: a reduced row; the next row */
    struct picture out;
};

/* To a longest side of at most `side`; a smaller picture keeps its size. */
int reduction_init(struct reduction *r, uint32_t width, uint32_t height, uint32_t side,
                   struct error *reterr) must_check;
void reduction_done(struct reduction *r);
void reduction_row(struct reduction *r, const unsigned char *rgba);

/* Reduces a whole picture in its place. */
int picture_reduce(struct picture *p, uint32_t side, struct error *reterr) must_check;

#define auto_picture __attribute__((cleanup(picture_done)))
#define auto_reduction __attribute__((cleanup(reduction_done)))
