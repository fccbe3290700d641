/* SPDX-License-Identifier: MIT */
/* Runs of the agent: what is told and in which order, what is stored, and where runs begin. */
#include "tests/lib/agentbench.h"

#define HI "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"id\":\"h1\"}]}"

TEST(an_answer_is_three_checkpoints)
{
    auto_bench struct bench b = {.turns = {SAY("Hel") ANSWER("lo")}};
    const char *state;

    bench_open(&b);
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_false(b.outcome.waits);
    assert_str_eq(bench_story(&b), "checkpoint checkpoint values task start chunk end result "
                                   "update checkpoint values");
    assert_str_eq(bench_value(&b, "/messages/1/content"), "Hello");
    assert_str_eq(bench_value(&b, "/messages/0/id"), "h1");
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, "/next"), "[]");
    assert_str_eq(bench_at(state, "/tasks"), "[]");
    assert_str_eq(bench_at(state, "/metadata/step"), "1");
    assert_str_eq(bench_at(state, "/metadata/source"), "loop");
    assert_str_eq(bench_at(state, "/metadata/run_id"), b.run);
    state = bench_state(&b, bench_at(state, "/parent_checkpoint_id"));
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
    assert_str_eq(bench_at(state, "/tasks/0/name"), "model");
    assert_str_eq(bench_at(state, "/values/messages/0/content"), "hi");
    assert_str_eq(bench_at(state, "/values/messages/1"), "(none)");
    state = bench_state(&b, bench_at(state, "/parent_checkpoint_id"));
    assert_str_eq(bench_at(state, "/next"), "[\"__start__\"]");
    assert_str_eq(bench_at(state, "/metadata/step"), "-1");
    assert_str_eq(bench_at(state, "/metadata/source"), "input");
    assert_str_eq(bench_at(state, "/values/messages"), "[]");
    assert_str_eq(bench_at(state, "/parent_checkpoint"), "null");
}

/* ---- where runs begin ---- */

TEST(a_second_run_goes_on_from_the_head)
{
    auto_bench struct bench b = {.turns = {ANSWER("one"), ANSWER("two")}};
    const char *state, *before;

    bench_open(&b);
    bench_run(&b, HI);
    before = arena_strdup(&b.arena, b.outcome.checkpoint_id);
    bench_run(&b, "{\"messages\":\"more\"}");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/3/content"), "two");
    assert_int_eq(bench_history(&b), 6);
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, "/metadata/step"), "4");
    state = bench_state(&b, bench_at(state, "/parent_checkpoint_id"));
    state = bench_state(&b, bench_at(state, "/parent_checkpoint_id"));
    assert_str_eq(bench_at(state, "/metadata/source"), "input");
    assert_str_eq(bench_at(state, "/values/messages/2"), "(none)");
    assert_str_eq(bench_at(state, "/parent_checkpoint_id"), before);
    assert_true(strcmp(b.outcome.checkpoint_id, before) > 0);
}

TEST(an_answer_is_made_again_from_its_parent)
{
    auto_bench struct bench b = {.turns = {ANSWER("one"), ANSWER("two")}};
    struct agent_run_spec spec;
    const char *state, *parent;

    bench_open(&b);
    bench_run(&b, HI);
    state = bench_state(&b, NULL);
    parent = arena_strdup(&b.arena, bench_at(state, "/parent_checkpoint_id"));
    spec = bench_spec(&b);
    spec.checkpoint_id = parent;
    bench_run_with(&b, spec, NULL, NULL);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/1/content"), "two");
    assert_str_eq(bench_value(&b, "/messages/2"), "(none)");
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, "/parent_checkpoint_id"), parent);
    assert_str_eq(bench_at(state, "/metadata/step"), "1");
    assert_int_eq(bench_history(&b), 4);
}

TEST(a_question_is_edited_from_the_checkpoint_before_it)
{
    auto_bench struct bench b = {.turns = {ANSWER("one"), ANSWER("two"), ANSWER("three")}};
    struct agent_run_spec spec;
    const char *state;

    bench_open(&b);
    bench_run(&b, HI);
    state = bench_state(&b, bench_at(bench_state(&b, NULL), "/parent_checkpoint_id"));
    spec = bench_spec(&b);
    spec.checkpoint_id = arena_strdup(&b.arena, bench_at(state, "/parent_checkpoint_id"));
    bench_run_with(&b, spec, "{\"messages\":[{\"role\":\"user\",\"content\":\"ho\"}]}", NULL);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/0/content"), "ho");
    assert_str_eq(bench_value(&b, "/messages/1/content"), "two");
    assert_str_eq(bench_value(&b, "/messages/2"), "(none)");
    /* Without an input it is the same question again. */
    bench_run_with(&b, spec, NULL, NULL);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/0/content"), "hi");
    assert_str_eq(bench_value(&b, "/messages/1/content"), "three");
}

TEST(nothing_to_do_is_a_success_with_the_same_state)
{
    auto_bench struct bench b = {.turns = {ANSWER("one")}};

    bench_open(&b);
    bench_run(&b, HI);
    bench_run(&b, "{}");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_story(&b), "checkpoint values");
    assert_str_eq(bench_value(&b, "/messages/1/content"), "one");
    assert_int_eq(bench_history(&b), 3);
}

TEST(what_cannot_be_begun_fails_by_a_name)
{
    auto_bench struct bench b = {};

    bench_open(&b);
    bench_run(&b, NULL);
    assert_int_eq(b.outcome.end, AGENT_FAILED);
    assert_str_eq(b.outcome.error_type, "ValueError");
    assert_str_eq(buf_str(&b.outcome.values), "{\"messages\":[]}");
    bench_run(&b, "{\"messages\":[{\"role\":\"nobody\",\"content\":\"x\"}]}");
    assert_str_eq(b.outcome.error_type, "ValueError");
    assert_int_eq(bench_history(&b), 0);
    bench_run(&b, "{\"else\":1}");
    assert_str_eq(b.outcome.error_type, "ValueError"); /* no message to answer */
    bench_run_with(&b, bench_spec(&b), NULL, "{\"update\":{\"messages\":[{\"type\":\"x\"}]}}");
    assert_str_eq(b.outcome.error_type, "ValueError");
}

/* ---- failures ---- */

TEST(a_failing_model_leaves_the_thread_usable)
{
    auto_bench struct bench b = {.turns = {FAIL_401, ANSWER("back")}};
    const char *state;

    bench_open(&b);
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_FAILED);
    assert_str_eq(b.outcome.error_type, "AuthenticationError");
    assert_str_has(b.outcome.error.text, "401");
    assert_true(b.outcome.waits);
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
    assert_str_has(bench_at(state, "/tasks/0/error"), "401");
    bench_run(&b, "{\"messages\":\"again\"}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/content"), "back");
}

TEST(steps_are_limited)
{
    auto_bench struct bench b = {
        .turns = {CALL(0, "a", "list_sessions") ARGS(0, "{}") STOP("tool_calls"),
                  CALL(0, "a", "list_sessions") ARGS(0, "{}") STOP("tool_calls"), ANSWER("ok")}};
    struct agent_run_spec spec;

    bench_open(&b);
    spec = bench_spec(&b);
    spec.max_steps = 3;
    bench_run_with(&b, spec, HI, NULL);
    assert_int_eq(b.outcome.end, AGENT_FAILED);
    assert_str_eq(b.outcome.error_type, "GraphRecursionError");
    assert_str_has(b.outcome.error.text, "limit of 3");
    assert_str_has(b.outcome.error.text, "MAX_ITERATIONS");
    assert_str_eq(bench_at(bench_state(&b, NULL), "/next"), "[\"tools\"]");
    assert_str_eq(bench_value(&b, "/messages/3/type"), "ai");
    /* The same id in two turns is two calls. */
    bench_run(&b, NULL);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/4/type"), "tool");
    assert_str_eq(bench_value(&b, "/messages/5/content"), "ok");
}

TEST(model_calls_of_a_day_are_limited)
{
    auto_bench struct bench b = {.turns = {ANSWER("1"), ANSWER("2")}};

    bench_open(&b);
    b.world.settings.max_model_calls = 1;
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_FAILED);
    assert_str_eq(b.outcome.error_type, "BudgetError");
    assert_ok(uuid_v4(b.thread, NULL), b.outcome.error);
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
}

TEST(an_answer_that_breaks_off_is_another_message)
{
    auto_bench struct bench b = {.turns = {SAY("par"), ANSWER("whole")}};
    const char *first, *second;

    bench_open(&b);
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/1/content"), "whole");
    first = bench_at(bench_told(&b, AGENT_CHUNK, 0), "/id");
    second = bench_at(bench_told(&b, AGENT_CHUNK, 1), "/id");
    assert_false(str_eq(first, second));
    assert_str_eq(bench_value(&b, "/messages/1/id"), second);
}

TEST(a_model_that_says_nothing_is_left_at_once)
{
    auto_bench struct bench b = {.turns = {SILENCE}};
    int64_t began = clock_ms();

    bench_open(&b);
    b.cancel_fd = eventfd(0, EFD_CLOEXEC);
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_CANCELLED);
    assert_true(clock_ms() - began < RAW_WAIT_MS);
    assert_str_eq(bench_at(bench_state(&b, NULL), "/next"), "[\"model\"]");
    assert_str_eq(bench_at(bench_state(&b, NULL), "/tasks/0/error"), "null");
}

TEST(what_nobody_reads_is_left_out)
{
    auto_bench struct bench b = {.turns = {ANSWER("one")}};
    struct agent_run_spec spec;

    bench_open(&b);
    spec = bench_spec(&b);
    spec.skip = 1u << AGENT_TASK | 1u << AGENT_CHECKPOINT | 1u << AGENT_MODEL_START;
    bench_run_with(&b, spec, HI, NULL);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_story(&b), "checkpoint checkpoint values task start chunk end result "
                                   "update checkpoint values");
    assert_str_eq(bench_told(&b, AGENT_CHECKPOINT, 0), "");
    assert_str_eq(bench_told(&b, AGENT_TASK, 0), "");
}

/* ---- a server that was cut off ---- */

/* A run that another attempt goes on with; `drop` is where the first one ends. */
static void run_again(struct bench *b, const char *input, int64_t steps)
{
    struct agent_run_spec spec = bench_spec(b);
    struct store_run run = {};
    struct error err = {};

    bench_claim(b, &run, false);
    spec.fence = (struct store_fence){.run_id = run.id, .attempt = run.attempt};
    spec.run_id = run.id;
    spec.input = bench_json(b, input);
    spec.max_steps = steps;
    assert_ok(agent_run(b->agent, &spec, NULL, NULL, &b->outcome, &err), err);
    bench_events_drop(b);
    spec.max_steps = 25;
    assert_ok(agent_run(b->agent, &spec, bench_on_event, b, &b->outcome, &err), err);
}

TEST(a_second_attempt_does_not_ask_again)
{
    auto_bench struct bench b = {.turns = {ANSWER("one")}};

    bench_open(&b);
    run_again(&b, HI, 0);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/0/id"), "h1");
    assert_str_eq(bench_value(&b, "/messages/1/content"), "one");
    assert_int_eq(bench_history(&b), 3);
}

TEST(what_was_begun_and_cut_off_is_not_begun_again)
{
    auto_bench struct bench b = {
        .turns = {CALL(0, "a", "list_sessions") ARGS(0, "{}") STOP("tool_calls"), ANSWER("ok")}};

    bench_open(&b);
    run_again(&b, HI, 1);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_has(bench_value(&b, "/messages/2/content"), "restarted");
    assert_str_eq(bench_value(&b, "/messages/2/status"), "error");
    assert_str_eq(bench_value(&b, "/messages/3/content"), "ok");
}

TEST(who_lost_the_run_writes_nothing)
{
    auto_bench struct bench b = {.turns = {ANSWER("one")}};
    struct agent_run_spec spec;
    struct store_run run = {};
    struct error err = {};

    bench_open(&b);
    spec = bench_spec(&b);
    bench_claim(&b, &run, false);
    spec.fence = (struct store_fence){.run_id = run.id, .attempt = run.attempt + 1};
    spec.run_id = run.id;
    spec.input = bench_json(&b, HI);
    assert_int_eq(agent_run(b.agent, &spec, bench_on_event, &b, &b.outcome, &err), -ERR_CANCELLED);
    assert_int_eq(bench_history(&b), 0);
    assert_str_eq(bench_story(&b), "");
}
