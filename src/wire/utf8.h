/* SPDX-License-Identifier: MIT */
/*
 * Streaming UTF-8 repair: bytes in pieces, valid UTF-8 out. Ill-formed bytes become U+FFFD, one per
 * maximal subpart (Unicode 15, section 3.9, as browsers and Python do); a character split over two
 * pieces comes out whole.
 */
#pragma once

#include "base/buf.h"

struct utf8_repair {
    unsigned char pending[4]; /* start of a character whose rest has not come */
    size_t pending_len;
};

/* Appends the repaired text of the piece. 0, or -1 when `ret` is full. */
int utf8_repair_feed(struct utf8_repair *u, const void *data, size_t len,
                     struct buf *ret) must_check;

/* The end of the stream: an unfinished character becomes U+FFFD. */
int utf8_repair_finish(struct utf8_repair *u, struct buf *ret) must_check;

/* Number of characters of valid UTF-8. */
/* How many bytes of a text to keep, at most `max`: a cut is never inside a character. */
size_t utf8_cut(const char *text, size_t len, size_t max);

size_t utf8_count(const char *text, size_t len);
