/* SPDX-License-Identifier: MIT */
/* A tool's way through a run. Where nobody watches, its events are not read at all. */
#include "base/clock.h"
#include "tools/tool-internal.h"

enum { EVENT_BYTES = 128 * 1024 * 1024 };

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

int tool_run_open(struct tool_call *call, const char *session_id, const struct run_options *options,
                  struct error *reterr)
{
    const struct tool_context *context = call->context;
    struct run_options o = *options;
    struct run *run = NULL;
    bool cancelled;
    int n;

    o.size = sizeof(o);
    /* A command does not tell that it reads, so nobody could be asked. */
    o.stdin_answers = o.kind == RUN_CODE && call->observer.event && call->observer.answers_input;
    n = run_open(context->manager, session_id, context->owner, &o, &run, reterr);
    if (n < 0)
        return n;
    pthread_mutex_lock(&call->lock);
    call->run = run;
    cancelled = call->cancelled;
    pthread_mutex_unlock(&call->lock);
    if (cancelled)
        run_cancel(run);
    return 0;
}

int tool_run_finish(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                    struct error *reterr)
{
    struct run_outcome outcome = {};
    int n = 0;

    if (call->observer.event)
        n = run_follow(call, call->run, reterr);
    if (n == 0)
        n = run_wait(call->run, CLOCK_FOREVER, &outcome, reterr);
    if (n < 0 || (n = run_result_json(call->run, ret, reterr)) < 0 || outcome.status != RUN_DIED)
        return n;
    return payload_add_death(call, json_get_str(arguments, "session_id", ""), ret, reterr);
}
