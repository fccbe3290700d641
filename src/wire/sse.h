/* SPDX-License-Identifier: MIT */
/* Server-sent events as text, and never more or fewer events than were meant; and what a stream
 * from elsewhere says. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>

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

/*
 * The other side: bytes in, events out, by the rules of the HTML standard (LF, CR LF and CR; a BOM
 * at the start; several data lines; comments). One event is bounded by `data_max`.
 */
struct sse_parser {
    struct buf line, data;
    char event[128]; /* "" for none: then it is a "message" */
    char id[256];    /* of the last one that had one */
    bool had_cr, started, has_data;
};

/* `event` ("message" when none was given) and `data` (NUL-terminated) live until it returns; <0
 * ends the feed with that failure. */
typedef int sse_event_fn(void *user, const char *event, const char *data, size_t len,
                         struct error *reterr);

void sse_parser_init(struct sse_parser *p, size_t data_max);
void sse_parser_done(struct sse_parser *p);
/* ERR_LIMIT for a line or an event that is too large. An event that is not ended by an empty line
 * is never given. */
int sse_parser_feed(struct sse_parser *p, const char *data, size_t len, sse_event_fn *each,
                    void *user, struct error *reterr) must_check;
