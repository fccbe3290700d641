/* SPDX-License-Identifier: MIT */
/* The colours that stand for all of a picture: median cut over colours of 15 bits. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { PALETTE_COLORS = 256, PALETTE_SIDE = 32, PALETTE_CELLS = 32 * 32 * 32 };

struct palette {
    unsigned count;
    unsigned char rgb[PALETTE_COLORS][3];
    unsigned char number[PALETTE_CELLS]; /* of each cell that the picture uses */
};

/* The cell of a colour. */
static inline unsigned palette_cell(const unsigned char *rgb)
{
    return (unsigned)(rgb[0] >> 3) << 10 | (unsigned)(rgb[1] >> 3) << 5 | rgb[2] >> 3;
}

/* `pixels`: RGB, three bytes each. A picture of no more than 256 cells keeps their mean colours. */
int palette_make(const unsigned char *pixels, size_t count, struct palette *ret,
                 struct error *reterr) must_check;
