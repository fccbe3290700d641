/* SPDX-License-Identifier: MIT */
/*
 * Event log as a ring of owned entries. A reader copies the entry out under the lock: it may be
 * slow with it, and the writer may drop it meanwhile.
 */
#include "session/log.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LOG_FIRST = 32, LOG_ENTRIES_MAX = 1 << 20 };

struct run_log_entry {
    enum run_event_type type;
    char *data;
    size_t len;
    uint64_t end; /* bytes appended up to here: what is missing before it was not kept */
};

int run_log_init(struct run_log *log, size_t max_bytes, struct error *reterr)
{
    pthread_condattr_t attr;

    *log = (struct run_log){.max_bytes = max_bytes, .cap = LOG_FIRST};
    log->entries = calloc(log->cap, sizeof(*log->entries));
    if (!log->entries)
        return error_no_memory(reterr);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->changed, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

void run_log_done(struct run_log *log)
{
    if (!log->entries)
        return;
    for (size_t i = 0; i < log->count; i++)
        free(log->entries[(log->start + i) % log->cap].data);
    free(log->entries);
    log->entries = NULL;
    pthread_cond_destroy(&log->changed);
    pthread_mutex_destroy(&log->lock);
}

/* Where the entry is that stands `nth` behind the oldest; the ring is never without room for one.
 */
static size_t ring_index(const struct run_log *log, size_t nth)
{
    assert(log->cap > 0);
    return (log->start + nth) % log->cap;
}

static void oldest_drop(struct run_log *log)
{
    struct run_log_entry *e = &log->entries[log->start];

    log->bytes -= e->len;
    free(e->data);
    log->start = ring_index(log, 1);
    log->count--;
    log->first_seq++;
}

static int ring_grow(struct run_log *log)
{
    size_t cap = log->cap * 2;
    struct run_log_entry *grown;

    if (cap > LOG_ENTRIES_MAX)
        return -1;
    grown = calloc(cap, sizeof(*grown));
    if (!grown)
        return -1;
    for (size_t i = 0; i < log->count; i++)
        grown[i] = log->entries[ring_index(log, i)];
    free(log->entries);
    log->entries = grown;
    log->cap = cap;
    log->start = 0;
    return 0;
}

static void entry_put(struct run_log *log, enum run_event_type type, char *data, size_t len)
{
    while (log->count && log->bytes + len > log->max_bytes)
        oldest_drop(log);
    if (log->count == log->cap && ring_grow(log) < 0)
        oldest_drop(log);
    log->entries[ring_index(log, log->count)] =
        (struct run_log_entry){.type = type, .data = data, .len = len, .end = log->appended};
    log->count++;
    log->bytes += len;
}

void run_log_append(struct run_log *log, enum run_event_type type, const void *data, size_t len)
{
    char *copy = len ? malloc(len) : NULL;

    if (copy)
        memcpy(copy, data, len);
    pthread_mutex_lock(&log->lock);
    log->appended += log->closed ? 0 : len;
    if (log->closed || (len && !copy)) {
        free(copy);
    } else {
        entry_put(log, type, copy, len);
        pthread_cond_broadcast(&log->changed);
    }
    pthread_mutex_unlock(&log->lock);
}

void run_log_close(struct run_log *log)
{
    pthread_mutex_lock(&log->lock);
    if (!log->closed) {
        entry_put(log, RUN_EVENT_END, NULL, 0);
        log->closed = true;
        pthread_cond_broadcast(&log->changed);
    }
    pthread_mutex_unlock(&log->lock);
}

/* Waits under the lock for something new to happen; false at the deadline. */
static bool change_wait(struct run_log *log, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};

    if (deadline == CLOCK_FOREVER)
        return pthread_cond_wait(&log->changed, &log->lock) == 0;
    return pthread_cond_timedwait(&log->changed, &log->lock, &until) != ETIMEDOUT;
}

static int entry_copy(struct run_log *log, struct run_cursor *cursor, struct run_event *ret,
                      struct error *reterr)
{
    struct run_log_entry *e;
    uint64_t start;

    cursor->seq = MAX(cursor->seq, log->first_seq);
    e = &log->entries[ring_index(log, cursor->seq - log->first_seq)];
    start = e->end - e->len;
    buf_clear(&ret->data);
    ret->seq = cursor->seq;
    if (start > cursor->bytes) {
        ret->type = RUN_EVENT_GAP;
        if (buf_printf(&ret->data, "%llu", (unsigned long long)(start - cursor->bytes)) < 0)
            return error_no_memory(reterr);
        cursor->bytes = start;
        return 1;
    }
    ret->type = e->type;
    if (buf_append(&ret->data, e->data, e->len) < 0)
        return error_no_memory(reterr);
    cursor->bytes = e->end;
    cursor->seq++;
    return 1;
}

int run_log_next(struct run_log *log, struct run_cursor *cursor, int64_t deadline,
                 struct run_event *ret, struct error *reterr)
{
    int r = 0;

    pthread_mutex_lock(&log->lock);
    while (cursor->seq >= log->first_seq + log->count && !log->closed && r == 0) {
        if (!change_wait(log, deadline))
            r = error_set(reterr, ERR_TIMEOUT, "no event before the deadline");
    }
    if (cursor->seq < log->first_seq + log->count)
        r = entry_copy(log, cursor, ret, reterr);
    pthread_mutex_unlock(&log->lock);
    return r;
}

bool run_log_is_closed(struct run_log *log)
{
    bool closed;

    pthread_mutex_lock(&log->lock);
    closed = log->closed;
    pthread_mutex_unlock(&log->lock);
    return closed;
}

bool run_log_wait_closed(struct run_log *log, int64_t deadline)
{
    bool closed, in_time = true;

    pthread_mutex_lock(&log->lock);
    while (!log->closed && in_time)
        in_time = change_wait(log, deadline);
    closed = log->closed;
    pthread_mutex_unlock(&log->lock);
    return closed;
}
