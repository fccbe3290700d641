/* SPDX-License-Identifier: MIT */
/* Runs that wait for a person: breakpoints, approvals that hold for exactly what was shown (AGT-04,
 * AGT-05), and cells that read a line. */
#include "tests/lib/agentbench.h"

#define HI "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
#define STOPS(id) \
    CALL(0, "c1", "stop_session") \
    ARGS(0, "{\\\"session_id\\\":\\\"" id "\\\"}") \
    STOP("tool_" \
         "calls")

static struct agent_run_spec approving(struct bench *b)
{
    static const char *const tools[] = {"stop_session", "execute_code", NULL};
    struct agent_run_spec spec = bench_spec(b);

    spec.approve = tools;
    return spec;
}

static struct agent_run_spec asking(struct bench *b)
{
    struct agent_run_spec spec = bench_spec(b);

    spec.answers_input = true;
    return spec;
}

/* ---- breakpoints ---- */

TEST(a_run_stops_before_a_node_and_goes_on)
{
    static const char *const tools[] = {"tools", NULL};
    auto_bench struct bench b = {
        .turns = {CALL(0, "c", "list_sessions") ARGS(0, "{}") STOP("tool_calls"), ANSWER("ok")}};
    struct agent_run_spec spec;
    const char *state;

    bench_open(&b);
    spec = bench_spec(&b);
    spec.interrupt_before = tools;
    bench_run_with(&b, spec, HI, NULL);
    assert_int_eq(b.outcome.end, AGENT_INTERRUPTED);
    assert_true(b.outcome.waits);
    assert_str_eq(buf_str(&b.outcome.interrupts), "{}");
    assert_str_eq(bench_value(&b, "/__interrupt__"), "[]");
    assert_str_eq(bench_told(&b, AGENT_INTERRUPT, 0), "[]");
    assert_str_eq(b.events[b.count - 1].interrupts, "[]");
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"tools\"]");
    assert_str_eq(bench_at(state, "/interrupts"), "[]");
    bench_run_with(&b, spec, NULL, NULL);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/3/content"), "ok");
    assert_int_eq(bench_history(&b), 5);
}

TEST(a_run_stops_after_a_node)
{
    static const char *const all[] = {"*", NULL};
    auto_bench struct bench b = {
        .turns = {CALL(0, "c", "list_sessions") ARGS(0, "{}") STOP("tool_calls"), ANSWER("ok")}};
    struct agent_run_spec spec;

    bench_open(&b);
    spec = bench_spec(&b);
    spec.interrupt_after = all;
    bench_run_with(&b, spec, HI, NULL);
    assert_int_eq(b.outcome.end, AGENT_INTERRUPTED);
    bench_run_with(&b, spec, "{}", NULL);
    assert_int_eq(b.outcome.end, AGENT_INTERRUPTED);
    bench_run_with(&b, spec, NULL, NULL);
    assert_int_eq(b.outcome.end,
                  AGENT_SUCCESS); /* after the last node there is nothing to wait for */
    assert_str_eq(bench_value(&b, "/messages/3/content"), "ok");
}

/* ---- approvals ---- */

TEST(an_approved_call_is_run_once)
{
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("ok")}};
    const char *state, *asked;

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_INTERRUPTED);
    assert_str_eq(bench_story(&b), "checkpoint checkpoint values "
                                   "task start chunk end result update checkpoint values "
                                   "task result interrupt values");
    state = bench_state(&b, NULL);
    assert_str_eq(bench_at(state, "/next"), "[\"tools\"]");
    assert_str_eq(bench_at(state, "/tasks/0/id"), bench_at(bench_told(&b, AGENT_TASK, 1), "/id"));
    assert_str_eq(bench_at(state, "/tasks/0/interrupts/0/id"),
                  bench_value(&b, "/__interrupt__/0/id"));
    assert_int_eq(strlen(bench_at(state, "/interrupts/0/id")), 32);
    asked = bench_told(&b, AGENT_INTERRUPT, 0);
    assert_str_eq(bench_at(asked, "/0/value/action_requests/0/name"), "stop_session");
    assert_str_eq(bench_at(asked, "/0/value/action_requests/0/args"), "{\"session_id\":\"abc\"}");
    assert_str_eq(bench_at(asked, "/0/value/review_configs/0/allowed_decisions"),
                  "[\"approve\",\"edit\",\"reject\"]");
    bench_run_with(&b, approving(&b), NULL,
                   "{\"resume\":{\"decisions\":[{\"type\":\"approve\"}]}}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/tool_call_id"), "c1");
    assert_str_eq(bench_value(&b, "/messages/3/content"), "ok");
    /* From the same checkpoint again: the approval is used. */
    {
        struct agent_run_spec spec = approving(&b);

        spec.checkpoint_id = bench_at(state, "/checkpoint_id");
        bench_run_with(&b, spec, NULL, "{\"resume\":{\"decisions\":[{\"type\":\"approve\"}]}}");
    }
    assert_int_eq(b.outcome.end, AGENT_FAILED);
    assert_str_eq(b.outcome.error_type, "InvalidResume");
}

TEST(an_answer_that_does_not_fit_leaves_the_question_open)
{
    static const char *const bad[] = {
        "{\"resume\":\"yes\"}",
        "{\"resume\":{\"decisions\":[]}}",
        "{\"resume\":{\"decisions\":[{\"type\":\"approve\"},{\"type\":\"approve\"}]}}",
        "{\"resume\":{\"decisions\":[{\"type\":\"maybe\"}]}}",
        "{\"resume\":{\"decisions\":[{\"type\":\"edit\",\"edited_action\":{\"name\":\"rm\","
        "\"args\":{}}}]}}",
        "{\"resume\":{\"decisions\":[{\"type\":\"edit\"}]}}",
        "{\"resume\":{\"00000000000000000000000000000000\":{\"decisions\":[]}}}",
        "{\"resume\":7}",
    };
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("ok")}};
    char command[256];

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bench_run_with(&b, approving(&b), NULL, bad[i]);
        assert_int_eq(b.outcome.end, AGENT_FAILED);
        assert_str_eq(b.outcome.error_type, "InvalidResume");
        assert_true(b.outcome.waits);
        assert_str_has(buf_str(&b.outcome.interrupts), "action_requests");
    }
    snprintf(command, sizeof(command),
             "{\"resume\":{\"%s\":{\"decisions\":[{\"type\":\"reject\",\"message\":\"too "
             "risky\"}]}}}",
             bench_at(bench_state(&b, NULL), "/interrupts/0/id"));
    bench_run_with(&b, approving(&b), NULL, command);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/status"), "error");
    assert_str_has(bench_value(&b, "/messages/2/content"), "too risky");
}

TEST(an_edited_call_is_run_as_edited_and_seen_so)
{
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("ok")}};

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    bench_run_with(&b, approving(&b), NULL,
                   "{\"resume\":[{\"type\":\"edit\",\"args\":{\"action\":\"stop_session\","
                   "\"args\":{\"session_id\":\"xyz\"}}}]}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/1/tool_calls/0/args/session_id"), "xyz");
    assert_str_eq(bench_value(&b, "/messages/1/type"), "ai");
    assert_str_eq(bench_value(&b, "/messages/2/tool_call_id"), "c1");
    assert_str_eq(bench_value(&b, "/messages/4"), "(none)");
    assert_str_eq(bench_at(bench_told(&b, AGENT_TOOL_START, 0), "/session_id"), "xyz");
}

TEST(an_approval_is_for_what_was_shown)
{
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("ok")}};
    char first[INTERRUPT_ID + 1], command[512], checkpoint[UUID_LEN + 1];
    struct error err;

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    snprintf(first, sizeof(first), "%s", bench_at(bench_state(&b, NULL), "/interrupts/0/id"));
    snprintf(command, sizeof(command),
             "{\"messages\":[{\"type\":\"ai\",\"id\":\"%s\",\"content\":\"\",\"tool_calls\":[{"
             "\"name\":\"stop_session\",\"id\":\"c1\",\"args\":{\"session_id\":\"other\"}}]}]}",
             bench_value(&b, "/messages/1/id"));
    assert_ok(agent_state_edit(
                  b.agent,
                  &(struct agent_edit){.thread_id = b.thread, .values = bench_json(&b, command)},
                  checkpoint, &err),
              err);
    assert_str_eq(bench_at(bench_state(&b, NULL), "/next"), "[\"tools\"]");
    assert_str_eq(bench_at(bench_state(&b, NULL), "/interrupts"), "[]");
    snprintf(command, sizeof(command),
             "{\"resume\":{\"%s\":{\"decisions\":[{\"type\":\"approve\"}]}}}", first);
    bench_run_with(&b, approving(&b), NULL, command);
    /* Nothing was run: the new arguments are a new question. */
    assert_int_eq(b.outcome.end, AGENT_INTERRUPTED);
    assert_false(str_eq(bench_at(bench_state(&b, NULL), "/interrupts/0/id"), first));
    assert_str_eq(bench_value(&b, "/__interrupt__/0/value/action_requests/0/args/session_id"),
                  "other");
}

TEST(a_question_is_not_undone_by_a_run_with_other_rules)
{
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("ok")}};
    const char *id;

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    id = arena_strdup(&b.arena, bench_value(&b, "/__interrupt__/0/id"));
    bench_run(&b, NULL);
    assert_int_eq(b.outcome.end, AGENT_INTERRUPTED);
    assert_str_eq(bench_value(&b, "/__interrupt__/0/id"), id);
    bench_run_with(&b, bench_spec(&b), NULL,
                   "{\"resume\":{\"decisions\":[{\"type\":\"approve\"}]}}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
}

TEST(going_to_the_end_leaves_nothing_to_do)
{
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("again")}};

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    bench_run_with(&b, approving(&b), "{}", "{\"goto\":\"__end__\"}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_false(b.outcome.waits);
    assert_str_eq(bench_at(bench_state(&b, NULL), "/next"), "[]");
    assert_str_eq(buf_str(&b.outcome.interrupts), "{}");
    bench_run_with(&b, approving(&b), NULL, "{\"goto\":{\"node\":\"model\"}}");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/content"), "again");
    bench_run_with(&b, approving(&b), NULL, "{\"resume\":\"x\"}");
    assert_int_eq(b.outcome.end, AGENT_FAILED);
    assert_str_eq(b.outcome.error_type, "InvalidResume");
}

TEST(a_patch_and_an_answer_go_together)
{
    auto_bench struct bench b = {.turns = {STOPS("abc"), ANSWER("ok")}};

    bench_open(&b);
    bench_run_with(&b, approving(&b), HI, NULL);
    bench_run_with(&b, approving(&b), NULL,
                   "{\"resume\":{\"decisions\":[{\"type\":\"approve\"}]},\"update\":[[\"messages\","
                   "[{\"role\":\"system\",\"content\":\"s\",\"id\":\"s1\"}]]]}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/id"), "s1");
    assert_str_eq(bench_value(&b, "/messages/3/tool_call_id"), "c1");
}

/* ---- cells that read a line ---- */

struct reader {
    struct bench *b;
    char line[64], timeout[32];
    uint32_t stream;
};

static void *cell_ask(void *arg)
{
    struct reader *r = arg;
    struct peer *p = &r->b->world.engine.peers[0];
    struct peer_frame *f = peer_take_within(p, FRAME_EXEC, PEER_WAIT_MS);

    if (!f)
        return NULL;
    r->stream = f->stream;
    snprintf(r->timeout, sizeof(r->timeout), "%s", peer_field(f, "timeout_ms"));
    peer_send_text(p, FRAME_STDOUT, f->stream, "before\n");
    peer_send_text(p, FRAME_INPUT_REQUEST, f->stream, "{\"prompt\":\"name? \"}");
    return NULL;
}

static void *cell_answered(void *arg)
{
    struct reader *r = arg;
    struct peer *p = &r->b->world.engine.peers[0];
    struct peer_frame *f = peer_take_within(p, FRAME_INPUT, PEER_WAIT_MS);

    if (!f)
        return NULL;
    snprintf(r->line, sizeof(r->line), "%.*s", (int)MIN(f->len, sizeof(r->line) - 1), f->text);
    peer_send_text(p, FRAME_STDOUT, r->stream, "after\n");
    peer_end_with(p, r->stream, "status=ok", "state=kept", "exit_code=0");
    return NULL;
}

static void ask(struct bench *b, struct reader *r)
{
    pthread_t player;

    r->b = b;
    assert_int_eq(pthread_create(&player, NULL, cell_ask, r), 0);
    bench_run_with(b, asking(b), HI, NULL);
    pthread_join(player, NULL);
    assert_str_eq(b->outcome.error.text, "");
    assert_int_eq(b->outcome.end, AGENT_INTERRUPTED);
}

static void cell_turns(struct bench *b)
{
    const char *session = bench_session(b);

    /* The second call is of no session, so it is not held up. */
    b->turns[0] = arena_printf(
        &b->arena,
        CALL(0, "c1", "execute_code") CHOICE("{\"tool_calls\":[{\"index\":0,\"function\":{"
                                             "\"arguments\":\"{\\\"session_id\\\":\\\"%s\\\","
                                             "\\\"code\\\":\\\"input()\\\"}\"}}]}")
            CALL(1, "c2", "list_sessions") ARGS(1, "{}") STOP("tool_calls"),
        session);
    b->turns[1] = ANSWER("hello");
}

TEST(a_line_is_asked_for_and_given)
{
    auto_bench struct bench b = {};
    struct reader r = {};
    pthread_t player;
    const char *id;

    bench_open(&b);
    cell_turns(&b);
    ask(&b, &r);
    assert_str_eq(bench_value(&b, "/__interrupt__/0/value/type"), "input_request");
    assert_str_eq(bench_value(&b, "/__interrupt__/0/value/prompt"), "name? ");
    assert_str_eq(bench_value(&b, "/__interrupt__/0/value/password"), "false");
    assert_str_eq(bench_value(&b, "/__interrupt__/0/value/tool_call_id"), "c1");
    assert_str_eq(r.timeout, "30000"); /* which does not count while somebody is asked */
    assert_str_has(bench_told(&b, AGENT_TOOL_EVENT, 0), "before");
    assert_str_has(bench_told(&b, AGENT_TOOL_END, 0), "c2");
    id = arena_strdup(&b.arena, bench_value(&b, "/__interrupt__/0/id"));
    bench_run_with(&b, asking(&b), NULL, "{\"resume\":{\"no\":1}}");
    assert_str_eq(b.outcome.error_type, "InvalidResume");
    assert_str_has(buf_str(&b.outcome.interrupts), id);
    assert_int_eq(pthread_create(&player, NULL, cell_answered, &r), 0);
    bench_run_with(&b, asking(&b), NULL, "{\"resume\":\"Ada\"}");
    pthread_join(player, NULL);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_has(r.line, "Ada");
    assert_str_has(bench_value(&b, "/messages/2/content"), "after");
    assert_str_eq(bench_value(&b, "/messages/2/tool_call_id"), "c1");
    assert_str_eq(bench_value(&b, "/messages/3/tool_call_id"), "c2");
    assert_str_eq(bench_value(&b, "/messages/4/content"), "hello");
}

TEST(a_line_comes_too_late_after_a_restart)
{
    auto_bench struct bench b = {};
    struct reader r = {};

    bench_open(&b);
    cell_turns(&b);
    ask(&b, &r);
    peer_end_with(&b.world.engine.peers[0], r.stream, "status=interrupted", "state=kept");
    agent_free(b.agent);
    bench_agent(&b);
    bench_run_with(&b, asking(&b), NULL, "{\"resume\":{\"value\":\"Ada\"}}");
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_has(bench_value(&b, "/messages/2/content"), "waited for a line");
    assert_str_eq(bench_value(&b, "/messages/2/status"), "error");
    assert_str_eq(bench_value(&b, "/messages/3/status"), "success"); /* what was done is kept */
}

TEST(a_new_question_of_the_person_ends_the_cell)
{
    auto_bench struct bench b = {};
    struct reader r = {};

    bench_open(&b);
    cell_turns(&b);
    ask(&b, &r);
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_not_null(peer_take(&b.world.engine.peers[0], FRAME_INTERRUPT));
    peer_end_with(&b.world.engine.peers[0], r.stream, "status=interrupted", "state=kept");
}
