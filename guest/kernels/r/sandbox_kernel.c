/* SPDX-License-Identifier: MIT */
/* What the R kernel cannot do in R: frames on fd 3, signals, and the place where code is evaluated.
 *
 * R's own read-eval-print loop stays in charge; this file replaces the function it reads lines
 * with. Between the lines it evaluates the expressions of a cell itself, with no R function of ours
 * on the stack. So warnings, tracebacks, parent.frame() and every jump to top level are what they
 * are at R's prompt, and a jump that passes all of kernel.R ends in here again.
 *
 * R's headers are not needed to build it: R's C interface is stable, and the part in use is
 * declared below. It uses no symbol of the C library newer than glibc 2.17, so it loads in any
 * image.
 */

#include "text.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* R's interface. */

struct r_object;
typedef void r_clean_fn(void *data);
typedef int r_console_fn(const char *prompt, unsigned char *buf, int len, int history);

typedef void *r_routine_fn(void);
struct r_library;
struct r_routine {
    const char *name;
    r_routine_fn *function;
    int args;
};

enum { R_TYPE_RAW = 24 };

extern struct r_object *R_NilValue;
extern struct r_object *R_GlobalEnv;
extern int R_interrupts_pending;
extern r_console_fn *ptr_R_ReadConsole;

extern struct r_object *Rf_allocVector(unsigned type, ptrdiff_t length);
extern struct r_object *Rf_ScalarLogical(int value);
extern struct r_object *Rf_eval(struct r_object *call, struct r_object *env);
extern struct r_object *Rf_lang2(struct r_object *function, struct r_object *argument);
extern struct r_object *Rf_protect(struct r_object *object);
extern void Rf_unprotect(int count);
extern struct r_object *VECTOR_ELT(struct r_object *list, ptrdiff_t index);
extern int Rf_asLogical(struct r_object *value);
extern int Rf_asInteger(struct r_object *value);
extern ptrdiff_t Rf_xlength(struct r_object *vector);
extern unsigned char *RAW(struct r_object *vector);
extern void R_PreserveObject(struct r_object *object);
extern void R_ReleaseObject(struct r_object *object);
extern void R_CheckUserInterrupt(void);
extern int R_registerRoutines(struct r_library *library, const void *c,
                              const struct r_routine *call, const void *fortran,
                              const void *external);
extern struct r_object *R_ExecWithCleanup(struct r_object *(*fn)(void *), void *data,
                                          r_clean_fn *clean, void *arg);
extern void Rf_error(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void R_init_sandbox_kernel(struct r_library *library) __attribute__((visibility("default")));

/* docs/PROTOCOL.md, section 2. */

enum frame_type {
    K_EXEC = 0x20,
    K_ACK = 0x21,
    K_INPUT = 0x22,
    K_INTERRUPT = 0x23,
    K_READY = 0x30,
    K_DISPLAY = 0x31,
    K_RESULT = 0x32,
    K_ERROR = 0x33,
    K_DONE = 0x34,
    K_INPUT_REQUEST = 0x35,
};

enum {
    KERNEL_FD = 3,
    OPEN_MAX_AT_START = 32,
    TOKEN_SIZE = 16,
    HEADER_SIZE = 9,
    RECEIVE_MAX = (64 << 20) + 4096,
    SEND_MAX = 48 << 20,
    PROMPT_MAX = 4096,
    PROTOCOL_EXIT = 70,
};

struct frame {
    unsigned type;
    uint32_t stream;
    size_t length;
    unsigned char *data; /* malloc()ed, one byte longer than length; never NULL */
};

/* What the next line of R's loop is for. */
enum phase {
    PHASE_IDLE,     /* no cell: wait for one */
    PHASE_STEP,     /* call kernel.R */
    PHASE_STEPPING, /* kernel.R was called and has to set another phase before it returns */
    PHASE_EVAL,     /* evaluate the staged call, then call kernel.R */
};

static struct {
    int fd;
    pid_t pid;
    enum phase phase;
    uint32_t cell;
    unsigned char token[TOKEN_SIZE];
    struct frame code;
    struct r_object *step;   /* the call of kernel.R */
    struct r_object *call;   /* staged: preserved until the next one */
    struct r_object *env;    /* where it is evaluated */
    struct r_object *follow; /* a function: from its value to what is evaluated after it */
    bool completed;          /* the staged call came to its end, no jump left it */
    struct frame line;       /* an answer that R has not taken whole */
    size_t line_taken;
} kernel = {.fd = -1};

/* SIGINT becomes an interrupt of R only while user code runs; else it waits in `deferred`. */
static volatile sig_atomic_t evaluating, deferred;

static void sigint_note(int number)
{
    if (evaluating)
        R_interrupts_pending = 1;
    else
        deferred = 1;
}

static void sigint_handle(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

static bool kernel_is_child(void)
{
    return getpid() != kernel.pid;
}

static void streams_flush(void)
{
    fflush(stdout);
    fflush(stderr);
}

/* The connection cannot be used any more. There is nobody to tell but the log of stderr. */
__attribute__((noreturn)) static void kernel_fail(const char *why)
{
    if (why)
        fprintf(stderr, "R kernel: %s\n", why);
    streams_flush();
    _exit(PROTOCOL_EXIT);
}

/* Frames */

static void bytes_read(unsigned char *to, size_t length)
{
    while (length > 0) {
        ssize_t n = read(kernel.fd, to, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            kernel_fail(NULL); /* init is gone, and the sandbox with it */
        to += n;
        length -= (size_t)n;
    }
}

static void bytes_send(const unsigned char *from, size_t length)
{
    while (length > 0) {
        ssize_t n = send(kernel.fd, from, length, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            kernel_fail(NULL);
        from += n;
        length -= (size_t)n;
    }
}

static uint32_t le32_get(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void le32_put(unsigned char *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(value >> (8 * i));
}

static void frame_done(struct frame *frame)
{
    free(frame->data);
    *frame = (struct frame){};
}

static void frame_read(struct frame *ret)
{
    unsigned char header[HEADER_SIZE];

    bytes_read(header, sizeof(header));
    ret->length = le32_get(header);
    ret->type = header[4];
    ret->stream = le32_get(header + 5);
    if (ret->length > RECEIVE_MAX)
        kernel_fail("a frame is too long");
    if (ret->type < K_EXEC || ret->type > K_INTERRUPT)
        kernel_fail("a frame of an unknown type");
    ret->data = malloc(ret->length + 1);
    if (!ret->data)
        kernel_fail("no memory for a frame");
    bytes_read(ret->data, ret->length);
}

/* Wait for a frame of a type. K_INTERRUPT is for other kernels, SIGINT says it to R; an answer that
 * came too late for its question is dropped as well. */
static void frame_await(enum frame_type type, struct frame *ret)
{
    for (;;) {
        frame_read(ret);
        if (ret->type == (unsigned)type && (type == K_EXEC || ret->stream == kernel.cell))
            return;
        if (ret->type != K_INPUT && ret->type != K_INTERRUPT)
            kernel_fail("a frame that does not belong here");
        frame_done(ret);
    }
}

static bool frame_is_waiting(void)
{
    struct pollfd item = {.fd = kernel.fd, .events = POLLIN};

    return poll(&item, 1, 0) > 0;
}

static void frame_send(enum frame_type type, const unsigned char *payload, size_t length)
{
    unsigned char head[HEADER_SIZE + TOKEN_SIZE];

    le32_put(head, (uint32_t)(length + TOKEN_SIZE));
    head[4] = (unsigned char)type;
    le32_put(head + 5, type == K_READY ? 0 : kernel.cell);
    memcpy(head + HEADER_SIZE, kernel.token, TOKEN_SIZE);
    streams_flush();
    bytes_send(head, sizeof(head));
    bytes_send(payload, length);
}

static void barrier_send(enum frame_type type, const unsigned char *payload, size_t length)
{
    struct frame ack;

    frame_send(type, payload, length);
    frame_await(K_ACK, &ack);
    frame_done(&ack);
}

/* Cells */

/* After this a SIGINT is dropped by the system, and none is left over for the next cell. */
static void cell_done(const unsigned char *payload, size_t length)
{
    sigint_handle(SIG_IGN);
    R_interrupts_pending = 0;
    deferred = 0;
    kernel.phase = PHASE_IDLE;
    frame_done(&kernel.code);
    frame_done(&kernel.line);
    frame_send(K_DONE, payload, length);
}

static void cell_await(void)
{
    struct frame frame;

    frame_await(K_EXEC, &frame);
    if (frame.length < TOKEN_SIZE)
        kernel_fail("a cell without a token");
    memcpy(kernel.token, frame.data, TOKEN_SIZE);
    kernel.cell = frame.stream;
    kernel.code = frame;
    kernel.phase = PHASE_STEP;
    sigint_handle(sigint_note);
}

/* kernel.R failed in its own code: the session goes on, the cell is over. */
static void cell_abandon(void)
{
    static const char error[] = "{\"type\":\"kernelError\",\"message\":\"the kernel could not end "
                                "the cell\",\"traceback\":\"\"}";
    static const char done[] = "{\"status\":\"error\"}";

    barrier_send(K_ERROR, (const unsigned char *)error, sizeof(error) - 1);
    cell_done((const unsigned char *)done, sizeof(done) - 1);
}

/* The call, and what its value asks for: that it is printed. */
static struct r_object *staged_eval(void *data)
{
    struct r_object *value = Rf_protect(Rf_eval(kernel.call, kernel.env));
    struct r_object *call = Rf_protect(Rf_lang2(kernel.follow, value));
    struct r_object *next = Rf_protect(Rf_eval(call, R_GlobalEnv));

    if (next != R_NilValue)
        Rf_eval(VECTOR_ELT(next, 0), VECTOR_ELT(next, 1));
    Rf_unprotect(3);
    return R_NilValue;
}

/* Runs on the way out of user code, however that ends. */
static void staged_leave(void *data)
{
    evaluating = 0;
    if (R_interrupts_pending)
        deferred = 1;
    R_interrupts_pending = 0;
}

/* The phase is set first: a jump to top level leaves this function for good. */
static void staged_run(void)
{
    kernel.phase = PHASE_STEP;
    kernel.completed = false;
    sigint_handle(sigint_note);
    evaluating = 1;
    if (deferred) {
        deferred = 0;
        R_interrupts_pending = 1;
    }
    R_ExecWithCleanup(staged_eval, NULL, staged_leave, NULL);
    if (kernel_is_child()) {
        streams_flush();
        _exit(0);
    }
    kernel.completed = true;
}

/* Lines that running code asks for */

/* SIGINT is blocked but in the wait, so that one that comes just before it is not slept through. */
static void answer_poll(void)
{
    static const struct timespec period = {.tv_nsec = 100 * 1000 * 1000};
    struct pollfd item = {.fd = kernel.fd, .events = POLLIN};
    sigset_t sigint, old;
    int n;

    sigemptyset(&sigint);
    sigaddset(&sigint, SIGINT);
    do {
        /* Does not return for an interrupt, unless R code resumes or holds interrupts off. */
        R_CheckUserInterrupt();
        sigprocmask(SIG_BLOCK, &sigint, &old);
        n = ppoll(&item, 1, R_interrupts_pending ? &period : NULL, &old);
        sigprocmask(SIG_SETMASK, &old, NULL);
    } while (n <= 0);
}

/* False where nobody can answer. */
static bool answer_await(struct frame *ret)
{
    for (;;) {
        answer_poll();
        frame_read(ret);
        if (ret->type == K_INPUT && ret->stream == kernel.cell)
            return ret->length > 0 && ret->data[0] == 1;
        frame_done(ret);
    }
}

static bool prompt_answer(const char *prompt, struct frame *ret)
{
    static const char head[] = "{\"prompt\":\"", tail[] = "\",\"password\":false}";
    unsigned char payload[sizeof(head) + sizeof(tail) + 6 * PROMPT_MAX];
    size_t length = sizeof(head) - 1;

    memcpy(payload, head, length);
    length +=
        json_escape((const unsigned char *)prompt, strnlen(prompt, PROMPT_MAX), payload + length);
    memcpy(payload + length, tail, sizeof(tail) - 1);
    length += sizeof(tail) - 1;
    frame_send(K_INPUT_REQUEST, payload, length);
    return answer_await(ret);
}

/* One line for what reads R's console in the middle of a cell: browser(). Long lines go in pieces.
 */
static int line_read(const char *prompt, unsigned char *buf, size_t size)
{
    size_t n;

    if (!kernel.line.data) {
        if (!prompt_answer(prompt, &kernel.line)) {
            frame_done(&kernel.line);
            return 0; /* end of input */
        }
        kernel.line.data[kernel.line.length] = '\n'; /* it has that one byte more */
        kernel.line_taken = 1;
    }
    n = kernel.line.length + 1 - kernel.line_taken;
    if (n > size - 1)
        n = size - 1;
    memcpy(buf, kernel.line.data + kernel.line_taken, n);
    buf[n] = '\0';
    kernel.line_taken += n;
    if (kernel.line_taken > kernel.line.length)
        frame_done(&kernel.line);
    return 1;
}

/* kernel.R does the next thing. The line is what R gets: while it evaluates that, it prints the
 * warnings of what was evaluated before, and it leaves .Last.value as it is. */
static int console_read(const char *prompt, unsigned char *buf, int len, int history)
{
    static const char line[] = "base::invisible(base::.Last.value)\n";

    if (len < (int)sizeof(line))
        return 0;
    if (kernel_is_child()) {
        if (evaluating)
            return 0;
        _exit(0);
    }
    if (evaluating)
        return line_read(prompt, buf, (size_t)len);
    if (kernel.phase == PHASE_STEPPING)
        cell_abandon();
    if (kernel.phase == PHASE_IDLE)
        cell_await();
    if (kernel.phase == PHASE_EVAL)
        staged_run();
    kernel.phase = PHASE_STEPPING;
    Rf_eval(kernel.step, R_GlobalEnv);
    memcpy(buf, line, sizeof(line));
    return 1;
}

/* What kernel.R calls */

static struct r_object *sandbox_base64(struct r_object *bytes)
{
    size_t length = (size_t)Rf_xlength(bytes);
    struct r_object *ret = Rf_allocVector(R_TYPE_RAW, (ptrdiff_t)((length + 2) / 3 * 4));

    base64_encode(RAW(bytes), length, RAW(ret));
    return ret;
}

static struct r_object *sandbox_escape(struct r_object *text)
{
    size_t length = (size_t)Rf_xlength(text);
    const unsigned char *bytes = RAW(text);
    struct r_object *ret = Rf_allocVector(R_TYPE_RAW, (ptrdiff_t)json_escape(bytes, length, NULL));

    json_escape(bytes, length, RAW(ret));
    return ret;
}

/* The code of the cell that begins. */
static struct r_object *sandbox_code(void)
{
    size_t length = kernel.code.length - TOKEN_SIZE;
    struct r_object *ret = Rf_allocVector(R_TYPE_RAW, (ptrdiff_t)length);

    memcpy(RAW(ret), kernel.code.data + TOKEN_SIZE, length);
    frame_done(&kernel.code);
    return ret;
}

static void object_keep(struct r_object **slot, struct r_object *object)
{
    R_PreserveObject(object);
    if (*slot)
        R_ReleaseObject(*slot);
    *slot = object;
}

/* Have a call evaluated when R's loop comes round; without one, only let it come round. */
static struct r_object *sandbox_stage(struct r_object *call, struct r_object *env,
                                      struct r_object *follow)
{
    object_keep(&kernel.call, call);
    object_keep(&kernel.env, env);
    object_keep(&kernel.follow, follow);
    kernel.phase = call == R_NilValue ? PHASE_STEP : PHASE_EVAL;
    return R_NilValue;
}

/* Did the staged call come to its end? */
static struct r_object *sandbox_completed(void)
{
    return Rf_ScalarLogical(kernel.completed);
}

static struct r_object *sandbox_evaluating(void)
{
    return Rf_ScalarLogical(evaluating != 0);
}

/* Was this cell told to stop since its last expression? */
static struct r_object *sandbox_interrupted(void)
{
    return Rf_ScalarLogical(deferred != 0);
}

/* R ignores SIGINT while it waits in system(), and then only the command ends. The frame that came
 * with the signal is still there: taken away before, looked for afterwards. */
static struct r_object *sandbox_system(struct r_object *after)
{
    while (kernel.fd >= 0 && frame_is_waiting()) {
        struct frame frame;

        frame_read(&frame);
        if (frame.type != K_INPUT && frame.type != K_INTERRUPT)
            kernel_fail("a frame that does not belong here");
        if (frame.type == K_INTERRUPT && Rf_asLogical(after))
            sigint_note(SIGINT);
        frame_done(&frame);
    }
    R_CheckUserInterrupt();
    return R_NilValue;
}

/* Send a frame. In a forked child of the kernel it goes nowhere. */
static struct r_object *sandbox_send(struct r_object *type, struct r_object *payload)
{
    int kind = Rf_asInteger(type);
    size_t length = (size_t)Rf_xlength(payload);

    if (kernel.fd < 0)
        return Rf_ScalarLogical(0);
    if (length > SEND_MAX - TOKEN_SIZE)
        Rf_error("a frame of %zu bytes is too long", length);
    if (kind == K_DONE)
        cell_done(RAW(payload), length);
    else
        barrier_send((enum frame_type)kind, RAW(payload), length);
    return Rf_ScalarLogical(1);
}

/* Ask for a line: its bytes, or NULL where nobody can answer. */
static struct r_object *sandbox_input(struct r_object *payload)
{
    struct r_object *ret = R_NilValue;
    struct frame frame;

    if (kernel.fd < 0)
        return R_NilValue;
    frame_send(K_INPUT_REQUEST, RAW(payload), (size_t)Rf_xlength(payload));
    if (answer_await(&frame)) {
        ret = Rf_allocVector(R_TYPE_RAW, (ptrdiff_t)frame.length - 1);
        memcpy(RAW(ret), frame.data + 1, frame.length - 1);
    }
    frame_done(&frame);
    return ret;
}

static void child_leave(void)
{
    close(kernel.fd);
    kernel.fd = -1;
}

/* Take over R's loop and tell that the kernel is up. `step` is the call that goes on with a cell.
 */
static struct r_object *sandbox_start(struct r_object *step, struct r_object *payload)
{
    kernel.fd = KERNEL_FD;
    kernel.pid = getpid();
    for (int fd = KERNEL_FD; fd < OPEN_MAX_AT_START; fd++)
        ioctl(fd, FIOCLEX); /* R has its script open as well */
    if (ioctl(kernel.fd, FIOCLEX) < 0 || pthread_atfork(NULL, NULL, child_leave) != 0)
        kernel_fail("descriptor 3 is not there");
    object_keep(&kernel.step, step);
    sigint_handle(SIG_IGN);
    ptr_R_ReadConsole = console_read;
    frame_send(K_READY, RAW(payload), (size_t)Rf_xlength(payload));
    return R_NilValue;
}

#define ROUTINE(name, args) {#name, (r_routine_fn *)(void (*)(void))name, args}

static const struct r_routine ROUTINES[] = {
    ROUTINE(sandbox_base64, 1),      ROUTINE(sandbox_code, 0),       ROUTINE(sandbox_completed, 0),
    ROUTINE(sandbox_escape, 1),      ROUTINE(sandbox_evaluating, 0), ROUTINE(sandbox_input, 1),
    ROUTINE(sandbox_interrupted, 0), ROUTINE(sandbox_send, 2),       ROUTINE(sandbox_stage, 3),
    ROUTINE(sandbox_start, 2),       ROUTINE(sandbox_system, 1),     {},
};

/* R calls it when it has loaded this file. */
void R_init_sandbox_kernel(struct r_library *library)
{
    R_registerRoutines(library, NULL, ROUTINES, NULL, NULL);
}
