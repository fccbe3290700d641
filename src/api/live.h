/* SPDX-License-Identifier: MIT */
/*
 * The runs of this process: a thread for each active one, the queue in the store behind them, and
 * the logs that streams follow. A run is known here from its creation until some time after its
 * end; before and after that the store alone knows it.
 */
#pragma once

#include "api/log.h"
#include "base/buf.h"
#include "store/runs.h"

struct api;
struct live;
struct live_run;

int live_new(struct api *api, struct live **ret, struct error *reterr) must_check;
int live_start(struct live *l, struct error *reterr) must_check;
/* As api_stop(). */
bool live_stop(struct live *l, unsigned grace_ms) must_check;
void live_free(struct live *l);

/* Modes of streams, as bits: tags of a run's log. */
enum stream_mode {
    MODE_VALUES = 1 << 0,
    MODE_UPDATES = 1 << 1,
    MODE_MESSAGES = 1 << 2, /* messages/metadata, messages/partial, messages/complete */
    MODE_MESSAGES_TUPLE = 1 << 3,
    MODE_CUSTOM = 1 << 4,
    MODE_DEBUG = 1 << 5,
    MODE_TASKS = 1 << 6,
    MODE_CHECKPOINTS = 1 << 7,
    MODE_EVENTS = 1 << 8,
    MODE_TOOLS = 1 << 9,
    MODE_ALL = (1 << 10) - 1,
};
/* 0 for an unknown word. */
uint32_t stream_mode_parse(const char *word);

/*
 * Creates a run in the store and takes it up here. `ret` is referenced.
 */
struct live_create {
    struct store_run_new new;
    uint32_t modes;
    bool v2; /* its frames go to the thread's log of protocol v2, too */
};
int live_run_create(struct live *l, const struct live_create *create, struct arena *arena,
                    struct store_run *ret_row, struct live_run **ret,
                    struct error *reterr) must_check;

/* The run of a row, referenced: if it is not known here, as a mirror that tells its values and its
 * end. */
int live_run_attach(struct live *l, const struct store_run *row, struct live_run **ret,
                    struct error *reterr) must_check;

/* A run that is known here, referenced; or NULL. */
struct live_run *live_run_find(struct live *l, const char *run_id);
struct live_run *live_run_ref(struct live_run *r);
void live_run_unref(struct live_run *r);
DEFINE_CLEANUP(struct live_run *, live_run_unref)
#define auto_live_run __attribute__((cleanup(live_run_unref_cleanup)))

/* The first run of a thread that is known here and began after that one; referenced, or NULL. */
struct live_run *live_thread_next(struct live *l, const char *thread_id, int64_t after_epoch_ms);

/* The number of the thread's newest run that has ended; 0 for none. */
int64_t live_thread_epoch(struct live *l, const char *thread_id);
/* Ended and empty; woken whenever a run is created. */
struct frame_log *live_idle_log(struct live *l);

struct frame_log *live_run_log(struct live_run *r);
const char *live_run_id(const struct live_run *r);
const char *live_run_thread(const struct live_run *r);
const char *live_run_owner(const struct live_run *r);
int64_t live_run_epoch(const struct live_run *r);
bool live_run_is_done(struct live_run *r);

/* Appends the final values ({"messages":...}, or {"__error__":...}); false before the end. */
bool live_run_values(struct live_run *r, struct buf *ret);

/* Calls `wake` when the run has ended, at once when it has; on any thread. -1 without memory. */
int live_run_on_end(struct live_run *r, void (*wake)(void *user), void *user) must_check;
void live_run_off_end(struct live_run *r, void *user);

/* Stops it ("interrupt" or "rollback"); a pending one ends at once. Waits for the end when
 * `wait_ms` is not 0. */
int live_cancel(struct live *l, const char *owner, const char *thread_id, const char *run_id,
                const char *action, unsigned wait_ms, struct error *reterr) must_check;

/* Stops all of a thread, and waits for a moment. */
void live_cancel_thread(struct live *l, const char *owner, const char *thread_id);

/* Counts for /metrics. */
struct live_counts {
    size_t active, known;
    uint64_t started, succeeded, failed, interrupted;
};
void live_counts_get(struct live *l, struct live_counts *ret);
