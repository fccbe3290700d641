/* SPDX-License-Identifier: MIT */
/*
 * Bytes between two sockets by splice(), without a copy in our memory. A direction holds a pipe
 * only while bytes are under way in it, so an idle connection costs two descriptors and a slow
 * reader one pipe's worth of the kernel's memory.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    RELAY_TURN = 1 << 20, /* bytes that one direction may move before others get their turn */
    RELAY_PIPES = 32,     /* empty pipes kept for the next use */
};

struct pipe_pair {
    int read_fd;
    int write_fd;
};

struct pipe_pool {
    size_t count;
    struct pipe_pair free[RELAY_PIPES];
};

/* One socket of a connection. epoll reports changes only, so what it said is kept here. */
struct relay_end {
    int fd;
    bool readable;
    bool writable;
};

struct flow {
    struct pipe_pair pipe; /* -1: none held */
    size_t held;           /* bytes in the pipe */
    bool ended;            /* the source sent its FIN */
    bool shut;             /* and we passed it on */
    uint64_t bytes;        /* delivered */
};

void flow_init(struct flow *f);
void flow_done(struct flow *f, struct pipe_pool *pool);

/* Puts bytes in front of what the source will send; at most a page, before the first pump. */
int flow_prime(struct flow *f, struct pipe_pool *pool, const void *data, size_t len) must_check;

struct flow_result {
    bool moved;
    bool more;        /* stopped by the turn's limit */
    bool from_failed; /* whose fault an error is */
};

/* Moves what can be moved now. 0, or -errno of the socket that failed. */
int flow_pump(struct flow *f, struct pipe_pool *pool, struct relay_end *from, struct relay_end *to,
              struct flow_result *ret) must_check;
