/* SPDX-License-Identifier: MIT */
/*
 * The event loop: one epoll, one thread. A watch is embedded in the object it belongs to. A watch
 * without events is taken out of the epoll, because an epoll tells of a hang-up even where nobody
 * asked, and a pipe that is not to be read now must not spin.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct watch;
typedef void watch_fn(struct watch *w, uint32_t events);

struct watch {
    int fd; /* -1: none */
    uint32_t events;
    watch_fn *fn;
};

/* The object that holds a watch as `member`. */
#define watch_owner(w, type, member) ((type *)((char *)(w) - offsetof(type, member)))

int loop_open(struct error *reterr) must_check;

/* Begins to watch `fd`, which stays the caller's until watch_close(). 0 or -1 with errno. */
int watch_open(struct watch *w, int fd, uint32_t events, watch_fn *fn) must_check;

/* Changes what is waited for. On failure the old events stay, and the next call tries again. */
void watch_set(struct watch *w, uint32_t events);

/* Ends watching, also within the dispatch of the same round; gives the descriptor back or closes
 * it. */
int watch_release(struct watch *w);
void watch_close(struct watch *w);

static inline bool watch_is_open(const struct watch *w)
{
    return w->fd >= 0;
}

/* Waits up to `timeout_ms` and calls what is ready. */
void loop_wait(int timeout_ms);
