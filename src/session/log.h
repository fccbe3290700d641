/* SPDX-License-Identifier: MIT */
/*
 * The event log of a run: appended by the sandbox's reader thread, followed by any number of
 * readers, each with a cursor of its own. Bounded: the oldest output is dropped, and a reader that
 * was too slow is told how much.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum run_event_type {
    RUN_EVENT_STDOUT = 1, /* raw bytes */
    RUN_EVENT_STDERR,
    RUN_EVENT_LATE_STDOUT, /* printed while no cell ran */
    RUN_EVENT_LATE_STDERR,
    RUN_EVENT_DISPLAY, /* JSON {"type","data","metadata"?} */
    RUN_EVENT_RESULT,  /* JSON {mime: data} */
    RUN_EVENT_ERROR,   /* JSON {"type","message","traceback"} */
    RUN_EVENT_INPUT,   /* JSON {"prompt","password"} */
    RUN_EVENT_GAP,     /* decimal: bytes of events that this reader missed */
    RUN_EVENT_END,     /* the last one; no data */
};

struct run_log_entry;

struct run_log {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct run_log_entry *entries; /* ring */
    size_t cap, count, start;
    uint64_t first_seq; /* of the oldest entry */
    size_t bytes, max_bytes;
    uint64_t appended; /* bytes in all, kept or not */
    bool closed;
};

struct run_cursor {
    uint64_t seq;   /* next entry to read */
    uint64_t bytes; /* how much of `appended` this reader has had, or was told of as missed */
};

struct run_event {
    enum run_event_type type;
    uint64_t seq;
    struct buf data; /* the reader's own copy; buf_init() it once, reuse it, buf_done() it */
};

int run_log_init(struct run_log *log, size_t max_bytes, struct error *reterr) must_check;
void run_log_done(struct run_log *log);

void run_log_append(struct run_log *log, enum run_event_type type, const void *data, size_t len);

/* Appends END; nothing comes after it. */
void run_log_close(struct run_log *log);

/*
 * The next event after the cursor: 1; 0 after END was given; ERR_TIMEOUT when none came before the
 * deadline.
 */
int run_log_next(struct run_log *log, struct run_cursor *cursor, int64_t deadline,
                 struct run_event *ret, struct error *reterr) must_check;

bool run_log_is_closed(struct run_log *log);

/* Waits for the end; false at the deadline. */
bool run_log_wait_closed(struct run_log *log, int64_t deadline);
