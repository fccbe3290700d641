/* SPDX-License-Identifier: MIT */
/*
 * One answer over HTTP. Its status can be told only while nothing was sent, so the connection's
 * thread waits a moment for the response; a message before it, or a long call, makes the answer an
 * event stream. What is sent from other threads meanwhile waits until the stream is open.
 *
 * Two counts keep it: the channel's references are those who may still send, and when they are
 * gone the stream ends; `refs` is the memory, which the stream needs until it calls nothing more.
 */
#include "mcp/http-internal.h"

#include "base/clock.h"
#include "base/str.h"
#include "wire/sse.h"

enum { JSON_WAIT_MS = 1000, GONE_POLL_MS = 200, OPEN_WAIT_MS = 10000 };

struct exchange {
    struct mcp_channel channel; /* first */
    unsigned refs;
    struct mcp_peer *peer;
    bool streams;     /* the client takes event streams */
    bool listens;     /* the stream of a GET */
    bool primes;      /* the client knows how to come back to a stream that was closed */
    pthread_t thread; /* the connection's */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_request *req; /* while it can be answered */
    struct http_stream *stream;
    struct event_log *log; /* of a session's stream; NULL */
    bool wants_stream;     /* somebody waits to send */
    struct buf response;
    int status; /* of the response; 0 while there is none */
};

static void exchange_unref(struct exchange *x)
{
    if (__atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL))
        return;
    http_stream_unref(x->stream);
    event_log_unref(x->log);
    buf_done(&x->response);
    mcp_peer_use(x->peer, -1);
    mcp_peer_unref(x->peer);
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

/* ---- what the stream tells ---- */

static struct http_stream *stream_of(struct exchange *x)
{
    struct http_stream *stream;

    pthread_mutex_lock(&x->lock);
    stream = x->stream;
    pthread_mutex_unlock(&x->lock);
    return stream;
}

static void stream_gone(void *user, enum http_gone why)
{
    struct exchange *x = user;

    /* Closing the stream cancels in the modern era only; a legacy client may just have lost it. */
    if (x->listens)
        mcp_session_set_events(x->peer, NULL, x);
    else if (!x->peer->id[0])
        mcp_client_channel_gone(x->peer->client, &x->channel);
}

static void stream_stop(void *user)
{
    struct exchange *x = user;
    struct http_stream *stream = stream_of(x);

    if (!x->listens) {
        mcp_listen_end(x->peer->client->server, x->peer->client);
        mcp_client_channel_gone(x->peer->client, &x->channel);
    }
    if (stream)
        http_stream_close(stream);
}

static void stream_done(void *user)
{
    exchange_unref(user);
}

/* With the lock held, on the connection's thread. */
static int stream_open(struct exchange *x, struct error *reterr)
{
    struct http_stream_options o = {.status = 200,
                                    .content_type = "text/event-stream",
                                    .on_gone = stream_gone,
                                    .on_stop = stream_stop,
                                    .on_done = stream_done,
                                    .user = x};
    struct http_request *req = TAKE_PTR(x->req);
    int r;

    __atomic_add_fetch(&x->refs, 1, __ATOMIC_RELAXED);
    r = http_stream_open(req, &o, &x->stream, reterr);
    if (r == 0 && x->peer->logs && !x->listens)
        x->log = event_log_new(x->peer->logs, x->stream);
    if (x->log && x->primes)
        event_log_prime(x->log);
    pthread_cond_broadcast(&x->changed);
    return r;
}

/* ---- the channel ---- */

static void event_write(struct http_stream *stream, const struct mcp_outgoing *m)
{
    struct sse_event event = {.event = "message", .data = m->json, .len = m->len};
    auto_buf struct buf text;

    buf_init(&text, 2 * m->len + 256);
    /* A client that is gone is told of by the stream. */
    if (sse_format(&event, &text) == 0)
        (void)!http_stream_write(stream, text.data, text.len, NULL);
    if (m->final)
        http_stream_close(stream);
}

/* Keeps the response for the connection's thread; with the lock held. */
static void response_keep(struct exchange *x, const struct mcp_outgoing *m)
{
    buf_init(&x->response, m->len + 1);
    x->status = buf_append(&x->response, m->json, m->len) < 0 ? 503 : MAX(m->http_status, 200);
    pthread_cond_broadcast(&x->changed);
}

/* Until the connection's thread has opened the stream; with the lock held. */
static void stream_wait(struct exchange *x)
{
    int64_t deadline = clock_deadline(OPEN_WAIT_MS);
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};

    x->wants_stream = true;
    pthread_cond_broadcast(&x->changed);
    while (x->req && clock_ms() < deadline)
        pthread_cond_timedwait(&x->changed, &x->lock, &until);
}

/* So that there is a stream; with the lock held. */
static void stream_need(struct exchange *x)
{
    if (x->req && pthread_equal(x->thread, pthread_self()))
        (void)!stream_open(x, NULL);
    else if (x->req)
        stream_wait(x);
}

static void exchange_send(struct mcp_channel *c, const struct mcp_outgoing *m)
{
    struct exchange *x = (struct exchange *)c;
    struct http_stream *stream;
    struct event_log *log;

    if (!x->streams && !m->final)
        return;
    pthread_mutex_lock(&x->lock);
    if (x->req && m->final) {
        response_keep(x, m);
        pthread_mutex_unlock(&x->lock);
        return;
    }
    stream_need(x);
    stream = x->stream;
    log = x->log;
    pthread_mutex_unlock(&x->lock);
    if (log)
        event_log_write(log, m);
    else if (stream)
        event_write(stream, m);
}

static void exchange_pause(struct mcp_channel *c)
{
    struct exchange *x = (struct exchange *)c;
    struct event_log *log;

    if (!x->primes)
        return;
    pthread_mutex_lock(&x->lock);
    stream_need(x);
    log = x->log;
    pthread_mutex_unlock(&x->lock);
    if (log)
        event_log_pause(log);
}

/* Nobody will send any more. */
static void exchange_end(struct mcp_channel *c)
{
    struct exchange *x = (struct exchange *)c;
    struct http_stream *stream = stream_of(x);

    if (x->log)
        event_log_end(x->log);
    if (stream)
        http_stream_close(stream);
    exchange_unref(x);
}

struct exchange *exchange_new(struct mcp_peer *p, struct http_request *req, bool streams)
{
    struct exchange *x = calloc(1, sizeof(*x));
    const char *version = http_header(req, "MCP-Protocol-Version");
    pthread_condattr_t attr;

    if (!x)
        return NULL;
    x->channel = (struct mcp_channel){
        .send = exchange_send, .free = exchange_end, .pause = exchange_pause, .refs = 1};
    x->refs = 1;
    x->peer = mcp_peer_ref(p);
    x->req = req;
    /* Those before take an event without data for a message. */
    x->primes = p->logs && version && str_eq(version, MCP_VERSION_LEGACY);
    x->streams = streams;
    x->thread = pthread_self();
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&x->changed, &attr);
    pthread_condattr_destroy(&attr);
    mcp_peer_use(p, 1);
    return x;
}

struct mcp_channel *exchange_channel(struct exchange *x)
{
    return &x->channel;
}

/* ---- the connection's thread ---- */

/* Whether it is worth while to wait for the response as plain JSON; with the lock held. */
static bool response_may_come(struct exchange *x, int64_t deadline)
{
    if (x->status || !x->req)
        return false;
    if (x->streams)
        return !x->wants_stream && clock_ms() < deadline;
    return clock_ms() < deadline || !http_is_gone(x->req);
}

static void response_wait(struct exchange *x)
{
    int64_t deadline = clock_deadline(JSON_WAIT_MS);

    while (response_may_come(x, deadline)) {
        int64_t next = x->streams ? deadline : clock_deadline(GONE_POLL_MS);
        struct timespec until = {.tv_sec = next / 1000, .tv_nsec = next % 1000 * 1000000};

        pthread_cond_timedwait(&x->changed, &x->lock, &until);
    }
}

void exchange_answer(struct exchange *x)
{
    struct http_request *req;
    struct error error;

    pthread_mutex_lock(&x->lock);
    response_wait(x);
    if (x->req && !x->status && x->streams)
        (void)!stream_open(x, NULL);
    req = TAKE_PTR(x->req);
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    if (!req)
        return; /* by a stream */
    if (x->status) {
        http_respond(req, (unsigned)x->status, "application/json", buf_str(&x->response),
                     x->response.len);
        return;
    }
    mcp_client_channel_gone(x->peer->client, &x->channel);
    error_set(&error, ERR_CANCELLED, "the client has left");
    http_fail(req, 503, &error);
}

int exchange_listen(struct exchange *x, struct error *reterr)
{
    int r;

    x->listens = true;
    pthread_mutex_lock(&x->lock);
    r = stream_open(x, reterr);
    pthread_mutex_unlock(&x->lock);
    return r;
}
