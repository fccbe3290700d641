/* SPDX-License-Identifier: MIT */
/*
 * The life of the kernel. Its pipes are read at all times: into the log of the cell that runs, and
 * between cells into a bounded store of late output. Its end is handled while it is still a zombie,
 * so that its process group cannot have become somebody else's.
 *
 * A kernel that ends by itself is started again at once, but one that did so without having run a
 * cell only when the next cell asks for it: otherwise a kernel that always crashes would spin.
 */
#include "init/kernel.h"

#include "base/failpoint.h"
#include "init/cell.h"
#include "init/loop.h"
#include "init/outq.h"
#include "init/process.h"
#include "init/sink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    LATE_KEEP = 1024 * 1024,
    LATE_MAX = 2 * LATE_KEEP, /* cut back to LATE_KEEP when it is passed */
    READY_MS = 60000,
    READY_MAX_MS = 1000 * 3600,
    EOF_GRACE_MS = 200, /* between the end of the socket and that of the process */
    WHY_OUTPUT = 240,
    END_KILLS = 20,
    END_READS = 2048, /* from the socket of a dead kernel, which its children may go on filling */
};

static struct {
    enum kernel_state state;
    struct process_spec spec;
    int64_t sigint_delay_ms, ready_ms;
    pid_t pid;
    struct watch status, sock, out[2];
    struct kreader reader;
    struct outq send;
    struct buf late[2];
    struct run *request; /* waits for the kernel to be ready */
    struct run *cell;
    int64_t ready_deadline;
    int64_t eof_deadline;
    bool faulty;
    bool ending; /* its end is being handled: nothing new is given to it */
    struct error fault;
    struct error why; /* of a kernel that does not start */
    char restarted[24];
    uint64_t generation;
    uint64_t cells; /* since it is ready */
} kernel = {.status = {.fd = -1},
            .sock = {.fd = -1},
            .out = {{.fd = -1}, {.fd = -1}},
            .late = {{.max = LATE_MAX}, {.max = LATE_MAX}}};

enum kernel_state kernel_state(void)
{
    return kernel.state;
}

const char *kernel_state_name(void)
{
    static const char *const names[] = {[KERNEL_NONE] = "none",
                                        [KERNEL_STARTING] = "starting",
                                        [KERNEL_IDLE] = "ready",
                                        [KERNEL_BUSY] = "ready",
                                        [KERNEL_DEAD] = "dead"};

    return names[kernel.state];
}

pid_t kernel_pid(void)
{
    return kernel.pid;
}

uint64_t kernel_generation(void)
{
    return kernel.generation;
}

int64_t kernel_sigint_delay(void)
{
    return kernel.sigint_delay_ms;
}

void kernel_spare(struct proc_scope *scope)
{
    if (kernel.pid && scope->spared_count < PROCTAB_SPARED)
        scope->spared[scope->spared_count++] = kernel.pid;
}

const char *kernel_restarted(char buf[24])
{
    if (!kernel.restarted[0])
        return NULL;
    memcpy(buf, kernel.restarted, sizeof(kernel.restarted));
    kernel.restarted[0] = 0;
    return buf;
}

/* ---- output ---- */

/* Room for twice as much as is kept, so that the newest megabyte is not moved at every write. */
static void late_append(struct buf *late, const char *data, size_t len)
{
    if (late->len + len > LATE_MAX)
        buf_consume(late, late->len - LATE_KEEP);
    (void)!buf_append(late, data, len);
}

static void kernel_output(int i, const char *data, size_t len)
{
    if (kernel.cell)
        run_output(kernel.cell, i + 1, data, len);
    else
        late_append(&kernel.late[i], data, len);
}

/* A closed pipe is no mistake: code may close its stdout, and its cells go on without it. */
static ssize_t out_read(int i, size_t max)
{
    static char data[FRAME_BULK_MAX];
    ssize_t n;

    do
        n = read(kernel.out[i].fd, data, MIN(max, sizeof(data)));
    while (n < 0 && errno == EINTR);
    if (n > 0)
        kernel_output(i, data, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        watch_close(&kernel.out[i]);
    return n;
}

static void stdout_ready(struct watch *w, uint32_t events)
{
    out_read(0, FRAME_BULK_MAX);
}

static void stderr_ready(struct watch *w, uint32_t events)
{
    out_read(1, FRAME_BULK_MAX);
}

/* A child of the kernel may print without end, so only what is there now is read. */
void kernel_drain(void)
{
    for (int i = 0; i < 2; i++) {
        int left = 0;
        ssize_t n = 1;

        if (!watch_is_open(&kernel.out[i]) || ioctl(kernel.out[i].fd, FIONREAD, &left) < 0)
            continue;
        for (; left > 0 && n > 0; left -= (int)n)
            n = out_read(i, (size_t)left);
    }
}

/*
 * While clients are behind, neither pipes nor socket are read: the kernel waits in its write or at
 * its barrier. The end of the socket is told again and again by epoll, so it is not watched once it
 * has been seen.
 */
void kernel_gate(void)
{
    uint32_t events = kernel.cell && run_is_gated(kernel.cell) ? 0 : EPOLLIN;

    for (int i = 0; i < 2; i++)
        watch_set(&kernel.out[i], events);
    if (kernel.faulty || kernel.eof_deadline)
        events = 0;
    else if (outq_len(&kernel.send) > 0)
        events |= EPOLLOUT;
    watch_set(&kernel.sock, events);
}

/* ---- sending ---- */

static void send_flush(void)
{
    if (outq_flush(&kernel.send, kernel.sock.fd) < 0)
        outq_done(&kernel.send);
}

int kernel_send(uint8_t type, uint32_t stream, const void *payload, size_t len)
{
    struct buf *b;

    if (!watch_is_open(&kernel.sock))
        return 0;
    b = outq_room(&kernel.send, FRAME_HEADER + len);
    if (!b || frame_append(b, type, stream, payload, len) < 0)
        return -1;
    send_flush();
    return 0;
}

/* ---- frames ---- */

void kernel_kill(void)
{
    process_signal_group(kernel.pid, SIGKILL);
}

/* Nothing more is read from it: what comes behind a broken frame could be anything. */
void kernel_fault(const struct error *why)
{
    if (kernel.faulty)
        return;
    kernel.faulty = true;
    kernel.fault = *why;
    watch_set(&kernel.sock, 0);
    kernel_kill();
}

static void request_end(void)
{
    struct run *run = TAKE_PTR(kernel.request);
    struct outcome o;

    if (!run)
        return;
    outcome_init(&o, run);
    run_end(run, &o);
}

/* Only now is there a cell for output to belong to; what was printed before is late output. */
static int ready_frame(const struct kframe *frame, struct error *reterr)
{
    static const char zero[KERNEL_TOKEN];

    if (frame->type != FRAME_K_READY || frame->stream != 0 ||
        memcmp(frame->token, zero, KERNEL_TOKEN) != 0)
        return error_set(reterr, ERR_PROTOCOL, "the kernel's first frame is not K_READY");
    kernel_drain();
    kernel.state = KERNEL_IDLE;
    kernel.ready_deadline = 0;
    kernel.cells = 0;
    request_end();
    return 0;
}

static int kernel_frame(const struct kframe *frame, struct error *reterr)
{
    if (kernel.state == KERNEL_STARTING)
        return ready_frame(frame, reterr);
    if (!kernel.cell)
        return error_set(reterr, ERR_PROTOCOL, "the kernel sent %s while no cell ran",
                         frame_name(frame->type, FRAME_FROM_KERNEL));
    return cell_frame(kernel.cell, frame, reterr);
}

struct log_block *kernel_take_frame(const struct kframe *frame)
{
    return kreader_take(&kernel.reader, frame);
}

/* A cell that ends here is followed at once by the one that waits for it. */
static void frames_handle(void)
{
    struct error err = {};
    struct kframe frame;
    int r;

    while (!kernel.faulty && (r = kreader_next(&kernel.reader, &frame, &err)) != 0) {
        if (r > 0)
            r = kernel_frame(&frame, &err);
        if (r < 0)
            kernel_fault(&err);
    }
    if (kernel.state == KERNEL_IDLE && !kernel.ending && !kernel.faulty)
        cell_next();
}

/* Returns false when there is nothing more to read for now. */
static bool sock_read(void)
{
    char *data;
    size_t len;
    ssize_t n;

    if (kreader_room(&kernel.reader, &data, &len) < 0)
        return false;
    do
        n = recv(kernel.sock.fd, data, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        kreader_filled(&kernel.reader, (size_t)n);
        frames_handle();
        return true;
    }
    if ((n == 0 || errno != EAGAIN) && !kernel.eof_deadline)
        kernel.eof_deadline = clock_deadline(EOF_GRACE_MS);
    return false;
}

static void sock_ready(struct watch *w, uint32_t events)
{
    if (events & EPOLLOUT)
        send_flush();
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        sock_read();
}

/* ---- the start ---- */

/* The last words of a kernel that did not start. */
static void why_set(const char *what)
{
    const struct buf *said = kernel.late[1].len ? &kernel.late[1] : &kernel.late[0];
    size_t len = MIN(said->len, (size_t)WHY_OUTPUT);

    (void)error_set(&kernel.why, ERR_DIED, "%s%s%.*s", what, len ? ": " : "", (int)len,
                    len ? said->data + said->len - len : "");
}

/* Everybody who waits for this kernel is told why; a later cell tries again. */
static void start_failed(void)
{
    struct run *run = TAKE_PTR(kernel.request);

    kernel.state = KERNEL_DEAD;
    if (run)
        run_fail(run, NULL, &kernel.why);
    cell_fail_waiting(&kernel.why);
}

/* The pipes go to the sink, not away: background processes of the old kernel may hold them. */
static void ends_close(void)
{
    watch_close(&kernel.status);
    watch_close(&kernel.sock);
    for (int i = 0; i < 2; i++)
        sink_add(watch_release(&kernel.out[i]));
    kreader_done(&kernel.reader);
    outq_done(&kernel.send);
    outq_init(&kernel.send, FRAME_PAYLOAD_MAX + MIB);
    kernel.pid = 0;
    kernel.eof_deadline = kernel.ready_deadline = 0;
    kernel.faulty = false;
}

static void status_ready(struct watch *w, uint32_t events)
{
    struct error err = {};
    int r = process_status(&kernel.spec, w->fd, &err);

    if (r == 0)
        return;
    watch_close(w);
    if (r > 0)
        return;
    kernel.why = err;
    ends_close();
    start_failed();
}

/* The child's three descriptors, and our watches on the other ends. */
static int ends_open(struct process_spec *spec, struct error *reterr)
{
    static watch_fn *const ready[] = {stdout_ready, stderr_ready};
    int fds[2];

    spec->fds[0] = process_null_fd();
    for (int i = 0; i < 2; i++) {
        if (process_pipe_out(spec, fds) < 0)
            return error_sys(reterr, errno, "cannot make a pipe");
        spec->fds[i + 1] = fds[1];
        if (watch_open(&kernel.out[i], fds[0], EPOLLIN, ready[i]) < 0) {
            close(fds[0]);
            return error_sys(reterr, errno, "cannot watch a pipe");
        }
    }
    if (process_socketpair(spec, fds) < 0)
        return error_sys(reterr, errno, "cannot make a socket");
    spec->fds[3] = fds[1];
    if (watch_open(&kernel.sock, fds[0], EPOLLIN, sock_ready) < 0) {
        close(fds[0]);
        return error_sys(reterr, errno, "cannot watch a socket");
    }
    return 0;
}

static int kernel_fork(struct error *reterr)
{
    struct process_spec *spec = &kernel.spec;
    int status = -1, r = ends_open(spec, reterr);

    if (r == 0)
        r = process_start(spec, &kernel.pid, &status, reterr);
    for (int i = 1; i < PROCESS_FDS; i++) {
        if (spec->fds[i] >= 0)
            close(spec->fds[i]);
        spec->fds[i] = -1;
    }
    if (r < 0)
        return r;
    if (watch_open(&kernel.status, status, EPOLLIN, status_ready) < 0)
        close(status); /* a failed exec is then told by the end of the process alone */
    return 0;
}

static void kernel_launch(void)
{
    ends_close();
    kernel.state = KERNEL_STARTING;
    kernel.generation++;
    kernel.ready_deadline = clock_deadline(kernel.ready_ms);
    if (kernel_fork(&kernel.why) == 0)
        return;
    ends_close();
    start_failed();
}

static int request_parse(const struct fields *f, struct error *reterr)
{
    if (fields_get_int(f, "sigint_delay_ms", 0, &kernel.sigint_delay_ms, reterr) < 0 ||
        fields_get_int(f, "ready_ms", READY_MS, &kernel.ready_ms, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    if (kernel.sigint_delay_ms < 0 || kernel.sigint_delay_ms > INTERRUPT_TIME_MS ||
        kernel.ready_ms <= 0 || kernel.ready_ms > READY_MAX_MS)
        return error_set(reterr, ERR_INVALID, "sigint_delay_ms or ready_ms is out of range");
    return process_spec_parse(&kernel.spec, f, reterr);
}

char *const *kernel_env(void)
{
    return kernel.spec.env;
}

void kernel_request(struct run *run, const struct fields *f)
{
    struct error err = {};

    run_begin(run);
    if (kernel.state != KERNEL_NONE && (kernel.state != KERNEL_DEAD || kernel.request)) {
        (void)error_set(&err, ERR_EXISTS, "the kernel was started before");
        err.sys = EEXIST;
        run_fail(run, NULL, &err);
        return;
    }
    process_spec_done(&kernel.spec);
    if (request_parse(f, &err) < 0) {
        process_spec_done(&kernel.spec);
        kernel.state = KERNEL_NONE;
        run_fail(run, NULL, &err);
        return;
    }
    kernel.request = run;
    kernel_launch();
}

/* One try for each cell that asks, so that a mended image or a freed limit is noticed. */
int kernel_need(struct error *reterr)
{
    if (kernel.state == KERNEL_NONE) {
        (void)error_set(reterr, ERR_NOT_FOUND, "this sandbox has no kernel");
        if (reterr)
            reterr->sys = ENOENT;
        return -(int)ERR_NOT_FOUND;
    }
    if (kernel.state == KERNEL_DEAD)
        kernel_launch();
    if (kernel.state != KERNEL_DEAD)
        return 0;
    if (reterr)
        *reterr = kernel.why;
    return -(int)ERR_DIED;
}

/* ---- cells ---- */

void kernel_take(struct run *run)
{
    static const uint8_t types[] = {FRAME_LATE_STDOUT, FRAME_LATE_STDERR};

    kernel_drain();
    for (int i = 0; i < 2; i++) {
        struct buf *late = &kernel.late[i];

        if (late->len > LATE_KEEP)
            buf_consume(late, late->len - LATE_KEEP);
        log_output(&run->log, types[i], late->data, late->len);
        buf_done(late);
    }
    kernel.cell = run;
    kernel.state = KERNEL_BUSY;
    kernel.cells++;
}

void kernel_release(void)
{
    kernel.cell = NULL;
    kernel.state = KERNEL_IDLE;
}

/* ---- the end ---- */

static void end_cause(int wait_status, char ret[24])
{
    struct outcome o = {};

    if (kernel.faulty)
        snprintf(o.cause, sizeof(o.cause), "protocol");
    else
        outcome_cause_wait(&o, wait_status);
    memcpy(ret, o.cause, sizeof(o.cause));
}

static void end_while_starting(int wait_status)
{
    char cause[24], text[80];

    end_cause(wait_status, cause);
    if (kernel.faulty) {
        kernel.why = kernel.fault;
    } else {
        snprintf(text, sizeof(text), "the kernel ended before it was ready (%s)", cause);
        why_set(text);
    }
    ends_close();
    start_failed();
}

/* Nobody is told now: the next cell says that it ran in another kernel, and why. */
static void end_while_idle(int wait_status)
{
    bool worked = kernel.cells > 0;

    end_cause(wait_status, kernel.restarted);
    ends_close();
    kernel.state = KERNEL_DEAD;
    if (worked)
        kernel_launch();
}

static void end_while_busy(int wait_status)
{
    struct run *run = TAKE_PTR(kernel.cell);
    bool faulty = kernel.faulty;

    kernel.state = KERNEL_DEAD;
    ends_close();
    cell_lost(run, wait_status, faulty ? &kernel.fault : NULL);
    kernel_launch();
}

/*
 * What is left of its group and session is killed, again and again for a moment: a fork bomb would
 * otherwise use up the limit of processes, and no other kernel could start.
 */
static void session_kill(pid_t pid)
{
    const struct proc_scope scope = {.leader = pid};
    size_t alive = 1;

    for (int i = 0; i < END_KILLS && alive > 0; i++)
        alive = i < END_KILLS / 4 ? proctab_kill(&scope) : proctab_kill_stopped(&scope);
}

bool kernel_reaped(pid_t pid, int wait_status)
{
    static void (*const ends[])(int) = {[KERNEL_STARTING] = end_while_starting,
                                        [KERNEL_IDLE] = end_while_idle,
                                        [KERNEL_BUSY] = end_while_busy};

    if (pid != kernel.pid || kernel.state == KERNEL_NONE || kernel.state == KERNEL_DEAD)
        return false;
    /* The reason why it could not exec says more than its exit status. */
    if (watch_is_open(&kernel.status)) {
        status_ready(&kernel.status, 0);
        if (kernel.state == KERNEL_DEAD)
            return true;
    }
    /* What it sent and printed before it died still counts, up to the end of a cell. */
    kernel.ending = true;
    session_kill(pid);
    for (int i = 0; i < END_READS && !kernel.faulty && watch_is_open(&kernel.sock); i++) {
        if (!sock_read())
            break;
    }
    kernel_drain();
    kernel.ending = false;
    ends[kernel.state](wait_status);
    return true;
}

/* ---- time ---- */

int64_t kernel_tick(int64_t now)
{
    struct error err = {};

    if (kernel.ready_deadline && now >= kernel.ready_deadline) {
        char text[64];

        snprintf(text, sizeof(text), "the kernel was not ready within %lld ms",
                 (long long)kernel.ready_ms);
        why_set(text);
        kernel.why.sys = ETIMEDOUT;
        kernel_fault(&kernel.why);
        kernel.ready_deadline = 0;
    }
    if (kernel.eof_deadline && now >= kernel.eof_deadline) {
        (void)error_set(&err, ERR_PROTOCOL, "the kernel closed its socket");
        kernel_fault(&err);
        kernel.eof_deadline = INT64_MAX;
    }
    return MIN(kernel.ready_deadline ? kernel.ready_deadline : CLOCK_FOREVER,
               kernel.eof_deadline ? kernel.eof_deadline : CLOCK_FOREVER);
}
