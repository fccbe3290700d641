/* SPDX-License-Identifier: MIT */
/*
 * Control connections. `lock` guards the list of sinks and is never held while a sink is called,
 * because a sink takes its session's lock and may attach the next run; `calling` says which one
 * runs, and detaching waits for it. `write_lock` keeps frames whole.
 */
#include "engine/control.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

enum {
    READ_CHUNK = 256 * 1024,
    BUFFER_KEPT = 4 * READ_CHUNK, /* a buffer that one large frame made larger is given back */
    CREDIT_STEP = FRAME_WINDOW / 4,
    SEND_TIMEOUT_S = 30,
};

struct control {
    int fd;
    pthread_t reader;
    bool reader_started;
    struct buf in;
    size_t parsed;
    struct buf welcome;

    pthread_mutex_t lock;
    pthread_cond_t idle; /* no sink is being called */
    struct control_sink *sinks;
    struct control_sink *calling;
    uint32_t next_stream;
    bool lost;
    bool orphaned; /* freed from its own reader thread, which has to do it at its end */
    struct error why;

    pthread_mutex_t write_lock;
};

/* ---- reading ---- */

/* Moves what is left of the buffer to its start. */
static void buffer_compact(struct control *c)
{
    if (!c->parsed)
        return;
    buf_consume(&c->in, c->parsed);
    c->parsed = 0;
    if (c->in.len == 0 && c->in.cap > BUFFER_KEPT)
        buf_done(&c->in);
}

/* The next frame in the buffer, reading more until there is one. 1, 0 at the end, <0. */
static int frame_read(struct control *c, int64_t deadline, struct frame *ret, struct error *reterr)
{
    for (;;) {
        ssize_t n = frame_next(buf_str(&c->in) + c->parsed, c->in.len - c->parsed, FRAME_FROM_INIT,
                               ret, reterr);

        if (n < 0)
            return (int)n;
        if (n > 0) {
            c->parsed += (size_t)n;
            return 1;
        }
        buffer_compact(c);
        if (buf_reserve(&c->in, READ_CHUNK) < 0)
            return error_no_memory(reterr);
        if (deadline != CLOCK_FOREVER && fd_wait(c->fd, POLLIN, deadline) <= 0)
            return error_set(reterr, ERR_TIMEOUT, "the sandbox does not answer");
        do
            n = recv(c->fd, c->in.data + c->in.len, READ_CHUNK, 0);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
            return n < 0 && errno != ECONNRESET ? error_sys(reterr, errno, "control connection")
                                                : 0;
        c->in.len += (size_t)n;
    }
}

void control_credit(struct control *c, struct control_sink *sink, size_t len)
{
    auto_buf struct buf b;

    sink->taken += len;
    if (sink->taken < CREDIT_STEP)
        return;
    buf_init(&b, 64);
    if (fields_add_int(&b, "bytes", (int64_t)sink->taken) == 0 &&
        control_send(c, FRAME_CREDIT, sink->stream, b.data, b.len, NULL) == 0)
        sink->taken = 0;
}

static struct control_sink **sink_find(struct control *c, uint32_t stream)
{
    struct control_sink **p = &c->sinks;

    while (*p && (*p)->stream != stream)
        p = &(*p)->next;
    return p;
}

/* Takes a sink out of the list for the time of a call. */
static struct control_sink *sink_begin(struct control *c, struct control_sink **p)
{
    struct control_sink *sink = *p;

    if (sink)
        *p = sink->next;
    c->calling = sink;
    return sink;
}

static void sink_end(struct control *c, struct control_sink *sink, bool keep)
{
    pthread_mutex_lock(&c->lock);
    if (keep) {
        sink->next = c->sinks;
        c->sinks = sink;
    }
    c->calling = NULL;
    pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->lock);
}

static void frame_dispatch(struct control *c, const struct frame *f)
{
    struct control_sink *sink;

    pthread_mutex_lock(&c->lock);
    sink = sink_begin(c, sink_find(c, f->stream));
    pthread_mutex_unlock(&c->lock);
    if (!sink)
        return;
    /* A sink that is done may be gone already: only one that goes on is touched again. */
    if (sink->frame(sink, f)) {
        sink_end(c, sink, false);
    } else {
        if (!sink->holds_credit)
            control_credit(c, sink, f->len);
        sink_end(c, sink, true);
    }
}

static void connection_lose(struct control *c, const struct error *why)
{
    struct control_sink *sink;

    for (;;) {
        pthread_mutex_lock(&c->lock);
        c->lost = true;
        c->why = *why;
        sink = sink_begin(c, &c->sinks);
        pthread_mutex_unlock(&c->lock);
        if (!sink)
            return;
        sink->lost(sink, why);
        sink_end(c, sink, false);
    }
}

static void control_destroy(struct control *c);

static void *reader_main(void *arg)
{
    struct control *c = arg;
    struct error why;
    struct frame f;
    bool orphaned;
    int r;

    error_set(&why, ERR_DIED, "the sandbox has ended");
    while ((r = frame_read(c, CLOCK_FOREVER, &f, &why)) > 0)
        frame_dispatch(c, &f);
    connection_lose(c, &why);
    pthread_mutex_lock(&c->lock);
    orphaned = c->orphaned;
    pthread_mutex_unlock(&c->lock);
    if (orphaned) {
        pthread_detach(pthread_self());
        control_destroy(c);
    }
    return NULL;
}

/* ---- start and end ---- */

static int welcome_read(struct control *c, struct error *reterr)
{
    struct fields fields = control_welcome(c);
    auto_free char *version = NULL;
    int64_t last;

    if (fields_check(&fields, reterr) < 0 ||
        fields_get_str(&fields, "version", &version, reterr) < 0 ||
        fields_get_int(&fields, "last_stream", 0, &last, reterr) < 0)
        return -ERR_PROTOCOL;
    if (!str_eq(version, PROTOCOL_VERSION))
        return error_set(reterr, ERR_PROTOCOL,
                         "the sandbox speaks version %.20s of the protocol, not " PROTOCOL_VERSION,
                         version);
    if (last < 0 || last >= UINT32_MAX)
        return error_set(reterr, ERR_PROTOCOL, "the sandbox has no stream numbers left");
    c->next_stream = (uint32_t)last + 1;
    return 0;
}

static int hello(struct control *c, int64_t deadline, struct error *reterr)
{
    auto_buf struct buf b;
    struct frame f;
    int r;

    buf_init(&b, 256);
    if (fields_add_str(&b, "version", PROTOCOL_VERSION) < 0)
        return error_no_memory(reterr);
    r = control_send(c, FRAME_HELLO, 0, b.data, b.len, reterr);
    if (r < 0)
        return r;
    r = frame_read(c, deadline, &f, reterr);
    if (r == 0)
        return error_set(reterr, ERR_DIED, "the sandbox ended before it answered");
    if (r < 0)
        return r;
    if (f.type != FRAME_WELCOME)
        return error_set(reterr, ERR_PROTOCOL, "the sandbox did not say welcome");
    if (buf_append(&c->welcome, f.payload, f.len) < 0)
        return error_no_memory(reterr);
    return welcome_read(c, reterr);
}

int control_new(int fd, int64_t deadline, struct control **ret, struct error *reterr)
{
    struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    struct control *c = calloc(1, sizeof(*c));
    int r;

    if (!c) {
        close(fd);
        return error_no_memory(reterr);
    }
    c->fd = fd;
    buf_init(&c->in, (size_t)FRAME_PAYLOAD_MAX + FRAME_HEADER + READ_CHUNK);
    buf_init(&c->welcome, MIB);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->idle, NULL);
    pthread_mutex_init(&c->write_lock, NULL);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    r = hello(c, deadline, reterr);
    if (r == 0) {
        pthread_mutex_lock(&c->lock);
        r = pthread_create(&c->reader, NULL, reader_main, c);
        c->reader_started = r == 0;
        pthread_mutex_unlock(&c->lock);
        r = r ? error_sys(reterr, r, "cannot start a thread") : 0;
    }
    if (r < 0) {
        control_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

static void control_destroy(struct control *c)
{
    close(c->fd);
    buf_done(&c->in);
    buf_done(&c->welcome);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->idle);
    pthread_mutex_destroy(&c->write_lock);
    free(c);
}

void control_cut(struct control *c)
{
    bool join;

    shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_lock(&c->lock);
    join = c->reader_started && !pthread_equal(pthread_self(), c->reader);
    if (join)
        c->reader_started = false;
    pthread_mutex_unlock(&c->lock);
    if (join)
        pthread_join(c->reader, NULL);
}

void control_free(struct control *c)
{
    bool orphaned;

    if (!c)
        return;
    control_cut(c);
    /* The last reference to a sandbox may be a sink's own: then the reader does it at its end. */
    pthread_mutex_lock(&c->lock);
    orphaned = c->orphaned = c->reader_started;
    pthread_mutex_unlock(&c->lock);
    if (!orphaned)
        control_destroy(c);
}

struct fields control_welcome(const struct control *c)
{
    return (struct fields){.data = buf_str(&c->welcome), .len = c->welcome.len};
}

bool control_is_lost(struct control *c)
{
    bool lost;

    pthread_mutex_lock(&c->lock);
    lost = c->lost;
    pthread_mutex_unlock(&c->lock);
    return lost;
}

/* ---- sinks and sending ---- */

void control_attach_sink(struct control *c, struct control_sink *sink, uint32_t stream)
{
    struct error why;

    pthread_mutex_lock(&c->lock);
    sink->stream = stream ? stream : c->next_stream++;
    sink->taken = 0;
    if (!c->lost) {
        sink->next = c->sinks;
        c->sinks = sink;
        pthread_mutex_unlock(&c->lock);
        return;
    }
    why = c->why;
    pthread_mutex_unlock(&c->lock);
    sink->lost(sink, &why);
}

void control_detach_sink(struct control *c, struct control_sink *sink)
{
    struct control_sink **p;

    pthread_mutex_lock(&c->lock);
    while (c->calling == sink)
        pthread_cond_wait(&c->idle, &c->lock);
    for (p = &c->sinks; *p; p = &(*p)->next) {
        if (*p == sink) {
            *p = sink->next;
            break;
        }
    }
    pthread_mutex_unlock(&c->lock);
}

/* Both parts by sendmsg, so that a small frame is one packet and one wake-up. */
static int parts_send(int fd, struct iovec *iov, size_t count, struct error *reterr)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};

    while (msg.msg_iovlen) {
        ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return error_set(reterr, ERR_TIMEOUT, "the sandbox takes no data");
        if (n < 0)
            return error_set(reterr, ERR_DIED, "the sandbox has ended");
        while (msg.msg_iovlen && (size_t)n >= msg.msg_iov->iov_len) {
            n -= (ssize_t)msg.msg_iov->iov_len;
            msg.msg_iov++;
            msg.msg_iovlen--;
        }
        if (msg.msg_iovlen) {
            msg.msg_iov->iov_base = (char *)msg.msg_iov->iov_base + n;
            msg.msg_iov->iov_len -= (size_t)n;
        }
    }
    return 0;
}

int control_send(struct control *c, uint8_t type, uint32_t stream, const void *payload, size_t len,
                 struct error *reterr)
{
    char header[FRAME_HEADER];
    struct iovec iov[2] = {{.iov_base = header, .iov_len = sizeof(header)},
                           {.iov_base = (void *)(uintptr_t)payload, .iov_len = len}};
    int r;

    if (len > FRAME_PAYLOAD_MAX)
        return error_set(reterr, ERR_LIMIT, "a message of %zu bytes is too large", len);
    frame_header_format(header, type, stream, len);
    pthread_mutex_lock(&c->write_lock);
    r = parts_send(c->fd, iov, len ? 2 : 1, reterr);
    pthread_mutex_unlock(&c->write_lock);
    /* A frame that went out in part cannot be taken back: the connection is of no use any more. */
    if (r < 0)
        shutdown(c->fd, SHUT_RDWR);
    return r;
}

/* ---- calls ---- */

struct call {
    struct control_sink sink;
    struct control *control;
    const struct control_request *req;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    bool listening;
    int result;
    struct error error;
};

static void call_tell(const struct call *call, uint8_t type)
{
    if (control_send(call->control, type, call->sink.stream, NULL, 0, NULL) < 0)
        return; /* the connection is lost, and all with it */
}

static void call_finish(struct call *call, int result)
{
    pthread_mutex_lock(&call->lock);
    call->result = result;
    call->done = true;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

static bool call_on_frame(struct control_sink *sink, const struct frame *f)
{
    struct call *call = (struct call *)sink;
    struct fields end = {.data = f->payload, .len = f->len};
    int r;

    if (f->type != FRAME_END) {
        if (call->listening && call->req->on_frame) {
            call->listening = call->req->on_frame(call->req->user, f);
            if (!call->listening)
                call_tell(call, FRAME_KILL);
        }
        return false;
    }
    r = fields_check(&end, &call->error);
    call_finish(call, r < 0 ? r : control_end_check(&end, &call->error));
    return true;
}

static void call_on_lost(struct control_sink *sink, const struct error *why)
{
    struct call *call = (struct call *)sink;

    call->error = *why;
    call_finish(call, -(int)why->code);
}

static enum error_code code_from_errno(int64_t sys)
{
    if (sys == ENOENT)
        return ERR_NOT_FOUND;
    return sys == ENOSPC || sys == EDQUOT ? ERR_DISK : ERR_SYSTEM;
}

static enum error_code code_from_status(const char *status)
{
    static const struct {
        const char *status;
        enum error_code code;
    } codes[] = {{"died", ERR_DIED}, {"timeout", ERR_TIMEOUT}, {"interrupted", ERR_CANCELLED}};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (str_eq(codes[i].status, status))
            return codes[i].code;
    }
    return ERR_SYSTEM;
}

int control_end_check(const struct fields *end, struct error *reterr)
{
    auto_free char *status = NULL, *message = NULL, *cause = NULL;
    int64_t sys = 0;
    int r = fields_get_str(end, "status", &status, reterr);

    if (r < 0 || str_eq(status, "ok"))
        return r < 0 ? -ERR_PROTOCOL : 0;
    if (fields_get_int(end, "errno", 0, &sys, reterr) < 0)
        return -ERR_PROTOCOL;
    if (fields_get_str(end, "message", &message, NULL) == 0)
        r = error_set(reterr, code_from_errno(sys), "%s", message);
    else if (fields_get_str(end, "cause", &cause, NULL) == 0)
        r = error_set(reterr, code_from_status(status), "%s (%s)", status, cause);
    else
        r = error_set(reterr, code_from_status(status), "%s", status);
    if (reterr)
        reterr->sys = (int)sys;
    return r;
}

static void call_wait(struct call *call)
{
    int64_t deadline = call->req->deadline;
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
    bool done;

    pthread_mutex_lock(&call->lock);
    while (!call->done) {
        if (deadline == CLOCK_FOREVER)
            pthread_cond_wait(&call->changed, &call->lock);
        else if (pthread_cond_timedwait(&call->changed, &call->lock, &until) == ETIMEDOUT)
            break;
    }
    done = call->done;
    pthread_mutex_unlock(&call->lock);
    if (done)
        return;
    call_tell(call, FRAME_KILL);
    control_detach_sink(call->control, &call->sink);
    if (!call->done)
        call->result = error_set(&call->error, ERR_TIMEOUT, "the sandbox does not answer");
}

static int call_send(const struct call *call, struct error *reterr)
{
    struct control *c = call->control;
    const struct control_request *req = call->req;
    const struct buf *payload = req->payload;
    int r = control_send(c, req->type, call->sink.stream, payload ? payload->data : NULL,
                         payload ? payload->len : 0, reterr);

    return r == 0 && req->feed ? req->feed(c, call->sink.stream, req->user, reterr) : r;
}

int control_call(struct control *c, const struct control_request *req, struct error *reterr)
{
    struct call call = {.sink = {.frame = call_on_frame, .lost = call_on_lost},
                        .control = c,
                        .req = req,
                        .listening = true,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    struct error error; /* the reader may be writing the call's own */
    pthread_condattr_t attr;
    int r;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&call.changed, &attr);
    pthread_condattr_destroy(&attr);
    control_attach_sink(c, &call.sink, 0);
    r = call_send(&call, &error);
    if (r < 0) {
        control_detach_sink(c, &call.sink);
    } else {
        call_wait(&call);
        r = call.result;
        error = call.error;
    }
    /* Init keeps the log of a process until it is told that somebody has it. */
    if (req->type == FRAME_SPAWN)
        call_tell(&call, FRAME_ACK);
    pthread_cond_destroy(&call.changed);
    pthread_mutex_destroy(&call.lock);
    if (r < 0 && reterr)
        *reterr = error;
    return r;
}
