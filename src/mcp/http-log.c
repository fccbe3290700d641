/* SPDX-License-Identifier: MIT */
/*
 * Streams of a legacy session that can be resumed. Each has numbered events, of which the newest
 * are kept for a client that lost the connection, or was sent away to come back (SEP-1699): its GET
 * names the last event it saw, and goes on with those after it. An id is "<stream>-<event>".
 *
 * What is written to a stream is written without the lock, as a slow client may hold it up. Only
 * what is repeated is written under it: on a handler's thread, where writing never waits.
 */
#include "mcp/http-internal.h"

#include "base/str.h"
#include "wire/sse.h"

#include <stdio.h>

enum { LOGS_MAX = 32, RETRY_MS = 1000, ID_SIZE = 48 };

#define SESSION_BYTES (4 * MIB)
#define ALL_BYTES (64 * MIB)

static size_t all_bytes; /* of every session's events; atomic */

struct event {
    struct event *next;
    uint64_t number;
    size_t len;
    char text[];
};

struct event_log {
    unsigned refs; /* the store's, the exchange's, and those of streams that resume it */
    struct event_logs *store;
    struct event_log *older; /* of the store's */
    bool kept;               /* it is in the store */
    uint64_t number;
    struct http_stream *stream; /* who gets the events; referenced; NULL */
    struct event *first, **last;
    uint64_t newest, lost; /* numbers: of the newest event, and of the newest that is not kept */
    bool over;
};

/* Of a session. The lock is that of all its logs. */
struct event_logs {
    unsigned refs; /* the session's and its logs' */
    pthread_mutex_t lock;
    struct event_log *newest;
    size_t count, bytes;
    uint64_t last_number;
};

struct event_logs *event_logs_new(void)
{
    struct event_logs *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->refs = 1;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void store_unref(struct event_logs *s)
{
    if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct event_log *log_ref(struct event_log *log)
{
    __atomic_add_fetch(&log->refs, 1, __ATOMIC_RELAXED);
    return log;
}

void event_log_unref(struct event_log *log)
{
    if (!log || __atomic_sub_fetch(&log->refs, 1, __ATOMIC_ACQ_REL))
        return;
    http_stream_unref(log->stream);
    store_unref(log->store);
    free(log);
}

/* ---- under the lock ---- */

static bool event_drop(struct event_log *log)
{
    struct event *e = log->first;

    if (!e)
        return false;
    log->first = e->next;
    if (!log->first)
        log->last = &log->first;
    log->lost = e->number;
    log->store->bytes -= e->len;
    __atomic_sub_fetch(&all_bytes, e->len, __ATOMIC_RELAXED);
    free(e);
    return true;
}

/* The oldest event of the oldest log that has one. */
static bool oldest_drop(struct event_logs *s)
{
    struct event_log *oldest = NULL;

    for (struct event_log *log = s->newest; log; log = log->older)
        oldest = log->first ? log : oldest;
    return oldest && event_drop(oldest);
}

/* Room for so many bytes, at the cost of what this session has kept. */
static bool room_make(struct event_logs *s, size_t len)
{
    while (s->bytes + len > SESSION_BYTES ||
           __atomic_load_n(&all_bytes, __ATOMIC_RELAXED) + len > ALL_BYTES) {
        if (!oldest_drop(s))
            return false;
    }
    return true;
}

static void event_keep(struct event_log *log, const struct buf *text)
{
    struct event_logs *s = log->store;
    struct event *e = log->kept && room_make(s, text->len) ? malloc(sizeof(*e) + text->len) : NULL;
    if (!e) {
        /* Those before it are of no use: nobody may miss one in the middle. */
        while (event_drop(log))
            ;
        log->lost = log->newest;
        return;
    }
    *e = (struct event){.number = log->newest, .len = text->len};
    memcpy(e->text, buf_str(text), text->len);
    *log->last = e;
    log->last = &e->next;
    s->bytes += e->len;
    __atomic_add_fetch(&all_bytes, e->len, __ATOMIC_RELAXED);
}

/* Out of the store; its reference goes to the caller. */
static struct event_log *oldest_take(struct event_logs *s)
{
    struct event_log **p = &s->newest, *log;

    while (*p && (*p)->older)
        p = &(*p)->older;
    log = *p;
    if (!log)
        return NULL;
    *p = NULL;
    s->count--;
    log->kept = false;
    while (event_drop(log))
        ;
    return log;
}

/* ---- streams ---- */

/* What the log writes to from now on; the stream before ends. */
static void stream_set(struct event_log *log, struct http_stream *stream, bool over)
{
    struct http_stream *before;

    pthread_mutex_lock(&log->store->lock);
    before = log->stream;
    log->stream = stream;
    log->over |= over;
    pthread_mutex_unlock(&log->store->lock);
    if (before)
        http_stream_close(before);
    http_stream_unref(before);
}

void event_log_pause(struct event_log *log)
{
    stream_set(log, NULL, false);
}

void event_log_end(struct event_log *log)
{
    stream_set(log, NULL, true);
}

struct event_log *event_log_new(struct event_logs *s, struct http_stream *stream)
{
    struct event_log *log = calloc(1, sizeof(*log)), *oldest;

    if (!log)
        return NULL;
    __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    *log =
        (struct event_log){.refs = 2, .store = s, .kept = true, .stream = http_stream_ref(stream)};
    log->last = &log->first;
    pthread_mutex_lock(&s->lock);
    oldest = s->count >= LOGS_MAX ? oldest_take(s) : NULL;
    log->number = ++s->last_number;
    log->older = s->newest;
    s->newest = log;
    s->count++;
    pthread_mutex_unlock(&s->lock);
    event_log_unref(oldest);
    return log;
}

void event_logs_free(struct event_logs *s)
{
    if (!s)
        return;
    event_logs_end(s);
    store_unref(s);
}

void event_logs_end(struct event_logs *s)
{
    struct event_log *log;

    do {
        pthread_mutex_lock(&s->lock);
        log = oldest_take(s);
        pthread_mutex_unlock(&s->lock);
        if (log)
            event_log_end(log);
        event_log_unref(log);
    } while (log);
}

/* ---- events ---- */

static int event_format(const struct event_log *log, struct sse_event *event, struct buf *ret)
{
    char id[ID_SIZE];

    snprintf(id, sizeof(id), "%llu-%llu", (unsigned long long)log->number,
             (unsigned long long)log->newest);
    event->id = id;
    return sse_format(event, ret);
}

void event_log_prime(struct event_log *log)
{
    struct sse_event event = {.data = "", .retry_ms = RETRY_MS};
    struct http_stream *stream;
    auto_buf struct buf text;

    buf_init(&text, KIB);
    pthread_mutex_lock(&log->store->lock);
    log->lost = ++log->newest;
    stream = log->stream ? http_stream_ref(log->stream) : NULL;
    pthread_mutex_unlock(&log->store->lock);
    if (stream && event_format(log, &event, &text) == 0)
        (void)!http_stream_write(stream, text.data, text.len, NULL);
    http_stream_unref(stream);
}

void event_log_write(struct event_log *log, const struct mcp_outgoing *m)
{
    struct sse_event event = {.event = "message", .data = m->json, .len = m->len};
    struct http_stream *stream;
    auto_buf struct buf text;

    buf_init(&text, 2 * m->len + 256);
    pthread_mutex_lock(&log->store->lock);
    log->newest++;
    log->over |= m->final;
    if (event_format(log, &event, &text) < 0)
        buf_clear(&text);
    event_keep(log, &text);
    stream = log->stream ? http_stream_ref(log->stream) : NULL;
    pthread_mutex_unlock(&log->store->lock);
    /* A client that is gone may come back for it. */
    if (stream)
        (void)!http_stream_write(stream, buf_str(&text), text.len, NULL);
    http_stream_unref(stream);
    if (m->final)
        event_log_pause(log);
}

/* ---- resuming ---- */

static void resumed_stop(void *user)
{
    event_log_pause(user);
}

static void resumed_done(void *user)
{
    event_log_unref(user);
}

static int id_parse(const char *id, uint64_t ret[2])
{
    char text[ID_SIZE], *dash;
    int64_t stream, event;

    if (strlen(id) >= sizeof(text))
        return -1;
    memcpy(text, id, strlen(id) + 1);
    dash = strchr(text, '-');
    if (!dash)
        return -1;
    *dash = 0;
    if (str_parse_int(text, 1, INT64_MAX, &stream) < 0 ||
        str_parse_int(dash + 1, 1, INT64_MAX, &event) < 0)
        return -1;
    ret[0] = (uint64_t)stream;
    ret[1] = (uint64_t)event;
    return 0;
}

static struct event_log *log_find(struct event_logs *s, uint64_t number, uint64_t after)
{
    struct event_log *log;

    pthread_mutex_lock(&s->lock);
    for (log = s->newest; log && log->number != number; log = log->older)
        ;
    if (log && (after < log->lost || after > log->newest))
        log = NULL;
    if (log)
        log_ref(log);
    pthread_mutex_unlock(&s->lock);
    return log;
}

/* Writes what came after the event, and goes on with what comes. */
static void log_follow(struct event_log *log, struct http_stream *stream, uint64_t after)
{
    struct http_stream *before;
    bool over;

    pthread_mutex_lock(&log->store->lock);
    for (struct event *e = log->first; e; e = e->next) {
        if (e->number > after)
            (void)!http_stream_write(stream, e->text, e->len, NULL);
    }
    before = log->stream;
    log->stream = http_stream_ref(stream);
    over = log->over;
    pthread_mutex_unlock(&log->store->lock);
    if (before)
        http_stream_close(before);
    http_stream_unref(before);
    if (over)
        event_log_pause(log);
}

int event_logs_resume(struct event_logs *s, struct http_request *req, const char *id,
                      struct error *reterr)
{
    uint64_t at[2];
    struct event_log *log = id_parse(id, at) == 0 ? log_find(s, at[0], at[1]) : NULL;
    struct http_stream_options o = {.status = 200,
                                    .content_type = "text/event-stream",
                                    .on_stop = resumed_stop,
                                    .on_done = resumed_done,
                                    .user = log};
    struct http_stream *stream = NULL;
    int r;

    if (!log)
        return error_set(reterr, ERR_NOT_FOUND,
                         "Last-Event-ID names no event of this session that is still kept");
    log_ref(log);
    r = http_stream_open(req, &o, &stream, reterr);
    if (r == 0)
        log_follow(log, stream, at[1]);
    http_stream_unref(stream);
    event_log_unref(log);
    return r;
}
