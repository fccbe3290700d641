/* SPDX-License-Identifier: MIT */
/* A tool's way through a run. Where nobody watches, its events are not read at all. */
#include "base/clock.h"
#include "tools/tool-internal.h"

enum { EVENT_BYTES = 128 * 1024 * 1024 };

static void run_set(struct tool_call *call, struct run *run)
{
    bool cancelled;

    pthread_mutex_lock(&call->lock);
    call->run = run;
    cancelled = call->cancelled;
    pthread_mutex_unlock(&call->lock);
    if (run && cancelled)
        run_cancel(run);
}

static int run_follow(struct tool_call *call, struct run *run, struct error *reterr)
{
    struct run_cursor cursor = {};
    struct run_event event = {};
    int n;

    buf_init(&event.data, EVENT_BYTES);
    while ((n = run_next(run, &cursor, CLOCK_FOREVER, &event, reterr)) > 0)
        call->observer.event(call->observer.user, &event);
    buf_done(&event.data);
    return n;
}

int tool_run(struct tool_call *call, const char *session_id, const struct run_options *options,
             struct buf *ret, struct error *reterr)
{
    const struct tool_context *context = call->context;
    struct run_options o = *options;
    auto_run struct run *run = NULL;
    struct run_outcome outcome = {};
    int n;

    o.size = sizeof(o);
    /* A command does not tell that it reads, so nobody could be asked. */
    o.stdin_answers = o.kind == RUN_CODE && call->observer.event && call->observer.answers_input;
    n = run_open(context->manager, session_id, context->owner, &o, &run, reterr);
    if (n < 0)
        return n;
    run_set(call, run);
    if (call->observer.event)
        n = run_follow(call, run, reterr);
    if (n == 0)
        n = run_wait(run, CLOCK_FOREVER, &outcome, reterr);
    run_set(call, NULL);
    if (n < 0 || (n = run_result_json(run, ret, reterr)) < 0 || outcome.status != RUN_DIED)
        return n;
    return payload_add_death(call, session_id, ret, reterr);
}
