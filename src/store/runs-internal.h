/* SPDX-License-Identifier: MIT */
/*
 * What the files behind runs.h share. A transaction that changes a thread's runs or checkpoints
 * begins with an UPDATE of the thread's row: that is the lock of the thread in both databases, and
 * every statement after it sees what the transactions before have committed.
 */
#pragma once

#include "store/query.h"
#include "store/runs.h"

extern const struct query_shape run_shape, checkpoint_shape;
/* Of rows that may be many: without what may be large. */
extern const struct query_shape run_brief_shape;

#define RUN_IS_ACTIVE "status IN ('pending', 'running')"

/* Locks the thread of a run; 0 without such a run. `owner` and `thread_id` NULL: any. */
int64_t run_lock_thread(struct store_tx *tx, const char *owner, const char *thread_id,
                        const char *run_id, struct error *reterr) must_check;
/* 1, or 0 without such a run. */
int run_find(struct store_tx *tx, const char *id, struct arena *arena, struct store_run *ret,
             struct error *reterr) must_check;

/* The run as its fence says, its thread locked; ERR_CANCELLED where the fence does not hold. */
int run_fenced(struct store_tx *tx, const struct store_fence *fence, struct arena *arena,
               struct store_run *ret, struct error *reterr) must_check;

/* The number of active runs of a locked thread. */
int thread_count_active(struct store_tx *tx, const char *thread_id, int64_t *ret,
                        struct error *reterr) must_check;

/* Ends an active run of a locked thread. */
int run_finish(struct store_tx *tx, const struct store_run *run, const struct store_run_end *end,
               struct error *reterr) must_check;
/* The same for one that somebody has cancelled. */
int run_finish_cancelled(struct store_tx *tx, const struct store_run *run, const char *action,
                         struct error *reterr) must_check;
/* The thread's status after a run has ended or gone; a temporary thread goes, too. */
int thread_settle(struct store_tx *tx, const struct store_run *run,
                  struct error *reterr) must_check;
