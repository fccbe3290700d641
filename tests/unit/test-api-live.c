/* SPDX-License-Identifier: MIT */
/* Runs that this process knows, without one that runs: who tells of them, and when. */
#include "api/live-internal.h"
#include "tests/lib/storeruns.h"

#include <pthread.h>

enum { JOINERS = 6, ROUNDS = 20, WAITING = 100 };

struct livetest {
    struct runstest runs;
    struct api api;
};

static void livetest_close(struct livetest *t)
{
    live_free(t->api.live);
    agent_free(t->api.agent);
    runstest_close(&t->runs);
}
#define auto_livetest __attribute__((cleanup(livetest_close)))

static void livetest_open(struct livetest *t)
{
    struct error err = {0};

    if (test_is_torture())
        test_skip("what is told of runs without memory is another matter");
    runstest_open(&t->runs);
    t->api.settings = &t->runs.base.settings;
    t->api.store = t->runs.base.store;
    assert_ok(agent_new(&(struct agent_options){.size = sizeof(struct agent_options),
                                                .settings = t->api.settings,
                                                .store = t->api.store},
                        &t->api.agent, &err),
              err);
    assert_ok(live_new(&t->api, &t->api.live, &err), err);
}

/* Nothing is claimed, because nothing was started. */
static struct live_run *live_make(struct livetest *t, const char *thread, const char *rule,
                                  struct error *reterr)
{
    struct live_create create = {.new.create_thread = true, .modes = MODE_VALUES};
    struct store_run row = {0};
    struct live_run *run = NULL;
    char id[UUID_LEN + 1];

    assert_ok(uuid_v4(id, reterr), *reterr);
    create.new.run = (struct store_run){.id = id,
                                        .thread_id = thread,
                                        .owner = "o",
                                        .assistant_id = "a",
                                        .metadata = "{}",
                                        .kwargs = "{}",
                                        .multitask = rule};
    return live_run_create(t->api.live, &create, &t->runs.arena, &row, &run, reterr) < 0 ? NULL
                                                                                         : run;
}

/* A run that another server did. */
static void ended_make(struct livetest *t, const char *thread, struct store_run *ret)
{
    struct error err = {0};

    run_make(&t->runs, &(struct run_want){.thread = thread}, ret);
    assert_int_eq(run_claim(&t->runs, "w", ret->id, ret), 1);
    assert_ok(run_end(&t->runs, ret, ret->attempt, "success", &err), err);
    run_expect(&t->runs, ret, "success");
    *ret = t->runs.changed;
}

static uint64_t frames_of(struct live_run *run)
{
    return frame_log_next_seq(live_run_log(run)) - 1;
}

TEST(a_run_that_is_being_created_is_not_missed)
{
    auto_livetest struct livetest t = {};
    auto_live_run struct live_run *run = NULL;
    struct error err = {0};

    livetest_open(&t);
    run = live_make(&t, "t", "enqueue", &err);
    assert_not_null(run);
    /* As it stands before its row is written. */
    run->creating = true;
    assert_ok(store_thread_delete(t.api.store, "o", "t", &err), err);
    mirrors_look(t.api.live);
    assert_false(live_run_is_done(run));
    assert_null(live_thread_next(t.api.live, "t", 0));
    run->creating = false;
    mirrors_look(t.api.live);
    assert_true(live_run_is_done(run));
    assert_uint_eq(frames_of(run), 2); /* metadata, end */
}

TEST(a_refused_run_is_shown_to_nobody)
{
    auto_livetest struct livetest t = {};
    auto_live_run struct live_run *run = NULL, *next = NULL;
    struct live_counts counts;
    struct error err = {0};

    livetest_open(&t);
    run = live_make(&t, "t", "enqueue", &err);
    assert_not_null(run);
    assert_null(live_make(&t, "t", "reject", &err));
    assert_int_eq(err.code, ERR_BUSY);
    next = live_thread_next(t.api.live, "t", 0);
    assert_ptr_eq(next, run);
    assert_null(live_thread_next(t.api.live, "t", live_run_epoch(run)));
    live_counts_get(t.api.live, &counts);
    assert_uint_eq(counts.known, 1);
}

struct joiner {
    struct livetest *test;
    const struct store_run *row;
    struct live_run *run;
};

static void *join_main(void *arg)
{
    struct joiner *j = arg;

    (void)!live_run_attach(j->test->api.live, j->row, &j->run, NULL);
    return NULL;
}

/* Many join one that has ended, while the dispatcher looks, too: each frame is there once, and
 * whoever follows the thread does not take it for a new run. */
TEST(an_ended_run_is_told_once)
{
    auto_livetest struct livetest t = {};

    livetest_open(&t);
    for (int round = 0; round < ROUNDS; round++) {
        struct joiner joiners[JOINERS];
        pthread_t threads[JOINERS];
        struct store_run row;

        ended_make(&t, "t", &row);
        for (int i = 0; i < JOINERS; i++) {
            joiners[i] = (struct joiner){.test = &t, .row = &row};
            assert_int_eq(pthread_create(&threads[i], NULL, join_main, &joiners[i]), 0);
        }
        mirrors_look(t.api.live);
        for (int i = 0; i < JOINERS; i++)
            pthread_join(threads[i], NULL);
        mirrors_look(t.api.live);
        for (int i = 0; i < JOINERS; i++) {
            assert_ptr_eq(joiners[i].run, joiners[0].run);
            live_run_unref(joiners[i].run);
        }
        assert_true(live_run_is_done(joiners[0].run));
        assert_uint_eq(frames_of(joiners[0].run), 2);
    }
    assert_null(live_thread_next(t.api.live, "t", 0));
}

/* However many wait: each is looked at in its turn. */
TEST(the_end_of_any_of_many_is_seen)
{
    auto_livetest struct livetest t = {};
    struct live_run *runs[WAITING] = {NULL};
    struct error err = {0};
    char thread[16];

    livetest_open(&t);
    for (int i = 0; i < WAITING; i++) {
        snprintf(thread, sizeof(thread), "t%d", i);
        runs[i] = live_make(&t, thread, "enqueue", &err);
        assert_not_null(runs[i]);
    }
    for (int i = 0; i < WAITING; i++) {
        assert_false(live_run_is_done(runs[i]));
        run_cancel(
            &t.runs,
            &(struct store_run){.id = live_run_id(runs[i]), .thread_id = live_run_thread(runs[i])},
            "interrupt");
        mirrors_look(t.api.live);
        mirrors_look(t.api.live);
        mirrors_look(t.api.live);
        assert_true(live_run_is_done(runs[i]));
    }
    for (int i = 0; i < WAITING; i++)
        live_run_unref(runs[i]);
}

/* What is cancelled before it is active stops as soon as it is. */
TEST(a_cancellation_finds_a_run_that_is_about_to_start)
{
    auto_livetest struct livetest t = {};
    auto_live_run struct live_run *run = NULL;
    struct store_run got;
    struct error err = {0};

    livetest_open(&t);
    run = live_make(&t, "t", "enqueue", &err);
    assert_not_null(run);
    assert_int_eq(run_claim(&t.runs, "w", live_run_id(run), &got), 1);
    assert_ok(live_cancel(t.api.live, "o", "t", live_run_id(run), "rollback", 0, &err), err);
    assert_false(live_run_is_done(run));
    assert_str_eq(run->action, "rollback");
}
