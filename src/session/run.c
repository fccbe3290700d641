/* SPDX-License-Identifier: MIT */
/*
 * Runs. Frames of a run arrive on the reader thread of its sandbox and become events and the
 * result; nobody has to read them for the run to go on. Time-outs are enforced by init, so they
 * hold without us; the backstop here is for an init that is stuck.
 */
#include "session/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "session/session-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>

enum {
    LOG_BYTES = 16 * 1024 * 1024,
    DISPLAYS_BYTES = 64 * 1024 * 1024,
    REQUEST_BYTES = 20 * 1024 * 1024,
    LATE_CHARS = 10000,
    TYPE_CHARS = 200, /* of an error's type */
    PROMPT_CHARS = 4000,
    CAUSE_WAIT_MS = 1500, /* for the keeper's word after the connection is lost */
    OOM_WAIT_MS = 500,    /* for the keeper's word after a process was killed */
    BACKSTOP_MS = 15000,  /* beyond the time-out: interrupt, kill, restart fit in */
};

static const char *const status_names[] = {
    [RUN_RUNNING] = "running",
    [RUN_OK] = "ok",
    [RUN_ERROR] = "error",
    [RUN_TIMEOUT] = "timeout",
    [RUN_INTERRUPTED] = "interrupted",
    [RUN_DIED] = "died",
};

const char *run_status_name(enum run_status status)
{
    return status_names[status];
}

static enum run_status status_parse(const char *name)
{
    for (size_t i = RUN_OK; i < ARRAY_LEN(status_names); i++) {
        if (str_eq(name, status_names[i]))
            return (enum run_status)i;
    }
    return RUN_DIED;
}

/* ---- frames to events ---- */

struct output_route {
    uint8_t frame;
    enum run_event_type event;
    size_t keep; /* offset of the text_keep */
};

static const struct output_route output_routes[] = {
    {FRAME_STDOUT, RUN_EVENT_STDOUT, offsetof(struct run, out)},
    {FRAME_STDERR, RUN_EVENT_STDERR, offsetof(struct run, err)},
    {FRAME_LATE_STDOUT, RUN_EVENT_LATE_STDOUT, offsetof(struct run, late_out)},
    {FRAME_LATE_STDERR, RUN_EVENT_LATE_STDERR, offsetof(struct run, late_err)},
};

static bool on_output(struct run *r, const struct frame *f)
{
    for (size_t i = 0; i < ARRAY_LEN(output_routes); i++) {
        const struct output_route *route = &output_routes[i];

        if (route->frame != f->type)
            continue;
        pthread_mutex_lock(&r->lock);
        text_keep_feed((struct text_keep *)((char *)r + route->keep), f->payload, f->len);
        pthread_mutex_unlock(&r->lock);
        run_log_append(&r->log, route->event, f->payload, f->len);
        return true;
    }
    return false;
}

static const struct settings *run_settings(const struct run *r);

static void note_stderr(struct run *r, const char *text)
{
    pthread_mutex_lock(&r->lock);
    text_keep_feed(&r->err, text, strlen(text));
    pthread_mutex_unlock(&r->lock);
    run_log_append(&r->log, RUN_EVENT_STDERR, text, strlen(text));
}

/* For what the kernel sent and cannot be shown. */
static void note_left_out(struct run *r, const char *what, const struct error *why)
{
    char note[sizeof(why->text) + 40];

    snprintf(note, sizeof(note), "\n[%s is left out: %s]\n", what, why->text);
    note_stderr(r, note);
}

static void on_display(struct run *r, const struct frame *f)
{
    struct error error;
    auto_buf struct buf item;
    bool kept = false;

    buf_init(&item, FRAME_PAYLOAD_MAX);
    if (display_item(f->payload, f->len, (size_t)run_settings(r)->max_result_chars, &item, &error) <
        0) {
        note_left_out(r, "a display", &error);
        return;
    }
    pthread_mutex_lock(&r->lock);
    /* Reserved first, so that a failure leaves no comma behind. */
    kept = r->display_count < RUN_DISPLAYS_MAX && buf_reserve(&r->displays, item.len + 1) == 0 &&
           (r->display_count == 0 || buf_append_byte(&r->displays, ',') == 0) &&
           buf_append(&r->displays, item.data, item.len) == 0;
    r->display_count += kept;
    r->truncated |= !kept;
    pthread_mutex_unlock(&r->lock);
    if (kept)
        run_log_append(&r->log, RUN_EVENT_DISPLAY, item.data, item.len);
    else
        note_stderr(r,
                    "\n[a display is left out: the displays of this cell are above their limit]\n");
}

static void on_result(struct run *r, const struct frame *f)
{
    struct error error;
    bool cut = false;
    int n;

    pthread_mutex_lock(&r->lock);
    buf_clear(&r->result);
    n = display_result(f->payload, f->len, (size_t)run_settings(r)->max_result_chars, &r->result,
                       &cut, &error);
    if (n < 0)
        buf_clear(&r->result);
    r->truncated |= cut;
    pthread_mutex_unlock(&r->lock);
    if (n < 0)
        note_left_out(r, "the result", &error);
    if (r->result.len)
        run_log_append(&r->log, RUN_EVENT_RESULT, r->result.data, r->result.len);
}

/* Sets the error object; each text is cut to its limit. */
static void error_store(struct run *r, const char *type, const char *message, const char *traceback)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const struct settings *s = run_settings(r);
    auto_buf struct buf n, m, t;
    bool cut;

    buf_init(&n, 64 * MIB);
    buf_init(&m, 64 * MIB);
    buf_init(&t, 64 * MIB);
    cut = text_cut(type, strlen(type), TYPE_CHARS, &n);
    cut |= text_cut(message, strlen(message), (size_t)s->max_result_chars, &m);
    cut |= text_cut(traceback, strlen(traceback), (size_t)s->max_traceback_chars, &t);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_strcpy(doc, root, "type", buf_str(&n));
    yyjson_mut_obj_add_strcpy(doc, root, "message", buf_str(&m));
    yyjson_mut_obj_add_strcpy(doc, root, "traceback", buf_str(&t));
    pthread_mutex_lock(&r->lock);
    r->truncated |= cut;
    buf_clear(&r->error);
    if (json_mut_write(doc, &r->error, NULL) < 0)
        buf_clear(&r->error);
    pthread_mutex_unlock(&r->lock);
}

static void on_error(struct run *r, const struct frame *f)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *root;
    int64_t sys;
    const char *message;

    if (json_parse(f->payload, f->len, &doc, NULL) < 0)
        return;
    root = yyjson_doc_get_root(doc);
    sys = yyjson_get_sint(yyjson_obj_get(root, "errno"));
    message = json_get_str(root, "message", "");
    pthread_mutex_lock(&r->lock);
    r->error_is_enospc = sys == ENOSPC || sys == EDQUOT || strstr(message, "No space left");
    r->error_is_eagain = sys == EAGAIN || strstr(message, "Resource temporarily unavailable");
    pthread_mutex_unlock(&r->lock);
    error_store(r, json_get_str(root, "type", "Error"), message,
                json_get_str(root, "traceback", ""));
    if (r->error.len)
        run_log_append(&r->log, RUN_EVENT_ERROR, r->error.data, r->error.len);
}

/* ---- the end ---- */

/* "max" of pids.events: how often a fork was refused. 0 where there is no such file. */
static uint64_t pids_refused(const struct sandbox *s)
{
    auto_free char *text = NULL;
    const char *max;
    uint64_t n = 0;

    if (!s->pids_events[0] || fd_read_file(AT_FDCWD, s->pids_events, 4096, &text, NULL, NULL) < 0)
        return 0;
    max = strstr(text, "max ");
    for (max = max ? max + 4 : ""; *max >= '0' && *max <= '9'; max++)
        n = n * 10 + (uint64_t)(*max - '0');
    return n;
}

static void cause_set(struct run *r, const char *cause)
{
    if (str_copy(r->cause, sizeof(r->cause), cause) < 0)
        r->cause[0] = 0;
}

/* A run that failed after it met a limit failed because of it. */
static void limit_causes(struct run *r, const struct fields *end)
{
    struct sandbox *s = r->session->sandbox;
    int64_t full = 0;

    if (fields_get_int(end, "full", 0, &full, NULL) < 0)
        full = 0;
    if (s->pids_events[0] ? pids_refused(s) > r->pids_before : r->error_is_eagain)
        cause_set(r, "pids");
    else if (full || r->error_is_enospc)
        cause_set(r, "disk");
}

static double duration_parse(const char *text)
{
    double ms = strtod(text, NULL);

    return isfinite(ms) && ms >= 0 ? ms : 0;
}

static void outcome_fields(struct run *r, const struct fields *end)
{
    auto_free char *status = NULL, *state = NULL, *cause = NULL, *duration = NULL,
                   *restarted = NULL;
    int64_t n;

    if (fields_get_str(end, "status", &status, NULL) == 0)
        r->outcome.status = status_parse(status);
    r->outcome.state_kept = fields_get_str(end, "state", &state, NULL) < 0 || str_eq(state, "kept");
    if (fields_get_str(end, "cause", &cause, NULL) == 0)
        cause_set(r, cause);
    if (fields_get_str(end, "restarted", &restarted, NULL) == 0) {
        snprintf(r->restarted, sizeof(r->restarted), "%.31s", restarted);
        r->outcome.state_kept = false;
    }
    if (fields_get_str(end, "duration_ms", &duration, NULL) == 0)
        r->outcome.duration_ms = duration_parse(duration);
    if (fields_get_int(end, "exit_code", -1, &n, NULL) == 0)
        r->outcome.exit_code = (int)n;
    if (fields_get_int(end, "signal", 0, &n, NULL) == 0)
        r->outcome.signal = (int)n;
    if (fields_get_int(end, "stdout_bytes", (int64_t)r->out.bytes, &n, NULL) == 0)
        r->outcome.stdout_bytes = (uint64_t)n;
    if (fields_get_int(end, "stderr_bytes", (int64_t)r->err.bytes, &n, NULL) == 0)
        r->outcome.stderr_bytes = (uint64_t)n;
}

/* For an end that the code itself did not explain: time-out, death, refusal. */
static void error_complete(struct run *r)
{
    static const char *const types[] = {
        [RUN_TIMEOUT] = "TimeoutError",
        [RUN_INTERRUPTED] = "Interrupted",
        [RUN_DIED] = "Died",
        [RUN_ERROR] = "Error",
    };
    auto_json yyjson_doc *doc = NULL;
    const char *traceback = "";

    outcome_message(r->session, r, r->message, sizeof(r->message));
    r->outcome.message = r->message;
    if (r->outcome.status == RUN_OK || r->kind != RUN_CODE ||
        (r->outcome.status == RUN_ERROR && r->error.len))
        return;
    if (r->error.len && json_parse(r->error.data, r->error.len, &doc, NULL) == 0)
        traceback = json_get_str(yyjson_doc_get_root(doc), "traceback", "");
    error_store(r, types[r->outcome.status], r->message, traceback);
}

static void outcome_complete(struct run *r)
{
    pthread_mutex_lock(&r->lock);
    r->outcome.cause = r->cause;
    pthread_mutex_unlock(&r->lock);
    error_complete(r);
}

/* The session knows before any reader does: who has seen the end finds the session as it is then.
 */
static void run_conclude(struct run *r, bool sandbox_gone)
{
    outcome_complete(r);
    session_run_over(r->session, r, sandbox_gone, r->cause);
    run_log_close(&r->log);
    run_unref(r);
}

/* The connection ended under the run: the sandbox is gone, or we were cut off from it. */
static void run_lost(struct run *r, int wait_ms)
{
    char cause[32];

    if (!sandbox_wait_ended(r->session->sandbox, clock_ms() + wait_ms, cause))
        memcpy(cause, "lost", sizeof("lost"));
    r->outcome.status = RUN_DIED;
    r->outcome.state_kept = false;
    cause_set(r, str_eq(cause, "closed") ? "user" : cause);
    r->outcome.duration_ms = (double)(clock_ms() - r->started_ms);
    r->outcome.stdout_bytes = r->out.bytes;
    r->outcome.stderr_bytes = r->err.bytes;
    run_conclude(r, true);
}

static void run_ack(struct run *r)
{
    if (control_send(r->session->sandbox->control, FRAME_ACK, r->sink.stream, NULL, 0, NULL) == 0)
        r->acked = true;
}

/* A process that the kernel's OOM killer took looks like signal 9 until the keeper says what it
 * was. */
static bool killed_by_limit(struct run *r)
{
    char cause[32];

    return r->outcome.status == RUN_DIED && str_eq(r->cause, "signal:9") &&
           sandbox_wait_ended(r->session->sandbox, clock_ms() + OOM_WAIT_MS, cause) &&
           str_eq(cause, "oom");
}

/* ---- what a fork bomb leaves ---- */

static struct run *run_from_sweep(struct control_sink *sink)
{
    return (struct run *)((char *)sink - offsetof(struct run, sweep));
}

static bool sweep_on_frame(struct control_sink *sink, const struct frame *f)
{
    if (f->type != FRAME_END)
        return false;
    run_conclude(run_from_sweep(sink), false);
    return true;
}

static void sweep_on_lost(struct control_sink *sink, const struct error *why)
{
    run_lost(run_from_sweep(sink), CAUSE_WAIT_MS);
}

static bool sandbox_is_crowded(const struct session *session)
{
    auto_free char *text = NULL;
    int64_t now;

    if (!session->sandbox->pids_current[0] ||
        fd_read_file(AT_FDCWD, session->sandbox->pids_current, 64, &text, NULL, NULL) < 0)
        return false;
    text[strcspn(text, "\n")] = 0;
    return str_parse_int(text, 0, INT64_MAX, &now) == 0 && now > session->pids / 2;
}

/*
 * A run that met the process limit and left the sandbox crowded has failed, whatever its exit
 * status says. What it left is killed before the run ends, so that the next one starts in a quiet
 * sandbox. Whether that is under way.
 */
static bool crowd_end(struct run *r)
{
    struct sandbox *s = r->session->sandbox;

    if (pids_refused(s) <= r->pids_before || !sandbox_is_crowded(r->session))
        return false;
    if (r->outcome.status == RUN_OK)
        r->outcome.status = RUN_ERROR;
    if (r->outcome.status == RUN_ERROR)
        cause_set(r, "pids");
    r->sweep = (struct control_sink){.frame = sweep_on_frame, .lost = sweep_on_lost};
    control_attach_sink(s->control, &r->sweep, 0);
    /* A failed send ends the connection, and that tells the sink. */
    if (control_send(s->control, FRAME_SWEEP, r->sweep.stream, NULL, 0, NULL) < 0)
        log_debug("session %s cannot be swept", r->session->id);
    return true;
}

static void on_end(struct run *r, const struct frame *f)
{
    struct fields end = {.data = f->payload, .len = f->len};

    if (fields_check(&end, NULL) < 0) {
        run_lost(r, 0);
        return;
    }
    outcome_fields(r, &end);
    if (killed_by_limit(r)) {
        run_lost(r, 0);
        return;
    }
    if (r->outcome.status == RUN_ERROR)
        limit_causes(r, &end);
    if (r->outcome.status == RUN_ERROR && !r->error.len && r->kind == RUN_CODE) {
        auto_free char *message = NULL;

        if (fields_get_str(&end, "message", &message, NULL) == 0)
            error_store(r, "Error", message, "");
    }
    run_ack(r);
    if (!crowd_end(r))
        run_conclude(r, false);
}

/* ---- the sink ---- */

struct frame_route {
    uint8_t type;
    void (*handle)(struct run *r, const struct frame *f);
};

/* Written anew, because what a kernel wrote may be anything. */
static int question_format(const struct frame *f, struct buf *ret)
{
    auto_json_mut yyjson_mut_doc *out = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(out);
    auto_json yyjson_doc *doc = NULL;
    auto_buf struct buf prompt;
    const char *wanted;

    buf_init(&prompt, FRAME_PAYLOAD_MAX);
    if (json_parse(f->payload, f->len, &doc, NULL) < 0)
        return -1;
    wanted = json_get_str(yyjson_doc_get_root(doc), "prompt", "");
    text_cut(wanted, strlen(wanted), PROMPT_CHARS, &prompt);
    yyjson_mut_doc_set_root(out, root);
    yyjson_mut_obj_add_strcpy(out, root, "prompt", buf_str(&prompt));
    yyjson_mut_obj_add_bool(out, root, "password",
                            json_get_bool(yyjson_doc_get_root(doc), "password", false));
    return json_mut_write(out, ret, NULL);
}

/* The question is open before anybody can read it. One that nobody will is not left open. */
static void on_input_request(struct run *r, const struct frame *f)
{
    auto_buf struct buf text;
    struct error error;

    buf_init(&text, FRAME_PAYLOAD_MAX);
    session_question_open(r->session, r);
    if (question_format(f, &text) == 0)
        run_log_append(&r->log, RUN_EVENT_INPUT, text.data, text.len);
    else if (run_input(r, NULL, 0, &error) < 0)
        log_debug("session %s: a question cannot be refused: %s", r->session->id, error.text);
}

static void on_input_taken(struct run *r, const struct frame *f)
{
    session_question_close(r->session, r);
}

static void on_dropped(struct run *r, const struct frame *f)
{
    struct fields fields = {.data = f->payload, .len = f->len};
    int64_t out = 0, err = 0;
    char text[96];

    if (fields_get_int(&fields, "stdout_bytes", 0, &out, NULL) < 0 ||
        fields_get_int(&fields, "stderr_bytes", 0, &err, NULL) < 0)
        return;
    pthread_mutex_lock(&r->lock);
    r->truncated = true;
    pthread_mutex_unlock(&r->lock);
    snprintf(text, sizeof(text), "\n... [%lld bytes left out while nobody was reading] ...\n",
             (long long)(out + err));
    on_output(r, &(struct frame){.type = out ? FRAME_STDOUT : FRAME_STDERR,
                                 .payload = text,
                                 .len = strlen(text)});
}

static const struct frame_route frame_routes[] = {
    {FRAME_DISPLAY, on_display}, {FRAME_RESULT, on_result},
    {FRAME_ERROR, on_error},     {FRAME_INPUT_REQUEST, on_input_request},
    {FRAME_DROPPED, on_dropped}, {FRAME_INPUT_TAKEN, on_input_taken},
};

static bool run_on_frame(struct control_sink *sink, const struct frame *f)
{
    struct run *r = (struct run *)sink;

    if (f->type == FRAME_END) {
        on_end(r, f);
        return true;
    }
    if (on_output(r, f))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(frame_routes); i++) {
        if (frame_routes[i].type == f->type)
            frame_routes[i].handle(r, f);
    }
    return false;
}

static void run_on_lost(struct control_sink *sink, const struct error *why)
{
    run_lost((struct run *)sink, CAUSE_WAIT_MS);
}

/* ---- life ---- */

static const struct settings *run_settings(const struct run *r)
{
    return session_settings(r->session);
}

struct run *run_new(struct session *s, enum run_kind kind, struct error *reterr)
{
    const struct settings *settings = session_settings(s);
    struct run *r = calloc(1, sizeof(*r));

    if (!r || run_log_init(&r->log, LOG_BYTES, reterr) < 0) {
        free(r);
        error_no_memory(reterr);
        return NULL;
    }
    r->refs = 1;
    r->session = session_ref(s);
    r->kind = kind;
    r->sink.frame = run_on_frame;
    r->sink.lost = run_on_lost;
    r->outcome =
        (struct run_outcome){.state_kept = true, .exit_code = -1, .message = "", .cause = ""};
    buf_init(&r->request, REQUEST_BYTES);
    buf_init(&r->displays, DISPLAYS_BYTES);
    buf_init(&r->result, FRAME_PAYLOAD_MAX);
    buf_init(&r->error, FRAME_PAYLOAD_MAX);
    pthread_mutex_init(&r->lock, NULL);
    text_keep_init(&r->out, (size_t)settings->max_stdout_chars);
    text_keep_init(&r->err, (size_t)settings->max_stderr_chars);
    text_keep_init(&r->late_out, LATE_CHARS);
    text_keep_init(&r->late_err, LATE_CHARS);
    return r;
}

struct run *run_ref(struct run *r)
{
    __atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
    return r;
}

void run_unref(struct run *r)
{
    if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL))
        return;
    run_log_done(&r->log);
    buf_done(&r->request);
    buf_done(&r->displays);
    buf_done(&r->result);
    buf_done(&r->error);
    text_keep_done(&r->out);
    text_keep_done(&r->err);
    text_keep_done(&r->late_out);
    text_keep_done(&r->late_err);
    pthread_mutex_destroy(&r->lock);
    session_unref(r->session);
    free(r);
}

/* Under the session's lock. The sink's reference is dropped in run_conclude(). */
void run_start(struct run *r)
{
    struct sandbox *s = r->session->sandbox;

    r->started = true;
    r->started_ms = clock_ms();
    r->pids_before = pids_refused(s);
    r->backstop = clock_deadline(r->timeout_ms + BACKSTOP_MS);
    control_attach_sink(s->control, &run_ref(r)->sink, 0);
    /* A failed send ends the connection: the reader then tells the sink, and the run ends so. */
    if (control_send(s->control, r->kind == RUN_CODE ? FRAME_EXEC : FRAME_SPAWN, r->sink.stream,
                     r->request.data, r->request.len, NULL) < 0)
        r->backstop = clock_ms();
    buf_done(&r->request);
}

void run_adopt(struct run *r, uint32_t stream)
{
    struct sandbox *s = r->session->sandbox;
    auto_buf struct buf b;

    buf_init(&b, 64);
    r->started = true;
    r->started_ms = clock_ms();
    r->pids_before = pids_refused(s);
    r->backstop = CLOCK_FOREVER; /* its time-out is known to init only */
    control_attach_sink(s->control, &run_ref(r)->sink, stream);
    if (fields_add_int(&b, "offset", 0) < 0 ||
        control_send(s->control, FRAME_ATTACH, stream, b.data, b.len, NULL) < 0)
        return; /* the connection is lost, and so the run is told */
}

void run_finish_unstarted(struct run *r, enum run_status status, const char *cause)
{
    r->outcome.status = status;
    r->outcome.state_kept = status != RUN_DIED;
    cause_set(r, cause);
    outcome_complete(r);
    run_log_close(&r->log);
}

/* ---- reading ---- */

int run_next(struct run *r, struct run_cursor *cursor, int64_t deadline, struct run_event *ret,
             struct error *reterr)
{
    return run_log_next(&r->log, cursor, deadline, ret, reterr);
}

int run_wait(struct run *r, int64_t deadline, struct run_outcome *ret, struct error *reterr)
{
    if (!run_log_wait_closed(&r->log, deadline))
        return error_set(reterr, ERR_TIMEOUT, "the run goes on");
    *ret = r->outcome;
    return 0;
}

int run_input(struct run *r, const char *line, size_t len, struct error *reterr)
{
    auto_buf struct buf b;
    bool running;

    buf_init(&b, MIB);
    if (r->kind == RUN_CODE && buf_append_byte(&b, line ? 1 : 0) < 0)
        return error_no_memory(reterr);
    if (line && buf_append(&b, line, len) < 0)
        return error_set(reterr, ERR_LIMIT, "an input line above 1 MiB");
    pthread_mutex_lock(&r->session->lock);
    running = r->started && !run_log_is_closed(&r->log);
    pthread_mutex_unlock(&r->session->lock);
    if (!running)
        return error_set(reterr, ERR_INVALID, "the run waits for no input");
    /* Before init says so: an init that is stuck must not be waited for. */
    session_question_close(r->session, r);
    return control_send(r->session->sandbox->control, FRAME_INPUT, r->sink.stream, b.data, b.len,
                        reterr);
}

enum run_kind run_kind(const struct run *r)
{
    return r->kind;
}
