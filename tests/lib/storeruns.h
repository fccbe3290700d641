/* SPDX-License-Identifier: MIT */
/* Short words for tests of runs: owner "o", and what else is the same in most of them. */
#pragma once

#include "base/uuid.h"
#include "store/runs.h"
#include "tests/lib/storetest.h"

#include <stdio.h>

struct runstest {
    struct storetest base;
    struct arena arena;
    int64_t lease_us;
    struct store_run *active, *renewed, changed;
    size_t active_count;
};

static inline void runstest_close(struct runstest *t)
{
    arena_done(&t->arena);
    storetest_close(&t->base);
}
#define auto_runstest __attribute__((cleanup(runstest_close)))

static inline void runstest_open(struct runstest *t)
{
    arena_init(&t->arena, 64 * MIB);
    t->lease_us = 60000000;
    storetest_open(&t->base);
}

struct run_want {
    const char *thread, *id, *owner, *rule, *metadata;
    bool no_thread, resume, temporary;
    int64_t start_us;
};

static inline int run_try(struct runstest *t, const struct run_want *want, struct store_run *ret,
                          struct error *reterr)
{
    char id[UUID_LEN + 1];
    struct store_run_new n = {.create_thread = !want->no_thread,
                              .thread_metadata = want->metadata,
                              .resume = want->resume};

    if (uuid_v4(id, reterr) < 0)
        return -ERR_SYSTEM;
    n.run = (struct store_run){.id = want->id ? want->id : id,
                               .thread_id = want->thread,
                               .owner = want->owner ? want->owner : "o",
                               .assistant_id = "a",
                               .metadata = "{}",
                               .kwargs = "{\"input\":null}",
                               .multitask = want->rule ? want->rule : "enqueue",
                               .temporary = want->temporary,
                               .start_us = want->start_us};
    return store_run_create(t->base.store, &n, &t->arena, ret, &t->active, &t->active_count,
                            reterr);
}

static inline void run_make(struct runstest *t, const struct run_want *want, struct store_run *ret)
{
    struct error err = {0};

    *ret = (struct store_run){0};
    assert_ok(run_try(t, want, ret, &err), err);
}

static inline int run_claim(struct runstest *t, const char *worker, const char *id,
                            struct store_run *ret)
{
    struct store_worker w = {.id = worker, .lease_us = t->lease_us, .attempts_max = 3};
    struct error err = {0};
    int r;

    *ret = (struct store_run){0};
    r = store_run_claim(t->base.store, &w, id, &t->arena, ret, &err);
    assert_ok(r, err);
    return r;
}

/* The count of runs that the worker still has; they are in `renewed`. */
static inline int run_renew(struct runstest *t, const char *worker, int64_t lease_us)
{
    struct store_worker w = {.id = worker, .lease_us = lease_us, .attempts_max = 3};
    struct error err = {0};
    size_t count;

    assert_ok(store_run_renew(t->base.store, &w, &t->arena, &t->renewed, &count, &err), err);
    return (int)count;
}

/* A run that ends "interrupted" leaves its thread so, any other leaves it idle. */
static inline int run_end(struct runstest *t, const struct store_run *run, int64_t attempt,
                          const char *status, struct error *reterr)
{
    struct store_fence fence = {run->id, attempt};
    struct store_run_end end = {
        .status = status,
        .thread_status = strcmp(status, "interrupted") == 0 ? "interrupted" : "idle",
    };

    return store_run_end(t->base.store, &fence, &end, reterr);
}

static inline void run_cancel(struct runstest *t, const struct store_run *run, const char *action)
{
    struct error err = {0};

    t->changed = (struct store_run){0};
    assert_ok(store_run_cancel(t->base.store, "o", run->thread_id, run->id, action, &t->arena,
                               &t->changed, &err),
              err);
}

static inline void run_expect(struct runstest *t, const struct store_run *run, const char *status)
{
    struct error err = {0};

    t->changed = (struct store_run){0};
    assert_ok(
        store_run_get(t->base.store, "o", run->thread_id, run->id, &t->arena, &t->changed, &err),
        err);
    assert_str_eq(t->changed.status, status);
}

static inline void thread_expect(struct runstest *t, const char *id, const char *status)
{
    struct store_thread thread = {0};
    struct error err = {0};

    assert_ok(store_thread_get(t->base.store, "o", id, &t->arena, &thread, &err), err);
    assert_str_eq(thread.status, status);
}

/* A checkpoint of a run, whose messages are all new. */
static inline int checkpoint_make(struct runstest *t, const struct store_run *run, const char *id,
                                  size_t messages, struct error *reterr)
{
    struct store_message list[8] = {0};
    struct store_fence fence = {run->id, run->attempt};
    struct store_checkpoint c = {.thread_id = run->thread_id,
                                 .id = id,
                                 .source = "loop",
                                 .next = "[]",
                                 .tasks = "[]",
                                 .metadata = "{\"step\":1}",
                                 .run_id = run->id};

    for (size_t i = 0; i < messages; i++)
        list[i] = (struct store_message){.json = "{\"a\":1}", .len = 7};
    return store_checkpoint_put(t->base.store, &fence, &c, list, messages, reterr);
}
