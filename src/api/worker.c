/* SPDX-License-Identifier: MIT */
/*
 * The life of one run on its thread. Its order is what clients rely on: the state is in the store,
 * then the run's end, then the last frames and the end of the streams.
 */
#include "api/live-internal.h"
#include "api/thread_log.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#include <stdio.h>

enum { END_TRIES = 20, END_PAUSE_MS = 500 };

/* How a run ended, in the words of the store and of streams. */
struct run_end {
    const char *status, *thread_status;
    char error[1600]; /* JSON {"error","message"}; "" for none */
    bool lost;        /* somebody else runs it now: nothing is told to the store */
};

static const char *const error_types[ERR_CODE_COUNT] = {
    [ERR_INVALID] = "InvalidInputError",
    [ERR_NOT_FOUND] = "NotFoundError",
    [ERR_DENIED] = "PermissionError",
    [ERR_LIMIT] = "LimitError",
    [ERR_TIMEOUT] = "TimeoutError",
    [ERR_CANCELLED] = "CancelledError",
    [ERR_UNAVAILABLE] = "ServiceUnavailable",
    [ERR_UPSTREAM] = "APIConnectionError",
    [ERR_DISK] = "DiskFullError",
    [ERR_NO_MEMORY] = "MemoryError",
};

const char *error_type_name(enum error_code code)
{
    return error_types[code] ? error_types[code] : "InternalError";
}

static void end_error(struct run_end *end, const char *type, const char *text)
{
    struct buf b;

    buf_init(&b, sizeof(end->error) - 1);
    if (buf_append_str(&b, "{\"error\":") == 0 && json_quote(&b, type, strlen(type)) == 0 &&
        buf_append_str(&b, ",\"message\":") == 0 && json_quote(&b, text, strlen(text)) == 0 &&
        buf_append_byte(&b, '}') == 0)
        snprintf(end->error, sizeof(end->error), "%s", buf_str(&b));
    else
        snprintf(end->error, sizeof(end->error),
                 "{\"error\":\"InternalError\",\"message\":\"the error does not fit\"}");
    buf_done(&b);
}

static void end_failed(struct run_end *end, const char *type, const struct error *error)
{
    end->status = "error";
    end->thread_status = "error";
    end_error(end, type[0] ? type : error_type_name(error->code), error->text);
}

/* Cancelled: by whom decides. */
static void end_cancelled(struct run_end *end, const char *action, const struct settings *s)
{
    char text[128];

    end->status = "interrupted";
    end->thread_status = "idle";
    if (!str_eq(action, "timeout"))
        return;
    end->status = "timeout";
    end->thread_status = "error";
    snprintf(text, sizeof(text), "the run took longer than RUN_TIMEOUT_SECONDS (%lld)",
             (long long)s->run_timeout_s);
    end_error(end, "TimeoutError", text);
}

static void end_decide(struct claimed *c, const struct agent_outcome *o, struct run_end *end)
{
    struct live *l = c->run->live;
    const char *action;

    pthread_mutex_lock(&l->lock);
    action = c->run->action ? c->run->action : "interrupt";
    pthread_mutex_unlock(&l->lock);
    end->lost = str_eq(action, "lost");
    if (o->end == AGENT_SUCCESS)
        *end = (struct run_end){.status = "success", .thread_status = "idle", .lost = end->lost};
    else if (o->end == AGENT_INTERRUPTED)
        *end = (struct run_end){
            .status = "interrupted", .thread_status = "interrupted", .lost = end->lost};
    else if (o->end == AGENT_CANCELLED)
        end_cancelled(end, action, l->api->settings);
    else
        end_failed(end, o->error_type, &o->error);
    /* An answer that could not be used leaves the question open. */
    if (o->end == AGENT_FAILED && o->interrupts.len > strlen("{}"))
        end->thread_status = "interrupted";
}

static bool is_rollback(struct claimed *c, const struct run_end *end)
{
    bool rollback;

    pthread_mutex_lock(&c->run->live->lock);
    rollback = c->run->action && str_eq(c->run->action, "rollback");
    pthread_mutex_unlock(&c->run->live->lock);
    return rollback && str_eq(end->status, "interrupted");
}

/* Tells the store, patiently: while it is away the run has not ended for anybody. A server that
 * stops leaves that to its next life. */
static void end_store(struct claimed *c, struct run_end *end, const char *interrupts)
{
    struct store_fence fence = {.run_id = c->row.id, .attempt = c->row.attempt};
    struct store_run_end e = {
        .status = end->status,
        .error = end->error[0] ? end->error : NULL,
        .thread_status = end->thread_status,
        .interrupts = interrupts,
        .rollback = is_rollback(c, end),
    };
    struct error error;

    for (int i = 0; i < END_TRIES; i++) {
        int r = store_run_end(c->run->live->api->store, &fence, &e, &error);

        if (r > 0)
            end->status = "interrupted"; /* a cancellation came first */
        if (r == -ERR_CANCELLED)
            end->lost = true;
        if (r >= 0 || r == -ERR_CANCELLED || r == -ERR_NOT_FOUND)
            return;
        log_warn("cannot write the end of run %s: %s, retrying", c->row.id, error.text);
        if (live_is_stopping(c->run->live))
            break;
        (void)!fd_wait(-1, 0, clock_deadline(END_PAUSE_MS));
    }
    end->lost = true;
}

static void values_make(const struct agent_outcome *o, const struct run_end *end, struct buf *ret)
{
    bool ok;

    buf_init(ret, API_ANSWER_MAX);
    if (end->error[0])
        ok = buf_printf(ret, "{\"__error__\":%s}", end->error) == 0;
    else
        ok = buf_append_str(ret, o->values.len ? buf_str(&o->values) : "{}") == 0;
    if (!ok)
        buf_clear(ret);
}

static void run_count(struct live *l, const char *status)
{
    if (str_eq(status, "success"))
        l->counts.succeeded++;
    else if (str_eq(status, "interrupted"))
        l->counts.interrupted++;
    else
        l->counts.failed++;
}

/* A run without frames of its own: it could not even begin. */
static void frames_none(struct claimed *c, const struct run_end *end)
{
    char text[40];
    int len = snprintf(text, sizeof(text), "{\"status\":\"%s\"}", end->status);

    if (end->error[0])
        frame_log_append(
            c->run->log,
            &(struct log_frame){.event = "error", .data = end->error, .len = strlen(end->error)});
    frame_log_append(c->run->log,
                     &(struct log_frame){.event = "end", .data = text, .len = (size_t)len});
}

static void run_finish(struct claimed *c, struct frames *frames, const struct agent_outcome *o,
                       struct run_end *end)
{
    struct live *l = c->run->live;
    struct buf values;

    if (!end->lost)
        end_store(c, end, o->interrupts.len ? buf_str(&o->interrupts) : NULL);
    if (end->lost) {
        end->status = "error";
        end_error(end, "RunTakenOver", "another server has taken this run over; join it again");
    }
    values_make(o, end, &values);
    if (c->row.temporary && !end->lost &&
        store_thread_delete(l->api->store, c->row.owner, c->row.thread_id, NULL) == 0)
        api_thread_clean(l->api, c->row.thread_id);
    if (frames)
        frames_end(frames, end->status, end->error[0] ? end->error : NULL,
                   o->values.len ? buf_str(&o->values) : "{}");
    else
        frames_none(c, end);
    pthread_mutex_lock(&l->lock);
    run_count(l, end->status);
    live_run_finish(c->run, &values);
    pthread_mutex_unlock(&l->lock);
    buf_done(&values);
}

static void on_event(void *user, const struct agent_event *e)
{
    frames_event(user, e);
}

static int frames_make(struct claimed *c, const struct agent_run_spec *spec, struct frames **ret,
                       struct error *reterr)
{
    struct api *api = c->run->live->api;
    struct frame_log *thread =
        thread_log_get(api->threads, c->row.owner, c->row.thread_id, c->run->v2);
    int r = frames_new(&(struct frames_options){.log = c->run->log,
                                                .modes = c->run->modes,
                                                .thread = thread,
                                                .run_id = c->row.id,
                                                .thread_id = c->row.thread_id,
                                                .assistant_id = c->row.assistant_id,
                                                .graph_id = spec->graph_id,
                                                .attempt = c->row.attempt},
                       ret, reterr);

    if (thread)
        live_thread_wait(c->run);
    frame_log_unref(thread);
    return r;
}

static void run_do(struct claimed *c, yyjson_val *kwargs, struct agent_outcome *o,
                   struct run_end *end)
{
    struct api *api = c->run->live->api;
    struct agent_run_spec spec = {.size = sizeof(spec)};
    struct frames *frames = NULL;
    struct error error = {};
    int r = spec_parse(api, &c->row, kwargs, &c->arena, &spec, &error);
    int made = frames_make(c, &spec, &frames, &error);

    if (made == 0)
        frames_begin(frames);
    if (r == 0 && made == 0) {
        spec.cancel_fd = c->run->cancel_fd;
        spec.skip = frames_skip_bits(frames);
        frames_set_model(frames, spec.model.model.provider, spec.model.model.name);
        r = agent_run(api->agent, &spec, on_event, frames, o, &error);
    }
    if (r == 0 && made == 0) {
        end_decide(c, o, end);
    } else {
        end_failed(end, "", &error);
        end->lost = error.code == ERR_CANCELLED;
    }
    run_finish(c, frames, o, end);
    frames_free(frames);
}

void worker_run(struct claimed *c)
{
    struct agent_outcome outcome = {};
    struct run_end end = {};
    auto_json yyjson_doc *doc = NULL;
    struct error error;

    buf_init(&outcome.values, API_ANSWER_MAX);
    buf_init(&outcome.interrupts, API_ANSWER_MAX);
    if (json_parse(c->row.kwargs, strlen(c->row.kwargs), &doc, &error) < 0) {
        end_failed(&end, "", &error);
        run_finish(c, NULL, &outcome, &end);
    } else {
        run_do(c, yyjson_doc_get_root(doc), &outcome, &end);
    }
    buf_done(&outcome.values);
    buf_done(&outcome.interrupts);
}
