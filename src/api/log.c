/* SPDX-License-Identifier: MIT */
/*
 * Frames are made once, as the bytes that every follower sends, and are shared by reference: a
 * follower that is in the middle of one keeps it, however far the log has moved on. A follower has
 * no buffer of its own, so one that does not read costs nothing and delays nobody.
 */
#include "api/log.h"

#include "base/buf.h"
#include "base/str.h"
#include "http/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LOG_SLOTS_MIN = 32, KEEP_ALIVE_MS = 5000, SEQ_FIRST = 1 };

struct frame {
    atomic_uint refs;
    uint32_t tags;
    size_t len, scope_at; /* the scope is kept behind the bytes */
    char data[];
};

struct frame_log {
    atomic_uint refs;
    int64_t epoch_ms;
    size_t max_bytes;

    pthread_mutex_t lock; /* of all below, and of the followers' cursors */
    struct frame **slots; /* ring; NULL for a frame that was lost */
    size_t cap, count, start;
    uint64_t first_seq;
    uint64_t ended_seq, past_seq; /* the last frame that ends; what it was at the last turn */
    size_t bytes;                 /* of memory */
    bool closed;
    struct follower *followers;
};

struct follower {
    struct follower *next, *prev; /* of the log's list */
    struct follow_options options;
    struct frame_log *log, *idle; /* the present one; the one it began with */
    char after[128];
    struct http_stream *stream;
    uint64_t seq;        /* the next one to look at */
    uint64_t past_seq;   /* up to it, some tags are left out */
    struct frame *frame; /* being sent */
    size_t sent;
    atomic_bool stopped; /* by the thread that stops the server, whatever log it follows then */
};

static void frame_unref(struct frame *f)
{
    if (f && atomic_fetch_sub(&f->refs, 1) == 1)
        free(f);
}

int frame_log_new(const struct frame_log_options *options, struct frame_log **ret,
                  struct error *reterr)
{
    struct frame_log *log = calloc(1, sizeof(*log));

    if (!log)
        return error_no_memory(reterr);
    atomic_init(&log->refs, 1);
    log->epoch_ms = options->epoch_ms;
    log->first_seq = SEQ_FIRST;
    log->max_bytes = options->max_bytes;
    pthread_mutex_init(&log->lock, NULL);
    *ret = log;
    return 0;
}

struct frame_log *frame_log_ref(struct frame_log *log)
{
    atomic_fetch_add(&log->refs, 1);
    return log;
}

bool frame_log_is_shared(const struct frame_log *log)
{
    return atomic_load(&log->refs) > 1;
}

static struct frame **slot_at(struct frame_log *log, size_t index)
{
    return &log->slots[(log->start + index) % log->cap];
}

static size_t frame_size(const struct frame *f)
{
    return f ? sizeof(*f) + sizeof(f) + f->scope_at + strlen(f->data + f->scope_at) : 0;
}

static void oldest_drop(struct frame_log *log)
{
    struct frame *f = *slot_at(log, 0);

    log->bytes -= frame_size(f);
    frame_unref(f);
    log->start = (log->start + 1) % log->cap;
    log->count--;
    log->first_seq++;
}

void frame_log_unref(struct frame_log *log)
{
    if (!log || atomic_fetch_sub(&log->refs, 1) > 1)
        return;
    while (log->count > 0)
        oldest_drop(log);
    pthread_mutex_destroy(&log->lock);
    free(log->slots);
    free(log);
}

/* ---- appending ---- */

static int slots_grow(struct frame_log *log)
{
    size_t cap = MAX(log->cap * 2, (size_t)LOG_SLOTS_MIN);
    struct frame **slots;

    if (log->count < log->cap)
        return 0;
    slots = calloc(cap, sizeof(struct frame *));
    if (!slots)
        return -1;
    for (size_t i = 0; i < log->count; i++)
        slots[i] = *slot_at(log, i);
    free(log->slots);
    log->slots = slots;
    log->cap = cap;
    log->start = 0;
    return 0;
}

static struct frame *frame_new(const struct frame_log *log, const struct log_frame *e, uint64_t seq)
{
    const char *scope = e->scope ? e->scope : "";
    size_t scope_len = strlen(scope), max = strlen(e->event) + e->len + 96;
    struct frame *f = malloc(sizeof(*f) + max + scope_len + 1);
    int head, tail;

    if (!f)
        return NULL;
    atomic_init(&f->refs, 1);
    f->tags = e->tags;
    head = snprintf(f->data, max, "event: %s\ndata: ", e->event);
    memcpy(f->data + head, e->data, e->len);
    tail = snprintf(f->data + head + e->len, max - (size_t)head - e->len, "\nid: %lld-%llu\n\n",
                    (long long)log->epoch_ms, (unsigned long long)seq);
    f->len = (size_t)head + e->len + (size_t)tail;
    f->scope_at = f->len;
    memcpy(f->data + f->scope_at, scope, scope_len + 1);
    return f;
}

static void followers_wake(struct frame_log *log)
{
    for (struct follower *f = log->followers; f; f = f->next)
        http_stream_wake(f->stream);
}

void frame_log_append(struct frame_log *log, const struct log_frame *e)
{
    struct frame *f;

    pthread_mutex_lock(&log->lock);
    if (log->closed || slots_grow(log) < 0) {
        pthread_mutex_unlock(&log->lock);
        return;
    }
    f = frame_new(log, e, log->first_seq + log->count);
    if (e->ends)
        log->ended_seq = log->first_seq + log->count;
    *slot_at(log, log->count++) = f;
    log->bytes += frame_size(f);
    while (log->bytes > log->max_bytes && log->count > 1)
        oldest_drop(log);
    followers_wake(log);
    pthread_mutex_unlock(&log->lock);
}

uint64_t frame_log_next_seq(struct frame_log *log)
{
    uint64_t seq;

    pthread_mutex_lock(&log->lock);
    seq = log->first_seq + log->count;
    pthread_mutex_unlock(&log->lock);
    return seq;
}

int64_t frame_log_epoch(const struct frame_log *log)
{
    return log->epoch_ms;
}

void frame_log_turn(struct frame_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->past_seq = log->ended_seq;
    pthread_mutex_unlock(&log->lock);
}

void frame_log_close(struct frame_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->closed = true;
    followers_wake(log);
    pthread_mutex_unlock(&log->lock);
}

bool frame_log_is_closed(struct frame_log *log)
{
    bool closed;

    pthread_mutex_lock(&log->lock);
    closed = log->closed;
    pthread_mutex_unlock(&log->lock);
    return closed;
}

size_t frame_log_bytes(struct frame_log *log)
{
    size_t bytes;

    pthread_mutex_lock(&log->lock);
    bytes = log->bytes;
    pthread_mutex_unlock(&log->lock);
    return bytes;
}

void frame_log_wake(struct frame_log *log)
{
    pthread_mutex_lock(&log->lock);
    followers_wake(log);
    pthread_mutex_unlock(&log->lock);
}

size_t frame_log_followers(struct frame_log *log)
{
    size_t count = 0;

    pthread_mutex_lock(&log->lock);
    for (struct follower *f = log->followers; f; f = f->next)
        count++;
    pthread_mutex_unlock(&log->lock);
    return count;
}

/* ---- following ---- */

/* In place of the frames that this follower has missed; it has no id, so that a client which comes
 * again still names the last frame that it had. */
static struct frame *gap_new(uint64_t missed)
{
    enum { GAP_MAX = 96 };
    struct frame *f = malloc(sizeof(*f) + GAP_MAX);

    if (!f)
        return NULL;
    atomic_init(&f->refs, 1);
    f->tags = 0;
    f->len = (size_t)snprintf(f->data, GAP_MAX, "event: gap\ndata: {\"missed\":%llu}\n\n",
                              (unsigned long long)missed);
    return f;
}

/* Whether the follower wants the frame of this number. */
static bool frame_is_wanted(const struct follower *f, const struct frame *frame, uint64_t seq)
{
    if (seq <= f->past_seq && frame->tags & f->options.present_tags)
        return false;
    if (frame->tags && !(frame->tags & f->options.tags))
        return false;
    return !f->options.wants || f->options.wants(f->options.user, frame->data + frame->scope_at);
}

/* The next frame to send, or NULL when there is none now. With the lock of the log held. */
static struct frame *frame_next(struct follower *f)
{
    struct frame_log *log = f->log;
    uint64_t end = log->first_seq + log->count, missed = 0;

    if (f->seq < log->first_seq) {
        missed = log->first_seq - f->seq;
        f->seq = log->first_seq;
        return gap_new(missed);
    }
    while (f->seq < end) {
        uint64_t seq = f->seq++;
        struct frame *frame = *slot_at(log, (size_t)(seq - log->first_seq));

        if (!frame)
            return gap_new(1);
        if (frame_is_wanted(f, frame, seq)) {
            atomic_fetch_add(&frame->refs, 1);
            return frame;
        }
    }
    return NULL;
}

static size_t frames_take(struct follower *f, char *ret, size_t len)
{
    size_t n = 0;

    while (n < len) {
        size_t part;

        if (!f->frame) {
            f->frame = frame_next(f);
            f->sent = 0;
        }
        if (!f->frame)
            break;
        part = MIN(len - n, f->frame->len - f->sent);
        memcpy(ret + n, f->frame->data + f->sent, part);
        n += part;
        f->sent += part;
        if (f->sent == f->frame->len) {
            frame_unref(f->frame);
            f->frame = NULL;
        }
    }
    return n;
}

static void follower_link(struct follower *f)
{
    f->next = f->log->followers;
    f->prev = NULL;
    if (f->next)
        f->next->prev = f;
    f->log->followers = f;
}

static void follower_unlink(struct follower *f)
{
    pthread_mutex_lock(&f->log->lock);
    if (f->next)
        f->next->prev = f->prev;
    if (f->prev)
        f->prev->next = f->next;
    else
        f->log->followers = f->next;
    pthread_mutex_unlock(&f->log->lock);
}

/* The number after the one that an id names; 0, for everything, when it is not an id of this log.
 */
static uint64_t seq_after(const struct frame_log *log, const char *id)
{
    const char *colon = id ? strrchr(id, ':') : NULL; /* before it, an event's id names a run */
    const char *dash = id ? strrchr(id, '-') : NULL;
    int64_t epoch, seq;
    char text[24];

    if (colon)
        id = colon + 1;
    if (!dash || dash <= id || (size_t)(dash - id) >= sizeof(text))
        return SEQ_FIRST;
    memcpy(text, id, (size_t)(dash - id));
    text[dash - id] = 0;
    if (str_parse_int(text, 0, INT64_MAX, &epoch) < 0 ||
        str_parse_int(dash + 1, 0, INT64_MAX - 1, &seq) < 0 || epoch != log->epoch_ms)
        return SEQ_FIRST;
    /* One from the future is none of ours. */
    return (uint64_t)seq < log->first_seq + log->count ? (uint64_t)seq + 1 : SEQ_FIRST;
}

/* Goes on with another log; a reference is taken over. */
static void follower_move(struct follower *f, struct frame_log *log)
{
    follower_unlink(f);
    frame_log_unref(f->log);
    f->log = log;
    f->past_seq = 0;
    pthread_mutex_lock(&log->lock);
    f->seq = seq_after(log, f->after);
    follower_link(f);
    pthread_mutex_unlock(&log->lock);
}

/* False when there is nothing to go on with now. */
static bool follower_advance(struct follower *f)
{
    struct frame_log *log = f->options.next(f->options.user);

    if (!log && f->log != f->idle) {
        follower_move(f, frame_log_ref(f->idle));
        /* One that has begun meanwhile has woken the former log's followers. */
        log = f->options.next(f->options.user);
    }
    if (log)
        follower_move(f, log);
    return log;
}

static ssize_t on_pull(void *user, char *ret, size_t len)
{
    struct follower *f = user;
    bool ended, stopped;
    size_t n;

    for (;;) {
        pthread_mutex_lock(&f->log->lock);
        n = frames_take(f, ret, len);
        ended = f->log->closed;
        stopped = atomic_load(&f->stopped);
        pthread_mutex_unlock(&f->log->lock);
        if (n > 0)
            return (ssize_t)n;
        if (stopped || (ended && !f->options.next))
            return -1;
        if (!ended || !follower_advance(f))
            return 0;
    }
}

static void on_gone(void *user, enum http_gone why)
{
    struct follower *f = user;

    if (why != HTTP_GONE_STOP && f->options.on_gone)
        f->options.on_gone(f->options.user);
}

static void on_stop(void *user)
{
    struct follower *f = user;

    atomic_store(&f->stopped, true);
    http_stream_wake(f->stream);
}

static void on_done(void *user)
{
    struct follower *f = user;

    if (f->stream)
        follower_unlink(f);
    if (f->options.on_done)
        f->options.on_done(f->options.user);
    http_stream_unref(f->stream);
    frame_unref(f->frame);
    frame_log_unref(f->log);
    frame_log_unref(f->idle);
    free(f);
}

int frame_log_follow(struct http_request *req, const struct follow_options *options,
                     struct error *reterr)
{
    struct follower *f = calloc(1, sizeof(*f));
    struct http_stream_options stream = {
        .status = 200,
        .content_type = "text/event-stream",
        .on_gone = on_gone,
        .on_stop = on_stop,
        .on_done = on_done,
        .user = f,
        .pull = on_pull,
        .keep_alive_ms = KEEP_ALIVE_MS,
    };
    struct frame_log *log = options->log;
    int r;

    if (!f) {
        if (options->on_done)
            options->on_done(options->user);
        return error_no_memory(reterr);
    }
    f->options = *options;
    f->log = frame_log_ref(log);
    f->idle = frame_log_ref(log);
    snprintf(f->after, sizeof(f->after), "%s", options->after ? options->after : "");
    /* Nothing is pulled before this thread, the connection's, has left its handler. */
    r = http_stream_open(req, &stream, &f->stream, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&log->lock);
    f->seq = seq_after(log, f->after);
    f->past_seq = options->after ? 0 : log->past_seq;
    follower_link(f);
    pthread_mutex_unlock(&log->lock);
    return 0;
}
