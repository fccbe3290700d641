/* SPDX-License-Identifier: MIT */
/* What the files of live runs share: live.c knows them, worker.c runs them. */
#pragma once

#include "api/api-internal.h"
#include "api/frames.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LIVE_BUCKETS = 1024 };

struct end_waiter {
    struct end_waiter *next;
    void (*wake)(void *user);
    void *user;
};

struct live_run {
    struct live_run *next; /* of its bucket */
    atomic_uint refs;
    struct live *live;
    struct arena arena; /* of the texts below */
    const char *id, *thread_id, *owner;
    int64_t epoch_ms;
    struct frame_log *log;
    uint32_t modes;
    bool v2;
    bool mirror;                 /* of a run that is not ours, or was not */
    bool past;                   /* it had ended before: streams of its thread do not show it */
    char mirrored[UUID_LEN + 1]; /* the checkpoint that its values are of */

    /* Under the lock of `live`: */
    bool creating; /* its row is not in the store yet */
    bool active, done;
    bool telling;       /* somebody writes the frames of the mirror */
    int cancel_fd;      /* while it is active, else -1 */
    int64_t since_ms;   /* when it became active, or done */
    const char *action; /* interrupt, rollback: asked for; timeout, stop, lost: ours; NULL */
    struct buf values;  /* once it is done */
    struct end_waiter *waiters;
};

struct live {
    struct api *api;
    struct store_worker worker;
    char worker_id[UUID_LEN + 1];
    struct frame_log *idle; /* closed and empty; woken when a run is created */

    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t changed; /* runs that end, and work for the dispatcher */
    struct live_run *buckets[LIVE_BUCKETS];
    struct live_counts counts;
    int64_t last_epoch_ms;
    size_t looked; /* the bucket where the next look at mirrors begins */
    bool kicked, started, stopping;
    pthread_t dispatcher;
};

/* A claimed run on its way to its thread; owns the row's texts. */
struct claimed {
    struct live_run *run; /* a reference */
    struct arena arena;
    struct store_run row;
};

/* Does the run, and tells the store, the log and the waiters of its end. */
void worker_run(struct claimed *c);

/* With the lock held: the run is over; `values` is taken over. */
void live_run_finish(struct live_run *r, struct buf *values);

/* With the lock held: asks a run to stop for that reason, once; one that is about to become active
 * stops then. */
void live_run_stop(struct live_run *r, const char *action);

/* What a run does, from the row; the doc outlives the spec. */
int spec_parse(struct api *api, const struct store_run *row, yyjson_val *kwargs,
               struct arena *arena, struct agent_run_spec *ret, struct error *reterr) must_check;

/* Waits, not for ever, until this process tells of no other run of the thread: their events are in
 * one log. */
void live_thread_wait(struct live_run *r);

bool live_is_stopping(struct live *l);

bool run_row_has_ended(const struct store_run *row);

/* Finds the run of a row, or makes and lists a mirror, which begins with its metadata if `tell`;
 * referenced. */
int live_run_mirror(struct live *l, const struct store_run *row, bool tell, struct live_run **ret,
                    struct error *reterr) must_check;
/* Looks what has become of the runs that others do. */
void mirrors_look(struct live *l);

/* What an error is called that has no name of its own. */
const char *error_type_name(enum error_code code);
