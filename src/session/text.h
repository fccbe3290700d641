/* SPDX-License-Identifier: MIT */
/*
 * Output text with a limit: keeps the first and the last part and says in between how much is
 * missing. Limits count characters; a cut is never inside a character or a terminal escape
 * sequence.
 */
#pragma once

#include "base/buf.h"
#include "wire/utf8.h"

#include <stdbool.h>
#include <stdint.h>

struct text_keep {
    size_t limit; /* characters */
    struct utf8_repair repair;
    struct buf head; /* the first limit/2 characters */
    struct buf tail; /* what came last; cut now and then */
    size_t head_chars;
    size_t tail_chars;
    uint64_t dropped_chars; /* left out between the two */
    uint64_t bytes;         /* raw bytes that came in */
    bool failed;            /* memory was short: the text is incomplete */
};

void text_keep_init(struct text_keep *t, size_t limit_chars);
void text_keep_done(struct text_keep *t);

/* Raw output bytes in any pieces. */
void text_keep_feed(struct text_keep *t, const void *data, size_t len);

/* The text as it would be now, appended to `ret`. Returns whether something was left out. */
bool text_keep_format(struct text_keep *t, struct buf *ret);

/* Cuts a finished text the same way: appended to `ret`; whether something was left out. */
bool text_cut(const char *text, size_t len, size_t limit_chars, struct buf *ret);
