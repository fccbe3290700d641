/* SPDX-License-Identifier: MIT */
/*
 * What an image says of itself: kind, size, number of frames. Nothing is decoded here or anywhere
 * else in the daemon, so a small file that would become gigabytes costs nothing.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_kind { IMAGE_PNG, IMAGE_JPEG, IMAGE_GIF, IMAGE_WEBP };

/* What is above it is neither shown to a model nor given to a decoder. */
enum { IMAGE_PIXELS_MAX = 40 * 1000 * 1000 };

struct image_header {
    enum image_kind kind;
    uint32_t width, height; /* never 0; of the largest frame where frames may pass the canvas */
    uint32_t frames;        /* at least 1 */
    bool interlaced;        /* PNG: it can only be decoded as a whole */
    bool whole;             /* its structure goes on to its end mark: it was not cut off */
};

/* ERR_INVALID when it is no image of a known kind, or one that no decoder would take. */
int image_header_parse(const void *data, size_t len, struct image_header *ret,
                       struct error *reterr) must_check;

static inline uint64_t image_pixels(const struct image_header *h)
{
    return (uint64_t)h->width * h->height;
}

const char *image_mime(enum image_kind kind);
