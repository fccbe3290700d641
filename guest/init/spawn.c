/* SPDX-License-Identifier: MIT */
/*
 * Runs of a process. A run ends when its process has ended and its pipes are at their end, or a
 * little later when background processes hold them. A run that is killed ends when nothing that it
 * started lives any more.
 */
#include "init/spawn.h"

#include "base/clock.h"
#include "init/kernel.h"
#include "init/loop.h"
#include "init/outq.h"
#include "init/process.h"
#include "init/sink.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

enum {
    SPAWN_LINGER_MS = 100, /* for the last output of background processes */
    SPAWN_KILL_PERIOD_MS = 5,
    SPAWN_KILL_ROUNDS = 200, /* then the run ends although something survived */
    SPAWN_KILL_PATIENCE = 8, /* rounds before everything is stopped first */
    SPAWN_READ = FRAME_BULK_MAX,
    SPAWN_DRAIN_MAX = 1024 * 1024, /* what a pipe can hold */
};

struct spawn {
    struct run *run;
    struct process_spec spec;
    pid_t pid;
    uint64_t start;
    struct watch status; /* open until it is known whether exec succeeded */
    struct watch out[2];
    struct watch in;
    struct outq input;
    bool input_over;
    bool ended;
    int wait_status;
    int64_t linger;    /* deadline for output behind the end */
    int64_t kill_next; /* 0: it is not being killed */
    int kill_rounds;
};

/* ---- the end ---- */

/* Pipes that are still open are held by background processes, and go on being read. */
static void spawn_free(struct spawn *s)
{
    watch_close(&s->status);
    watch_close(&s->in);
    for (int i = 0; i < 2; i++)
        sink_add(watch_release(&s->out[i]));
    outq_done(&s->input);
    process_spec_done(&s->spec);
    s->run->spawn = NULL;
    free(s);
}

static void spawn_finish(struct run *run)
{
    struct spawn *s = run->spawn;
    struct outcome o;
    int status = s->wait_status;

    outcome_init(&o, run);
    if (s->ended && WIFSIGNALED(status))
        o.signal = WTERMSIG(status);
    else if (s->ended)
        o.exit_code = WEXITSTATUS(status);
    if (run->stop == RUN_GOES_ON && status != 0) {
        o.status = "error";
        outcome_cause_wait(&o, status);
    }
    spawn_free(s);
    run_end(run, &o);
}

static void spawn_fail(struct run *run, const struct error *why)
{
    spawn_free(run->spawn);
    run_fail(run, NULL, why);
}

static bool pipes_are_over(const struct spawn *s)
{
    return !watch_is_open(&s->out[0]) && !watch_is_open(&s->out[1]);
}

static void spawn_check_over(struct run *run)
{
    if (run->spawn->ended && !run->spawn->kill_next && pipes_are_over(run->spawn))
        spawn_finish(run);
}

/* ---- pipes ---- */

/* Returns what was read; 0 at the end (the pipe is closed then), -1 when there is nothing. */
static ssize_t pipe_read(struct spawn *s, int i)
{
    static char data[SPAWN_READ];
    ssize_t n;

    do
        n = read(s->out[i].fd, data, sizeof(data));
    while (n < 0 && errno == EINTR);
    if (n > 0)
        run_output(s->run, i + 1, data, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        watch_close(&s->out[i]);
    return n;
}

static void stdout_ready(struct watch *w, uint32_t events)
{
    struct spawn *s = watch_owner(w, struct spawn, out[0]);

    if (pipe_read(s, 0) == 0)
        spawn_check_over(s->run);
}

static void stderr_ready(struct watch *w, uint32_t events)
{
    struct spawn *s = watch_owner(w, struct spawn, out[1]);

    if (pipe_read(s, 1) == 0)
        spawn_check_over(s->run);
}

/* Reads what is in the pipes, but not for ever when somebody goes on writing. */
static void pipes_drain(struct spawn *s)
{
    for (int i = 0; i < 2; i++) {
        ssize_t total = 0, n = 1;

        while (watch_is_open(&s->out[i]) && n > 0 && total < SPAWN_DRAIN_MAX) {
            n = pipe_read(s, i);
            total += n;
        }
    }
}

void spawn_gate(struct run *run)
{
    uint32_t events = run_is_gated(run) ? 0 : EPOLLIN;

    watch_set(&run->spawn->out[0], events);
    watch_set(&run->spawn->out[1], events);
}

/* A process that does not want its input has closed it; the rest is thrown away without a word. */
static void input_write(struct spawn *s)
{
    int r = outq_flush(&s->input, s->in.fd);

    if (r == 0) {
        watch_set(&s->in, EPOLLOUT);
        return;
    }
    watch_set(&s->in, 0);
    if (r < 0 || s->input_over) {
        watch_close(&s->in);
        outq_done(&s->input);
    }
}

static void stdin_ready(struct watch *w, uint32_t events)
{
    input_write(watch_owner(w, struct spawn, in));
}

void spawn_input(struct run *run, const char *data, size_t len)
{
    struct spawn *s = run->spawn;

    if (!watch_is_open(&s->in) || s->input_over)
        return;
    if (len == 0) {
        s->input_over = true;
    } else {
        struct buf *b = outq_room(&s->input, len);

        if (!b || buf_append(b, data, len) < 0) {
            spawn_kill(run);
            return;
        }
    }
    input_write(s);
}

/* ---- the start ---- */

/*
 * The process is gone. What is in the pipes is read at once, whether clients keep up or not: it is
 * no more than a pipe holds. Then the run waits for the ends of the pipes, but not for long.
 */
static void spawn_ended(struct run *run)
{
    struct spawn *s = run->spawn;

    pipes_drain(s);
    s->linger = clock_deadline(SPAWN_LINGER_MS);
    spawn_check_over(run);
}

static void status_ready(struct watch *w, uint32_t events)
{
    struct spawn *s = watch_owner(w, struct spawn, status);
    struct error err = {};
    int r = process_status(&s->spec, w->fd, &err);

    if (r == 0 && !s->ended)
        return;
    watch_close(w);
    if (r < 0)
        spawn_fail(s->run, &err);
    else if (s->ended)
        spawn_ended(s->run);
}

/* Opens the three pipes; what the child gets is put into the spec, our ends into the watches. */
static int pipes_open(struct spawn *s, struct error *reterr)
{
    static watch_fn *const ready[] = {stdout_ready, stderr_ready};
    int fds[2];

    s->spec.fds[0] = process_null_fd();
    if (s->run->answers) {
        if (process_pipe_in(&s->spec, fds) < 0)
            return error_sys(reterr, errno, "cannot make a pipe");
        s->spec.fds[0] = fds[1];
        (void)!watch_open(&s->in, fds[0], 0, stdin_ready);
    }
    for (int i = 0; i < 2; i++) {
        if (process_pipe_out(&s->spec, fds) < 0)
            return error_sys(reterr, errno, "cannot make a pipe");
        s->spec.fds[i + 1] = fds[1];
        if (watch_open(&s->out[i], fds[0], EPOLLIN, ready[i]) < 0) {
            close(fds[0]);
            return error_sys(reterr, errno, "cannot watch a pipe");
        }
    }
    return 0;
}

static void child_ends_close(struct spawn *s)
{
    for (int i = 0; i < 3; i++) {
        if (s->spec.fds[i] >= 0 && s->spec.fds[i] != process_null_fd())
            close(s->spec.fds[i]);
        s->spec.fds[i] = -1;
    }
}

static int spawn_launch(struct spawn *s, struct error *reterr)
{
    int status, r = pipes_open(s, reterr);

    if (r == 0)
        r = process_start(&s->spec, &s->pid, &status, reterr);
    child_ends_close(s);
    if (r < 0)
        return r;
    /* What becomes an orphan of init from here on may be of this run. */
    s->start = proctab_start_time(s->pid);
    if (watch_open(&s->status, status, EPOLLIN, status_ready) < 0) {
        close(status);
        kill(s->pid, SIGKILL);
        return error_sys(reterr, errno, "cannot watch a pipe");
    }
    return 0;
}

static struct spawn *spawn_new(struct run *run)
{
    struct spawn *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->run = run;
    s->status.fd = s->in.fd = s->out[0].fd = s->out[1].fd = -1;
    outq_init(&s->input, RUN_INPUT_MAX);
    run->spawn = s;
    return s;
}

void spawn_start(struct run *run, const struct fields *f)
{
    struct spawn *s = spawn_new(run);
    struct error err = {};

    run_begin(run);
    if (!s) {
        (void)error_sys(&err, ENOMEM, "cannot begin a run");
        run_fail(run, NULL, &err);
        return;
    }
    if (process_spec_parse(&s->spec, f, &err) < 0) {
        spawn_fail(run, &err);
        return;
    }
    s->spec.env_fallback = kernel_env();
    if (spawn_launch(s, &err) < 0)
        spawn_fail(run, &err);
}

/* ---- stopping ---- */

void spawn_spare(struct proc_scope *scope, const struct run *except)
{
    for (struct run *run = run_first(); run; run = run->next) {
        if (run != except && run->spawn && scope->spared_count < PROCTAB_SPARED)
            scope->spared[scope->spared_count++] = run->spawn->pid;
    }
}

void spawn_interrupt(struct run *run)
{
    if (run->stop == RUN_GOES_ON)
        run->stop = RUN_STOPPED;
    ladder_begin(&run->ladder, clock_ms(), 0);
}

void spawn_kill(struct run *run)
{
    if (run->stop == RUN_GOES_ON)
        run->stop = RUN_STOPPED;
    run->ladder.active = false;
    if (!run->spawn->kill_next)
        run->spawn->kill_next = clock_ms();
}

/*
 * One round of killing. The run ends only when a round finds nothing alive: "it is stopped" must be
 * true when the client reads it.
 */
static void kill_round(struct run *run, int64_t now)
{
    struct spawn *s = run->spawn;
    struct proc_scope scope = {.leader = s->pid, .start = s->start};
    size_t alive;

    kernel_spare(&scope);
    spawn_spare(&scope, run);
    alive =
        s->kill_rounds < SPAWN_KILL_PATIENCE ? proctab_kill(&scope) : proctab_kill_stopped(&scope);
    s->kill_rounds++;
    s->kill_next = now + SPAWN_KILL_PERIOD_MS;
    if ((alive == 0 && s->ended) || s->kill_rounds >= SPAWN_KILL_ROUNDS) {
        pipes_drain(s);
        spawn_finish(run);
    }
}

static void spawn_timeout(struct run *run, int64_t now)
{
    if (now < run->deadline)
        return;
    run->deadline = CLOCK_FOREVER;
    if (run->stop == RUN_GOES_ON)
        run->stop = RUN_TIMED_OUT;
    spawn_kill(run);
}

/* Held here and not by the client, so that a time-out comes also when nobody is connected. */
int64_t spawn_tick(struct run *run, int64_t now)
{
    struct spawn *s = run->spawn;
    enum ladder_act act = ladder_step(&run->ladder, now);

    spawn_timeout(run, now);
    if (act == LADDER_INTERRUPT)
        process_signal_group(s->pid, SIGINT);
    else if (act == LADDER_KILL)
        spawn_kill(run);
    if (s->kill_next && now >= s->kill_next)
        kill_round(run, now);
    else if (s->linger && now >= s->linger && !s->kill_next)
        spawn_finish(run);
    if (run->state == RUN_DONE)
        return CLOCK_FOREVER;
    return MIN(
        MIN(run->deadline, ladder_next(&run->ladder)),
        MIN(s->kill_next ? s->kill_next : CLOCK_FOREVER, s->linger ? s->linger : CLOCK_FOREVER));
}

bool spawn_reaped(struct run *run, pid_t pid, int wait_status)
{
    struct spawn *s = run->spawn;

    if (!s || s->pid != pid || s->ended)
        return false;
    s->ended = true;
    s->wait_status = wait_status;
    /* Jobs that a shell put into the background ignore the SIGINT that ended the shell. */
    if (run->stop != RUN_GOES_ON)
        spawn_kill(run);
    /* The pipe of a dead child is at its end, or holds the reason why it did not exec. */
    if (watch_is_open(&s->status))
        status_ready(&s->status, 0);
    else
        spawn_ended(run);
    return true;
}
