/* SPDX-License-Identifier: MIT */
/*
 * The HTTP transport of MCP over raw sockets: sessions of the legacy era, headers of the modern one
 * (API-26), streams, and what the end of a stream means (API-28).
 */
#include "tests/lib/rawhttp.h"

#include "base/str.h"
#include "mcp/mcp-internal.h"
#include "tests/lib/mcp-peer.h"

struct endpoint {
    struct peer_client mcp;
    struct mcp_http *http;
    struct served served;
    struct route_table tables[2];
};

static void endpoint_start(struct endpoint *e)
{
    struct error err;

    peer_client_start(&e->mcp, true);
    assert_ok(mcp_http_new(e->mcp.server, &e->http, &err), err);
    e->tables[0] = (struct route_table){mcp_http_routes, e->http};
    e->served = served_start(
        (struct http_options){.tables = e->tables, .keep_alive_ms = 200, .tick_ms = 50});
}

static void endpoint_done(struct endpoint *e)
{
    served_done(&e->served);
    mcp_http_free(e->http);
    peer_client_done(&e->mcp);
}
#define auto_endpoint __attribute__((cleanup(endpoint_done)))

#define BOTH "Accept: application/json, text/event-stream\r\n"
#define JSON "Content-Type: application/json\r\n"
#define VERSION "MCP-Protocol-Version: 2026-07-28\r\n"

/* Sends a request; `headers` and the body as they are. */
static struct raw *ask(struct endpoint *e, const char *method, const char *headers,
                       const char *body)
{
    struct raw *r = raw_open(e->served.port, 0);
    char head[1024];

    snprintf(head, sizeof(head),
             "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sContent-Length: %zu\r\n\r\n", method,
             e->served.port, headers, strlen(body));
    raw_text(r, head);
    raw_text(r, body);
    return r;
}

/* The status of the answer, once all of it has come. */
static int answer(struct raw *r)
{
    const char *end;

    if (!raw_wait(r, "\r\n\r\n", RAW_WAIT_MS))
        test_fail(__FILE__, __LINE__, "no answer: %s", r->data);
    end = strstr(r->data, "Content-Length: ");
    if (end) {
        size_t want =
            (size_t)(strstr(r->data, "\r\n\r\n") + 4 - r->data) + strtoul(end + 16, 0, 10);

        while (r->len < want && raw_more(r, RAW_WAIT_MS))
            ;
    } else if (strstr(r->data, "chunked")) {
        raw_wait(r, "\r\n0\r\n\r\n", RAW_WAIT_MS);
    }
    return raw_status(r);
}

static int post(struct endpoint *e, const char *headers, const char *body, const char *has)
{
    auto_raw struct raw *r = ask(e, "POST", headers, body);
    int status = answer(r);

    if (has && !strstr(r->data, has))
        test_fail(__FILE__, __LINE__, "%s gives %s", body, r->data);
    return status;
}

/* ---- legacy ---- */

#define INITIALIZE(capabilities) \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "\"2025-11-25\",\"capabilities\":" capabilities ",\"clientInfo\":{\"name\":\"t\"," \
    "\"version\":\"1\"}}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"

/* Begins a session: the headers of its requests. */
static void session_begin(struct endpoint *e, const char *capabilities, char ret[256])
{
    auto_raw struct raw *r = NULL;
    char body[512];
    const char *id;

    snprintf(body, sizeof(body), INITIALIZE("%s"), capabilities);
    r = ask(e, "POST", BOTH JSON, body);
    assert_int_eq(answer(r), 200);
    id = strstr(r->data, "Mcp-Session-Id: ");
    assert_not_null(id);
    snprintf(ret, 256, BOTH JSON "MCP-Protocol-Version: 2025-11-25\r\n%.*s\r\n",
             (int)strcspn(id, "\r"), id);
    assert_int_eq(
        post(e, ret, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", NULL), 202);
}

TEST(a_legacy_session_lives_until_it_is_ended)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *end = NULL, *again = NULL;
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    assert_int_eq(post(&e, session, LIST, "execute_code"), 200);
    assert_int_eq(post(&e, session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"none\"}", "-32601"),
                  200);
    assert_int_eq(post(&e, session, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}", NULL), 202);
    end = ask(&e, "DELETE", session, "");
    assert_int_eq(answer(end), 204);
    assert_int_eq(post(&e, session, LIST, "\"id\":1,\"error\":{\"code\":-32001"), 404);
    again = ask(&e, "DELETE", session, "");
    assert_int_eq(answer(again), 404);
}

TEST(legacy_requests_need_a_session_and_the_right_headers)
{
    static const struct {
        const char *headers, *body;
        int status;
        const char *has;
    } rows[] = {
        {BOTH JSON, LIST, 400, "\"id\":1,\"error\""},
        {BOTH JSON "Mcp-Session-Id: 00000000000000000000000000000000\r\n", LIST, 404, "-32001"},
        {BOTH JSON "Mcp-Session-Id: x\r\n", LIST, 404, "-32001"},
        {BOTH JSON "MCP-Protocol-Version: 1999-01-01\r\n", LIST, 400, "not supported"},
        {JSON "Accept: application/json\r\n", INITIALIZE("{}"), 406, "-32000"},
        {JSON "Accept: text/event-stream\r\n", INITIALIZE("{}"), 406, "-32000"},
        {JSON "Accept: */*\r\n", INITIALIZE("{}"), 200, "Mcp-Session-Id"},
        {JSON "Accept: text/*;q=0.5 , application/*\r\n", INITIALIZE("{}"), 200, "protocolVersion"},
        {JSON, INITIALIZE("{}"), 200, "protocolVersion"},
        {BOTH JSON, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}", 200,
         "-32602"},
        {BOTH, INITIALIZE("{}"), 415, ""},
        {BOTH "Content-Type: text/plain\r\n", INITIALIZE("{}"), 415, ""},
        {BOTH "Content-Type: application/jsonx\r\n", INITIALIZE("{}"), 415, ""},
        {BOTH "Content-Type: Application/JSON; charset=utf-8\r\n", INITIALIZE("{}"), 200, ""},
        {BOTH JSON, "[" LIST "]", 400, "batches"},
        {BOTH JSON, "{", 400, "-32700"},
        {BOTH JSON, "", 400, "-32700"},
        {BOTH JSON, "{\"jsonrpc\":\"2.0\",\"id\":1}", 400, "-32600"},
        {BOTH JSON "Origin: http://evil.test\r\n", INITIALIZE("{}"), 403, ""},
    };
    auto_endpoint struct endpoint e = {};

    endpoint_start(&e);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int status = post(&e, rows[i].headers, rows[i].body, rows[i].has);

        if (status != rows[i].status)
            test_fail(__FILE__, __LINE__, "row %zu gives %d", i, status);
    }
}

TEST(a_failed_handshake_is_no_session)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL;

    endpoint_start(&e);
    r = ask(&e, "POST", BOTH JSON,
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}");
    answer(r);
    assert_null(strstr(r->data, "Mcp-Session-Id"));
}

#define CALL_TOOL(id, name, more) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name \
    "\",\"arguments\":{}" more "}}"

TEST(the_stream_of_a_session_tells_of_changes)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *first = NULL, *events = NULL, *json = NULL, *none = NULL;
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    first = ask(&e, "GET", session, "");
    assert_true(raw_wait(first, ": keep-alive\n\n", RAW_WAIT_MS));
    assert_str_has(first->data, "Content-Type: text/event-stream\r\n");
    events = ask(&e, "GET", session, "");
    assert_true(raw_wait(events, ": keep-alive\n\n", RAW_WAIT_MS));
    assert_true(raw_wait(first, "\r\n0\r\n\r\n", RAW_WAIT_MS)); /* there is one at a time */
    assert_int_eq(post(&e, session, CALL_TOOL("5", "test_trigger_tool_change", ""), "result"), 200);
    assert_true(raw_wait(events,
                         "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
                         "\"notifications/tools/list_changed\"",
                         RAW_WAIT_MS));
    json = ask(&e, "GET", "Accept: application/json\r\n", "");
    assert_int_eq(answer(json), 406);
    none = ask(&e, "GET", "Accept: text/event-stream\r\n", "");
    assert_int_eq(answer(none), 400);
    {
        auto_raw struct raw *end = ask(&e, "DELETE", session, "");

        assert_int_eq(answer(end), 204);
    }
    assert_true(raw_wait(events, "\r\n0\r\n\r\n", RAW_WAIT_MS));
}

TEST(a_question_goes_over_the_stream_and_its_answer_by_another_post)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *call = NULL;
    char session[256], body[256];
    const char *id;

    endpoint_start(&e);
    session_begin(&e, "{\"elicitation\":{}}", session);
    call = ask(&e, "POST", session,
               "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":"
               "\"test_elicitation\",\"arguments\":{\"message\":\"who?\"}}}");
    assert_true(raw_wait(call, "\"method\":\"elicitation/create\"", RAW_WAIT_MS));
    assert_str_has(call->data, "Content-Type: text/event-stream\r\n");
    id = strstr(call->data, "\"id\":\"sa-");
    assert_not_null(id);
    snprintf(body, sizeof(body),
             "{\"jsonrpc\":\"2.0\",%.*s,\"result\":{\"action\":\"accept\",\"content\":{}}}",
             (int)strcspn(id, ","), id);
    assert_int_eq(post(&e, session, body, NULL), 202);
    assert_true(raw_wait(call, "\"id\":7,\"result\"", RAW_WAIT_MS));
    assert_true(raw_wait(call, "\r\n0\r\n\r\n", RAW_WAIT_MS));
}

TEST(progress_makes_a_stream)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL;
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    r = ask(&e, "POST", session,
            CALL_TOOL("7", "test_tool_with_progress", ",\"_meta\":{\"progressToken\":\"p\"}"));
    assert_int_eq(answer(r), 200);
    assert_str_has(r->data, "Content-Type: text/event-stream\r\n");
    assert_str_has(r->data, "\"progressToken\":\"p\"");
    assert_str_has(r->data, "\"id\":7,\"result\"");
}

/* ---- modern ---- */

#define M(id, method, params) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params META "}}"
#define METHOD(name) "Mcp-Method: " name "\r\n"
#define TEXT_CALL M("1", "tools/call", "\"name\":\"test_simple_text\",\"arguments\":{},")
#define OTHER_META \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"v999.0.0\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static const struct {
    const char *headers, *body;
    int status;
    const char *has;
} modern_rows[] = {
    {VERSION METHOD("server/discover"), M("1", "server/discover", ""), 200, "supportedVersions"},
    {VERSION METHOD("tools/list"), M("1", "tools/list", ""), 200, "execute_code"},
    {VERSION "mcp-METHOD:   tools/list  \r\n", M("1", "tools/list", ""), 200, "execute_code"},
    {VERSION METHOD("tools/call") "Mcp-Name: test_simple_text\r\n", TEXT_CALL, 200, "\"result\""},
    {VERSION METHOD("tools/call") "Mcp-Name: =?base64?dGVzdF9zaW1wbGVfdGV4dA==?=\r\n", TEXT_CALL,
     200, "\"result\""},
    {VERSION METHOD("tools/call") "Mcp-Name: =?base64?dGVzdA==?=\r\n", TEXT_CALL, 400,
     "\"id\":1,\"error\":{\"code\":-32020"},
    {VERSION METHOD("tools/call") "Mcp-Name: =?base64?dGVzdF9zaW1wbGVfdGV4dA?=\r\n", TEXT_CALL, 400,
     "-32020"},
    {VERSION METHOD("tools/call") "Mcp-Name: =?base64?!?=\r\n", TEXT_CALL, 400, "-32020"},
    {VERSION METHOD("tools/call") "Mcp-Name: dGVzdF9zaW1wbGVfdGV4dA==\r\n", TEXT_CALL, 400,
     "-32020"},
    {VERSION METHOD("tools/call") "Mcp-Name: wrong\r\n", TEXT_CALL, 400, "-32020"},
    {VERSION METHOD("tools/call"), TEXT_CALL, 400, "-32020"},
    {VERSION METHOD("tools/call") "Mcp-Name: test_simple_text\r\nMcp-Name: wrong\r\n", TEXT_CALL,
     400, "-32020"},
    {VERSION METHOD("tools/list"), TEXT_CALL, 400, "-32020"},
    {VERSION METHOD("TOOLS/LIST"), M("1", "tools/list", ""), 400, "-32020"},
    {VERSION, M("1", "tools/list", ""), 400, "-32020"},
    {METHOD("tools/list"), M("1", "tools/list", ""), 400, "-32020"},
    {"MCP-Protocol-Version: 2025-11-25\r\n" METHOD("tools/list"), M("1", "tools/list", ""), 400,
     "-32020"},
    {VERSION METHOD("server/discover"),
     "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\",\"params\":{" OTHER_META "}}",
     400, "-32020"},
    {"MCP-Protocol-Version: v999.0.0\r\n" METHOD("server/discover"),
     "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\",\"params\":{" OTHER_META "}}",
     400, "\"code\":-32022"},
    {VERSION METHOD("tools/list"), LIST, 400, "-32602"},
    {VERSION METHOD("server/discover"),
     "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\",\"params\":{}}", 400, "-32602"},
    {VERSION METHOD("none/such"), M("1", "none/such", ""), 404,
     "\"id\":1,\"error\":{\"code\":-32601"},
    {VERSION METHOD("ping"), M("1", "ping", ""), 404, "-32601"},
    {VERSION METHOD("initialize"), M("1", "initialize", ""), 404, "-32601"},
    {VERSION METHOD("resources/read") "Mcp-Name: test://none\r\n",
     M("1", "resources/read", "\"uri\":\"test://none\","), 400, "-32602"},
    {VERSION METHOD("resources/read") "Mcp-Name: test://static-text\r\n",
     M("1", "resources/read", "\"uri\":\"test://static-text\","), 200, "contents"},
    {VERSION, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 400, "-32600"},
    {VERSION, "[" M("1", "tools/list", "") "]", 400, "batches"},
    {VERSION METHOD("notifications/cancelled"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1," META
     "}}",
     202, ""},
    {VERSION METHOD("tools/list") "Mcp-Session-Id: any\r\n", M("1", "tools/list", ""), 200, ""},
};

TEST(modern_headers_say_what_the_body_says)
{
    auto_endpoint struct endpoint e = {};

    endpoint_start(&e);
    for (size_t i = 0; i < ARRAY_LEN(modern_rows); i++) {
        char headers[512];
        int status;

        snprintf(headers, sizeof(headers), BOTH JSON "%s", modern_rows[i].headers);
        status = post(&e, headers, modern_rows[i].body, modern_rows[i].has);
        if (status != modern_rows[i].status)
            test_fail(__FILE__, __LINE__, "row %zu gives %d", i, status);
    }
}

TEST(mirrored_parameters_say_what_the_arguments_say)
{
    static const struct {
        const char *headers, *arguments;
        bool good;
    } rows[] = {
        {"Mcp-Param-Region: Hello\r\n", "{\"region\":\"Hello\"}", true},
        {"mcp-param-region: =?base64?SGVsbG8=?=\r\n", "{\"region\":\"Hello\"}", true},
        {"Mcp-Param-Region: SGVsbG8=\r\n", "{\"region\":\"SGVsbG8=\"}", true},
        {"Mcp-Param-Region: =?base64?SGVsbG8=\r\n", "{\"region\":\"=?base64?SGVsbG8=\"}", true},
        {"", "{}", true},
        {"", "{\"region\":null,\"page\":{}}", true},
        {"Mcp-Param-Other: x\r\n", "{}", true},
        {"Mcp-Param-Page: 42\r\nMcp-Param-Whole: true\r\n",
         "{\"page\":{\"number\":42.0,\"whole\":true}}", true},
        {"", "{\"region\":\"Hello\"}", false},
        {"Mcp-Param-Region: Hello\r\n", "{}", false},
        {"Mcp-Param-Region: hello\r\n", "{\"region\":\"Hello\"}", false},
        {"Mcp-Param-Region: =?base64?SGVsbG8?=\r\n", "{\"region\":\"Hello\"}", false},
        {"Mcp-Param-Region: =?base64?SGVs!!!bG8=?=\r\n", "{\"region\":\"Hello\"}", false},
        {"Mcp-Param-Region: a\r\nMcp-Param-Region: a\r\n", "{\"region\":\"a\"}", false},
        {"Mcp-Param-Region: a\r\n", "{\"region\":\"a\\u0000\"}", false},
        {"Mcp-Param-Region: {}\r\n", "{\"region\":{}}", false},
        {"Mcp-Param-Page: 43\r\n", "{\"page\":{\"number\":42}}", false},
        {"Mcp-Param-Page: x\r\n", "{\"page\":{\"number\":42}}", false},
        {"Mcp-Param-Whole: 1\r\n", "{\"page\":{\"whole\":true}}", false},
    };
    auto_endpoint struct endpoint e = {};

    endpoint_start(&e);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char headers[512], body[512];

        test_note("%s%s", rows[i].headers, rows[i].arguments);
        snprintf(headers, sizeof(headers),
                 BOTH JSON VERSION METHOD("tools/call") "Mcp-Name: test_mirrored_parameters\r\n%s",
                 rows[i].headers);
        snprintf(body, sizeof(body),
                 M("1", "tools/call", "\"name\":\"test_mirrored_parameters\",\"arguments\":%s,"),
                 rows[i].arguments);
        assert_int_eq(post(&e, headers, body, rows[i].good ? "\"result\"" : "\"code\":-32020"),
                      rows[i].good ? 200 : 400);
    }
}

TEST(an_unknown_version_is_told_the_known_ones)
{
    auto_endpoint struct endpoint e = {};

    endpoint_start(&e);
    assert_int_eq(
        post(&e, BOTH JSON "MCP-Protocol-Version: v999.0.0\r\n" METHOD("server/discover"),
             "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\",\"params\":{" OTHER_META
             "}}",
             "\"supported\":[\"2026-07-28\"],\"requested\":\"v999.0.0\""),
        400);
}

TEST(modern_accepts_one_of_both_and_only_post)
{
    static const char list[] = M("1", "tools/list", "");
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *get = NULL, *delete = NULL;

    endpoint_start(&e);
    assert_int_eq(post(&e, JSON VERSION METHOD("tools/list") "Accept: application/json\r\n", list,
                       "execute_code"),
                  200);
    assert_int_eq(
        post(&e, JSON VERSION METHOD("tools/list") "Accept: text/html\r\n", list, "-32600"), 406);
    assert_int_eq(post(&e,
                       JSON VERSION METHOD("tools/call") "Mcp-Name: test_tool_with_progress\r\n"
                                                         "Accept: application/json\r\n",
                       M("2", "tools/call", "\"name\":\"test_tool_with_progress\","),
                       "Content-Type: application/json"),
                  200);
    assert_int_eq(post(&e,
                       JSON VERSION METHOD("subscriptions/listen") "Accept: application/json\r\n",
                       M("3", "subscriptions/listen", "\"notifications\":{},"), "-32600"),
                  406);
    get = ask(&e, "GET", VERSION "Accept: text/event-stream\r\n", "");
    assert_int_eq(answer(get), 405);
    assert_str_has(get->data, "Allow: POST\r\n");
    delete = ask(&e, "DELETE", VERSION, "");
    assert_int_eq(answer(delete), 405);
}

/* Progress would have to wait for a stream that never opens. */
TEST(a_client_without_streams_waits_for_no_progress)
{
    auto_endpoint struct endpoint e = {};
    int64_t began = clock_ms();

    endpoint_start(&e);
    assert_int_eq(post(&e,
                       JSON VERSION METHOD("tools/call") "Mcp-Name: test_tool_with_progress\r\n"
                                                         "Accept: application/json\r\n",
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"test_tool_with_progress\",\"_meta\":{\"progressToken\":1,"
                       "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                       "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
                       "\"id\":1,\"result\""),
                  200);
    assert_true(clock_ms() - began < 5000);
}

/* How many requests are under way, of any client. */
static size_t requests_count(struct endpoint *e)
{
    size_t n = 0;

    pthread_mutex_lock(&e->mcp.server->lock);
    for (struct mcp_client *c = e->mcp.server->clients; c; c = c->next)
        n += c->request_count;
    pthread_mutex_unlock(&e->mcp.server->lock);
    return n;
}

/* The client may have an answer before its request has left the server's list. */
static void requests_gone(struct endpoint *e)
{
    int64_t deadline = clock_deadline(5000);

    while (requests_count(e) > 0 && clock_ms() < deadline)
        usleep(10000);
    assert_uint_eq(requests_count(e), 0);
}

TEST(two_peers_may_use_the_same_id)
{
    auto_endpoint struct endpoint e = {};
    struct raw *r[4];

    endpoint_start(&e);
    for (size_t i = 0; i < ARRAY_LEN(r); i++)
        r[i] = ask(&e, "POST",
                   BOTH JSON VERSION METHOD("tools/call") "Mcp-Name: test_tool_with_progress\r\n",
                   M("1", "tools/call", "\"name\":\"test_tool_with_progress\","));
    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        assert_int_eq(answer(r[i]), 200);
        assert_str_has(r[i]->data, "\"id\":1,\"result\"");
        raw_free(&r[i]);
    }
    requests_gone(&e);
}

static struct raw *listen_open(struct endpoint *e)
{
    struct raw *r =
        ask(e, "POST", BOTH JSON VERSION METHOD("subscriptions/listen"),
            M("9", "subscriptions/listen", "\"notifications\":{\"toolsListChanged\":true},"));

    assert_true(raw_wait(r, "notifications/subscriptions/acknowledged", RAW_WAIT_MS));
    return r;
}

TEST(a_listening_stream_gets_changes_until_it_is_closed)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL;

    endpoint_start(&e);
    r = listen_open(&e);
    assert_uint_eq(requests_count(&e), 1);
    assert_int_eq(post(&e,
                       BOTH JSON VERSION METHOD("tools/call") "Mcp-Name: test_trigger_tool_change"
                                                              "\r\n",
                       M("5", "tools/call", "\"name\":\"test_trigger_tool_change\","), "result"),
                  200);
    assert_true(raw_wait(r, "notifications/tools/list_changed", RAW_WAIT_MS));
    close(r->fd);
    r->fd = -1;
    requests_gone(&e);
}

TEST(a_stop_ends_listening_streams)
{
    struct endpoint e = {};
    auto_raw struct raw *modern = NULL, *legacy = NULL;
    char session[256];
    int64_t began;

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    legacy = ask(&e, "GET", session, "");
    assert_true(raw_wait(legacy, ": keep-alive\n\n", RAW_WAIT_MS));
    modern = listen_open(&e);
    began = clock_ms();
    endpoint_done(&e);
    assert_true(clock_ms() - began < 1500);
    assert_true(raw_drain(modern, 1000) && raw_drain(legacy, 1000));
    assert_str_has(modern->data, "\r\n0\r\n\r\n");
}

/* ---- what the end of a connection means ---- */

TEST(a_legacy_client_that_leaves_cancels_nothing)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL;
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{\"elicitation\":{}}", session);
    r = ask(&e, "POST", session,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":"
            "\"test_elicitation\",\"arguments\":{\"message\":\"who?\"}}}");
    assert_true(raw_wait(r, "elicitation/create", RAW_WAIT_MS));
    close(r->fd);
    r->fd = -1;
    usleep(1200000);
    assert_uint_eq(requests_count(&e), 1);
    assert_int_eq(post(&e, session,
                       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
                       "{\"requestId\":7}}",
                       NULL),
                  202);
    assert_uint_eq(requests_count(&e), 0);
}

/* ---- streams that are resumed ---- */

/* The last id in what came, or "". */
static void last_id(const struct raw *r, char ret[32])
{
    ret[0] = 0;
    for (const char *at = r->data; (at = strstr(at, "\nid: ")); at++)
        snprintf(ret, 32, "%.*s", (int)strcspn(at + 5, "\r\n"), at + 5);
}

static struct raw *resume(struct endpoint *e, const char *session, const char *id)
{
    char headers[400];

    snprintf(headers, sizeof(headers), "%sLast-Event-ID: %s\r\n", session, id);
    return ask(e, "GET", headers, "");
}

TEST(a_lost_stream_goes_on_after_the_last_event_that_came)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL, *rest = NULL, *all = NULL;
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    r = ask(&e, "POST", session,
            CALL_TOOL("7", "test_tool_with_progress", ",\"_meta\":{\"progressToken\":\"p\"}"));
    assert_true(raw_wait(r, "begun", RAW_WAIT_MS));
    assert_str_has(r->data, "\nid: 1-1\nretry: 1000\ndata: \n\n");
    close(r->fd);
    r->fd = -1;
    rest = resume(&e, session, "1-2");
    assert_true(raw_wait(rest, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    assert_null(strstr(rest->data, "begun"));
    assert_str_has(rest->data, "half done");
    assert_str_has(rest->data, "\"id\":7,\"result\"");
    /* It is kept for a while after its end. */
    all = resume(&e, session, "1-1");
    assert_true(raw_wait(all, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    assert_str_has(all->data, "begun");
    assert_str_has(all->data, "\"id\":7,\"result\"");
}

TEST(a_stream_may_be_closed_to_be_asked_for_later)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL, *rest = NULL, *again = NULL;
    char session[256], id[32];

    endpoint_start(&e);
    session_begin(&e, "{\"elicitation\":{}}", session);
    r = ask(&e, "POST", session, CALL_TOOL("7", "test_reconnection", ""));
    assert_int_eq(answer(r), 200);
    assert_null(strstr(r->data, "\"result\""));
    last_id(r, id);
    rest = resume(&e, session, id);
    assert_true(raw_wait(rest, "\"id\":7,\"result\"", RAW_WAIT_MS));
    /* Who comes back twice ends the first of both. */
    raw_free(&r);
    r = ask(&e, "POST", session,
            "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":"
            "\"test_elicitation\",\"arguments\":{\"message\":\"who?\"}}}");
    assert_true(raw_wait(r, "elicitation/create", RAW_WAIT_MS));
    again = resume(&e, session, "2-1");
    assert_true(raw_wait(r, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    assert_true(raw_wait(again, "elicitation/create", RAW_WAIT_MS));
    assert_int_eq(post(&e, session, "{\"jsonrpc\":\"2.0\",\"id\":\"sa-1\",\"result\":{}}", NULL),
                  202);
    assert_true(raw_wait(again, "\"id\":8,\"result\"", RAW_WAIT_MS));
}

TEST(older_clients_get_no_event_without_data)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *r = NULL;
    char session[256], *version;

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    version = strstr(session, "2025-11-25");
    memcpy(version, "2025-06-18", 10);
    r = ask(&e, "POST", session, CALL_TOOL("7", "test_reconnection", ""));
    assert_int_eq(answer(r), 200);
    assert_str_has(r->data, "\"id\":7,\"result\"");
    assert_null(strstr(r->data, "data: \n"));
}

TEST(only_what_is_kept_is_resumed)
{
    static const char *const wrong[] = {"x",    "1",   "-",    "1-",
                                        "-1",   "0-0", "1-0",  "1-99",
                                        "99-1", "1-x", "1-1-", "1-99999999999999999999"};
    auto_endpoint struct endpoint e = {};
    char session[256], other[256];

    endpoint_start(&e);
    session_begin(&e, "{}", session);
    session_begin(&e, "{}", other);
    assert_int_eq(post(&e, session, CALL_TOOL("7", "test_reconnection", ""), "id: 1-1\n"), 200);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        auto_raw struct raw *r = resume(&e, session, wrong[i]);

        test_note("%s", wrong[i]);
        assert_int_eq(answer(r), 400);
        assert_str_has(r->data, "still kept");
    }
    {
        auto_raw struct raw *r = resume(&e, other, "1-1"), *end = NULL, *gone = NULL;

        assert_int_eq(answer(r), 400);
        end = ask(&e, "DELETE", session, "");
        assert_int_eq(answer(end), 204);
        gone = resume(&e, session, "1-1");
        assert_int_eq(answer(gone), 404);
    }
}

/* A call whose stream holds a message of some bytes, and that goes on. */
static struct raw *long_question(struct endpoint *e, const char *session, int id, size_t len)
{
    auto_free char *message = malloc(len + 1), *body = NULL;
    struct raw *r;

    assert_not_null(message);
    memset(message, 'm', len);
    message[len] = 0;
    assert_true(asprintf(&body,
                         "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
                         "\"name\":\"test_elicitation\",\"arguments\":{\"message\":\"%s\"}}}",
                         id, message) > 0);
    r = ask(e, "POST", session, body);
    assert_true(raw_wait(r, "requestedSchema", RAW_WAIT_MS));
    return r;
}

TEST(a_session_keeps_a_bounded_number_of_bytes)
{
    enum { CALLS = 8, BYTES = 600000 };
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *lost = NULL, *kept = NULL;
    struct raw *r[CALLS];
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{\"elicitation\":{}}", session);
    for (int i = 0; i < CALLS; i++)
        r[i] = long_question(&e, session, i, BYTES);
    lost = resume(&e, session, "1-1");
    assert_int_eq(answer(lost), 400);
    kept = resume(&e, session, "8-1");
    assert_true(raw_wait(kept, "requestedSchema", RAW_WAIT_MS));
    for (int i = 0; i < CALLS; i++)
        raw_free(&r[i]);
}

TEST(a_session_keeps_a_bounded_number_of_streams)
{
    auto_endpoint struct endpoint e = {};
    auto_raw struct raw *first = NULL, *last = NULL, *lost = NULL, *kept = NULL;
    char session[256];

    endpoint_start(&e);
    session_begin(&e, "{\"elicitation\":{}}", session);
    first = long_question(&e, session, 100, 1);
    for (int i = 0; i < 31; i++) {
        auto_raw struct raw *r = long_question(&e, session, i, 1);
    }
    kept = resume(&e, session, "1-1");
    assert_true(raw_wait(kept, "requestedSchema", RAW_WAIT_MS));
    last = long_question(&e, session, 31, 1);
    lost = resume(&e, session, "1-1");
    assert_int_eq(answer(lost), 400);
    /* Who follows it already still gets what comes. */
    assert_int_eq(post(&e, session, "{\"jsonrpc\":\"2.0\",\"id\":\"sa-1\",\"result\":{}}", NULL),
                  202);
    assert_true(raw_wait(kept, "\"id\":100,\"result\"", RAW_WAIT_MS));
}

TEST(sessions_are_bounded)
{
    auto_endpoint struct endpoint e = {};
    char first[256], session[256];
    auto_raw struct raw *events = NULL;

    endpoint_start(&e);
    session_begin(&e, "{}", first);
    events = ask(&e, "GET", first, "");
    assert_true(raw_wait(events, ": keep-alive\n\n", RAW_WAIT_MS));
    session_begin(&e, "{}", session);
    for (int i = 0; i < 256; i++) {
        char other[256];

        session_begin(&e, "{}", other);
    }
    /* The one in use stays, the oldest of the others went. */
    assert_int_eq(post(&e, first, LIST, "execute_code"), 200);
    assert_int_eq(post(&e, session, LIST, "-32001"), 404);
}
