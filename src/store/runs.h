/* SPDX-License-Identifier: MIT */
/*
 * Runs and checkpoints. The table of runs is the queue: a server claims a pending run for the time
 * of a lease, renews it, and ends it. Each claim raises `attempt`, the fencing token: a server that
 * lost its lease can write nothing more for the run. Runs of one thread are claimed one at a time,
 * in the order of their creation.
 */
#pragma once

#include "store/store.h"

struct store_run {
    const char *id, *thread_id, *owner, *assistant_id;
    const char *status;     /* pending, running, success, error, timeout, interrupted */
    const char *metadata;   /* JSON object */
    const char *kwargs;     /* JSON object: input, command, config, context, stream_mode, ... */
    const char *multitask;  /* reject, interrupt, rollback, enqueue */
    const char *error;      /* JSON {"error","message"}, or NULL */
    const char *checkpoint; /* the newest that it wrote, or NULL */
    const char *worker;     /* who has claimed it; NULL */
    const char *cancel;     /* an asked for cancellation: interrupt, rollback; NULL */
    bool temporary;         /* its thread goes with it */
    int64_t attempt;        /* 1 for the first claim; it only grows */
    int64_t created_us, updated_us, start_us, lease_us; /* start_us: not before */
};

struct store_run_new {
    struct store_run run;        /* id, thread_id, owner, assistant_id, metadata, kwargs,
                                    multitask, temporary, start_us */
    bool create_thread;          /* a missing thread is made; else ERR_NOT_FOUND */
    const char *thread_metadata; /* JSON merged into the thread's: graph_id, assistant_id, ... */
    bool resume;                 /* only on a thread that is interrupted and has no active run,
                                    else ERR_INVALID; so that two resumes are one */
};

/*
 * All or nothing: the thread, the rule for threads that are busy, the row, the thread's status
 * busy. reject: ERR_BUSY. interrupt and rollback: asks for the cancellation of the active runs,
 * pending ones are ended at once; those that run are listed in `ret_active` (brief, as below), for
 * who has them.
 */
int store_run_create(struct store *s, const struct store_run_new *n, struct arena *arena,
                     struct store_run *ret, struct store_run **ret_active, size_t *ret_active_count,
                     struct error *reterr) must_check;

/* `thread_id` NULL: of any thread; so it is where a run is changed, too. */
int store_run_get(struct store *s, const char *owner, const char *thread_id, const char *id,
                  struct arena *arena, struct store_run *ret, struct error *reterr) must_check;
/* `thread_id` NULL: of all threads; `status` NULL: any; newest first. */
int store_run_list(struct store *s, const char *owner, const char *thread_id, const char *status,
                   const struct store_page *page, struct arena *arena, struct store_run **ret,
                   size_t *ret_count, struct error *reterr) must_check;
/* The same without what may be large: the texts but id, thread_id, owner, status, checkpoint,
 * worker and cancel are NULL. */
int store_run_list_brief(struct store *s, const char *owner, const char *thread_id,
                         const char *status, const struct store_page *page, struct arena *arena,
                         struct store_run **ret, size_t *ret_count,
                         struct error *reterr) must_check;
/* ERR_BUSY while it is active. */
int store_run_delete(struct store *s, const char *owner, const char *thread_id, const char *id,
                     struct error *reterr) must_check;

struct store_worker {
    const char *id; /* of this server's process */
    int64_t lease_us;
    int64_t attempts_max;
};

/*
 * Claims a run whose time has come, on a thread without a running one: `id`, or the oldest where
 * NULL. Runs whose lease is over are claimed again, up to attempts_max; then they end with an
 * error. 1, or 0 when there is none.
 */
int store_run_claim(struct store *s, const struct store_worker *w, const char *id,
                    struct arena *arena, struct store_run *ret, struct error *reterr) must_check;

/* Renews all leases of the worker. Gives back its runs (brief): what is not among them was lost. */
int store_run_renew(struct store *s, const struct store_worker *w, struct arena *arena,
                    struct store_run **ret, size_t *ret_count, struct error *reterr) must_check;

/* Marks a cancellation. An active run's worker sees it at its renewal; a pending one ends at once.
 * `ret` is the run afterwards. */
int store_run_cancel(struct store *s, const char *owner, const char *thread_id, const char *id,
                     const char *action, struct arena *arena, struct store_run *ret,
                     struct error *reterr) must_check;

/* Who writes for a run. */
struct store_fence {
    const char *run_id;
    int64_t attempt;
};

struct store_run_end {
    const char *status, *error; /* of the run */
    const char *thread_status;  /* where no other run is active: idle, interrupted, error */
    const char *interrupts;     /* JSON object for the thread */
    bool rollback;              /* remove the run and its checkpoints */
};
/*
 * ERR_CANCELLED when the fence does not hold any more: nothing was written. 1 when a cancellation
 * was asked for first: then the run ended as that says, not as `end`. The thread of a temporary run
 * is still there: its server deletes it. Of one that ends without a server it is gone. To say the
 * same again is fine: who did not get an answer may ask again.
 */
int store_run_end(struct store *s, const struct store_fence *fence, const struct store_run_end *end,
                  struct error *reterr) must_check;

/* Gives a claimed run back to the queue, its attempt not counted: the server stops. One that was
 * cancelled ends instead. */
int store_run_release(struct store *s, const struct store_fence *fence,
                      struct error *reterr) must_check;

/* ---- checkpoints ---- */

/* A message as it is stored: once per thread, and referred to by number. */
struct store_message {
    int64_t ref;      /* 0: new; set by store_checkpoint_put() */
    const char *json; /* the whole message */
    size_t len;
};

struct store_checkpoint {
    const char *thread_id, *id, *parent; /* parent NULL at the root */
    int64_t step;
    const char *source;   /* input, loop, update, fork */
    const char *next;     /* JSON array of node names */
    const char *tasks;    /* JSON array, as in a state */
    const char *metadata; /* JSON object */
    const char *pending;  /* JSON: what an interrupted step has done and asks for; NULL */
    const char *run_id;   /* NULL: not of a run */
    const int64_t *refs;  /* the messages, in order */
    size_t ref_count;
    int64_t created_us;
};

/*
 * Writes a checkpoint and makes it the thread's head; new messages get their `ref` first, and the
 * checkpoint's refs are those of `messages`. A fence that does not hold: ERR_CANCELLED. Without a
 * fence (a state that is edited): ERR_BUSY while a run of the thread is active.
 */
int store_checkpoint_put(struct store *s, const struct store_fence *fence,
                         const struct store_checkpoint *c, struct store_message *messages,
                         size_t count, struct error *reterr) must_check;

/* Changes what a checkpoint says about its tasks: the outcome of its step. */
int store_checkpoint_set_tasks(struct store *s, const struct store_fence *fence,
                               const char *thread_id, const char *id, const char *tasks,
                               const char *pending, struct error *reterr) must_check;

/* `id` NULL: the head. ERR_NOT_FOUND when there is none. */
int store_checkpoint_get(struct store *s, const char *thread_id, const char *id,
                         struct arena *arena, struct store_checkpoint *ret,
                         struct error *reterr) must_check;
/* Newest first; strictly older than `before` (NULL: all); `metadata` contained in its own. */
int store_checkpoint_list(struct store *s, const char *thread_id, const char *before,
                          const char *metadata, int64_t limit, struct arena *arena,
                          struct store_checkpoint **ret, size_t *ret_count,
                          struct error *reterr) must_check;
/* The texts behind refs, in their order. */
int store_messages_get(struct store *s, const char *thread_id, const int64_t *refs, size_t count,
                       struct arena *arena, struct store_message *ret,
                       struct error *reterr) must_check;
/* Keeps only the head; the rest of the thread's checkpoints, and messages that no longer count, go.
 * ERR_BUSY while a run is active. */
int store_thread_prune(struct store *s, const char *owner, const char *id,
                       struct error *reterr) must_check;
