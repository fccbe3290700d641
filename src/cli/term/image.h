/* SPDX-License-Identifier: MIT */
/*
 * Pictures in the terminal. The bytes are hostile: only their header is read here. kitty and iTerm2
 * take the file as it is; whatever needs pixels (sixel, a JPEG for kitty) is done by
 * sandbox-picture, a child that can read, write and compute.
 */
#pragma once

#include "cli/term/term.h"

enum { IMAGE_BYTES_MAX = 8 * 1024 * 1024 };

struct image_source {
    const void *data;
    size_t len;
    int stop_fd; /* readable: decoding ends (ERR_CANCELLED); -1 */
};

/*
 * Draws a PNG, JPEG or GIF, at most as wide as the terminal and 24 rows high, as finished output.
 * Returns 1 when it is drawn; 0 when this terminal or this kind cannot be (the caller names the
 * path of a saved file instead, see cli/display.h); <0 when it is refused, with the reason.
 */
int image_print(struct term *t, const struct image_source *source, struct error *reterr) must_check;

/* The same into a buffer, for a terminal of such abilities. */
int image_encode(const struct term_caps *caps, unsigned columns, const struct image_source *source,
                 struct buf *ret, struct error *reterr) must_check;
