/* SPDX-License-Identifier: MIT */
/*
 * STO-20, STO-22: two servers that want the same run at the same moment. Each race has one winner,
 * and the run has one end.
 */
#include "tests/lib/storeruns.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LEASE_RACES = 1500, CANCEL_RACES = 400, CREATORS = 8, CREATIONS = 10 };

/* What one of the two does in every race; both begin at the barrier. */
struct racer {
    struct store *store;
    pthread_barrier_t *barrier;
    const char *run_id;
    const char *status;
    int64_t attempt;   /* of the claim that it has; 0: it claims first */
    const char *other; /* not to end the run: "interrupt", "rollback", "delete" */
    int result;
};

static int racer_claim(struct racer *r, struct arena *arena)
{
    struct store_worker w = {.id = "b", .lease_us = 60000000, .attempts_max = 3};
    struct store_run run = {0};
    int claimed = store_run_claim(r->store, &w, r->run_id, arena, &run, NULL);

    r->attempt = run.attempt;
    return claimed > 0 ? 0 : -ERR_CANCELLED;
}

static int racer_act(struct racer *r)
{
    auto_arena struct arena arena = {.max = 4 * MIB};
    struct store_run_end end = {.status = r->status, .thread_status = "idle"};
    struct store_run run;

    if (r->other && strcmp(r->other, "delete") == 0)
        return store_thread_delete(r->store, "o", "t", NULL);
    if (r->other)
        return store_run_cancel(r->store, "o", "t", r->run_id, r->other, &arena, &run, NULL);
    if (r->attempt == 0 && racer_claim(r, &arena) < 0)
        return -ERR_CANCELLED;
    return store_run_end(r->store, &(struct store_fence){r->run_id, r->attempt}, &end, NULL);
}

static void *racer_run(void *user)
{
    struct racer *r = user;

    pthread_barrier_wait(r->barrier);
    r->result = racer_act(r);
    return NULL;
}

static void race(struct racer *a, struct racer *b)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    a->barrier = b->barrier = &barrier;
    assert_int_eq(pthread_create(&thread, NULL, racer_run, a), 0);
    racer_run(b);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

/* A holds a lease that is over and ends its run, while B takes it over and ends it, too. */
TEST(an_expired_lease_has_one_end)
{
    auto_runstest struct runstest t = {0};
    int by_a = 0;

    if (test_is_torture())
        test_skip("races need threads");
    runstest_open(&t);
    for (int i = 0; i < LEASE_RACES; i++) {
        struct store_run run, got;
        struct racer a = {.store = t.base.store, .status = "success"}, b = a;

        run_make(&t, &(struct run_want){.thread = "t"}, &run);
        t.lease_us = -1;
        assert_int_eq(run_claim(&t, "a", NULL, &got), 1);
        a.run_id = b.run_id = run.id;
        a.attempt = 1;
        b.status = "timeout";
        race(&a, &b);
        assert_int_eq((a.result == 0) + (b.result == 0), 1);
        assert_int_eq(MIN(a.result, b.result), -ERR_CANCELLED);
        run_expect(&t, &run, a.result == 0 ? "success" : "timeout");
        thread_expect(&t, "t", "idle");
        by_a += a.result == 0;
        arena_done(&t.arena);
        arena_init(&t.arena, 64 * MIB);
    }
    test_note("%d of %d races were won by the first server", by_a, LEASE_RACES);
}

/* The end and a cancellation or the deletion of the thread at once. */
TEST(an_end_and_a_cancellation_agree)
{
    static const char *const others[] = {"interrupt", "rollback", "delete"};
    auto_runstest struct runstest t = {0};

    if (test_is_torture())
        test_skip("races need threads");
    runstest_open(&t);
    for (int i = 0; i < CANCEL_RACES; i++) {
        struct store_run run, got = {0};
        struct racer a = {.store = t.base.store, .status = "success", .attempt = 1}, b = a;
        struct error err = {0};
        int r;

        run_make(&t, &(struct run_want){.thread = "t"}, &run);
        assert_int_eq(run_claim(&t, "a", NULL, &got), 1);
        a.run_id = b.run_id = run.id;
        b.other = others[i % 3];
        race(&a, &b);
        r = store_run_get(t.base.store, "o", "t", run.id, &t.arena, &got, &err);
        if (strcmp(b.other, "delete") == 0) {
            assert_int_eq(b.result, 0);
            assert_true(a.result == 0 || a.result == -ERR_CANCELLED);
            assert_int_eq(r, -ERR_NOT_FOUND);
        } else if (a.result == 1) {
            assert_int_eq(b.result, 0);
            assert_true(r == -ERR_NOT_FOUND || strcmp(got.status, "interrupted") == 0);
        } else {
            assert_int_eq(a.result, 0);
            assert_str_eq(got.status, "success");
        }
        arena_done(&t.arena);
        arena_init(&t.arena, 64 * MIB);
    }
}

struct creator {
    struct storetest *base;
    atomic_int *made, *failed;
};

static void *creator_run(void *user)
{
    struct creator *c = user;
    struct runstest t = {.base = *c->base};

    arena_init(&t.arena, 16 * MIB);
    for (int i = 0; i < CREATIONS; i++) {
        char thread[16];
        struct store_run run;
        struct error err = {0};

        snprintf(thread, sizeof(thread), "t%d", i);
        if (run_try(&t, &(struct run_want){.thread = thread}, &run, &err) < 0)
            atomic_fetch_add(c->failed, 1);
        else
            atomic_fetch_add(c->made, 1);
    }
    arena_done(&t.arena);
    return NULL;
}

TEST(threads_that_many_make_at_once_are_made_once)
{
    auto_runstest struct runstest t = {0};
    atomic_int made = 0, failed = 0;
    struct creator creator = {.base = &t.base, .made = &made, .failed = &failed};
    pthread_t threads[CREATORS];

    if (test_is_torture())
        test_skip("races need threads");
    runstest_open(&t);
    for (int i = 0; i < CREATORS; i++)
        assert_int_eq(pthread_create(&threads[i], NULL, creator_run, &creator), 0);
    for (int i = 0; i < CREATORS; i++)
        pthread_join(threads[i], NULL);
    assert_int_eq(failed, 0);
    assert_int_eq(made, CREATORS * CREATIONS);
}
