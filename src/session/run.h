/* SPDX-License-Identifier: MIT */
/*
 * A run: one cell or one command in a session. Opened by run_open() (session.h), followed by
 * run_next() from any thread, released by run_unref(). It goes on without followers until it ends,
 * is cancelled, or its time-out stops it.
 */
#pragma once

#include "base/error.h"
#include "engine/control.h"
#include "session/log.h"
#include "session/text.h"

#include <stdbool.h>

struct session;
struct run;

enum run_kind { RUN_CODE, RUN_COMMAND };

enum run_status { RUN_RUNNING, RUN_OK, RUN_ERROR, RUN_TIMEOUT, RUN_INTERRUPTED, RUN_DIED };

const char *run_status_name(enum run_status status);

/* How a run ended; valid after END. Strings live as long as the run. */
struct run_outcome {
    enum run_status status;
    bool state_kept;
    const char *cause;   /* "" on ok; design: timeout, user, oom, pids, disk, signal:N, exit:N,
                            expired, evicted, lost */
    const char *message; /* "" or one sentence: which limit, what to do */
    int exit_code;       /* of a command; -1 when a signal ended it */
    int signal;
    double duration_ms;
    uint64_t stdout_bytes, stderr_bytes;
};

/*
 * The next event: 1, 0 after the end, ERR_TIMEOUT at the deadline. `ret->data` is the reader's own
 * buffer.
 */
int run_next(struct run *r, struct run_cursor *cursor, int64_t deadline, struct run_event *ret,
             struct error *reterr) must_check;

/* Waits for the end. ERR_TIMEOUT at the deadline. */
int run_wait(struct run *r, int64_t deadline, struct run_outcome *ret,
             struct error *reterr) must_check;

/* Stops it: a waiting one is dropped, a running one interrupted. The end still comes as an event.
 */
void run_cancel(struct run *r);

/* Answers an input request; NULL: there is no answer. */
int run_input(struct run *r, const char *line, size_t len, struct error *reterr) must_check;

/*
 * The result object of design section 6 as JSON, appended to `ret`. Only after the end.
 */
int run_result_json(struct run *r, struct buf *ret, struct error *reterr) must_check;

enum run_kind run_kind(const struct run *r);

struct run *run_ref(struct run *r);
void run_unref(struct run *r);

DEFINE_CLEANUP(struct run *, run_unref)
#define auto_run __attribute__((cleanup(run_unref_cleanup)))
