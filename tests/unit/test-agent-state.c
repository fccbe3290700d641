/* SPDX-License-Identifier: MIT */
/* States that are read and edited from outside, and what the graph says of itself. */
#include "tests/lib/agentbench.h"

#define HI "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"id\":\"h1\"}]}"

static const char *edit(struct bench *b, const char *values, const char *as_node,
                        const char *checkpoint)
{
    char id[UUID_LEN + 1];
    struct error err;

    assert_ok(agent_state_edit(b->agent,
                               &(struct agent_edit){.thread_id = b->thread,
                                                    .checkpoint_id = checkpoint,
                                                    .values = values ? bench_json(b, values) : NULL,
                                                    .as_node = as_node},
                               id, &err),
              err);
    return bench_state(b, id);
}

static void thread_make(struct bench *b)
{
    struct store_thread t = {.id = b->thread, .owner = "o", .metadata = "{}", .config = "{}"};
    struct error err;

    assert_ok(store_thread_create(b->store, &t, false, &b->arena, &t, &err), err);
}

TEST(a_thread_that_never_ran_has_an_empty_state)
{
    auto_bench struct bench b = {};
    const char *state;
    struct agent_state none;
    struct error err;

    bench_open(&b);
    thread_make(&b);
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, ""),
                  "{\"values\":{},\"next\":[],\"tasks\":[],\"interrupts\":[],\"metadata\":{},"
                  "\"created_at\":null,\"checkpoint\":null,\"parent_checkpoint\":null,"
                  "\"checkpoint_id\":null,\"parent_checkpoint_id\":null}");
    assert_int_eq(agent_state_load(b.agent, b.thread, "1f000000-0000-6000-8000-000000000000",
                                   &b.arena, &none, &err),
                  -ERR_NOT_FOUND);
}

TEST(an_edit_is_a_checkpoint_of_its_own)
{
    auto_bench struct bench b = {.turns = {ANSWER("one"), ANSWER("two")}};
    const char *state, *head;

    bench_open(&b);
    bench_run(&b, HI);
    head = arena_strdup(&b.arena, b.outcome.checkpoint_id);
    state = edit(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"edited\"}],\"other\":1}",
                 NULL, NULL);
    assert_str_eq(bench_at(state, "/values/messages/2/content"), "edited");
    assert_str_eq(bench_at(state, "/metadata/source"), "update");
    assert_str_eq(bench_at(state, "/metadata/step"), "2");
    assert_str_eq(bench_at(state, "/next"), "[]");
    assert_str_eq(bench_at(state, "/parent_checkpoint_id"), head);
    /* As if a person had said it: the model has to answer. */
    state = edit(&b, "[{\"messages\":\"more\"},{\"messages\":\"still more\"}]", "__start__", NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
    assert_str_eq(bench_at(state, "/values/messages/4/content"), "still more");
    bench_run(&b, NULL);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/5/content"), "two");
}

TEST(an_edit_of_the_past_is_a_branch)
{
    auto_bench struct bench b = {.turns = {ANSWER("one")}};
    const char *state, *parent;

    bench_open(&b);
    bench_run(&b, HI);
    parent = arena_strdup(&b.arena, bench_at(bench_state(&b, NULL), "/parent_checkpoint_id"));
    state = edit(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"ho\",\"id\":\"h1\"}]}", NULL,
                 parent);
    assert_str_eq(bench_at(state, "/parent_checkpoint_id"), parent);
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
    assert_str_eq(bench_at(state, "/values/messages/0/content"), "ho");
    assert_str_eq(bench_at(state, "/values/messages/1"), "(none)");
    assert_true(strcmp(bench_at(state, "/checkpoint_id"), b.outcome.checkpoint_id) > 0);
    assert_str_eq(bench_at(bench_state(&b, NULL), "/checkpoint_id"),
                  bench_at(state, "/checkpoint_id"));
}

TEST(a_copy_stands_beside_its_original)
{
    auto_bench struct bench b = {.turns = {ANSWER("one"), ANSWER("two")}};
    const char *state, *original;

    bench_open(&b);
    bench_run(&b, HI);
    original = bench_state(&b, bench_at(bench_state(&b, NULL), "/parent_checkpoint_id"));
    state = edit(&b, NULL, "__copy__", bench_at(original, "/checkpoint_id"));
    assert_str_eq(bench_at(state, "/metadata/source"), "fork");
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
    assert_str_eq(bench_at(state, "/parent_checkpoint_id"),
                  bench_at(original, "/parent_checkpoint_id"));
    assert_str_eq(bench_at(state, "/values"), bench_at(original, "/values"));
    bench_run(&b, NULL);
    assert_str_eq(bench_value(&b, "/messages/1/content"), "two");
}

TEST(edits_that_are_wrong_are_refused)
{
    auto_bench struct bench b = {.turns = {ANSWER("one")}};
    char id[UUID_LEN + 1];
    struct error err;
    struct agent_edit e = {.as_node = "nobody"};

    bench_open(&b);
    bench_run(&b, HI);
    e.thread_id = b.thread;
    assert_int_eq(agent_state_edit(b.agent, &e, id, &err), -ERR_INVALID);
    assert_str_has(err.text, "nobody");
    e.as_node = NULL;
    e.values = bench_json(&b, "{\"messages\":[{\"type\":\"remove\",\"id\":\"none\"}]}");
    assert_int_eq(agent_state_edit(b.agent, &e, id, &err), -ERR_INVALID);
    e.values = bench_json(&b, "7");
    assert_int_eq(agent_state_edit(b.agent, &e, id, &err), -ERR_INVALID);
    assert_int_eq(bench_history(&b), 3);
}

TEST(an_end_leaves_nothing_to_do)
{
    auto_bench struct bench b = {};
    const char *state;

    bench_open(&b);
    thread_make(&b);
    state = edit(&b, HI, NULL, NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
    assert_str_eq(bench_at(state, "/metadata/step"), "0");
    state = edit(&b, NULL, "__end__", NULL);
    assert_str_eq(bench_at(state, "/next"), "[]");
    state = edit(&b,
                 "{\"messages\":[{\"type\":\"ai\",\"content\":\"\",\"tool_calls\":[{\"name\":\"t\","
                 "\"id\":\"c\",\"args\":{}}]}]}",
                 "agent", NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"tools\"]");
    state =
        edit(&b, "{\"messages\":[{\"type\":\"tool\",\"content\":\"r\",\"tool_call_id\":\"c\"}]}",
             "tools", NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"model\"]");
}

TEST(the_graph_and_its_schemas_are_json)
{
    auto_buf struct buf graph, schemas;

    buf_init(&graph, MIB);
    buf_init(&schemas, MIB);
    assert_int_eq(agent_graph_write(&graph), 0);
    assert_int_eq(agent_schemas_write("agent", &schemas), 0);
    assert_str_eq(bench_at(buf_str(&graph), "/edges/1/conditional"), "true");
    assert_str_eq(bench_at(buf_str(&graph), "/nodes/1/data/name"), "model");
    assert_str_eq(bench_at(buf_str(&schemas), "/graph_id"), "agent");
    assert_str_eq(bench_at(buf_str(&schemas), "/input_schema/properties/messages/type"), "array");
    assert_str_eq(bench_at(buf_str(&schemas), "/context_schema/properties/chat_model/type"),
                  "string");
}

TEST(nodes_have_other_names_too)
{
    enum agent_node node;
    char id[UUID_LEN + 1], other[UUID_LEN + 1];

    assert_int_eq(agent_node_parse("model_request", &node), 0);
    assert_int_eq(node, NODE_MODEL);
    assert_int_eq(agent_node_parse("", &node), -1);
    agent_task_id("1f000000-0000-6000-8000-000000000000", NODE_MODEL, id);
    agent_task_id("1f000000-0000-6000-8000-000000000000", NODE_TOOLS, other);
    assert_true(uuid_check(id));
    assert_false(str_eq(id, other));
}
