/* SPDX-License-Identifier: MIT */
/* The list of runs, their figures and their ends. */
#include "init/run.h"

#include "base/failpoint.h"
#include "init/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { END_MAX = 1024 };

static struct run *runs;

/* ---- the ladder ---- */

void ladder_begin(struct ladder *l, int64_t now, int64_t delay_ms)
{
    if (l->active)
        return;
    *l = (struct ladder){
        .next = now + delay_ms, .kill = now + delay_ms + INTERRUPT_TIME_MS, .active = true};
}

enum ladder_act ladder_step(struct ladder *l, int64_t now)
{
    if (!l->active)
        return LADDER_WAIT;
    if (now >= l->kill) {
        l->active = false;
        return LADDER_KILL;
    }
    if (now < l->next)
        return LADDER_WAIT;
    l->next = now + INTERRUPT_PERIOD_MS;
    return LADDER_INTERRUPT;
}

int64_t ladder_next(const struct ladder *l)
{
    return l->active ? MIN(l->next, l->kill) : CLOCK_FOREVER;
}

/* ---- the list ---- */

struct run *run_first(void)
{
    return runs;
}

struct run *run_find(uint32_t stream)
{
    struct run *run = runs;

    while (run && run->stream != stream)
        run = run->next;
    return run;
}

static size_t runs_count(void)
{
    size_t count = 0;

    for (const struct run *run = runs; run; run = run->next)
        count++;
    return count;
}

static int run_parse(struct run *run, const struct fields *f, struct error *reterr)
{
    int64_t answers;

    if (fields_get_int(f, "timeout_ms", 0, &run->timeout_ms, reterr) < 0 ||
        fields_get_int(f, "stdin", 0, &answers, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    if (run->timeout_ms < 0 || run->timeout_ms > RUN_TIMEOUT_MAX_MS)
        return error_set(reterr, ERR_INVALID, "a time-out of %lld ms is out of range",
                         (long long)run->timeout_ms);
    run->answers = answers == 1;
    return 0;
}

/* A run that was not acknowledged may be the only copy of a result, so none is thrown away for a
 * new one. */
static struct run *run_alloc(struct error *reterr)
{
    struct run *run = NULL;

    if (runs_count() < RUN_MAX) {
        run = calloc(1, sizeof(*run));
        if (run && (run->end = log_block_new(0, END_MAX)))
            return run;
        free(run);
        (void)error_sys(reterr, ENOMEM, "cannot begin a run");
        return NULL;
    }
    (void)error_set(reterr, ERR_LIMIT, "there are %d runs that nobody acknowledged", RUN_MAX);
    if (reterr)
        reterr->sys = EAGAIN;
    return NULL;
}

struct run *run_open(enum run_kind kind, uint32_t stream, const struct fields *f,
                     struct error *reterr)
{
    struct run *run = run_alloc(reterr), **end = &runs;

    if (!run)
        return NULL;
    if (run_parse(run, f, reterr) < 0) {
        log_block_unref(run->end);
        free(run);
        return NULL;
    }
    run->stream = stream;
    run->kind = kind;
    run->deadline = CLOCK_FOREVER;
    log_init(&run->log, stream);
    while (*end)
        end = &(*end)->next;
    *end = run;
    return run;
}

void run_free(struct run *run)
{
    struct run **p = &runs;

    while (*p != run)
        p = &(*p)->next;
    *p = run->next;
    log_done(&run->log);
    if (run->end)
        log_block_unref(run->end);
    free(run);
}

void run_begin(struct run *run)
{
    run->state = RUN_RUNNING;
    run->begin_us = clock_us();
    run->deadline = run->timeout_ms ? clock_deadline(run->timeout_ms) : CLOCK_FOREVER;
}

void run_clock_hold(struct run *run)
{
    run->rest_ms = run->deadline == CLOCK_FOREVER ? CLOCK_FOREVER : run->deadline - clock_ms();
    run->deadline = CLOCK_FOREVER;
}

void run_clock_go(struct run *run)
{
    if (run->stop == RUN_GOES_ON && run->rest_ms != CLOCK_FOREVER)
        run->deadline = clock_deadline(MAX(run->rest_ms, 0));
}

/* ---- what it says ---- */

void run_output(struct run *run, int fd, const char *data, size_t len)
{
    if (run->bytes[0] + run->bytes[1] == 0)
        failpoint("first-output");
    run->bytes[fd - 1] += len;
    log_output(&run->log, fd == 1 ? FRAME_STDOUT : FRAME_STDERR, data, len);
}

/* Result and error are always kept: there is at most one of each. */
void run_event(struct run *run, uint8_t type, struct log_block *block)
{
    static const char note[] = "[a display was left out: those of one run are kept up to 64 MiB]\n";

    if (type != FRAME_DISPLAY || log_has_room(&run->log, block->size)) {
        log_event_block(&run->log, type, block);
        return;
    }
    log_block_unref(block);
    if (!run->noted)
        log_output(&run->log, FRAME_STDERR, note, sizeof(note) - 1);
    run->noted = true;
}

/* A run that is being stopped must be able to finish, however slow its readers are. */
bool run_is_gated(const struct run *run)
{
    return run->stop == RUN_GOES_ON && log_backlog(&run->log) >= RUN_GATE;
}

/* ---- ends ---- */

/* Why a run was stopped goes before how it ended: a process that answers SIGINT with exit 0 was
 * interrupted all the same. */
void outcome_init(struct outcome *o, const struct run *run)
{
    *o = (struct outcome){.status = "ok", .exit_code = -1};
    if (run->stop == RUN_TIMED_OUT) {
        o->status = "timeout";
        snprintf(o->cause, sizeof(o->cause), "timeout");
    } else if (run->stop == RUN_STOPPED) {
        o->status = "interrupted";
        snprintf(o->cause, sizeof(o->cause), "user");
    }
}

void outcome_cause_wait(struct outcome *o, int status)
{
    if (WIFSIGNALED(status))
        snprintf(o->cause, sizeof(o->cause), "signal:%d", WTERMSIG(status));
    else
        snprintf(o->cause, sizeof(o->cause), "exit:%d", WEXITSTATUS(status));
}

static int end_figures(const struct run *run, struct buf *f)
{
    int64_t us = run->begin_us ? clock_us() - run->begin_us : 0;
    char ms[32];

    if (!run_is_logged(run))
        return 0;
    snprintf(ms, sizeof(ms), "%lld.%03d", (long long)(us / 1000), (int)(us % 1000));
    if (fields_add_str(f, "duration_ms", ms) < 0 ||
        fields_add_int(f, "stdout_bytes", (int64_t)run->bytes[0]) < 0 ||
        fields_add_int(f, "stderr_bytes", (int64_t)run->bytes[1]) < 0)
        return -1;
    /* Asked now, because what the run wrote may be removed in a moment. */
    return config_is_full(&config) ? fields_add_int(f, "full", 1) : 0;
}

static int end_text(struct buf *f, const char *key, const char *value)
{
    return value && *value ? fields_add_str(f, key, value) : 0;
}

static int end_format(const struct run *run, const struct outcome *o, struct buf *f)
{
    if (fields_add_str(f, "status", o->status) < 0 || end_text(f, "state", o->state) < 0 ||
        end_text(f, "cause", o->cause) < 0 || end_text(f, "restarted", o->restarted) < 0 ||
        end_figures(run, f) < 0)
        return -1;
    if (o->exit_code >= 0 && fields_add_int(f, "exit_code", o->exit_code) < 0)
        return -1;
    if (o->signal > 0 && fields_add_int(f, "signal", o->signal) < 0)
        return -1;
    if (!o->error)
        return 0;
    if (o->error->sys > 0 && fields_add_int(f, "errno", o->error->sys) < 0)
        return -1;
    return fields_add_str(f, "message", o->error->text);
}

void run_end(struct run *run, const struct outcome *o)
{
    struct log_block *end = TAKE_PTR(run->end);
    /* The buffer writes into the block: it never grows, because its maximum is below `cap`. */
    struct buf f = {.data = end->data + FRAME_HEADER, .cap = END_MAX, .max = END_MAX - 1};

    failpoint("exec-done");
    run->state = RUN_DONE;
    run->deadline = CLOCK_FOREVER;
    run->ladder.active = false;
    (void)!end_format(run, o, &f);
    end->size = FRAME_HEADER + f.len;
    log_event_block(&run->log, FRAME_END, end);
}

void run_fail(struct run *run, const char *state, const struct error *why)
{
    struct outcome o;

    outcome_init(&o, run);
    if (run->stop == RUN_GOES_ON)
        o.status = "error";
    o.state = state;
    o.error = why;
    run_end(run, &o);
}

/* ---- all of them ---- */

/* The start of a kernel and a sweep are forgotten when their client has read the end, or is gone.
 */
void runs_tidy(void)
{
    struct run *run = runs;

    while (run) {
        struct run *next = run->next;

        if (!run_is_logged(run) && run->state == RUN_DONE && log_backlog(&run->log) == 0)
            run_free(run);
        run = next;
    }
}

int runs_describe(struct buf *f)
{
    static const char *const kinds[] = {[RUN_EXEC] = "exec", [RUN_SPAWN] = "spawn"};
    char text[80];

    for (struct run *run = runs; run; run = run->next) {
        if (!run_is_logged(run))
            continue;
        snprintf(text, sizeof(text), "%u:%s:%s:%llu", run->stream, kinds[run->kind],
                 run->state == RUN_DONE ? "done" : "running", (unsigned long long)run->log.end);
        run->log.seen = run->log.end;
        if (fields_add_str(f, "run", text) < 0)
            return -1;
    }
    return 0;
}
