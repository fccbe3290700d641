/* SPDX-License-Identifier: MIT */
/*
 * A pipe is filled only when it is empty: then EAGAIN from splice() can only mean that the source
 * has nothing to read, never that the pipe is full.
 */
#include "egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { FLOW_CHUNK = 64 * 1024 };

void flow_init(struct flow *f)
{
    *f = (struct flow){.pipe = {-1, -1}};
}

static int pipe_get(struct flow *f, struct pipe_pool *pool)
{
    int fds[2];

    if (f->pipe.read_fd >= 0)
        return 0;
    if (pool->count > 0) {
        f->pipe = pool->free[--pool->count];
        return 0;
    }
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    f->pipe = (struct pipe_pair){fds[0], fds[1]};
    return 0;
}

/* Only an empty pipe may serve another connection. */
static void pipe_put(struct flow *f, struct pipe_pool *pool)
{
    if (f->pipe.read_fd < 0)
        return;
    if (f->held == 0 && pool->count < RELAY_PIPES) {
        pool->free[pool->count++] = f->pipe;
    } else {
        close(f->pipe.read_fd);
        close(f->pipe.write_fd);
    }
    f->pipe = (struct pipe_pair){-1, -1};
}

void flow_done(struct flow *f, struct pipe_pool *pool)
{
    pipe_put(f, pool);
    f->held = 0;
}

/* A pipe takes the few bytes whole; they then wait there like any others. */
int flow_prime(struct flow *f, struct pipe_pool *pool, const void *data, size_t len)
{
    ssize_t n;
    int r = pipe_get(f, pool);

    if (r < 0)
        return r;
    n = write(f->pipe.write_fd, data, len);
    if (n < 0)
        return -errno;
    f->held = (size_t)n;
    return f->held == len ? 0 : -ENOBUFS;
}

/* 1: moved; 0: nothing to read; <0: the source failed. */
static int flow_fill(struct flow *f, struct pipe_pool *pool, struct relay_end *from)
{
    ssize_t n;
    int r = pipe_get(f, pool);

    if (r < 0)
        return r;
    n = splice(from->fd, NULL, f->pipe.write_fd, NULL, FLOW_CHUNK,
               SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0) {
        f->held = (size_t)n;
        return 1;
    }
    if (n < 0 && errno != EAGAIN)
        return -errno;
    from->readable = false;
    f->ended |= n == 0;
    return 0;
}

/* 1: moved; 0: the destination is full; <0: it failed. */
static int flow_drain(struct flow *f, struct relay_end *to)
{
    ssize_t n =
        splice(f->pipe.read_fd, NULL, to->fd, NULL, f->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    if (n > 0) {
        f->held -= (size_t)n;
        f->bytes += (size_t)n;
        return 1;
    }
    if (n < 0 && errno != EAGAIN)
        return -errno;
    to->writable = false;
    return 0;
}

/* One splice, in whichever half the bytes are waiting. */
static int flow_step(struct flow *f, struct pipe_pool *pool, struct relay_end *from,
                     struct relay_end *to, struct flow_result *ret)
{
    int r = 0;

    if (f->held > 0)
        return to->writable ? flow_drain(f, to) : 0;
    if (f->ended || !from->readable)
        return 0;
    r = flow_fill(f, pool, from);
    ret->from_failed = r < 0;
    return r;
}

int flow_pump(struct flow *f, struct pipe_pool *pool, struct relay_end *from, struct relay_end *to,
              struct flow_result *ret)
{
    uint64_t limit = f->bytes + RELAY_TURN;
    int r;

    *ret = (struct flow_result){};
    while ((r = flow_step(f, pool, from, to, ret)) > 0) {
        ret->moved = true;
        if (f->bytes >= limit) {
            ret->more = true;
            break;
        }
    }
    if (f->held == 0)
        pipe_put(f, pool);
    if (r < 0)
        return r;
    if (f->ended && f->held == 0 && !f->shut) {
        f->shut = true;
        shutdown(to->fd, SHUT_WR);
    }
    return 0;
}
