/* SPDX-License-Identifier: MIT */
/* Checkpoints, the messages behind them, and pruning. */
#include "tests/lib/storeruns.h"

/* A checkpoint without a run, on a thread at rest. */
static int edit(struct runstest *t, const char *id, const char *metadata,
                struct store_message *messages, size_t count, struct error *reterr)
{
    struct store_checkpoint c = {.thread_id = "t",
                                 .id = id,
                                 .step = 7,
                                 .source = "update",
                                 .next = "[\"model\"]",
                                 .tasks = "[]",
                                 .metadata = metadata,
                                 .created_us = 5};

    return store_checkpoint_put(t->base.store, NULL, &c, messages, count, reterr);
}

static void thread_make(struct runstest *t)
{
    struct store_thread thread = {.id = "t", .owner = "o", .metadata = "{}", .config = "{}"};
    struct error err = {0};

    assert_ok(store_thread_create(t->base.store, &thread, false, &t->arena, &thread, &err), err);
}

static struct store_message message(const char *json)
{
    return (struct store_message){.json = json, .len = strlen(json)};
}

TEST(a_message_is_stored_once)
{
    auto_runstest struct runstest t = {0};
    struct store_message m[3], got[3];
    struct store_checkpoint c = {0};
    struct error err = {0};

    runstest_open(&t);
    thread_make(&t);
    m[0] = message("{\"a\":\"\\u0000\"}");
    m[1] = message("\"\xc3\xa9\"");
    assert_ok(edit(&t, "c1", "{}", m, 2, &err), err);
    assert_int_eq(m[0].ref, 1);
    assert_int_eq(m[1].ref, 2);
    m[2] = m[0];
    m[0] = message("3");
    assert_ok(edit(&t, "c2", "{}", m, 3, &err), err);
    assert_int_eq(m[0].ref, 3);
    assert_ok(store_checkpoint_get(t.base.store, "t", NULL, &t.arena, &c, &err), err);
    assert_str_eq(c.id, "c2");
    assert_null(c.parent);
    assert_null(c.run_id);
    assert_int_eq(c.step, 7);
    assert_int_eq(c.created_us, 5);
    assert_int_eq(c.ref_count, 3);
    assert_int_eq(c.refs[0], 3);
    assert_int_eq(c.refs[1], 2);
    assert_int_eq(c.refs[2], 1);
    assert_ok(store_messages_get(t.base.store, "t", c.refs, 3, &t.arena, got, &err), err);
    assert_str_eq(got[0].json, "3");
    assert_str_eq(got[1].json, "\"\xc3\xa9\"");
    assert_str_eq(got[2].json, "{\"a\":\"\\u0000\"}");
    assert_int_eq(got[2].len, 14);
    assert_int_eq(got[2].ref, 1);
}

TEST(a_message_may_be_asked_for_twice)
{
    auto_runstest struct runstest t = {0};
    struct store_message m = message("1"), got[2];
    struct error err = {0};

    runstest_open(&t);
    thread_make(&t);
    assert_ok(edit(&t, "c1", "{}", &m, 1, &err), err);
    assert_ok(store_messages_get(t.base.store, "t", (int64_t[]){1, 1}, 2, &t.arena, got, &err),
              err);
    assert_str_eq(got[1].json, "1");
    assert_ok(store_messages_get(t.base.store, "t", NULL, 0, &t.arena, got, &err), err);
    assert_int_eq(store_messages_get(t.base.store, "t", (int64_t[]){1, 9}, 2, &t.arena, got, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(store_messages_get(t.base.store, "u", (int64_t[]){1}, 1, &t.arena, got, &err),
                  -ERR_NOT_FOUND);
}

TEST(checkpoints_are_listed_newest_first)
{
    auto_runstest struct runstest t = {0};
    struct store_checkpoint *list;
    struct error err = {0};
    size_t count;

    runstest_open(&t);
    thread_make(&t);
    assert_ok(
        store_checkpoint_list(t.base.store, "t", NULL, NULL, 10, &t.arena, &list, &count, &err),
        err);
    assert_int_eq(count, 0);
    assert_ok(edit(&t, "c1", "{\"step\":1,\"tags\":[\"x\",\"y\"]}", NULL, 0, &err), err);
    assert_ok(edit(&t, "c2", "{\"step\":2}", NULL, 0, &err), err);
    assert_ok(edit(&t, "c3", "{\"step\":1.0}", NULL, 0, &err), err);
    assert_int_eq(edit(&t, "c3", "{}", NULL, 0, &err), -ERR_EXISTS);
    assert_ok(
        store_checkpoint_list(t.base.store, "t", NULL, NULL, 2, &t.arena, &list, &count, &err),
        err);
    assert_int_eq(count, 2);
    assert_str_eq(list[0].id, "c3");
    assert_ok(
        store_checkpoint_list(t.base.store, "t", "c3", NULL, 10, &t.arena, &list, &count, &err),
        err);
    assert_int_eq(count, 2);
    assert_str_eq(list[0].id, "c2");
    assert_ok(store_checkpoint_list(t.base.store, "t", NULL, "{\"step\":1}", 10, &t.arena, &list,
                                    &count, &err),
              err);
    assert_int_eq(count, 2);
    assert_ok(store_checkpoint_list(t.base.store, "t", NULL, "{\"tags\":[\"y\"]}", 10, &t.arena,
                                    &list, &count, &err),
              err);
    assert_int_eq(count, 1);
    assert_str_eq(list[0].id, "c1");
    assert_ok(
        store_checkpoint_list(t.base.store, "t", NULL, "{\"bad", 10, &t.arena, &list, &count, &err),
        err);
    assert_int_eq(count, 0);
}

TEST(an_edit_waits_for_runs_and_a_run_for_its_fence)
{
    auto_runstest struct runstest t = {0};
    struct store_run run, got;
    struct store_checkpoint c = {0};
    struct error err = {0};

    runstest_open(&t);
    assert_int_eq(edit(&t, "c1", "{}", NULL, 0, &err), -ERR_NOT_FOUND);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(edit(&t, "c1", "{}", NULL, 0, &err), -ERR_BUSY);
    assert_int_eq(checkpoint_make(&t, &run, "c1", 1, &err), -ERR_CANCELLED);
    assert_int_eq(run_claim(&t, "w", NULL, &got), 1);
    assert_ok(checkpoint_make(&t, &got, "c1", 1, &err), err);
    assert_ok(store_checkpoint_set_tasks(t.base.store, &(struct store_fence){run.id, 1}, "t", "c1",
                                         "[1]", "{}", &err),
              err);
    assert_int_eq(store_checkpoint_set_tasks(t.base.store, &(struct store_fence){run.id, 2}, "t",
                                             "c1", "[2]", NULL, &err),
                  -ERR_CANCELLED);
    assert_int_eq(store_checkpoint_set_tasks(t.base.store, NULL, "t", "c1", "[2]", NULL, &err),
                  -ERR_BUSY);
    assert_ok(run_end(&t, &run, 1, "success", &err), err);
    run_expect(&t, &run, "success");
    assert_str_eq(t.changed.checkpoint, "c1");
    assert_int_eq(store_checkpoint_set_tasks(t.base.store, NULL, "t", "c9", "[2]", NULL, &err),
                  -ERR_NOT_FOUND);
    assert_ok(store_checkpoint_get(t.base.store, "t", "c1", &t.arena, &c, &err), err);
    assert_str_eq(c.tasks, "[1]");
    assert_str_eq(c.pending, "{}");
    assert_str_eq(c.run_id, run.id);
    assert_ok(edit(&t, "c2", "{}", NULL, 0, &err), err);
}

TEST(pruning_keeps_the_head_and_its_messages)
{
    auto_runstest struct runstest t = {0};
    struct store_message m[3] = {message("1"), message("2"), message("3")}, got[2];
    struct store_checkpoint *list;
    struct store_run run;
    struct error err = {0};
    size_t count;

    runstest_open(&t);
    thread_make(&t);
    assert_ok(store_thread_prune(t.base.store, "o", "t", &err), err);
    assert_ok(edit(&t, "c1", "{}", m, 3, &err), err);
    m[1] = m[2];
    assert_ok(edit(&t, "c2", "{}", m, 2, &err), err);
    assert_int_eq(store_thread_prune(t.base.store, "x", "t", &err), -ERR_NOT_FOUND);
    assert_ok(store_thread_prune(t.base.store, "o", "t", &err), err);
    assert_ok(
        store_checkpoint_list(t.base.store, "t", NULL, NULL, 9, &t.arena, &list, &count, &err),
        err);
    assert_int_eq(count, 1);
    assert_str_eq(list[0].id, "c2");
    assert_ok(store_messages_get(t.base.store, "t", list[0].refs, 2, &t.arena, got, &err), err);
    assert_str_eq(got[0].json, "1");
    assert_str_eq(got[1].json, "3");
    assert_int_eq(store_messages_get(t.base.store, "t", (int64_t[]){2}, 1, &t.arena, got, &err),
                  -ERR_NOT_FOUND);
    run_make(&t, &(struct run_want){.thread = "t"}, &run);
    assert_int_eq(store_thread_prune(t.base.store, "o", "t", &err), -ERR_BUSY);
}
