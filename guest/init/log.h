/* SPDX-License-Identifier: MIT */
/*
 * The log of one run: every frame that belongs to it, as it travels on the wire, addressed by
 * offset. Bounded: of output the first 256 KiB and the last 4 MiB stay, and what goes leaves a gap
 * that a reader is told of by DROPPED; displays, result and error stay up to 64 MiB.
 *
 * A block is either up to 64 KiB of output frames, one event frame, or a gap. Readers are cursors
 * which the log knows, so that a block under a cursor can turn into a gap.
 */
#pragma once

#include "base/error.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LOG_HEAD = 256 * 1024,
    LOG_TAIL = 4 * 1024 * 1024,
    LOG_EVENTS = 64 * 1024 * 1024,
    LOG_EVENTS_ALL = 192 * 1024 * 1024, /* of all logs: they are charged to the session */
    LOG_BLOCK = FRAME_HEADER + FRAME_BULK_MAX,
    LOG_EVENT_COST = 192, /* what a small event takes beside its bytes */
    LOG_NOTE_MAX = 128,
};

enum log_kind { LOG_OUTPUT, LOG_EVENT, LOG_GAP };

struct log_block {
    struct log_block *prev, *next;
    unsigned refs;
    enum log_kind kind;
    bool head;       /* output that is never dropped */
    uint64_t offset; /* of its first byte in the log */
    uint64_t size;   /* in the log */
    char *data;      /* `size` bytes; NULL in a gap */
    char *memory;    /* what `data` is a part of */
    size_t cap;
    size_t last;       /* output: where the last frame begins */
    uint64_t bytes[2]; /* payload of stdout and stderr in it */
};

struct log;

struct log_cursor {
    struct log *log; /* NULL: the log is gone */
    struct log_cursor *next;
    struct log_block *block;
    uint64_t offset;
};

struct log {
    uint32_t stream;
    struct log_block *first, *last;
    struct log_block *evict; /* the oldest output that may be dropped */
    struct log_cursor *cursors;
    uint64_t end;  /* offset behind the last frame */
    uint64_t seen; /* highest offset that anybody was told of: it stays a frame's beginning */
    uint64_t head_size, tail_size, event_size;
};

/* A frame for a reader. Big ones are sent from their block, which `block` keeps alive. */
struct log_piece {
    const char *data;
    size_t len;
    struct log_block *block;
    char note[LOG_NOTE_MAX]; /* holds DROPPED */
};

void log_init(struct log *log, uint32_t stream);
void log_done(struct log *log); /* cursors are left with `log` NULL */

/* Appends output (`type` is one of the four), in frames of at most 64 KiB. Output that meets no
 * memory is lost. */
void log_output(struct log *log, uint8_t type, const char *data, size_t len);

/* Whether an event of that size is still to be kept. */
bool log_has_room(const struct log *log, size_t len);

/* Appends an event frame that is always kept: a copy, or a block with room for the header. */
int log_event(struct log *log, uint8_t type, const void *payload, size_t len) must_check;
void log_event_block(struct log *log, uint8_t type, struct log_block *block);

/* A block of `len` bytes behind `skip` bytes for the caller's own use; `data` points to the header.
 * Fill data + FRAME_HEADER. */
struct log_block *log_block_new(size_t skip, size_t len);
void log_block_ref(struct log_block *block);
void log_block_unref(struct log_block *block);

/* Places a cursor; -1 when the offset is no frame's beginning. log_detach() when done with it. */
int log_attach(struct log *log, struct log_cursor *cursor, uint64_t offset) must_check;
void log_detach(struct log_cursor *cursor);

/* The next frame, and moves on: 1, or 0 at the end. `ret` is valid until the log changes. */
int log_next(struct log_cursor *cursor, struct log_piece *ret);

/* How far the reader that is furthest behind has to go; 0 without readers. */
uint64_t log_backlog(const struct log *log);
