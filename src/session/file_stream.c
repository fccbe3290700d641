/* SPDX-License-Identifier: MIT */
/*
 * A file operation that takes or gives data for as long as its user wants. The connection's thread
 * only notes what comes; whoever waits does so on a thread of his own, so that nobody who is slow
 * holds up the others of the same sandbox.
 */
#include "session/transfer-internal.h"

#include "base/clock.h"

#include <errno.h>

enum { CLEAN_MS = 10000 };

static void stream_over(struct file_stream *s, int result)
{
    s->result = result;
    s->over = true;
}

static bool stream_frame(struct control_sink *sink, const struct frame *f)
{
    struct file_stream *s = (struct file_stream *)sink;
    struct fields end = {.data = f->payload, .len = f->len};
    bool over = f->type == FRAME_END;
    int r;

    pthread_mutex_lock(&s->lock);
    if (over) {
        r = fields_check(&end, &s->why);
        stream_over(s, r < 0 ? r : control_end_check(&end, &s->why));
    } else if (s->frame) {
        s->frame(s, f);
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return over;
}

static void stream_lost(struct control_sink *sink, const struct error *why)
{
    struct file_stream *s = (struct file_stream *)sink;

    pthread_mutex_lock(&s->lock);
    s->why = *why;
    stream_over(s, -(int)why->code);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void file_stream_init(struct file_stream *s, enum call_kind kind)
{
    pthread_condattr_t attr;

    s->kind = kind;
    s->sink = (struct control_sink){.frame = stream_frame, .lost = stream_lost};
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
}

int file_stream_begin(struct file_stream *s, struct session_manager *m,
                      const struct session_path *at, struct buf *payload, struct error *reterr)
{
    int r = file_payload_begin(payload, at->path, reterr);

    return r < 0 ? r : file_call_begin(m, at, s->kind, &s->session, reterr);
}

int file_stream_start(struct file_stream *s, uint8_t type, const struct buf *payload,
                      struct error *reterr)
{
    struct control *c = s->session->sandbox->control;

    control_attach_sink(c, &s->sink, 0);
    s->attached = true;
    return control_send(c, type, s->sink.stream, payload->data, payload->len, reterr);
}

static bool changed_await(struct file_stream *s, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};

    return pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT;
}

int file_stream_wait(struct file_stream *s, struct error *reterr)
{
    return changed_await(s, FILE_MS)
               ? 0
               : error_set(reterr, ERR_TIMEOUT, "the sandbox does not answer");
}

static void stream_stop(struct file_stream *s, bool wait)
{
    struct control *c = s->session->sandbox->control;
    bool over, waiting = wait;

    pthread_mutex_lock(&s->lock);
    over = s->over;
    pthread_mutex_unlock(&s->lock);
    if (!over && control_send(c, FRAME_KILL, s->sink.stream, NULL, 0, NULL) < 0)
        waiting = false;
    pthread_mutex_lock(&s->lock);
    while (!s->over && waiting)
        waiting = changed_await(s, CLEAN_MS);
    pthread_mutex_unlock(&s->lock);
    control_detach_sink(c, &s->sink);
}

void file_stream_done(struct file_stream *s, bool wait)
{
    if (s->attached)
        stream_stop(s, wait);
    if (s->session)
        file_call_end(s->session, s->kind);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}
