/* SPDX-License-Identifier: MIT */
/* The two answers to a run that is followed: its frames as they come, or its values at the end. */
#include "api/live-internal.h"
#include "api/run_params.h"
#include "base/clock.h"
#include "base/str.h"

enum { WAIT_KEEP_ALIVE_MS = 5000 };

struct run_follower {
    struct live *live;
    struct live_run *run;
    struct run_follow follow;

    /* Of an answer with the values: */
    struct http_stream *stream;
    struct buf values;
    size_t sent;
    bool ready;
};

static int follower_new(struct http_request *req, struct live_run *run,
                        const struct run_follow *follow, struct run_follower **ret,
                        struct error *reterr)
{
    struct run_follower *f = calloc(1, sizeof(*f));

    if (!f)
        return error_no_memory(reterr);
    f->live = api_of(req)->live;
    f->run = live_run_ref(run);
    f->follow = *follow;
    buf_init(&f->values, API_ANSWER_MAX);
    *ret = f;
    return 0;
}

static void on_done(void *user)
{
    struct run_follower *f = user;

    live_run_off_end(f->run, f);
    http_stream_unref(f->stream);
    live_run_unref(f->run);
    buf_done(&f->values);
    free(f);
}

/* Cancels for the client that left, if it was the last one, as it has asked for. A stream that can
 * be taken up again is left to its creator's return. */
static void follower_gone(struct run_follower *f)
{
    /* It is still among them itself, unless it waits for the values. */
    size_t others = frame_log_followers(f->run->log) - (f->stream ? 0 : 1);

    if (!f->follow.cancel_on_disconnect || (f->follow.creator && f->follow.resumable))
        return;
    if (f->follow.creator && others > 0)
        return;
    (void)!live_cancel(f->live, f->run->owner, f->run->thread_id, f->run->id, "interrupt", 0, NULL);
}

static void on_log_gone(void *user)
{
    follower_gone(user);
}

int api_run_stream(struct http_request *req, struct live_run *run, const struct run_follow *follow,
                   struct error *reterr)
{
    const char *after = http_header(req, "Last-Event-ID");
    struct run_follower *f = NULL;
    int r = follower_new(req, run, follow, &f, reterr);

    if (r < 0)
        return r;
    return frame_log_follow(req,
                            &(struct follow_options){.log = run->log,
                                                     .tags = follow->modes,
                                                     .after = follow->creator ? NULL : after,
                                                     .on_gone = on_log_gone,
                                                     .on_done = on_done,
                                                     .user = f},
                            reterr);
}

/* ---- the values ---- */

static void on_end(void *user)
{
    struct run_follower *f = user;

    http_stream_wake(f->stream);
}

static ssize_t on_pull(void *user, char *ret, size_t len)
{
    struct run_follower *f = user;
    size_t n;

    if (!f->ready)
        f->ready = live_run_values(f->run, &f->values);
    if (!f->ready)
        return 0;
    n = MIN(len, f->values.len - f->sent);
    if (n == 0)
        return -1;
    memcpy(ret, f->values.data + f->sent, n);
    f->sent += n;
    return (ssize_t)n;
}

static void on_gone(void *user, enum http_gone why)
{
    if (why != HTTP_GONE_STOP)
        follower_gone(user);
}

static void on_stop(void *user)
{
    struct run_follower *f = user;

    http_stream_abort(f->stream);
}

int api_run_wait(struct http_request *req, struct live_run *run, const struct run_follow *follow,
                 struct error *reterr)
{
    struct http_stream_options options = {
        .status = 200,
        .content_type = "application/json",
        .on_gone = on_gone,
        .on_stop = on_stop,
        .on_done = on_done,
        .pull = on_pull,
        .keep_alive_ms = WAIT_KEEP_ALIVE_MS,
        .keep_alive_text = "\n",
    };
    struct run_follower *f = NULL;
    int r = follower_new(req, run, follow, &f, reterr);

    if (r < 0)
        return r;
    options.user = f;
    r = http_stream_open(req, &options, &f->stream, reterr);
    if (r == 0 && live_run_on_end(run, on_end, f) < 0)
        http_stream_abort(f->stream);
    return r;
}
