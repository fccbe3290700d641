/* SPDX-License-Identifier: MIT */
/* The dispatch of both eras, what is answered and with which code, and that nothing follows an
 * answer. */
#include "mcp/ask-internal.h"
#include "mcp/mcp-internal.h"

#include "base/clock.h"
#include "tests/lib/mcp-peer.h"
#include "tests/lib/test.h"

TEST(case_66_initialize_chooses_a_version_of_its_era)
{
    static const char *const versions[][2] = {{"2025-06-18", "2025-06-18"},
                                              {"2024-11-05", "2024-11-05"},
                                              {"1999-01-01", "2025-11-25"},
                                              {"2026-07-28", "2025-11-25"}};

    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        auto_peer_client struct peer_client p = {};
        char text[300];

        peer_client_start(&p, false);
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
                 "{\"protocolVersion\":\"%s\",\"capabilities\":{}}}",
                 versions[i][0]);
        say(&p, text);
        snprintf(text, sizeof(text), "\"protocolVersion\":\"%s\"", versions[i][1]);
        assert_str_has(line(&p, 0), text);
    }
}

TEST(case_66_nothing_but_ping_comes_before_initialize)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    assert_str_has(line(&p, 0), "\"code\":-32600");
    assert_str_has(line(&p, 0), "initialize");
    assert_str_eq(line(&p, 1), "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
}

static const struct {
    const char *request;
    const char *has;
    int status;
} modern[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", "\"code\":-32602", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{\"_meta\":{}}}",
     "\"code\":-32602", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
     "clientCapabilities", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\","
     "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
     "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"2099-01-01\"}", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}",
     "\"supportedVersions\":[\"2026-07-28\"]", 200},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}",
     "\"resultType\":\"complete\"", 200},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}",
     "\"cacheScope\":\"private\"", 200},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META "}}",
     "\"code\":-32601", 404},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META "}}", "\"code\":-32601",
     404},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\",\"params\":{" META "}}", "no/such", 404},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\",\"params\":{" META "}}",
     "\"code\":-32601", 404},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"," META
     "}}",
     "\"code\":-32602", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" META "}}", "name", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"x\"," META
     "}}",
     "\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}", 400},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"list_sessions\","
     "\"requestState\":\"AAAA\"," META "}}",
     "requestState", 400},
};

TEST(modern_requests_have_their_code_and_status)
{
    for (size_t i = 0; i < ARRAY_LEN(modern); i++) {
        auto_peer_client struct peer_client p = {};

        peer_client_start(&p, false);
        say(&p, modern[i].request);
        assert_str_has(line(&p, 0), modern[i].has);
        assert_str_has(line(&p, 0), "\"id\":1");
        assert_int_eq(p.record->status[0], modern[i].status);
    }
}

TEST(a_handshake_makes_a_client_legacy_again)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"initialize\",\"params\":{"
            "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\"}");
    assert_str_has(line(&p, 1), "\"code\":-32602");
    assert_str_has(line(&p, 2), "\"protocolVersion\":\"2025-11-25\"");
    assert_str_has(line(&p, 3), "\"id\":4,\"result\"");
}

TEST(both_eras_list_the_same_tools_in_the_same_order)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    initialize(&p);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{" META "}}");
    for (size_t i = 1; i <= 2; i++) {
        const char *at = line(&p, i);

        for (size_t t = 0; tool_table[t]; t++) {
            char name[80];

            snprintf(name, sizeof(name), "{\"name\":\"%s\",\"title\"", tool_table[t]->name);
            at = strstr(at, name);
            assert_not_null(at);
        }
    }
}

TEST(a_call_is_answered_with_text_and_structure)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    initialize(&p);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":{\"name\":"
            "\"list_sessions\",\"arguments\":{}}}");
    assert_str_has(line(&p, 1), "\"id\":\"x\"");
    assert_str_has(line(&p, 1), "\"structuredContent\":{");
    assert_str_has(line(&p, 1), "\"isError\":false");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":"
            "\"execute_code\",\"arguments\":{\"session_id\":\"../x\"}}}");
    assert_str_has(line(&p, 2), "INVALID_INPUT");
    assert_str_has(line(&p, 2), "\"isError\":true");
}

TEST(levels_of_the_log_are_checked)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    initialize(&p);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/"
            "setLevel\",\"params\":{\"level\":\"info\"}}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/"
            "setLevel\",\"params\":{\"level\":\"loud\"}}");
    assert_str_eq(line(&p, 1), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_str_has(line(&p, 2), "\"code\":-32602");
}

TEST(bad_messages_are_answered_and_the_next_one_is_read)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    say(&p, "{nonsense");
    say(&p, "[]");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"); /* to a question that was never put */
    say(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
            "cancelled\",\"params\":{\"requestId\":77}}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    assert_str_has(line(&p, 0), "\"id\":null,\"error\":{\"code\":-32700");
    assert_str_has(line(&p, 1), "\"id\":null,\"error\":{\"code\":-32600");
    assert_str_has(line(&p, 2), "\"id\":2,\"result\":{}");
}

/* A call of a cell that goes on until the test ends it. */
static void slow_call(struct peer_client *p, const char *id)
{
    static struct session_info session;
    char text[400];

    if (p->world.engine.count == 0)
        session = world_session(&p->world, "me");
    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"execute_code\",\"arguments\":{\"session_id\":\"%s\",\"code\":\"x\"},"
             "\"_meta\":{\"progressToken\":\"p\"}}}",
             id, session.id);
    say(p, text);
}

static void slow_call_output(struct peer_client *p, const struct peer_frame *exec, const char *text)
{
    peer_send_text(&p->world.engine.peers[0], FRAME_STDOUT, exec->stream, text);
}

static void slow_call_end(struct peer_client *p, const struct peer_frame *exec, const char *status)
{
    char pair[40];

    snprintf(pair, sizeof(pair), "status=%s", status);
    peer_end(&p->world.engine.peers[0], exec->stream,
             (const char *const[]){pair, "state=kept", "cause=user", NULL});
}

TEST(case_45_nothing_is_sent_for_a_cancelled_request)
{
    auto_peer_client struct peer_client p = {};
    struct peer_frame *exec;

    peer_client_start(&p, false);
    initialize(&p);
    slow_call(&p, "7");
    exec = peer_take(&p.world.engine.peers[0], FRAME_EXEC);
    say(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
            "cancelled\",\"params\":{\"requestId\":7}}");
    peer_take(&p.world.engine.peers[0], FRAME_INTERRUPT);
    slow_call_output(&p, exec, "more\n");
    slow_call_end(&p, exec, "interrupted");
    usleep(50000);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}");
    assert_str_has(line(&p, 1), "\"id\":8");
    assert_int_eq(p.record->count, 2);
}

TEST(case_08_progress_tells_what_was_printed_and_ends_with_the_answer)
{
    auto_peer_client struct peer_client p = {};
    struct peer_frame *exec;

    peer_client_start(&p, false);
    initialize(&p);
    slow_call(&p, "7");
    exec = peer_take(&p.world.engine.peers[0], FRAME_EXEC);
    usleep(1100000);
    slow_call_output(&p, exec, "step 1\n");
    assert_str_has(line(&p, 1), "\"progressToken\":\"p\"");
    assert_str_has(line(&p, 1), "step 1");
    slow_call_output(&p, exec, "step 2\n");
    slow_call_end(&p, exec, "ok");
    assert_str_has(line(&p, 2), "\"id\":7");
    assert_str_has(line(&p, 2), "step 1\\nstep 2");
    assert_int_eq(p.record->count, 3);
}

TEST(two_requests_may_not_have_one_id)
{
    auto_peer_client struct peer_client p = {};
    struct peer_frame *exec;

    peer_client_start(&p, false);
    initialize(&p);
    slow_call(&p, "7");
    exec = peer_take(&p.world.engine.peers[0], FRAME_EXEC);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}");
    assert_str_has(line(&p, 1), "\"id\":7,\"error\"");
    slow_call_end(&p, exec, "ok");
    assert_str_has(line(&p, 2), "\"id\":7,\"result\"");
}

TEST(a_client_may_leave_while_its_calls_run)
{
    auto_peer_client struct peer_client p = {};
    struct mcp_client *first;

    peer_client_start(&p, false);
    initialize(&p);
    slow_call(&p, "1");
    slow_call(&p, "2");
    slow_call_end(&p, peer_take(&p.world.engine.peers[0], FRAME_EXEC), "ok");
    assert_str_has(line(&p, 1), "\"id\":1");
    first = p.client;
    p.client = mcp_client_new(p.server, NULL);
    mcp_client_free(first);
    assert_true(mcp_server_stop(p.server));
    assert_int_eq(p.record->count, 2);
}

/* Within some time. */
static bool channel_refs_are(struct peer_client *p, unsigned want)
{
    for (int i = 0; i < WAIT_MS; i++) {
        if (__atomic_load_n(&p->record->channel.refs, __ATOMIC_ACQUIRE) == want)
            return true;
        usleep(1000);
    }
    return false;
}

TEST(case_57_a_modern_client_answers_what_a_cell_reads)
{
    auto_peer_client struct peer_client p = {};
    struct session_info session;
    struct peer_frame *exec, *input;
    const char *state;
    char text[1000];
    unsigned refs;

    peer_client_start(&p, false);
    refs = p.record->channel.refs;
    session = world_session(&p.world, "me");
#define ASK(id, more) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id \
    ",\"method\":\"tools/call\",\"params\":{\"name\":\"execute_code\"," \
    "\"arguments\":{\"session_id\":\"%s\",\"code\":\"x\"},\"_meta\":{" \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}" more "}}"
    snprintf(text, sizeof(text), ASK("1", ""), session.id);
    say(&p, text);
    exec = peer_take(&p.world.engine.peers[0], FRAME_EXEC);
    assert_str_eq(peer_field(exec, "stdin"), "1");
    peer_send_text(&p.world.engine.peers[0], FRAME_INPUT_REQUEST, exec->stream,
                   "{\"prompt\":\"name? \",\"password\":false}");
    assert_str_has(line(&p, 0), "\"resultType\":\"input_required\"");
    assert_str_has(line(&p, 0), "\"message\":\"name? \"");
    state = strstr(line(&p, 0), "\"requestState\":\"");
    assert_not_null(state);
    assert_true(channel_refs_are(&p, refs)); /* the connection is not kept for what may come */
    state += strlen("\"requestState\":\"");
    snprintf(text, sizeof(text),
             ASK("2",
                 ",\"requestState\":\"%.*s\",\"inputResponses\":{\"line\":{\"action\":\"accept\","
                 "\"content\":{\"line\":\"Ada\"}}}"),
             session.id, (int)strcspn(state, "\""), state);
    say(&p, text);
    input = peer_take(&p.world.engine.peers[0], FRAME_INPUT);
    assert_str_eq(input->text, "\1Ada");
    slow_call_end(&p, exec, "ok");
    assert_str_has(line(&p, 1), "\"id\":2,\"result\"");
    say(&p, text); /* the same state once more */
    assert_str_has(line(&p, 2), "\"code\":-32602");
}

TEST(sealed_state_opens_for_its_purpose_only)
{
    struct mcp_state_key *key = mcp_state_key_new(), *other = mcp_state_key_new();
    auto_buf struct buf sealed, opened;
    struct error error;

    buf_init(&sealed, 1000);
    buf_init(&opened, 1000);
    assert_int_eq(mcp_state_seal(key, "a", "call:7", &sealed), 0);
    assert_ok(mcp_state_open(key, "a", buf_str(&sealed), &opened, &error), error);
    assert_str_eq(buf_str(&opened), "call:7");
    assert_true(mcp_state_open(key, "b", buf_str(&sealed), &opened, &error) < 0);
    assert_true(mcp_state_open(other, "a", buf_str(&sealed), &opened, &error) < 0);
    for (size_t i = 0; i < sealed.len; i++) {
        char was = sealed.data[i];

        sealed.data[i] = was == 'A' ? 'B' : 'A';
        assert_true(mcp_state_open(key, "a", buf_str(&sealed), &opened, NULL) < 0);
        sealed.data[i] = was;
    }
    assert_true(mcp_state_open(key, "a", "", &opened, &error) < 0);
    mcp_state_key_free(key);
    mcp_state_key_free(other);
}

TEST(case_57_a_legacy_client_may_cancel_what_it_is_asked_for)
{
    auto_peer_client struct peer_client p = {};
    struct session_info session;
    char text[400];

    peer_client_start(&p, false);
    session = world_session(&p.world, "me");
    say(&p,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{\"elicitation\":{}}}}");
    for (unsigned i = 0; i < 3; i++) {
        struct peer *peer = &p.world.engine.peers[0];
        struct peer_frame *exec;

        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"execute_code\",\"arguments\":{\"session_id\":\"%s\",\"code\":\"x\"}}}",
                 i + 1, session.id);
        say(&p, text);
        exec = peer_take(peer, FRAME_EXEC);
        peer_send_text(peer, FRAME_INPUT_REQUEST, exec->stream,
                       "{\"prompt\":\"?\",\"password\":false}");
        assert_str_has(line(&p, i + 1), "elicitation/create");
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                 "\"params\":{\"requestId\":%u}}",
                 i + 1);
        say(&p, text);
        assert_str_eq(peer_take(peer, FRAME_INPUT)->text, "");
        slow_call_end(&p, exec, "interrupted");
    }
    assert_int_eq(p.client->question_count, 0);
}

/* The interpreter asks again after an interruption; what the user says to the first question then
 * is no answer to the second. */
TEST(case_57_a_late_answer_is_not_one_to_the_next_question)
{
    static const char *const answers[] = {"late", "right"};
    auto_peer_client struct peer_client p = {};
    struct session_info session;
    struct peer_frame *exec;
    struct peer *peer;
    char text[400];

    peer_client_start(&p, false);
    peer = &p.world.engine.peers[0];
    session = world_session(&p.world, "me");
    say(&p,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{\"elicitation\":{}}}}");
    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"execute_code\",\"arguments\":{\"session_id\":\"%s\",\"code\":\"x\"}}}",
             session.id);
    say(&p, text);
    exec = peer_take(peer, FRAME_EXEC);
    for (unsigned i = 0; i < 2; i++) {
        peer_send_text(peer, FRAME_INPUT_REQUEST, exec->stream,
                       "{\"prompt\":\"?\",\"password\":false}");
        assert_str_has(line(&p, i + 1), "elicitation/create");
    }
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":\"sa-%u\",\"result\":{\"action\":\"accept\","
                 "\"content\":{\"line\":\"%s\"}}}",
                 i + 1, answers[i]);
        say(&p, text);
    }
    assert_str_has(peer_take(peer, FRAME_INPUT)->text, "right");
    slow_call_end(&p, exec, "ok");
}

TEST(what_is_too_long_to_be_repeated_is_still_answered)
{
    auto_peer_client struct peer_client p = {};
    auto_free char *text = malloc(3 * MIB);
    int len;

    assert_not_null(text);
    peer_client_start(&p, false);
    initialize(&p);
    len = snprintf(text, 200,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\","
                   "\"params\":{\"uri\":\"");
    memset(text + len, 'x', 2 * MIB);
    strcpy(text + len + 2 * MIB, "\"}}");
    say(&p, text);
    assert_str_has(line(&p, 1), "\"id\":1,\"error\":{\"code\":-32002");
}
