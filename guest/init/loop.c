/* SPDX-License-Identifier: MIT */
/*
 * The event loop. A watch may be closed, and its owner freed, while events of the same round are
 * still to be delivered; so the round's events are kept here and those of a closed watch are struck
 * out.
 */
#include "init/loop.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

enum { LOOP_ROUND = 64 };

static struct {
    int epoll;
    struct epoll_event round[LOOP_ROUND];
    int count;
} loop = {.epoll = -1};

int loop_open(struct error *reterr)
{
    loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop.epoll < 0)
        return error_sys(reterr, errno, "cannot make an epoll");
    return 0;
}

/* The round's array is small, and closing is rare. */
static void loop_forget(const struct watch *w)
{
    for (int i = 0; i < loop.count; i++) {
        if (loop.round[i].data.ptr == w)
            loop.round[i].data.ptr = NULL;
    }
}

static int loop_control(struct watch *w, int op, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};

    return epoll_ctl(loop.epoll, op, w->fd, &ev);
}

int watch_open(struct watch *w, int fd, uint32_t events, watch_fn *fn)
{
    *w = (struct watch){.fd = fd, .events = events, .fn = fn};
    if (events && loop_control(w, EPOLL_CTL_ADD, events) < 0) {
        w->fd = -1;
        return -1;
    }
    return 0;
}

void watch_set(struct watch *w, uint32_t events)
{
    int op = EPOLL_CTL_MOD;

    if (w->fd < 0 || w->events == events)
        return;
    if (!w->events)
        op = EPOLL_CTL_ADD;
    else if (!events)
        op = EPOLL_CTL_DEL;
    if (loop_control(w, op, events) < 0)
        return;
    if (!events)
        loop_forget(w);
    w->events = events;
}

int watch_release(struct watch *w)
{
    int fd = w->fd;

    if (fd < 0)
        return -1;
    if (w->events)
        loop_control(w, EPOLL_CTL_DEL, 0);
    loop_forget(w);
    w->fd = -1;
    w->events = 0;
    return fd;
}

void watch_close(struct watch *w)
{
    int fd = watch_release(w);

    if (fd >= 0)
        close(fd);
}

void loop_wait(int timeout_ms)
{
    int n = epoll_wait(loop.epoll, loop.round, LOOP_ROUND, timeout_ms);

    loop.count = n > 0 ? n : 0;
    for (int i = 0; i < loop.count; i++) {
        struct watch *w = loop.round[i].data.ptr;

        if (w)
            w->fn(w, loop.round[i].events);
    }
    loop.count = 0;
}
