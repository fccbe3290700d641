/* SPDX-License-Identifier: MIT */
/* URIs of resources, what is not found, subscriptions of both eras. */
#include "mcp/displays.h"
#include "mcp/mcp-internal.h"
#include "mcp/resource-uri.h"

#include "base/buf.h"
#include "base/str.h"
#include "tests/lib/mcp-peer.h"
#include "tests/lib/test.h"

#define ID "0123456789abcdef0123456789abcdef"
#define FILES "sandbox://" ID "/files/"

/* ---- URIs ---- */

TEST(uris_of_any_name_lead_back_to_it)
{
    static const char *const paths[] = {"/workspace/a.txt",       "/workspace/a b%20.txt",
                                        "/workspace/\xc3\xbc",    "/workspace/\xff\xc0\xaf",
                                        "/workspace/a?b#c&d;e\"", "/workspace/a\nb\x7f",
                                        "/workspace/...",         "/tmp/\xe4\xb8\xad/x"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct resource_place place;
        auto_buf struct buf uri;

        buf_init(&uri, RESOURCE_URI_MAX);
        assert_int_eq(resource_uri_format(&uri, ID, paths[i]), 0);
        for (const char *c = uri.data; *c; c++)
            assert_true(*c > ' ' && *c < 0x7f);
        assert_int_eq(resource_uri_parse(uri.data, &place), 0);
        assert_str_eq(place.id, ID);
        assert_str_eq(place.path, paths[i]);
        assert_false(place.is_display);
    }
}

TEST(row_fil_17_a_uri_is_decoded_once_and_strictly)
{
    static const char *const bad[] = {
        "",
        "sandbox://",
        "sandbox://" ID,
        "sandbox://" ID "/",
        "sandbox://" ID "/files",
        FILES,
        FILES "workspace/a%00",
        FILES "workspace/a%",
        FILES "workspace/a%2",
        FILES "workspace/a%zz",
        FILES "workspace%2fa",
        FILES "workspace/../a",
        FILES "workspace/%2e%2e/a",
        FILES "workspace/.%2E/a",
        FILES "./workspace/a",
        FILES "workspace//a",
        FILES "/workspace/a",
        FILES "workspace/a/",
        FILES "workspace/a?x=1",
        FILES "workspace/a#x",
        FILES "workspace/a b",
        FILES "workspace\\a",
        "SANDBOX://" ID "/files/workspace/a",
        "sandbox://0123456789ABCDEF0123456789ABCDEF/files/workspace/a",
        "sandbox://0123456789abcdef0123456789abcde/files/workspace/a",
        "sandbox://" ID "0/files/workspace/a",
        "sandbox://" ID "/other/workspace/a",
        "file:///etc/passwd",
    };
    struct resource_place place;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        test_note("%s", bad[i]);
        assert_int_eq(resource_uri_parse(bad[i], &place), -1);
    }
    assert_int_eq(resource_uri_parse(FILES "workspace/%252e%252e/a", &place), 0);
    assert_str_eq(place.path, "/workspace/%2e%2e/a");
    assert_int_eq(resource_uri_parse("sandbox://" ID "/displays/1.png", &place), 0);
    assert_true(place.is_display);
}

TEST(a_uri_that_is_too_long_is_none)
{
    auto_buf struct buf uri;
    struct resource_place place;

    buf_init(&uri, 3 * (size_t)TREE_PATH_MAX);
    assert_int_eq(buf_append_str(&uri, FILES), 0);
    for (size_t i = 0; i < TREE_PATH_MAX; i++)
        assert_int_eq(buf_append_byte(&uri, 'a'), 0);
    assert_int_eq(resource_uri_parse(uri.data, &place), -1);
}

TEST(kinds_come_from_the_suffix)
{
    assert_str_eq(resource_mime("/workspace/a.PNG"), "image/png");
    assert_str_eq(resource_mime("/workspace/a.tar.gz"), "application/gzip");
    assert_null(resource_mime("/workspace/Makefile"));
    assert_null(resource_mime("/work.png/space"));
    assert_null(resource_mime("/workspace/a.unknown"));
    assert_true(resource_mime_is_text("text/csv"));
    assert_true(resource_mime_is_text("application/geo+json"));
    assert_false(resource_mime_is_text("image/png"));
}

/* ---- reading ---- */

#define READ(id, uri) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"resources/read\",\"params\":{\"uri\":\"" uri \
    "\"}}"
#define READ_MODERN(id, uri) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"resources/read\",\"params\":{\"uri\":\"" uri \
    "\"," META "}}"

TEST(what_is_not_there_is_not_found_in_the_words_of_its_era)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    initialize(&p);
    say(&p, READ("1", FILES "workspace/a"));
    assert_str_has(line(&p, 1), "\"code\":-32002");
    assert_str_has(line(&p, 1), "\"data\":{\"uri\":\"" FILES "workspace/a\"}");
    say(&p, READ_MODERN("2", FILES "workspace/a"));
    assert_str_has(line(&p, 2), "\"code\":-32602");
    assert_str_has(line(&p, 2), "\"data\":{\"uri\":\"" FILES "workspace/a\"}");
    assert_int_eq(p.record->status[2], 400);
    say(&p, READ("3", "test://static-text"));
    assert_str_has(line(&p, 3), "\"code\":-32002");
}

static void display_put(struct peer_client *p, const char *session_id, const char *mime,
                        const char *text)
{
    auto_display struct display *d = NULL;
    auto_buf struct buf data;
    struct error error;

    buf_init(&data, KIB);
    assert_int_eq(buf_append_str(&data, text), 0);
    assert_ok(displays_put(p->server->displays, session_id, mime, &data, &d, &error), error);
}

TEST(displays_are_listed_and_read_by_their_owner_only)
{
    auto_peer_client struct peer_client p = {};
    struct session_info mine, other;
    char text[300];

    peer_client_start(&p, false);
    initialize(&p);
    mine = world_session(&p.world, "me");
    other = world_session(&p.world, "somebody");
    display_put(&p, mine.id, "text/html", "<b>mine</b>");
    display_put(&p, mine.id, "image/png", "\x89PNG");
    display_put(&p, other.id, "text/html", "<b>other</b>");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}");
    assert_str_has(line(&p, 1), "/displays/1.html\"");
    assert_str_has(line(&p, 1), "/displays/2.png\"");
    assert_null(strstr(line(&p, 1), "3.html"));
    snprintf(text, sizeof(text), READ("2", "sandbox://%s/displays/1.html"), mine.id);
    say(&p, text);
    assert_str_has(line(&p, 2), "\"mimeType\":\"text/html\",\"text\":\"<b>mine</b>\"");
    snprintf(text, sizeof(text), READ("3", "sandbox://%s/displays/2.png"), mine.id);
    say(&p, text);
    assert_str_has(line(&p, 3), "\"blob\":\"iVBORw==\"");
    snprintf(text, sizeof(text), READ("4", "sandbox://%s/displays/3.html"), other.id);
    say(&p, text);
    assert_str_has(line(&p, 4), "\"code\":-32002");
}

TEST(what_a_session_displayed_goes_with_it)
{
    auto_peer_client struct peer_client p = {};
    struct session_info mine, other;
    struct error error;
    char uri[100];
    struct display *d;

    peer_client_start(&p, false);
    initialize(&p);
    mine = world_session(&p.world, "me");
    other = world_session(&p.world, "me");
    display_put(&p, mine.id, "text/html", "<b>1</b>");
    display_put(&p, other.id, "text/html", "<b>2</b>");
    usleep(1300000); /* it has been seen alive */
    /* Not by a tool, so that nothing but its absence tells of it. */
    assert_ok(session_stop(p.server->manager, mine.id, "me", &error), error);
    assert_str_has(line(&p, 1), "notifications/resources/list_changed");
    snprintf(uri, sizeof(uri), "sandbox://%s/displays/1.html", mine.id);
    assert_null(displays_get(p.server->displays, uri));
    snprintf(uri, sizeof(uri), "sandbox://%s/displays/2.html", other.id);
    d = displays_get(p.server->displays, uri);
    assert_not_null(d);
    display_unref(d);
    usleep(1300000);
    assert_int_eq(p.record->count, 2); /* it is told once */
}

TEST(a_list_comes_in_pages)
{
    auto_peer_client struct peer_client p = {};
    struct session_info mine;
    const char *cursor, *end;
    char text[300];

    peer_client_start(&p, false);
    initialize(&p);
    mine = world_session(&p.world, "me");
    for (int i = 0; i < 201; i++)
        display_put(&p, mine.id, "text/plain", "x");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}");
    cursor = strstr(line(&p, 1), "\"nextCursor\":\"");
    assert_not_null(cursor);
    assert_null(strstr(line(&p, 1), "/201.txt"));
    cursor += strlen("\"nextCursor\":\"");
    end = strchr(cursor, '"');
    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"resources/list\",\"params\":{\"cursor\":"
             "\"%.*s\"}}",
             (int)(end - cursor), cursor);
    say(&p, text);
    assert_str_has(line(&p, 2), "/201.txt");
    assert_null(strstr(line(&p, 2), "/200.txt"));
    assert_null(strstr(line(&p, 2), "nextCursor"));
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resources/list\",\"params\":{\"cursor\":"
            "\"ZnJvbTotMQ==\"}}");
    assert_str_has(line(&p, 3), "\"code\":-32602");
}

/* ---- subscriptions ---- */

#define SUBSCRIBE(id, word, uri) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"resources/" word \
    "\",\"params\":{\"uri\":\"" uri "\"}}"

TEST(a_legacy_client_is_told_what_it_subscribed_to)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    mcp_notify(p.server, MCP_RESOURCES_CHANGED, NULL); /* before the handshake: nobody */
    initialize(&p);
    say(&p, SUBSCRIBE("1", "subscribe", "sandbox://a"));
    say(&p, SUBSCRIBE("2", "subscribe", "sandbox://a"));
    assert_str_has(line(&p, 2), "\"id\":2,\"result\":{}");
    mcp_notify(p.server, MCP_RESOURCE_UPDATED, "sandbox://b");
    mcp_notify(p.server, MCP_RESOURCE_UPDATED, "sandbox://a");
    assert_str_eq(line(&p, 3), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/"
                               "updated\",\"params\":{\"uri\":\"sandbox://a\"}}");
    say(&p, SUBSCRIBE("3", "unsubscribe", "sandbox://a"));
    mcp_notify(p.server, MCP_RESOURCE_UPDATED, "sandbox://a");
    mcp_notify(p.server, MCP_RESOURCES_CHANGED, NULL);
    assert_str_has(line(&p, 5), "notifications/resources/list_changed");
    mcp_client_set_events(p.client, NULL);
    mcp_notify(p.server, MCP_RESOURCES_CHANGED, NULL);
    assert_int_eq(p.record->count, 6);
}

TEST(subscriptions_have_a_limit)
{
    auto_peer_client struct peer_client p = {};
    char text[200];

    peer_client_start(&p, false);
    initialize(&p);
    for (int i = 0; i <= MCP_SUBSCRIPTIONS_MAX; i++) {
        snprintf(text, sizeof(text), SUBSCRIBE("%d", "subscribe", "sandbox://%d"), i + 1, i);
        say(&p, text);
        if (p.record->count == LINES_MAX)
            record_clear(p.record);
    }
    assert_str_has(p.record->lines[p.record->count - 1], "limit_reached");
}

#define LISTEN(id, filter) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id \
    ",\"method\":\"subscriptions/listen\",\"params\":{\"notifications\":" filter "," META "}}"

TEST(a_modern_client_is_told_what_it_listens_to_and_that_it_ends)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    say(&p, LISTEN("\"l\"", "{\"toolsListChanged\":true,\"resourcesListChanged\":true,"
                            "\"promptsListChanged\":false,"
                            "\"resourceSubscriptions\":[\"sandbox://a\"]}"));
    assert_str_eq(line(&p, 0),
                  "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
                  "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"l\"},"
                  "\"notifications\":{\"resourcesListChanged\":true,"
                  "\"resourceSubscriptions\":[\"sandbox://a\"]}}}");
    say(&p, LISTEN("2", "{}"));
    assert_str_has(line(&p, 1), "\"notifications\":{}");
    mcp_notify(p.server, MCP_RESOURCE_UPDATED, "sandbox://b");
    mcp_notify(p.server, MCP_PROMPTS_CHANGED, NULL);
    mcp_notify(p.server, MCP_RESOURCE_UPDATED, "sandbox://a");
    mcp_notify(p.server, MCP_RESOURCES_CHANGED, NULL);
    assert_str_has(line(&p, 2), "updated");
    assert_str_has(line(&p, 2), "\"io.modelcontextprotocol/subscriptionId\":\"l\"");
    assert_str_has(line(&p, 2), "\"uri\":\"sandbox://a\"");
    assert_str_has(line(&p, 3), "notifications/resources/list_changed");
    say(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
            "\"requestId\":2}}");
    assert_true(mcp_server_stop(p.server));
    assert_str_has(line(&p, 4), "\"id\":\"l\",\"result\":{");
    assert_str_has(line(&p, 4), "\"io.modelcontextprotocol/subscriptionId\":\"l\"");
    assert_str_has(line(&p, 4), "\"resultType\":\"complete\"");
    mcp_notify(p.server, MCP_RESOURCES_CHANGED, NULL);
    assert_int_eq(p.record->count, 5);
}

TEST(a_filter_that_is_none_is_refused)
{
    static const char *const bad[] = {LISTEN("1", "7"), LISTEN("1", "{\"toolsListChanged\":1}"),
                                      LISTEN("1", "{\"resourceSubscriptions\":\"sandbox://a\"}"),
                                      LISTEN("1", "{\"resourceSubscriptions\":[1]}")};
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        say(&p, bad[i]);
        assert_str_has(line(&p, i), "\"code\":-32602");
    }
}

TEST(an_export_that_fails_changes_nothing)
{
    auto_peer_client struct peer_client p = {};

    peer_client_start(&p, false);
    initialize(&p);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
            "\"export_files\",\"arguments\":{\"session_id\":\"none\","
            "\"files\":[{\"source\":\"/workspace/a\"}]}}}");
    assert_str_has(line(&p, 1), "\"isError\":true");
    assert_int_eq(p.record->count, 2);
}
