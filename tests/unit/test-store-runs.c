/* SPDX-License-Identifier: MIT */
/* Runs: the rules of threads, the queue, fences, and what is left of a run. */
#include "base/timestamp.h"
#include "store/runs.h"
#include "tests/lib/storeruns.h"

#include <stdio.h>

TEST(a_run_is_made_with_its_thread)
{
    auto_runstest struct runstest t = {0};
    struct store_run run = {0}, again = {0};
    struct store_thread thread = {0};
    struct error err = {0};

    runstest_open(&t);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t1", .no_thread = true}, &run, &err),
                  -ERR_NOT_FOUND);
    run_make(&t, &(struct run_want){.thread = "t1", .metadata = "{\"graph_id\":\"g\"}"}, &run);
    assert_str_eq(run.status, "pending");
    assert_str_eq(run.thread_id, "t1");
    assert_str_eq(run.kwargs, "{\"input\":null}");
    assert_int_eq(run.attempt, 0);
    assert_ok(store_thread_get(t.base.store, "o", "t1", &t.arena, &thread, &err), err);
    assert_str_eq(thread.status, "busy");
    assert_str_eq(thread.metadata, "{\"graph_id\":\"g\"}");
    assert_ok(store_run_get(t.base.store, "o", NULL, run.id, &t.arena, &again, &err), err);
    assert_str_eq(again.id, run.id);
    assert_int_eq(store_run_get(t.base.store, "other", "t1", run.id, &t.arena, &again, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(store_run_get(t.base.store, "o", "t2", run.id, &t.arena, &again, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t1", .owner = "x"}, &again, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t1", .id = run.id}, &again, &err),
                  -ERR_EXISTS);
}

TEST(metadata_of_a_thread_is_merged)
{
    auto_runstest struct runstest t = {0};
    struct store_run run;
    struct store_thread thread = {0};
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t", .metadata = "{\"a\":1,\"b\":{\"c\":2}}"}, &run);
    run_make(&t, &(struct run_want){.thread = "t", .metadata = "{\"b\":3,\"d\":\"\\u0000\"}"},
             &run);
    assert_ok(store_thread_get(t.base.store, "o", "t", &t.arena, &thread, &err), err);
    assert_str_eq(thread.metadata, "{\"a\":1,\"b\":3,\"d\":\"\\u0000\"}");
}

TEST(runs_are_listed_newest_first)
{
    auto_runstest struct runstest t = {0};
    struct store_page page = {.limit = 2};
    struct store_run runs[3], *list;
    struct error err = {0};
    size_t count;

    runstest_open(&t);
    for (int i = 0; i < 3; i++)
        run_make(&t, &(struct run_want){.thread = "t"}, &runs[i]);
    assert_ok(
        store_run_list(t.base.store, "o", "t", "pending", &page, &t.arena, &list, &count, &err),
        err);
    assert_int_eq(count, 2);
    assert_str_eq(list[0].id, runs[2].id);
    assert_str_eq(list[1].id, runs[1].id);
    page.offset = 2;
    assert_ok(store_run_list(t.base.store, "o", NULL, NULL, &page, &t.arena, &list, &count, &err),
              err);
    assert_int_eq(count, 1);
    assert_ok(store_run_list(t.base.store, "o", "t", "error", &page, &t.arena, &list, &count, &err),
              err);
    assert_int_eq(count, 0);
}

TEST(runs_of_a_thread_are_claimed_one_by_one_in_order)
{
    auto_runstest struct runstest t = {0};
    struct store_run a, b, other, got;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &a);
    run_make(&t, &(struct run_want){.thread = "t"}, &b);
    run_make(&t, &(struct run_want){.thread = "u"}, &other);
    assert_int_eq(run_claim(&t, "w", b.id, &got), 0);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_str_eq(got.id, a.id);
    assert_str_eq(got.status, "running");
    assert_str_eq(got.worker, "w");
    assert_int_eq(got.attempt, 1);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_str_eq(got.id, other.id);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 0);
    assert_ok(run_end(&t, &a, 1, "success", &err), err);
    thread_expect(&t, "t", "busy");
    assert_int_eq(run_claim(&t, "v", NULL, &got), 1);
    assert_str_eq(got.id, b.id);
    assert_ok(run_end(&t, &b, 1, "success", &err), err);
    thread_expect(&t, "t", "idle");
}

TEST(a_run_waits_for_its_time)
{
    auto_runstest struct runstest t = {0};
    struct store_run late, now, got;

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t", .start_us = timestamp_now() + 3600000000},
             &late);
    assert_int_eq(run_claim(&t, "w", late.id, &got), 0);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 0);
    run_make(&t, &(struct run_want){.thread = "t"}, &now);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_str_eq(got.id, now.id);
}

TEST(a_busy_thread_rejects)
{
    auto_runstest struct runstest t = {0};
    struct store_run a, b;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t", .rule = "reject"}, &a);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t", .rule = "reject"}, &b, &err),
                  -ERR_BUSY);
    assert_int_eq(run_claim(&t, "w", NULL, &b), 1);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t", .rule = "reject"}, &b, &err),
                  -ERR_BUSY);
    assert_ok(run_end(&t, &a, 1, "success", &err), err);
    run_make(&t, &(struct run_want){.thread = "t", .rule = "reject"}, &b);
}

TEST(interrupt_ends_what_waits_and_asks_what_runs)
{
    auto_runstest struct runstest t = {0};
    struct store_run running, waiting, new, got = {0};
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &running);
    run_make(&t, &(struct run_want){.thread = "t"}, &waiting);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    run_make(&t, &(struct run_want){.thread = "t", .rule = "interrupt"}, &new);
    assert_int_eq(t.active_count, 1);
    assert_str_eq(t.active[0].id, running.id);
    run_expect(&t, &waiting, "interrupted");
    run_expect(&t, &running, "running");
    assert_int_eq(run_claim(&t, "w", NULL, &got), 0);
    assert_int_eq(run_renew(&t, "w", 60000000), 1);
    assert_str_eq(t.renewed[0].cancel, "interrupt");
    assert_null(t.renewed[0].kwargs); /* many large ones are renewed at once */
    assert_null(t.active[0].kwargs);
    /* It was cancelled first, so it did not succeed. */
    assert_int_eq(run_end(&t, &running, 1, "success", &err), 1);
    run_expect(&t, &running, "interrupted");
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_str_eq(got.id, new.id);
}

TEST(a_rollback_removes_runs_and_what_they_wrote)
{
    auto_runstest struct runstest t = {0};
    struct store_run first, running, waiting, got = {0};
    struct store_checkpoint head = {0};
    struct store_thread thread = {0};
    struct store_message none;
    struct error err = {0};
    const int64_t refs[] = {3};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &first);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(checkpoint_make(&t, &got, "c1", 2, &err), err);
    assert_ok(run_end(&t, &first, 1, "interrupted", &err), err);
    run_make(&t, &(struct run_want){.thread = "t"}, &running);
    run_make(&t, &(struct run_want){.thread = "t"}, &waiting);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(checkpoint_make(&t, &got, "c2", 1, &err), err);
    assert_ok(store_checkpoint_get(t.base.store, "t", NULL, &t.arena, &head, &err), err);
    assert_str_eq(head.id, "c2");
    run_cancel(&t, &running, "rollback");
    run_cancel(&t, &running, "interrupt"); /* changes nothing */
    run_cancel(&t, &waiting, "rollback");
    assert_int_eq(run_end(&t, &running, 1, "interrupted", &err), 1);
    assert_int_eq(store_run_get(t.base.store, "o", "t", running.id, &t.arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(store_run_get(t.base.store, "o", "t", waiting.id, &t.arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_ok(store_checkpoint_get(t.base.store, "t", NULL, &t.arena, &head, &err), err);
    assert_str_eq(head.id, "c1");
    assert_int_eq(store_messages_get(t.base.store, "t", refs, 1, &t.arena, &none, &err),
                  -ERR_NOT_FOUND);
    assert_ok(store_thread_get(t.base.store, "o", "t", &t.arena, &thread, &err), err);
    assert_str_eq(thread.status, "interrupted");
}

TEST(a_waiting_run_is_cancelled_at_once)
{
    auto_runstest struct runstest t = {0};
    struct store_run run;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(store_run_delete(t.base.store, "o", "t", run.id, &err), -ERR_BUSY);
    run_cancel(&t, &run, "interrupt");
    assert_str_eq(t.changed.status, "interrupted");
    thread_expect(&t, "t", "idle");
    run_cancel(&t, &run, "rollback"); /* it is over */
    run_expect(&t, &run, "interrupted");
    assert_ok(store_run_delete(t.base.store, "o", "t", run.id, &err), err);
    assert_int_eq(store_run_delete(t.base.store, "o", "t", run.id, &err), -ERR_NOT_FOUND);
}

TEST(an_error_is_told_by_the_thread_until_the_next_run)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct store_thread thread = {0};
    struct store_run_end end = {.status = "error",
                                .error = "{\"error\":\"E\",\"message\":\"text\"}",
                                .thread_status = "error"};
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(store_run_end(t.base.store, &(struct store_fence){run.id, 1}, &end, &err), err);
    assert_ok(store_thread_get(t.base.store, "o", "t", &t.arena, &thread, &err), err);
    assert_str_eq(thread.status, "error");
    assert_str_eq(thread.error, "E: text");
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(run_end(&t, &run, 1, "success", &err), err);
    assert_ok(store_thread_get(t.base.store, "o", "t", &t.arena, &thread, &err), err);
    assert_null(thread.error);
}

TEST(of_two_answers_one_resumes)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(run_end(&t, &run, 1, "interrupted", &err), err);
    thread_expect(&t, "t", "interrupted");
    run_make(&t, &(struct run_want){.thread = "t", .resume = true}, &run);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t", .resume = true}, &got, &err),
                  -ERR_INVALID);
    run_cancel(&t, &run, "interrupt"); /* it did not begin: the thread still waits */
    thread_expect(&t, "t", "interrupted");
    run_make(&t, &(struct run_want){.thread = "t", .resume = true}, &run);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(run_end(&t, &run, 1, "success", &err), err);
    assert_int_eq(run_try(&t, &(struct run_want){.thread = "t", .resume = true}, &got, &err),
                  -ERR_INVALID);
}

TEST(a_lost_lease_is_taken_over_and_fences_hold)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    t.lease_us = -1;
    assert_int_eq(run_claim(&t, "a", NULL, &got), 1);
    t.lease_us = 60000000;
    assert_int_eq(run_claim(&t, "b", NULL, &got), 1);
    assert_int_eq(got.attempt, 2);
    assert_str_eq(got.worker, "b");
    assert_int_eq(run_renew(&t, "a", 60000000), 0);
    got.attempt = 1;
    assert_int_eq(checkpoint_make(&t, &got, "c1", 1, &err), -ERR_CANCELLED);
    assert_int_eq(run_end(&t, &run, 1, "success", &err), -ERR_CANCELLED);
    assert_int_eq(store_run_release(t.base.store, &(struct store_fence){run.id, 1}, &err),
                  -ERR_CANCELLED);
    got.attempt = 2;
    assert_ok(checkpoint_make(&t, &got, "c1", 1, &err), err);
    assert_int_eq(run_claim(&t, "c", NULL, &got), 0);
    assert_ok(run_end(&t, &run, 2, "success", &err), err);
    assert_ok(run_end(&t, &run, 2, "success", &err), err); /* the answer was lost, perhaps */
    assert_int_eq(run_end(&t, &run, 2, "error", &err), -ERR_CANCELLED);
    run_expect(&t, &run, "success");
}

TEST(a_run_that_nobody_ends_is_given_up)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct store_thread thread = {0};
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    t.lease_us = -1;
    for (int i = 1; i <= 3; i++) {
        assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
        assert_int_eq(got.attempt, i);
    }
    assert_int_eq(run_claim(&t, "w", NULL, &got), 0);
    run_expect(&t, &run, "error");
    assert_str_has(t.changed.error, "\"RunAbandoned\"");
    assert_ok(store_thread_get(t.base.store, "o", "t", &t.arena, &thread, &err), err);
    assert_str_eq(thread.status, "error");
    assert_str_has(thread.error, "RunAbandoned: ");
}

TEST(a_run_that_is_given_back_keeps_its_fence_and_its_tries)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    for (int i = 1; i <= 5; i++) {
        assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
        assert_int_eq(got.attempt, i);
        assert_ok(store_run_release(t.base.store, &(struct store_fence){run.id, i}, &err), err);
        assert_int_eq(run_end(&t, &run, i, "success", &err), -ERR_CANCELLED);
    }
    run_expect(&t, &run, "pending");
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    run_cancel(&t, &run, "interrupt");
    assert_ok(store_run_release(t.base.store, &(struct store_fence){run.id, 6}, &err), err);
    run_expect(&t, &run, "interrupted");
}

TEST(a_cancelled_run_of_a_lost_server_does_not_run_again)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    t.lease_us = -1;
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    run_cancel(&t, &run, "interrupt");
    assert_str_eq(t.changed.status, "running");
    assert_int_eq(run_claim(&t, "v", NULL, &got), 0);
    run_expect(&t, &run, "interrupted");
    thread_expect(&t, "t", "idle");
}

TEST(a_temporary_thread_goes_where_no_server_does_it)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct store_thread thread;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t", .temporary = true}, &run);
    t.lease_us = -1;
    for (int i = 0; i < 3; i++) {
        assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
        assert_true(got.temporary);
    }
    assert_int_eq(run_claim(&t, "w", NULL, &got), 0);
    assert_int_eq(store_thread_get(t.base.store, "o", "t", &t.arena, &thread, &err),
                  -ERR_NOT_FOUND);
    run_make(&t, &(struct run_want){.thread = "u", .temporary = true}, &run);
    run_cancel(&t, &run, "interrupt");
    assert_int_eq(store_thread_get(t.base.store, "o", "u", &t.arena, &thread, &err),
                  -ERR_NOT_FOUND);
}

TEST(a_deleted_thread_takes_the_fence_with_it)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct error err = {0};

    runstest_open(&t);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(store_thread_delete(t.base.store, "o", "t", &err), err);
    assert_int_eq(checkpoint_make(&t, &got, "c1", 1, &err), -ERR_CANCELLED);
    assert_int_eq(run_end(&t, &run, 1, "success", &err), -ERR_CANCELLED);
    assert_int_eq(run_renew(&t, "w", 60000000), 0);
}
