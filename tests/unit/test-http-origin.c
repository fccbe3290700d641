/* SPDX-License-Identifier: MIT */
/*
 * Who may talk to a server: every Origin with every Host (API-20), names that point here by
 * rebinding (API-21), and preflights.
 */
#include "base/str.h"
#include "tests/lib/rawhttp.h"

static void hello(struct http_request *req)
{
    http_respond(req, 200, "text/plain", "hello", 5);
}

static const struct route_entry routes[] = {
    {"GET", "/hello", "", hello, 0, NULL},
    {"POST", "/hello", "", hello, 0, NULL},
    {.path = NULL},
};
static const struct route_table tables[] = {{.entries = routes}, {.entries = NULL}};
static const char *const own_hosts[] = {"box.example", "fixed.example:81", NULL};
static const char *const own_origins[] = {"https://app.example", "http://localhost:3000/",
                                          "vscode-webview://abc", NULL};

static struct served start(void)
{
    return served_start((struct http_options){.tables = tables,
                                              .hosts = own_hosts,
                                              .origins = own_origins,
                                              .cors_expose = "Mcp-Session-Id"});
}

/* %P is the server's port, %Q another one. */
static const struct {
    const char *host;
    bool allowed;
} host_rows[] = {
    {"localhost:%P", true},
    {"LOCALHOST:%P", true},
    {"127.0.0.1:%P", true},
    {"[::1]:%P", true},
    {"box.example", true},
    {"box.example:%Q", true},
    {"BOX.example:%P", true},
    {"fixed.example:81", true},
    {"fixed.example", false},
    {"fixed.example:%P", false},
    {"localhost", false},
    {"localhost:%Q", false},
    {"127.0.0.1:%Q", false},
    {"localhost.:%P", false},
    {"evil.test:%P", false},
    {"evil.test", false},
    {"localhost.evil.test:%P", false},
    {"evil-localhost:%P", false},
    {"box.example.evil.test", false},
    {"127.0.0.1.evil.test:%P", false},
    {"user@localhost:%P", false},
    {"localhost:%P@evil.test", false},
    {"127.1:%P", false},
    {"0.0.0.0:%P", false},
    {"[::]:%P", false},
    {"[::ffff:127.0.0.1]:%P", false},
    {"127.0.0.2:%P", false},
    {"2130706433:%P", false},
    {"null", false},
};

/* NULL is absent. `same` is allowed for the Host of the same name only. */
static const struct {
    const char *origin, *same;
    bool allowed;
} origin_rows[] = {
    {NULL, NULL, true},
    {"http://localhost:%P", NULL, true},
    {"http://LOCALHOST:%P", NULL, true},
    {"http://127.0.0.1:%P", NULL, true},
    {"http://[::1]:%P", NULL, true},
    {"https://app.example", NULL, true},
    {"HTTPS://APP.example", NULL, true},
    {"http://localhost:3000", NULL, true},
    {"vscode-webview://abc", NULL, true},
    {"http://box.example", "box.example", false},
    {"https://box.example", "box.example", false},
    {"http://box.example:%Q", "box.example:%Q", false},
    {"null", NULL, false},
    {"http://evil.test", NULL, false},
    {"http://evil.test:%P", NULL, false},
    {"http://localhost", NULL, false},
    {"http://localhost:%Q", NULL, false},
    {"https://localhost:%Q", NULL, false},
    {"http://localhost.:%P", NULL, false},
    {"http://localhost.evil.test:%P", NULL, false},
    {"http://localhost:%P@evil.test", NULL, false},
    {"http://user@localhost:%P", NULL, false},
    {"http://localhost:%P/", NULL, false},
    {"http://localhost:%P/path", NULL, false},
    {"https://app.example.evil.test", NULL, false},
    {"https://evil-app.example", NULL, false},
    {"https://app.example:8443", NULL, false},
    {"https://app.example https://evil.test", NULL, false},
    {"file://", NULL, false},
    {"chrome-extension://localhost:%P", NULL, false},
    {"localhost:%P", NULL, false},
    {"*", NULL, false},
    {"", NULL, false},
};

static const char *fill(char ret[128], const char *text, uint16_t port)
{
    const char *mark = strchr(text, '%');

    if (!mark)
        snprintf(ret, 128, "%s", text);
    else
        snprintf(ret, 128, "%.*s%u%s", (int)(mark - text), text,
                 mark[1] == 'P' ? port : (unsigned)port ^ 1, mark + 2);
    return ret;
}

static int ask(struct raw *r, uint16_t port, const char *method, const char *host,
               const char *origin, const char *more)
{
    char text[1024], h[128], o[128];

    snprintf(text, sizeof(text), "%s /hello HTTP/1.1\r\nHost: %s\r\n%s%s%s%s\r\n", method,
             fill(h, host, port), origin ? "Origin: " : "", origin ? fill(o, origin, port) : "",
             origin ? "\r\n" : "", more);
    return raw_request(r, text);
}

TEST(every_origin_with_every_host)
{
    auto_served struct served s = start();
    unsigned rows = 0;

    for (size_t h = 0; h < ARRAY_LEN(host_rows); h++) {
        for (size_t o = 0; o < ARRAY_LEN(origin_rows); o++) {
            auto_raw struct raw *r = raw_open(s.port, 0);
            const char *host = host_rows[h].host, *origin = origin_rows[o].origin;
            bool same = origin_rows[o].same && str_eq(origin_rows[o].same, host);
            bool good = host_rows[h].allowed && (origin_rows[o].allowed || same);
            int status = ask(r, s.port, "GET", host, origin, "");

            if (status != (good ? 200 : 403))
                test_fail(__FILE__, __LINE__, "Host %s, Origin %s gives %d", host,
                          origin ? origin : "absent", status);
            if ((strstr(r->data, "Access-Control-Allow-Origin: ") != NULL) != (good && origin))
                test_fail(__FILE__, __LINE__, "Host %s, Origin %s: %s", host,
                          origin ? origin : "absent", r->data);
            rows++;
        }
    }
    test_note("%u rows", rows);
    assert_true(rows >= 60);
}

TEST(a_rebound_name_is_refused)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0), *page = raw_open(s.port, 0);

    assert_int_eq(ask(r, s.port, "POST", "evil.test:%P", NULL, "Content-Length: 0\r\n"), 403);
    assert_int_eq(
        ask(page, s.port, "POST", "evil.test:%P", "http://evil.test:%P", "Content-Length: 0\r\n"),
        403);
    assert_null(strstr(page->data, "Access-Control"));
}

TEST(preflights_are_answered_to_allowed_pages_only)
{
    static const char asks[] = "Access-Control-Request-Method: POST\r\n"
                               "Access-Control-Request-Headers: content-type, x-a\r\n";
    auto_served struct served s = start();
    auto_raw struct raw *good = raw_open(s.port, 0), *bad = raw_open(s.port, 0);
    auto_raw struct raw *null = raw_open(s.port, 0), *get = raw_open(s.port, 0);

    assert_int_eq(ask(good, s.port, "OPTIONS", "localhost:%P", "https://app.example", asks), 204);
    assert_str_has(good->data, "Access-Control-Allow-Origin: https://app.example\r\n");
    assert_str_has(good->data, "Vary: Origin\r\n");
    assert_str_has(good->data, "Access-Control-Allow-Methods: "
                               "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS\r\n");
    assert_str_has(good->data, "Access-Control-Allow-Headers: content-type, x-a\r\n");
    assert_null(strstr(good->data, "Allow-Credentials"));
    assert_int_eq(ask(bad, s.port, "OPTIONS", "localhost:%P", "http://evil.test", asks), 403);
    assert_null(strstr(bad->data, "Access-Control-Allow"));
    assert_int_eq(ask(null, s.port, "OPTIONS", "localhost:%P", "null", asks), 403);
    assert_int_eq(ask(get, s.port, "GET", "localhost:%P", "https://app.example", ""), 200);
    assert_str_has(get->data, "Access-Control-Expose-Headers: Mcp-Session-Id\r\n");
}

/* With loopback_origins; %P is the server's port, %Q another one. */
static const struct {
    const char *origin;
    int status;
} loopback_rows[] = {
    {"http://localhost", 200},
    {"http://localhost:%P", 200},
    {"http://localhost:%Q", 200},
    {"HTTP://LocalHost:3000", 200},
    {"http://127.0.0.1:5173", 200},
    {"http://[::1]:5173", 200},
    {"https://app.example", 200},
    {"https://localhost:3000", 403},
    {"http://127.0.0.2:3000", 403},
    {"http://127.1:3000", 403},
    {"http://[::ffff:127.0.0.1]:3000", 403},
    {"http://0.0.0.0:3000", 403},
    {"http://localhost.:3000", 403},
    {"http://localhost.evil.test:3000", 403},
    {"http://app.localhost:3000", 403},
    {"http://localhost:3000/", 403},
    {"http://localhost:99999", 403},
    {"http://localhost:", 403},
    {"http://localhost:3000@evil.test", 403},
    {"http://evil.test@localhost:3000", 403},
    {"null", 403},
    {"file://", 403},
    {"*", 403},
};

TEST(pages_of_loopback_names_may_be_let_in)
{
    auto_served struct served s = served_start(
        (struct http_options){.tables = tables, .origins = own_origins, .loopback_origins = true});

    for (size_t i = 0; i < ARRAY_LEN(loopback_rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        char origin[128], want[256];
        int status = ask(r, s.port, "GET", "localhost:%P", loopback_rows[i].origin, "");

        if (status != loopback_rows[i].status)
            test_fail(__FILE__, __LINE__, "%s gives %d", loopback_rows[i].origin, status);
        snprintf(want, sizeof(want), "Access-Control-Allow-Origin: %s\r\n",
                 fill(origin, loopback_rows[i].origin, s.port));
        assert_true((strstr(r->data, want) != NULL) == (status == 200));
        assert_null(strstr(r->data, "Allow-Origin: *"));
    }
}

/* What a preflight asks for, and what it must and must not get. */
static const struct {
    const char *path, *more, *has, *hasnt;
    int status;
} preflight_rows[] = {
    {"/hello",
     "Access-Control-Request-Headers: content-type, x-api-key,x-auth-scheme ,authorization, "
     "last-event-id\r\n",
     "Access-Control-Allow-Headers: content-type, x-api-key, x-auth-scheme, authorization, "
     "last-event-id\r\n",
     "Private", 204},
    {"/hello", "Access-Control-Request-Headers: ok, b@d, , x y, *,mcp-session-id\r\n",
     "Access-Control-Allow-Headers: ok, *, mcp-session-id\r\n", "b@d", 204},
    {"/hello", "Access-Control-Request-Headers:\r\n", "Access-Control-Max-Age: 600\r\n",
     "Allow-Headers", 204},
    {"/hello", "", "Access-Control-Allow-Methods: GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS\r\n",
     "Allow-Headers", 204},
    {"/hello", "Access-Control-Request-Private-Network: true\r\n",
     "Access-Control-Allow-Private-Network: true\r\n", "Credentials", 204},
    {"/hello", "Access-Control-Request-Private-Network: false\r\n", "", "Private", 204},
    /* The request that follows says what is wrong, in a way that the page can read. */
    {"/none", "", "Access-Control-Allow-Origin: https://app.example\r\n", "Credentials", 204},
};

TEST(a_preflight_gets_what_it_asks_for)
{
    auto_served struct served s = start();

    for (size_t i = 0; i < ARRAY_LEN(preflight_rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        char text[1024];

        snprintf(text, sizeof(text),
                 "OPTIONS %s HTTP/1.1\r\nHost: localhost:%u\r\nOrigin: https://app.example\r\n"
                 "Access-Control-Request-Method: POST\r\n%s\r\n",
                 preflight_rows[i].path, s.port, preflight_rows[i].more);
        if (raw_request(r, text) != preflight_rows[i].status)
            test_fail(__FILE__, __LINE__, "'%s' gives %s", text, r->data);
        assert_str_has(r->data, preflight_rows[i].has);
        assert_null(strstr(r->data, preflight_rows[i].hasnt));
    }
}

TEST(any_is_any)
{
    static const char *const any[] = {"*", NULL};
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = any, .origins = any});
    auto_raw struct raw *r = raw_open(s.port, 0), *null = raw_open(s.port, 0);

    assert_int_eq(ask(r, s.port, "GET", "evil.test", "http://evil.test", ""), 200);
    assert_str_has(r->data, "Access-Control-Allow-Origin: http://evil.test\r\n");
    assert_int_eq(ask(null, s.port, "GET", "evil.test", "null", ""), 403);
}

TEST(two_origins_are_malformed)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);

    assert_int_eq(ask(r, s.port, "GET", "localhost:%P", "http://localhost:%P",
                      "Origin: http://evil.test\r\n"),
                  400);
}
