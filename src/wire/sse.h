/* SPDX-License-Identifier: MIT */
/* Server-sent events as text, and never more or fewer events than were meant. */
#pragma once

#include "base/buf.h"

struct sse_event {
    const char *event, *id; /* NULL: left out */
    const char *data;       /* NULL: left out, and then nothing is dispatched by clients */
    size_t len;
    long retry_ms; /* 0: left out */
};

/*
 * Appends one event. Every line end in the data (CR LF, CR, LF) becomes a line of its own, so a
 * client sees LF in its place. 0; -1 when `event` or `id` would end its line or `ret` is full.
 */
int sse_format(const struct sse_event *event, struct buf *ret) must_check;

/* Appends a comment, which clients pass over. -1 when the text would end its line. */
int sse_comment_format(const char *text, struct buf *ret) must_check;
