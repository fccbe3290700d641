/* SPDX-License-Identifier: MIT */
/*
 * Runs: what a client asked to be executed, with its log. A run outlives the client that began it,
 * until somebody acknowledges its end. How it executes is in spawn.c (a process) and cell.c (a cell
 * of the kernel); what else takes time, the start of the kernel and a sweep, is a run too.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "init/log.h"
#include "wire/fields.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RUN_MAX = 64,
    RUN_GATE = 256 * 1024, /* unsent log from which on a run's pipes are not read */
    RUN_INPUT_MAX = FRAME_PAYLOAD_MAX,
    RUN_TIMEOUT_MAX_MS = 1000 * 3600 * 24 * 20,
    INTERRUPT_PERIOD_MS = 200,
    INTERRUPT_TIME_MS = 2000,
};

/* The last two are not logged for others: they are forgotten when their client has the answer. */
enum run_kind { RUN_EXEC, RUN_SPAWN, RUN_KERNEL, RUN_SWEEP };
enum run_state { RUN_WAITING, RUN_RUNNING, RUN_DONE };
enum run_stop { RUN_GOES_ON, RUN_TIMED_OUT, RUN_STOPPED };

/* Interrupt, interrupt again and again, kill. */
struct ladder {
    int64_t next; /* of the next SIGINT */
    int64_t kill;
    bool active;
};

enum ladder_act { LADDER_WAIT, LADDER_INTERRUPT, LADDER_KILL };

struct run {
    struct run *next;
    uint32_t stream;
    enum run_kind kind;
    enum run_state state;
    enum run_stop stop;
    struct log log;
    struct log_block *end; /* kept ready, so that a run can end without memory */
    int64_t begin_us;      /* 0: not begun */
    int64_t timeout_ms;
    int64_t deadline;
    int64_t rest_ms; /* of its time, while the clock is held; CLOCK_FOREVER: no time-out */
    bool answers;    /* a client answers input requests, or feeds stdin */
    bool noted;      /* that a display was left out */
    uint64_t bytes[2];
    struct ladder ladder;
    struct spawn *spawn;
    struct cell *cell;
};

/* How a run ended: what END says beyond the figures that every run has. */
struct outcome {
    const char *status;
    const char *state; /* NULL: does not apply */
    char cause[24];    /* "": none */
    int exit_code;     /* -1: none */
    int signal;
    const struct error *error; /* what failed, or NULL */
    const char *restarted;     /* why the kernel is another one than before, or NULL */
};

void ladder_begin(struct ladder *l, int64_t now, int64_t delay_ms);
enum ladder_act ladder_step(struct ladder *l, int64_t now);
int64_t ladder_next(const struct ladder *l);

/* Reads timeout_ms and stdin. NULL when there are too many runs, the number is in use, or the
 * request is malformed; `reterr` says. */
struct run *run_open(enum run_kind kind, uint32_t stream, const struct fields *f,
                     struct error *reterr);
struct run *run_find(uint32_t stream);
struct run *run_first(void);

static inline bool run_is_logged(const struct run *run)
{
    return run->kind <= RUN_SPAWN;
}

/* Forgets a run that is done. */
void run_free(struct run *run);

/* From here on its time counts. */
void run_begin(struct run *run);

/* Its time stands still, and goes on; not that of a run that is being stopped. */
void run_clock_hold(struct run *run);
void run_clock_go(struct run *run);

/* Output of stream 1 or 2, as it was read. */
void run_output(struct run *run, int fd, const char *data, size_t len);

/* A frame of the kernel, kept as it is. Takes the block over. */
void run_event(struct run *run, uint8_t type, struct log_block *block);

/* Appends END; the run is done. */
void run_end(struct run *run, const struct outcome *outcome);

/* The short forms: a failure, and the outcome of a stop. */
void run_fail(struct run *run, const char *state, const struct error *why);
void outcome_init(struct outcome *o, const struct run *run);
void outcome_cause_wait(struct outcome *o, int wait_status);

/* Whether its output has to wait, because a client has not taken what there is. */
bool run_is_gated(const struct run *run);

/* Forgets runs that nobody acknowledges. */
void runs_tidy(void);

/* Adds a `run` field per run: stream:kind:state:offset. The offsets may be attached to from now on.
 */
int runs_describe(struct buf *fields) must_check;
