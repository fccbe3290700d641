/* SPDX-License-Identifier: MIT */
/*
 * A bounded buffer between the threads that write a stream and the connection's own, which waits
 * for bytes and for the client's end at the same time.
 *
 * A client that closes its half of the connection may still be reading; a client that is gone looks
 * the same. So an event stream is probed by a comment: what is gone answers it with a reset. Other
 * streams have no comments, and there the closed half is taken for the end.
 */
#include "http/stream.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/http-internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

enum { PROBE_MS = 500, PIECE_MIN = 4096 };

/* What one write has left. Its own size counts too, so many small writes are bounded as well. */
struct piece {
    struct piece *next;
    size_t len, sent;
    char data[];
};

struct http_stream {
    atomic_uint refs;  /* of its memory */
    atomic_uint users; /* of them, those of writers */
    atomic_uint calls; /* of them, those that may still call the user's functions */
    int wake;          /* eventfd: something changed for the connection's thread */
    struct http_stream_options options;
    bool events;         /* text/event-stream */
    const char *comment; /* what a client passes over; NULL where there is nothing such */
    unsigned keep_alive_ms, send_timeout_ms, min_rate;
    pthread_t opener; /* the connection's thread */

    /* Of the connection's thread and, for the list, of the server's lock. */
    struct http_conn *conn;
    struct http_stream *next, *prev;
    bool half_closed;
    int64_t comment_at; /* when the next comment is due */

    pthread_mutex_t writer; /* one write after another, each whole; before `lock` */
    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t changed;
    struct piece *first, **last;
    size_t held, held_max; /* bytes of all pieces */
    int64_t until;         /* no write waits for longer: the server stops */
    bool pulled;           /* the handler has returned, and the connection takes what is written */
    bool closed, aborted, detached;
    bool gone; /* nothing will be taken any more */
    bool told; /* on_gone was called */
};

static void stream_link(struct http_stream *s, struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    s->next = server->streams;
    if (s->next)
        s->next->prev = s;
    server->streams = s;
    pthread_mutex_unlock(&server->lock);
}

static void stream_unlink(struct http_stream *s, struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    if (s->next)
        s->next->prev = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else
        server->streams = s->next;
    pthread_mutex_unlock(&server->lock);
}

int stream_new(struct http_request *req, const struct http_stream_options *options,
               struct http_stream **ret, struct error *reterr)
{
    const struct http_options *o = &req->server->options;
    struct http_stream *s = calloc(1, sizeof(*s));

    if (!s)
        return error_no_memory(reterr);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake < 0) {
        free(s);
        return error_sys(reterr, errno, "cannot open a stream");
    }
    atomic_init(&s->refs, 2); /* the caller's and the connection's */
    atomic_init(&s->users, 1);
    atomic_init(&s->calls, 1);
    s->opener = pthread_self();
    s->options = *options;
    s->events = options->content_type && str_starts(options->content_type, "text/event-stream");
    s->comment = options->keep_alive_text ? options->keep_alive_text
                 : s->events              ? ": keep-alive\n\n"
                                          : NULL;
    s->keep_alive_ms = options->keep_alive_ms ? options->keep_alive_ms : o->keep_alive_ms;
    s->comment_at = s->comment ? clock_deadline(s->keep_alive_ms) : CLOCK_FOREVER;
    s->send_timeout_ms = o->send_timeout_ms;
    s->min_rate = o->min_rate;
    s->conn = req->conn;
    s->last = &s->first;
    s->until = CLOCK_FOREVER;
    s->held_max = MAX(o->stream_buffer, 2 * (size_t)PIECE_MIN);
    pthread_mutex_init(&s->writer, NULL);
    pthread_mutex_init(&s->lock, NULL);
    http_cond_init(&s->changed);
    /* Whoever stops the server finds it in the list, and its user uses `ret` then. */
    *ret = s;
    stream_link(s, req->server);
    return 0;
}

void http_stream_wake(struct http_stream *s)
{
    uint64_t one = 1;

    /* Fails only when it is awake already. */
    (void)!write(s->wake, &one, sizeof(one));
}

/* The client takes nothing more: tells who opened the stream, once. Never from a write, whose
 * caller may hold what on_gone wants. */
static void stream_gone(struct http_stream *s, enum http_gone why)
{
    bool tell;

    pthread_mutex_lock(&s->lock);
    tell = !s->told && !s->closed && s->options.on_gone;
    s->gone = true;
    s->told |= tell;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    http_stream_wake(s);
    if (tell)
        s->options.on_gone(s->options.user, why);
}

static void stream_release(struct http_stream *s)
{
    if (atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    while (s->first) {
        struct piece *next = s->first->next;

        free(s->first);
        s->first = next;
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->writer);
    close(s->wake);
    free(s);
}

/* Ends a reference under which the user's functions may be called. */
static void calls_release(struct http_stream *s)
{
    if (atomic_fetch_sub(&s->calls, 1) == 1 && s->options.on_done)
        s->options.on_done(s->options.user);
    stream_release(s);
}

/* ---- the connection's side ---- */

static size_t piece_take(struct http_stream *s, char *ret, size_t len)
{
    struct piece *p = s->first;
    size_t n = MIN(len, p->len - p->sent);

    memcpy(ret, p->data + p->sent, n);
    p->sent += n;
    if (p->sent == p->len) {
        s->first = p->next;
        if (!s->first)
            s->last = &s->first;
        s->held -= sizeof(*p) + p->len;
        free(p);
    }
    return n;
}

/* Bytes that wait: their count; 0 at the end, -1 when the connection is to be cut, -2 for none. */
static ssize_t data_take(struct http_stream *s, char *ret, size_t len)
{
    size_t n = 0;
    bool dead, end;

    pthread_mutex_lock(&s->lock);
    s->pulled = true;
    dead = s->gone || s->aborted;
    while (!dead && s->first && n < len)
        n += piece_take(s, ret + n, len - n);
    end = s->closed;
    if (n > 0)
        pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return n > 0 ? (ssize_t)n : dead ? -1 : end ? 0 : -2;
}

/* As data_take(), of a stream that its user fills itself. */
static ssize_t user_pull(struct http_stream *s, char *ret, size_t len)
{
    ssize_t n = s->options.pull(s->options.user, ret, len);

    if (n > 0)
        return n;
    if (n == 0)
        return -2;
    if (n == -1)
        http_stream_close(s);
    else
        http_stream_abort(s);
    return n == -1 ? 0 : -1;
}

static ssize_t comment_put(const struct http_stream *s, char *ret, size_t len)
{
    size_t size = strlen(s->comment);

    if (size == 0 || len < size)
        return -1;
    memcpy(ret, s->comment, size);
    return (ssize_t)size;
}

/* Waits for a change: 1, 0 when a comment is due, -1 when the client has left. */
static int change_wait(struct http_stream *s)
{
    int64_t until = s->half_closed ? MIN(s->comment_at, clock_deadline(PROBE_MS)) : s->comment_at;
    struct pollfd p[2] = {
        {.fd = s->wake, .events = POLLIN},
        {.fd = s->conn->fd, .events = s->half_closed ? 0 : POLLRDHUP},
    };
    uint64_t count;
    int n;

    do
        n = poll(p, 2, clock_poll_ms(until));
    while (n < 0 && errno == EINTR);
    if (n < 0 || (p[1].revents & (POLLERR | POLLHUP | POLLNVAL)))
        return -1;
    if (p[1].revents & POLLRDHUP) {
        s->half_closed = true;
        return s->comment ? 0 : -1;
    }
    if (p[0].revents)
        (void)!read(s->wake, &count, sizeof(count));
    return n > 0;
}

static ssize_t bytes_wait(struct http_stream *s, char *ret, size_t len)
{
    for (;;) {
        ssize_t n = data_take(s, ret, len);
        int changed;

        if (n == -2 && s->options.pull)
            n = user_pull(s, ret, len);
        if (n >= -1)
            return n;
        changed = change_wait(s);
        if (changed < 0)
            return -1;
        if (changed == 0)
            return comment_put(s, ret, len);
    }
}

ssize_t stream_pull(struct http_stream *s, char *ret, size_t len)
{
    ssize_t n = bytes_wait(s, ret, len);

    if (s->comment)
        s->comment_at = clock_deadline(s->keep_alive_ms);
    return n;
}

void stream_detach(struct http_stream *s)
{
    struct http_conn *conn = s->conn;
    int cut = atomic_load(&conn->cut);

    stream_unlink(s, conn->server);
    pthread_mutex_lock(&s->lock);
    s->detached = true;
    pthread_mutex_unlock(&s->lock);
    stream_gone(s, cut ? (enum http_gone)(cut - 1) : HTTP_GONE_CLIENT);
    calls_release(s);
}

/* ---- stopping ---- */

/* References to all streams; NULL ends the list. */
static struct http_stream **streams_list(struct http_server *server)
{
    struct http_stream **list;
    size_t count = 0;

    pthread_mutex_lock(&server->lock);
    for (struct http_stream *s = server->streams; s; s = s->next)
        count++;
    list = calloc(count + 1, sizeof(struct http_stream *));
    count = 0;
    for (struct http_stream *s = server->streams; s && list; s = s->next) {
        atomic_fetch_add(&s->refs, 1);
        atomic_fetch_add(&s->calls, 1);
        list[count++] = s;
    }
    pthread_mutex_unlock(&server->lock);
    return list;
}

static void stream_hurry(struct http_stream *s, int64_t until)
{
    pthread_mutex_lock(&s->lock);
    s->until = until;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void stream_stop(struct http_stream *s, int64_t until)
{
    bool tell;

    pthread_mutex_lock(&s->lock);
    tell = !s->gone && !s->closed && s->options.on_stop;
    pthread_mutex_unlock(&s->lock);
    if (tell)
        s->options.on_stop(s->options.user);
}

static void streams_each(struct http_server *server, void (*act)(struct http_stream *, int64_t),
                         int64_t until)
{
    auto_free struct http_stream **list = streams_list(server);

    for (struct http_stream **s = list; s && *s; s++) {
        act(*s, until);
        calls_release(*s);
    }
}

void streams_stop(struct http_server *server, unsigned grace_ms)
{
    int64_t until = clock_deadline(grace_ms);

    /* All of them first: what one is told may wait for a write to another. */
    streams_each(server, stream_hurry, until);
    streams_each(server, stream_stop, until);
}

static void stream_cut(struct http_stream *s, int64_t until)
{
    stream_gone(s, HTTP_GONE_STOP);
}

void streams_cut(struct http_server *server)
{
    streams_each(server, stream_cut, 0);
}

/* ---- the writers' side ---- */

int http_stream_open(struct http_request *req, const struct http_stream_options *options,
                     struct http_stream **ret, struct error *reterr)
{
    struct http_stream *s;
    int r = req->answered ? error_set(reterr, ERR_INTERNAL, "the request has its answer already")
                          : stream_new(req, options, ret, reterr);

    if (r < 0 && options->on_done)
        options->on_done(options->user);
    if (r < 0)
        return r;
    s = *ret;
    if (s->events) {
        http_header_add(req, "Cache-Control", "no-store");
        http_header_add(req, "X-Accel-Buffering", "no");
    }
    server_answer(req, &(struct http_answer){.status = options->status,
                                             .content_type = options->content_type,
                                             .size = -1,
                                             .stream = s});
    return 0;
}

/* Keeps what there is room for, or waits for room: the count, or -1 without memory. With the lock
 * held. */
static ssize_t piece_put(struct http_stream *s, const char *data, size_t len, int64_t deadline)
{
    /* A handler that waited for room would wait for itself. */
    bool all = !s->pulled && pthread_equal(s->opener, pthread_self());
    size_t room = all ? SIZE_MAX : s->held_max - MIN(s->held, s->held_max);
    struct piece *p;

    if (room < sizeof(*p) + MIN(len, (size_t)PIECE_MIN)) {
        http_cond_wait(&s->changed, &s->lock, deadline);
        return 0;
    }
    len = MIN(len, room - sizeof(*p));
    p = malloc(sizeof(*p) + len);
    if (!p)
        return -1;
    *p = (struct piece){.len = len};
    memcpy(p->data, data, len);
    *s->last = p;
    s->last = &p->next;
    s->held += sizeof(*p) + len;
    return (ssize_t)len;
}

static int write_locked(struct http_stream *s, const char *data, size_t len, struct error *reterr)
{
    int64_t deadline = clock_deadline((int64_t)(s->send_timeout_ms + len * 1000 / s->min_rate));

    while (len > 0) {
        ssize_t n;

        if (s->gone || s->closed || s->aborted)
            return error_set(reterr, ERR_CANCELLED, "the client has left");
        if (clock_ms() >= MIN(deadline, s->until)) {
            /* Its thread may be waiting for room in the socket, which never comes. */
            if (!s->detached)
                conn_cut(s->conn, HTTP_GONE_SLOW);
            s->gone = true;
            return error_set(reterr, ERR_TIMEOUT, "the client reads too slowly and was dropped");
        }
        n = piece_put(s, data, len, MIN(deadline, s->until));
        s->aborted |= n < 0;
        if (n < 0)
            return error_no_memory(reterr);
        if (n > 0)
            http_stream_wake(s);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int http_stream_write(struct http_stream *s, const void *data, size_t len, struct error *reterr)
{
    int r;

    pthread_mutex_lock(&s->writer);
    pthread_mutex_lock(&s->lock);
    r = write_locked(s, data, len, reterr);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&s->writer);
    if (r == -ERR_TIMEOUT || r == -ERR_NO_MEMORY)
        http_stream_wake(s);
    return r;
}

void http_stream_close(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    http_stream_wake(s);
}

void http_stream_abort(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->aborted = !s->closed;
    s->closed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    http_stream_wake(s);
}

bool http_stream_is_gone(struct http_stream *s)
{
    bool gone;

    pthread_mutex_lock(&s->lock);
    gone = s->gone || s->aborted;
    pthread_mutex_unlock(&s->lock);
    return gone;
}

struct http_stream *http_stream_ref(struct http_stream *s)
{
    atomic_fetch_add(&s->users, 1);
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void http_stream_unref(struct http_stream *s)
{
    if (!s)
        return;
    /* The end of a pulled one is what `pull` says. */
    if (atomic_fetch_sub(&s->users, 1) == 1 && !s->options.pull)
        http_stream_abort(s);
    stream_release(s);
}
