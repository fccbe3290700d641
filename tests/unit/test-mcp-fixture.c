/* SPDX-License-Identifier: MIT */
/* The conformance fixture: its tables are sound, its questions go the way of the era, and without
 * the flag nothing of it can be reached. */
#include "mcp/fixture.h"

#include "base/str.h"
#include "tests/lib/mcp-peer.h"
#include "tests/lib/test.h"

#define CALL(id, name, more) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name \
    "\"" more "}}"
#define CAN_ALL MODERN_META("{\"elicitation\":{},\"sampling\":{},\"roots\":{}}")

static void json_check(const char *text)
{
    auto_json yyjson_doc *doc = NULL;
    struct error error;

    test_note("%.60s", text);
    assert_ok(json_parse(text, strlen(text), &doc, &error), error);
    assert_ok(json_keys_check(doc, &error), error);
}

static void table_check(const struct fixture_entry *table)
{
    for (const struct fixture_entry *e = table; e->name; e++) {
        if (e->result)
            json_check(e->result);
        if (e->schema)
            json_check(e->schema);
        for (const struct fixture_question *q = e->questions; q->key; q++) {
            assert_true(q < e->questions + FIXTURE_QUESTIONS_MAX - 1);
            json_check(q->params);
        }
    }
}

TEST(the_tables_hold_json)
{
    table_check(fixture_tools);
    table_check(fixture_prompts);
}

static void expand_check(const char *text, const char *want)
{
    static const char json[] = "{\"a\":{\"b\":\"{arguments.a}\",\"n\":[1,true]},\"s\":\"x\"}";
    auto_json yyjson_doc *doc = NULL;
    struct fixture_values values = {.key = "answer"};
    auto_buf struct buf out;

    assert_int_eq(json_parse(json, strlen(json), &doc, NULL), 0);
    values.arguments = values.responses = values.answer = yyjson_doc_get_root(doc);
    buf_init(&out, KIB);
    assert_int_eq(fixture_expand(text, &values, &out), 0);
    assert_str_eq(buf_str(&out), want);
}

TEST(placeholders_are_replaced_once)
{
    expand_check("", "");
    expand_check("<{arguments.a.b}>", "<{arguments.a}>");
    expand_check("{answer.s}{s}", "xx");
    expand_check("{a.n}", "[1,true]");
    expand_check("{a.n.m}{none}{arguments.none.x}{.}{..}", "");
    expand_check("{\"id\":\"{s}\"} { s} {s", "{\"id\":\"x\"} { s} {s");
}

TEST(without_the_flag_there_is_no_fixture)
{
    static const struct {
        const char *request, *has;
    } closed[] = {
        {CALL("1", "test_simple_text", "," META), "\"code\":-32602"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/get\",\"params\":{\"name\":"
         "\"test_simple_prompt\"," META "}}",
         "\"code\":-32601"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/complete\",\"params\":{" META "}}",
         "\"code\":-32601"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":"
         "\"test://static-text\"," META "}}",
         "\"code\":-32602"},
    };
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        say(&p, closed[i].request);
        assert_str_has(line(&p, i), closed[i].has);
    }
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}");
    assert_null(strstr(line(&p, ARRAY_LEN(closed)), "test_"));
}

TEST(a_schema_is_listed_byte_by_byte)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, true);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}");
    assert_str_has(line(&p, 0), fixture_tool_find("json_schema_2020_12_tool")->schema);
}

/* ---- modern ---- */

/* The requestState of the n-th line. */
static void state_copy(struct peer_client *p, size_t n, char ret[256])
{
    const char *at = strstr(line(p, n), "\"requestState\":\"");

    assert_not_null(at);
    at += strlen("\"requestState\":\"");
    snprintf(ret, 256, "%.*s", (int)strcspn(at, "\""), at);
}

TEST(rounds_go_on_by_their_sealed_state_only)
{
    static const char retry[] =
        CALL("%d", "test_input_required_result_multi_round",
             ",\"arguments\":%s,\"inputResponses\":{\"step1\":{\"action\":\"accept\",\"content\":"
             "{\"name\":\"A\"}},\"step2\":{\"action\":\"accept\",\"content\":{\"color\":\"red\"}}},"
             "\"requestState\":\"%s%s\"," CAN_ALL);
    auto_peer_client struct peer_client p = {};
    char state[2][256], text[1500];

    peer_client_start(&p, true);
    say(&p, CALL("1", "test_input_required_result_multi_round", ",\"arguments\":{}," CAN_ALL));
    assert_str_has(line(&p, 0), "\"resultType\":\"input_required\"");
    assert_str_has(line(&p, 0), "step1");
    state_copy(&p, 0, state[0]);
    snprintf(text, sizeof(text), retry, 2, "{}", state[0], "");
    say(&p, text);
    assert_str_has(line(&p, 1), "step2");
    state_copy(&p, 1, state[1]);
    assert_false(str_eq(state[0], state[1]));
    snprintf(text, sizeof(text), retry, 3, "{}", state[1], "-");
    say(&p, text);
    snprintf(text, sizeof(text), retry, 4, "{\"other\":1}", state[1], "");
    say(&p, text);
    for (size_t i = 2; i < 4; i++)
        assert_str_has(line(&p, i), "\"code\":-32602");
    snprintf(text, sizeof(text), retry, 5, "{}", state[1], "");
    say(&p, text);
    assert_str_has(line(&p, 4), "The favorite color is red.");
}

TEST(answers_are_checked)
{
    static const struct {
        const char *more, *has;
    } cases[] = {
        {",\"inputResponses\":{\"user_name\":7}", "\"code\":-32602"},
        {",\"inputResponses\":null", "\"code\":-32602"},
        {",\"inputResponses\":{\"other\":{}}", "\"resultType\":\"input_required\""},
        {",\"inputResponses\":{\"user_name\":{\"action\":\"accept\",\"content\":{\"name\":\"A\"}},"
         "\"other\":1}",
         "Hello, A!"},
        {",\"inputResponses\":{\"user_name\":{\"action\":\"decline\"}}", "Hello, !"},
        {",\"requestState\":\"AAAA\"", "\"code\":-32602"},
    };
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, true);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[500];

        snprintf(text, sizeof(text),
                 CALL("1", "test_input_required_result_elicitation", "%s," CAN_ALL), cases[i].more);
        say(&p, text);
        assert_str_has(line(&p, i), cases[i].has);
    }
}

TEST(only_what_the_client_declared_is_asked)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, true);
    say(&p, CALL("1", "test_missing_capability", "," META));
    assert_str_has(line(&p, 0), "\"code\":-32021");
    assert_str_has(line(&p, 0), "\"data\":{\"requiredCapabilities\":{\"sampling\":{}}}");
    assert_int_eq(p.record->status[0], 400);
    say(&p,
        CALL("2", "test_input_required_result_capabilities", "," MODERN_META("{\"sampling\":{}}")));
    assert_str_has(line(&p, 1), "sampling/createMessage");
    assert_null(strstr(line(&p, 1), "elicitation/create"));
}

/* ---- legacy ---- */

TEST(a_legacy_client_is_asked_in_the_middle_of_the_call)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, true);
    initialize_as(&p, "{\"sampling\":{}}");
    say(&p, CALL("1", "test_sampling", ",\"arguments\":{\"prompt\":\"say \\\"hi\\\"\"}"));
    assert_str_has(line(&p, 1), "\"id\":\"sa-1\",\"method\":\"sampling/createMessage\"");
    assert_str_has(line(&p, 1), "\"text\":\"say \\\"hi\\\"\"");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"sa-1\",\"result\":{\"content\":{\"text\":\"hi\"}}}");
    assert_str_has(line(&p, 2), "LLM response: hi");
    say(&p, CALL("2", "test_elicitation", ",\"arguments\":{\"message\":\"m\"}"));
    assert_str_has(line(&p, 3), "\"code\":-32602");
    say(&p, CALL("3", "test_sampling", ",\"arguments\":{\"prompt\":\"p\"}"));
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"sa-2\",\"error\":{\"code\":1,\"message\":\"no\"}}");
    assert_str_has(line(&p, 5), "\"code\":-32603");
    /* One that is never answered ends with the client. */
    say(&p, CALL("4", "test_sampling", ",\"arguments\":{\"prompt\":\"p\"}"));
    assert_str_has(line(&p, 6), "sa-3");
}

TEST(progress_and_log_go_to_who_asked_for_them)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, true);
    say(&p, CALL("1", "test_tool_with_progress", "," META));
    assert_str_has(line(&p, 0), "\"result\"");
    say(&p, CALL("2", "test_logging_tool", "," META));
    assert_str_has(line(&p, 1), "\"result\"");
    say(&p, CALL("3", "test_tool_with_progress",
                 ",\"_meta\":{\"progressToken\":3,"
                 "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                 "\"io.modelcontextprotocol/clientCapabilities\":{}}"));
    for (size_t i = 2; i < 5; i++)
        assert_str_has(line(&p, i), "\"progressToken\":3");
    assert_str_has(line(&p, 5), "\"result\"");
}

TEST(a_call_becomes_a_task_for_who_knows_tasks)
{
    static const char tasks[] =
        MODERN_META("{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    auto_peer_client struct peer_client p = {};
    char text[500], id[40];
    const char *at;

    peer_client_start(&p, true);
    say(&p, CALL("1", "failing_job", "," META));
    assert_str_has(line(&p, 0), "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    say(&p, CALL("2", "slow_compute", ",\"arguments\":{\"seconds\":0}," META));
    assert_str_has(line(&p, 1), "\"content\":[");
    snprintf(text, sizeof(text), CALL("3", "slow_compute", ",\"arguments\":{\"seconds\":60},%s"),
             tasks);
    say(&p, text);
    at = strstr(line(&p, 2), "\"taskId\":\"");
    assert_not_null(at);
    assert_str_has(line(&p, 2), "\"resultType\":\"task\"");
    snprintf(id, sizeof(id), "%.32s", at + strlen("\"taskId\":\""));
    for (int i = 3; i < 5; i++) {
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tasks/%s\",\"params\":{"
                 "\"taskId\":\"%s\",%s}}",
                 i, i == 3 ? "cancel" : "get", id, tasks);
        say(&p, text);
        assert_str_has(line(&p, i), "\"resultType\":\"complete\"");
    }
    assert_str_has(line(&p, 4), "\"status\":\"cancelled\"");
}

/* ---- tasks that ask, and that fail ---- */

#define TASKS \
    MODERN_META("{\"elicitation\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}")

/* Calls a tool, which becomes a task: its id. */
static void task_start(struct peer_client *p, const char *tool, char ret[33])
{
    size_t n = p->record->count;
    const char *at;
    char text[500];

    snprintf(text, sizeof(text), CALL("1", "%s", ",\"arguments\":{\"filename\":\"f\"}," TASKS),
             tool);
    say(p, text);
    at = strstr(line(p, n), "\"taskId\":\"");
    assert_not_null(at);
    assert_null(strstr(line(p, n), "inputRequests"));
    snprintf(ret, 33, "%.32s", at + strlen("\"taskId\":\""));
}

static const char *task_ask(struct peer_client *p, const char *method, const char *id,
                            const char *more)
{
    size_t n = p->record->count;
    char text[500];

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tasks/%s\",\"params\":{\"taskId\":"
             "\"%s\"%s," TASKS "}}",
             method, id, more);
    say(p, text);
    return line(p, n);
}

/* The task once it has come to the status. */
static const char *task_wait(struct peer_client *p, const char *id, const char *status)
{
    const char *task = NULL;
    char want[60];

    snprintf(want, sizeof(want), "\"status\":\"%s\"", status);
    for (int i = 0; i < 100; i++) {
        record_clear(p->record);
        task = task_ask(p, "get", id, "");
        if (strstr(task, want))
            return task;
        usleep(20000);
    }
    test_fail(__FILE__, __LINE__, "no %s: %s", status, task);
}

TEST(a_task_that_fails_has_an_error_and_no_result)
{
    auto_peer_client struct peer_client p = {};
    const char *task;
    char id[33];

    peer_client_start(&p, true);
    task_start(&p, "protocol_error_job", id);
    task = task_wait(&p, id, "failed");
    assert_str_has(task, "\"error\":{\"code\":-32603,\"message\":\"this job always fails\"}");
    assert_null(strstr(task, "\"result\":{\"co"));
    /* One that nobody wanted as a task fails as a request. */
    record_clear(p.record);
    say(&p, CALL("3", "protocol_error_job", "," META));
    assert_str_has(line(&p, 0), "\"id\":3,\"error\":{\"code\":-32603");
}

TEST(a_task_takes_its_answers_one_by_one)
{
    static const char accept[] =
        ",\"inputResponses\":{\"%s\":{\"action\":\"accept\",\"content\":{\"name\":\"%s\"}}}";
    auto_peer_client struct peer_client p = {};
    const char *task;
    char id[33], more[200];

    peer_client_start(&p, true);
    task_start(&p, "multi_input", id);
    task = task_wait(&p, id, "input_required");
    assert_str_has(task, "\"first\":{\"method\":\"elicitation/create\"");
    assert_str_has(task, "\"second\":{\"method\":\"elicitation/create\"");
    snprintf(more, sizeof(more), accept, "second", "B");
    task = task_ask(&p, "update", id, more);
    assert_str_has(task, "\"resultType\":\"complete\"");
    assert_null(strstr(task, "taskId"));
    /* An answer counts once, and one that nobody asked for never. */
    snprintf(more, sizeof(more), accept, "second", "C");
    task_ask(&p, "update", id, more);
    snprintf(more, sizeof(more), accept, "third", "D");
    task_ask(&p, "update", id, more);
    task = task_wait(&p, id, "input_required");
    assert_str_has(task, "\"first\"");
    assert_null(strstr(task, "\"second\""));
    snprintf(more, sizeof(more), accept, "first", "A");
    task_ask(&p, "update", id, more);
    assert_str_has(task_wait(&p, id, "completed"), "\"text\":\"A, B\"");
}

TEST(a_task_that_asks_can_be_cancelled)
{
    auto_peer_client struct peer_client p = {};
    const char *task;
    char id[33];

    peer_client_start(&p, true);
    task_start(&p, "confirm_delete", id);
    assert_str_has(task_wait(&p, id, "input_required"), "Delete f?");
    task_ask(&p, "cancel", id, "");
    task = task_wait(&p, id, "cancelled");
    assert_null(strstr(task, "inputRequests"));
    task_ask(&p, "update", id, ",\"inputResponses\":{\"confirm\":{\"action\":\"decline\"}}");
    task_wait(&p, id, "cancelled");
}

TEST(questions_may_come_before_the_task)
{
    auto_peer_client struct peer_client p = {};
    const char *task;
    char id[33];

    peer_client_start(&p, true);
    say(&p, CALL("1", "test_tool_with_task", ",\"arguments\":{}," CAN_ALL));
    assert_str_has(line(&p, 0), "\"code\":-32021");
    say(&p, CALL("2", "test_tool_with_task", ",\"arguments\":{}," TASKS));
    assert_str_has(line(&p, 1), "\"resultType\":\"input_required\"");
    assert_null(strstr(line(&p, 1), "taskId"));
    say(&p, CALL("3", "test_tool_with_task",
                 ",\"arguments\":{},\"inputResponses\":{\"user_name\":{\"action\":\"accept\","
                 "\"content\":{\"name\":\"Alice\"}}}," TASKS));
    task = strstr(line(&p, 2), "\"taskId\":\"");
    assert_not_null(task);
    snprintf(id, sizeof(id), "%.32s", task + strlen("\"taskId\":\""));
    assert_str_has(task_wait(&p, id, "completed"), "Hello, Alice!");
}
