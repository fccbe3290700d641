/* SPDX-License-Identifier: MIT */
/*
 * A cell: its token, its barriers, its end. Every frame that the kernel sends within a cell carries
 * a token that only the kernel was told, so code that finds the socket cannot pretend a result.
 */
#include "init/cell.h"

#include "base/failpoint.h"
#include "init/kernel.h"
#include "init/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>

enum { CELL_WAITING_MAX = 16 };

struct cell {
    char *code; /* behind room for the token, as K_EXEC has it */
    size_t len;
    char token[KERNEL_TOKEN];
    bool has_result, has_error;
    bool asks; /* an input request is open */
};

static void cell_free(struct run *run)
{
    free(run->cell->code);
    free(run->cell);
    run->cell = NULL;
}

static void cell_end(struct run *run, const char *status, const char *state)
{
    char restarted[24];
    struct outcome o;

    outcome_init(&o, run);
    if (run->stop == RUN_GOES_ON)
        o.status = status;
    o.state = state;
    o.restarted = run->begin_us ? kernel_restarted(restarted) : NULL;
    cell_free(run);
    run_end(run, &o);
}

static void cell_fail(struct run *run, const struct error *why)
{
    cell_free(run);
    run_fail(run, "lost", why);
}

/* ---- the start ---- */

static int cell_new(struct run *run, const struct fields *f, struct error *reterr)
{
    struct field code;

    run->cell = calloc(1, sizeof(*run->cell));
    if (!run->cell)
        return error_no_memory(reterr);
    if (!fields_find(f, "code", &code))
        return error_set(reterr, ERR_INVALID, "there is no code to run");
    if (code.len > FRAME_PAYLOAD_MAX - KERNEL_TOKEN)
        return error_set(reterr, ERR_LIMIT, "the code is longer than a frame");
    run->cell->len = KERNEL_TOKEN + code.len;
    run->cell->code = malloc(run->cell->len);
    if (!run->cell->code)
        return error_no_memory(reterr);
    memcpy(run->cell->code + KERNEL_TOKEN, code.value, code.len);
    return 0;
}

/* The time of a cell begins when the kernel gets it, not while it waits for another one. */
static int cell_send(struct run *run, struct error *reterr)
{
    struct cell *cell = run->cell;
    int r = failpoint("exec-send");

    if (r < 0)
        return error_sys(reterr, -r, "cannot send the code");
    if (getrandom(cell->token, KERNEL_TOKEN, 0) != KERNEL_TOKEN)
        return error_sys(reterr, errno, "cannot make a token");
    memcpy(cell->code, cell->token, KERNEL_TOKEN);
    kernel_take(run);
    run_begin(run);
    r = kernel_send(FRAME_K_EXEC, run->stream, cell->code, cell->len);
    free(TAKE_PTR(cell->code));
    if (r == 0)
        return 0;
    kernel_release();
    return error_sys(reterr, ENOMEM, "cannot send the code");
}

static struct run *cell_waiting(size_t *ret_count)
{
    struct run *first = NULL;

    *ret_count = 0;
    for (struct run *run = run_first(); run; run = run->next) {
        if (run->kind != RUN_EXEC || run->state != RUN_WAITING || !run->cell)
            continue;
        if (!first)
            first = run;
        *ret_count += 1;
    }
    return first;
}

void cell_next(void)
{
    struct error err = {};
    struct run *run;
    size_t count;

    while (kernel_state() == KERNEL_IDLE && (run = cell_waiting(&count))) {
        if (cell_send(run, &err) < 0)
            cell_fail(run, &err);
    }
}

void cell_start(struct run *run, const struct fields *f)
{
    struct error err = {};
    size_t count;
    int r = cell_new(run, f, &err);

    cell_waiting(&count);
    if (r == 0 && count > CELL_WAITING_MAX) {
        r = error_set(&err, ERR_BUSY, "%d cells are waiting already", CELL_WAITING_MAX);
        err.sys = EBUSY;
    }
    if (r < 0) {
        if (run->cell)
            cell_free(run);
        run_fail(run, "kept", &err);
        return;
    }
    if (kernel_need(&err) < 0) {
        /* A start that failed at once has ended all waiting cells, this one among them. */
        if (run->state != RUN_DONE)
            cell_fail(run, &err);
        return;
    }
    cell_next();
}

void cell_fail_waiting(const struct error *why)
{
    struct run *run;
    size_t count;

    while ((run = cell_waiting(&count)))
        cell_fail(run, why);
}

/* ---- frames ---- */

/*
 * The kernel has flushed before it sent this frame, so what belongs before it is in the pipes now.
 * That is the whole order between output and displays.
 */
static int frame_out(struct run *run, const struct kframe *frame, uint8_t type,
                     struct error *reterr)
{
    struct log_block *block;

    kernel_drain();
    block = kernel_take_frame(frame);
    if (!block)
        return error_no_memory(reterr);
    run_event(run, type, block);
    return 0;
}

static int barrier(struct run *run, const struct kframe *frame, uint8_t type, struct error *reterr)
{
    int r = frame_out(run, frame, type, reterr);

    if (r < 0)
        return r;
    if (kernel_send(FRAME_K_ACK, run->stream, NULL, 0) < 0)
        return error_no_memory(reterr);
    return 0;
}

static int display_frame(struct run *run, const struct kframe *frame, struct error *reterr)
{
    return barrier(run, frame, FRAME_DISPLAY, reterr);
}

static int result_frame(struct run *run, const struct kframe *frame, struct error *reterr)
{
    if (run->cell->has_result)
        return error_set(reterr, ERR_PROTOCOL, "the kernel sent a second result");
    run->cell->has_result = true;
    return barrier(run, frame, FRAME_RESULT, reterr);
}

static int error_frame(struct run *run, const struct kframe *frame, struct error *reterr)
{
    if (run->cell->has_error)
        return error_set(reterr, ERR_PROTOCOL, "the kernel sent a second error");
    run->cell->has_error = true;
    return barrier(run, frame, FRAME_ERROR, reterr);
}

/* Late output of threads and children begins behind this point. */
static int done_frame(struct run *run, const struct kframe *frame, struct error *reterr)
{
    const char *status = kframe_status(frame);

    if (!status)
        return error_set(reterr, ERR_PROTOCOL, "the kernel sent a malformed end of a cell");
    kernel_drain();
    kernel_release();
    cell_end(run, status, "kept");
    return 0;
}

static int answer(struct run *run, const void *data, size_t len, struct error *reterr)
{
    if (kernel_send(FRAME_K_INPUT, run->stream, data, len) < 0)
        return error_no_memory(reterr);
    return 0;
}

/*
 * The time of a cell stands still while somebody is asked: people are slow, and it does nothing.
 * A question that nobody can answer is answered at once, and so is that of a cell being stopped.
 */
static int input_frame(struct run *run, const struct kframe *frame, struct error *reterr)
{
    if (!run->answers || run->stop != RUN_GOES_ON)
        return answer(run, "", 1, reterr);
    if (run->cell->asks)
        return error_set(reterr, ERR_PROTOCOL, "the kernel asked for input twice");
    run->cell->asks = true;
    run_clock_hold(run);
    return frame_out(run, frame, FRAME_INPUT_REQUEST, reterr);
}

static const struct {
    uint8_t type;
    int (*handle)(struct run *run, const struct kframe *frame, struct error *reterr);
} cell_frames[] = {
    {FRAME_K_DISPLAY, display_frame},     {FRAME_K_RESULT, result_frame},
    {FRAME_K_ERROR, error_frame},         {FRAME_K_DONE, done_frame},
    {FRAME_K_INPUT_REQUEST, input_frame},
};

int cell_frame(struct run *run, const struct kframe *frame, struct error *reterr)
{
    const char *name = frame_name(frame->type, FRAME_FROM_KERNEL);

    if (frame->stream != run->stream)
        return error_set(reterr, ERR_PROTOCOL, "the kernel sent %s of another cell", name);
    if (memcmp(frame->token, run->cell->token, KERNEL_TOKEN) != 0)
        return error_set(reterr, ERR_PROTOCOL, "the kernel sent %s with a wrong token", name);
    for (size_t i = 0; i < ARRAY_LEN(cell_frames); i++) {
        if (cell_frames[i].type == frame->type)
            return cell_frames[i].handle(run, frame, reterr);
    }
    return error_set(reterr, ERR_PROTOCOL, "the kernel sent %s within a cell", name);
}

/* A kernel that was killed by the ladder is no accident: the run says why it was stopped. */
void cell_lost(struct run *run, int wait_status, const struct error *fault)
{
    struct outcome o;

    outcome_init(&o, run);
    o.state = "lost";
    if (run->stop == RUN_GOES_ON) {
        o.status = "died";
        outcome_cause_wait(&o, wait_status);
        if (fault)
            memcpy(o.cause, "protocol", sizeof("protocol"));
        o.error = fault;
    }
    cell_free(run);
    run_end(run, &o);
}

/* ---- what the client wants of it ---- */

/* Its time goes on from here, and who reads the log is told, now or later. */
void cell_input(struct run *run, const char *data, size_t len)
{
    struct error err = {};

    if (!run->cell->asks || len == 0)
        return;
    run->cell->asks = false;
    run_clock_go(run);
    if (log_event(&run->log, FRAME_INPUT_TAKEN, NULL, 0) < 0 || answer(run, data, len, &err) < 0) {
        error_no_memory(&err);
        kernel_fault(&err);
    }
}

/* Begins the ladder, once; a second wish to stop changes neither its reason nor its times. */
static void cell_stop(struct run *run, enum run_stop why)
{
    if (run->stop == RUN_GOES_ON)
        run->stop = why;
    run->deadline = CLOCK_FOREVER;
    if (run->state == RUN_WAITING) {
        cell_end(run, "interrupted", "kept");
        return;
    }
    if (run->ladder.active)
        return;
    ladder_begin(&run->ladder, clock_ms(), kernel_sigint_delay());
    /* A stopped process would take the signal only after somebody else continued it. */
    process_signal_group(kernel_pid(), SIGCONT);
    (void)!kernel_send(FRAME_K_INTERRUPT, run->stream, NULL, 0);
}

void cell_interrupt(struct run *run)
{
    cell_stop(run, RUN_STOPPED);
}

void cell_kill(struct run *run)
{
    bool waiting = run->state == RUN_WAITING;

    if (run->stop == RUN_GOES_ON)
        run->stop = RUN_STOPPED;
    if (waiting)
        cell_end(run, "interrupted", "kept");
    else
        kernel_kill();
}

/* Held here and not by the client, so that a time-out comes also when nobody is connected. */
int64_t cell_tick(struct run *run, int64_t now)
{
    enum ladder_act act;

    if (now >= run->deadline)
        cell_stop(run, RUN_TIMED_OUT);
    act = ladder_step(&run->ladder, now);
    if (act == LADDER_INTERRUPT)
        process_signal_group(kernel_pid(), SIGINT);
    else if (act == LADDER_KILL)
        kernel_kill();
    return MIN(run->deadline, ladder_next(&run->ladder));
}
