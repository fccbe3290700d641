/* SPDX-License-Identifier: MIT */
/*
 * The loop: control messages, resolved names, sockets, deadlines. Deadlines are not kept in order;
 * when the earliest that was asked for is over, everything is looked through, which costs less than
 * a heap at the few thousand connections that descriptors allow.
 */
#include "egress/egress.h"

#include "egress/conn.h"
#include "egress/log.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum {
    EVENTS = 64,
    FDS_OF_CONN = 6,   /* two sockets, two pipes */
    FDS_RESERVED = 96, /* our own, those of resolver threads, kept pipes */
};

/* ---- watches ---- */

int watch_add(struct egress *e, struct watch *w, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = w};

    return epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, w->fd, &event) < 0 ? -errno : 0;
}

void watch_set(struct egress *e, struct watch *w, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = w};

    epoll_ctl(e->epoll_fd, EPOLL_CTL_MOD, w->fd, &event);
}

void watch_close(struct watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

void watch_remove(struct egress *e, struct watch *w)
{
    if (w->fd >= 0)
        epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    watch_close(w);
}

/*
 * Counted with the most that a connection can need, so that none ever fails half way for want of a
 * descriptor.
 */
size_t egress_capacity(const struct egress *e)
{
    size_t used = e->listener_count + FDS_RESERVED + (size_t)2 * RELAY_PIPES;

    return e->fd_limit > used ? (e->fd_limit - used) / FDS_OF_CONN : 0;
}

/* ---- the keeper ---- */

/* A keeper that does not read its answers gets no further messages served until it does. */
static void gone_send(struct egress *e, const char *id)
{
    struct egress_msg answer = {.magic = EGRESS_MAGIC, .op = EGRESS_GONE};
    bool full;

    memcpy(answer.id, id, sizeof(answer.id));
    full = fd_send(e->control.fd, &answer, sizeof(answer), NULL, 0) < 0 && errno == EAGAIN;
    if (full == (e->unsent_gone[0] != 0))
        return;
    memcpy(e->unsent_gone, full ? id : "", full ? sizeof(e->unsent_gone) : 1);
    watch_set(e, &e->control, full ? EPOLLOUT : EPOLLIN);
}

/*
 * An ADD that cannot be served is told of in the log alone: its sandbox then has no network, which
 * is the safe side.
 */
static void message_serve(struct egress *e, const struct egress_msg *msg, int *fds, size_t count)
{
    struct sandbox *box;
    struct error error;

    if (msg->op == EGRESS_ADD) {
        if (sandbox_add(e, msg, fds, count, &error) < 0)
            log_line("cannot serve sandbox=%s: %s", msg->id, error.text);
        return;
    }
    fd_close_all(fds, count);
    if (msg->op != EGRESS_REMOVE)
        return;
    box = sandbox_find(e, msg->id);
    if (box)
        sandbox_remove(e, box);
    gone_send(e, msg->id);
}

/*
 * One message at a time: what comes between two is served as well. The keeper is trusted more than
 * anybody else here, but a message of another version must do no harm.
 */
static void control_ready(struct egress *e, struct watch *w, uint32_t events)
{
    struct egress_msg msg;
    struct error error;
    int fds[FD_PASS_MAX];
    size_t count = ARRAY_LEN(fds);
    ssize_t n;

    if (e->unsent_gone[0]) {
        gone_send(e, e->unsent_gone);
        e->stop |= (events & EPOLLHUP) != 0;
        return;
    }
    n = fd_recv(w->fd, &msg, sizeof(msg), fds, &count);
    if (n > 0 && egress_msg_check(&msg, (size_t)n, &error) == 0) {
        message_serve(e, &msg, fds, count);
        return;
    }
    if (n > 0) {
        fd_close_all(fds, count);
        log_line("message of %zd bytes: %s", n, error.text);
    } else if (n < 0 && errno == EMSGSIZE) {
        log_line("a message was cut and is dropped");
    } else if (n == 0 || (errno != EAGAIN && errno != EMFILE)) {
        e->stop = true;
    }
}

/* ---- the loop ---- */

static void resolved_ready(struct egress *e, struct watch *w, uint32_t events)
{
    lookup_collect(e);
}

/* Whoever still waits for a deadline asks for the next tick itself. */
static void egress_tick(struct egress *e)
{
    e->wake = CLOCK_FOREVER;
    for (struct sandbox *box = e->sandboxes; box; box = box->next) {
        struct conn *next;

        sandbox_tick(e, box);
        for (struct conn *c = box->conns; c; c = next) {
            next = c->next;
            conn_tick(e, c);
        }
    }
}

int egress_init(struct egress *e, int control_fd, struct error *reterr)
{
    struct rlimit files;

    e->control = (struct watch){control_fd, control_ready};
    e->resolved = (struct watch){e->resolver.event_fd, resolved_ready};
    e->wake = CLOCK_FOREVER;
    e->now = clock_ms();
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (e->epoll_fd < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
        return error_sys(reterr, errno, "cannot set the loop up");
    if (fcntl(control_fd, F_SETFD, FD_CLOEXEC) < 0 || fd_set_nonblock(control_fd, true) < 0)
        return error_sys(reterr, errno, "no control socket");
    e->fd_limit = files.rlim_cur;
    if (watch_add(e, &e->control, EPOLLIN) < 0 || watch_add(e, &e->resolved, EPOLLIN) < 0)
        return error_sys(reterr, errno, "cannot watch the keeper");
    return 0;
}

/* A watch that was closed earlier in this batch has no descriptor any more. */
static void events_serve(struct egress *e, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        struct watch *w = events[i].data.ptr;

        if (w->fd >= 0)
            w->ready(e, w, events[i].events);
    }
}

int egress_run(struct egress *e, struct error *reterr)
{
    while (!e->stop) {
        struct epoll_event events[EVENTS];
        int timeout = e->busy ? 0 : clock_poll_ms(e->wake);
        int n = epoll_wait(e->epoll_fd, events, EVENTS, timeout);

        if (n < 0 && errno != EINTR)
            return error_sys(reterr, errno, "cannot wait for events");
        e->now = clock_ms();
        events_serve(e, events, n);
        conn_run_busy(e);
        if (e->now >= e->wake)
            egress_tick(e);
        conn_reap(e);
        sandbox_reap(e);
    }
    return 0;
}
