/* SPDX-License-Identifier: MIT */
/*
 * A running server against raw sockets: how many answers a doubtful request gets (API-04), paths
 * and routes (API-05), bodies (API-08, API-12), time-outs and caps (API-06), addresses (API-24).
 */
#include "base/str.h"
#include "tests/lib/rawhttp.h"

static void hello(struct http_request *req)
{
    http_respond(req, 200, "text/plain", "hello", 5);
}

static void echo(struct http_request *req)
{
    struct buf *body = http_body(req);

    http_header_add(req, "X-Length", arena_printf(http_arena(req), "%zu", body->len));
    http_respond(req, 200, "application/octet-stream", buf_str(body), body->len);
}

static void show(struct http_request *req)
{
    const char *name = http_param(req, "name"), *rest = http_param(req, "rest");
    const char *q = http_query(req, "q"), *h = http_header(req, "x-test");
    char *text = arena_printf(http_arena(req), "path=%s name=%s rest=%s q=%s h=%s.", http_path(req),
                              name ? name : "-", rest ? rest : "-", q ? q : "-", h ? h : "-");

    http_respond(req, 200, "text/plain", text, strlen(text));
}

static void fail(struct http_request *req)
{
    struct error error;

    error_set(&error, ERR_LIMIT, "no \"more\" of it");
    http_fail(req, 0, &error);
}

static void silent(struct http_request *req)
{
}

static void twice(struct http_request *req)
{
    hello(req);
    hello(req);
}

static void bad_header(struct http_request *req)
{
    http_header_add(req, "X-Bad", "a\r\nSet-Cookie: forged");
    http_header_add(req, "X Bad", "a");
    hello(req);
}

static const struct route_entry routes[] = {
    {"GET", "/", "", hello, 0, NULL},
    {"GET", "/hello", "", hello, 0, NULL},
    {"POST", "/echo", "", echo, 0, NULL},
    {"POST", "/small", "", echo, 10, NULL},
    {"GET", "/item/{name}", "", show, 0, NULL},
    {"GET", "/item/{name}/part", "", show, 0, NULL},
    {"GET", "/files/{rest...}", "", show, 0, NULL},
    {"GET", "/fail", "", fail, 0, NULL},
    {"GET", "/silent", "", silent, 0, NULL},
    {"GET", "/twice", "", twice, 0, NULL},
    {"GET", "/bad-header", "", bad_header, 0, NULL},
    {.path = NULL},
};
static const struct route_table tables[] = {{.entries = routes}, {.entries = NULL}};
static const char *const hosts[] = {"h", NULL};

static struct served start(void)
{
    return served_start((struct http_options){.tables = tables, .hosts = hosts});
}

#define HOST "Host: h\r\n"

/* One text on one connection: how many answers, and the first one's status. */
static const struct {
    const char *text;
    size_t len; /* 0: up to the NUL */
    int status; /* -1: none */
    unsigned answers;
} probe_rows[] = {
    {"GET /hello HTTP/1.1\r\n" HOST "\r\n", 0, 200, 1},
    {"GET /hello HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n", 0, 200, 2},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nabcdeGET /hello HTTP/1.1\r\n" HOST
     "\r\n",
     0, 200, 2},
    /* A chunked body's end is the connection's end. */
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 200, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
     "0\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nabcdeGET /hello HTTP/1.1\r\n" HOST
     "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nabcdeGET /hello HTTP/1.1\r\n" HOST
     "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5,5\r\n\r\nabcdeGET /hello HTTP/1.1\r\n" HOST
     "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\nabcde", 0, 413,
     1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
     "chunked\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    /* Folds make a header of another name in the library. */
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer:                chunked\r\n -Encoding\r\n\r\n"
     "0\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"GET /hello HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nX: a\r\n\tb\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nHost: h\n\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nX: a\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nX: a\rContent-Length: 5\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\rHost: h\r\n\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nX : a\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nX\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\n: a\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\nX: a\0b\r\n" HOST "\r\n", 40, 400, 1},
    {"GET /hello HTTP/1.1\r\nX\0Y: b\r\n" HOST "\r\n", 40, 400, 1},
    {"GET /hel\0lo HTTP/1.1\r\n" HOST "\r\n", 33, 400, 1},
    {"GET /hello\0HTTP/1.1\r\n" HOST "\r\n", 32, 400, 1},
    {"GET  /hello HTTP/1.1\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello  HTTP/1.1\r\n" HOST "\r\n", 0, -1, 0},
    {"GET /hello HTTP/1.1 \r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.2\r\n" HOST "\r\n", 0, 400, 1},
    {"G(T /hello HTTP/1.1\r\n" HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\n\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.0\r\n\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\n" HOST HOST "\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n", 0, 400, 1},
    {"GET /hello HTTP/1.1\r\n" HOST "X: \x1b[31m\r\n\r\n", 0, 400, 1},
    /* Chunks. */
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5;a\nX\r\nabcde\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, -1, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nabcde"
     "\r\n0\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 413, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX0\r\n\r\n"
     "GET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 400, 1},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n"
     "Content-Length: 5\r\nX: y\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n",
     0, 200, 1},
};

TEST(a_doubtful_request_is_never_two)
{
    auto_served struct served s = start();

    for (size_t i = 0; i < ARRAY_LEN(probe_rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        const char *text = probe_rows[i].text;
        int want = probe_rows[i].status;

        raw_send(r, text, probe_rows[i].len ? probe_rows[i].len : strlen(text));
        shutdown(r->fd, SHUT_WR);
        assert_true(raw_drain(r, RAW_WAIT_MS));
        if ((want > 0 && raw_status(r) != want) || raw_answers(r) > probe_rows[i].answers)
            test_fail(__FILE__, __LINE__, "row %zu (%s) gives %d, %u answers", i, text,
                      raw_status(r), raw_answers(r));
        if (want >= 400)
            assert_str_has(r->data, "Connection: close");
    }
}

static const struct {
    const char *line, *header;
    int status;
    const char *has;
} path_rows[] = {
    {"GET / HTTP/1.1", "", 200, "hello"},
    {"GET /hello HTTP/1.1", "", 200, "hello"},
    {"GET /%68ello HTTP/1.1", "", 200, "hello"},
    {"GET /hello?x=%20 HTTP/1.1", "", 200, "hello"},
    {"GET http://h/hello HTTP/1.1", "", 200, "hello"},
    {"GET http://other/hello HTTP/1.1", "", 400, "differ"},
    {"GET http://h:1/hello HTTP/1.1", "", 400, "differ"},
    {"GET http://h@h/hello HTTP/1.1", "", 400, ""},
    {"GET /item/a?q=b+c HTTP/1.1", "X-Test:  d \r\n", 200, "path=/item/a name=a rest=- q=b c h=d."},
    {"GET /item/a%2Fb HTTP/1.1", "", 200, "path=/item/a%2Fb name=a/b "},
    {"GET /item/%252e%252e HTTP/1.1", "", 200, "path=/item/%252e%252e name=%2e%2e "},
    {"GET /item/a;x HTTP/1.1", "", 200, "name=a;x "},
    {"GET /item/a/part HTTP/1.1", "", 200, "name=a "},
    {"GET /files/a/b%2Fc/d HTTP/1.1", "", 200, "path=/files/a/b%2Fc/d name=- rest=a/b/c/d "},
    {"GET /files/ HTTP/1.1", "", 200, "rest= "},
    {"HEAD /hello HTTP/1.1", "", 200, "Content-Length: 5"},
    {"OPTIONS /hello HTTP/1.1", "", 204, "Allow: GET, HEAD, OPTIONS"},
    {"GET /files HTTP/1.1", "", 404, "NOT_FOUND"},
    {"GET /item/ HTTP/1.1", "", 404, ""},
    {"GET /item HTTP/1.1", "", 404, ""},
    {"GET /item/a/ HTTP/1.1", "", 404, ""},
    {"GET /hello/ HTTP/1.1", "", 404, ""},
    {"GET //hello HTTP/1.1", "", 404, ""},
    {"GET /hello%2F HTTP/1.1", "", 404, ""},
    {"GET /HELLO HTTP/1.1", "", 404, ""},
    {"OPTIONS /none HTTP/1.1", "", 404, ""},
    {"POST /hello HTTP/1.1", "", 405, "Allow: GET, HEAD, OPTIONS"},
    {"GET /echo HTTP/1.1", "", 405, "Allow: POST, OPTIONS"},
    {"BREW /hello HTTP/1.1", "", 405, "Allow: GET"},
    {"TRACE /hello HTTP/1.1", "", 405, ""},
    {"CONNECT h:80 HTTP/1.1", "", 400, ""},
    {"OPTIONS * HTTP/1.1", "", 400, ""},
    {"GET hello HTTP/1.1", "", 400, ""},
    {"GET /%2e%2e/hello HTTP/1.1", "", 400, ""},
    {"GET /files/..%2f..%2fetc HTTP/1.1", "", 400, ""},
    {"GET /files/a%00b HTTP/1.1", "", 400, ""},
    {"GET /hello#x HTTP/1.1", "", 400, ""},
    {"GET /a\\b HTTP/1.1", "", 400, ""},
    {"GET /fail HTTP/1.1", "", 429,
     "{\"detail\":\"no \\\"more\\\" of it\",\"error\":\"LIMIT_REACHED\","
     "\"message\":\"no \\\"more\\\" of it\",\"details\":null}"},
    {"GET /silent HTTP/1.1", "", 500, "INTERNAL"},
    {"GET /twice HTTP/1.1", "", 200, "hello"},
    {"GET /bad-header HTTP/1.1", "", 200, "hello"},
};

TEST(paths_have_one_handler)
{
    auto_served struct served s = start();

    for (size_t i = 0; i < ARRAY_LEN(path_rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        char text[1024];

        snprintf(text, sizeof(text), "%s\r\n" HOST "%s\r\n", path_rows[i].line,
                 path_rows[i].header);
        if (raw_request(r, text) != path_rows[i].status || raw_answers(r) != 1)
            test_fail(__FILE__, __LINE__, "'%s' gives %s", path_rows[i].line, r->data);
        assert_str_has(r->data, path_rows[i].has);
        assert_null(strstr(r->data, "forged"));
    }
}

TEST(a_head_and_a_refusal_keep_the_connection)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);

    raw_text(r, "HEAD /hello HTTP/1.1\r\n" HOST "\r\nGET /none HTTP/1.1\r\n" HOST "\r\n"
                "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    assert_true(raw_wait(r, "hello", RAW_WAIT_MS));
    assert_uint_eq(raw_answers(r), 3);
}

TEST(targets_and_headers_that_are_too_long_are_refused)
{
    auto_served struct served s = start();

    for (int form = 0; form < 4; form++) {
        static const size_t lengths[] = {9000, 65536, 300000, 300000};
        auto_raw struct raw *r = raw_open(s.port, 0);
        auto_buf struct buf b = {.max = 1 << 20};
        bool header = form == 3;

        assert_int_eq(buf_append_str(&b, header ? "GET / HTTP/1.1\r\nX: " : "GET /"), 0);
        for (size_t i = 0; i < lengths[form]; i++)
            assert_int_eq(buf_append_byte(&b, 'a'), 0);
        assert_int_eq(buf_append_str(&b, header ? "\r\n\r\n" : " HTTP/1.1\r\n" HOST "\r\n"), 0);
        raw_send(r, b.data, b.len);
        shutdown(r->fd, SHUT_WR);
        assert_true(raw_drain(r, RAW_WAIT_MS));
        assert_int_eq(raw_status(r), header ? 431 : 414);
    }
}

/* ---- bodies ---- */

static const struct {
    const char *head, *body;
    int status;
    const char *has;
} body_rows[] = {
    {"POST /echo HTTP/1.1\r\nContent-Length: 3\r\n", "abc", 200, "X-Length: 3\r\n"},
    {"POST /echo HTTP/1.1\r\nContent-Length: 0\r\n", "", 200, "X-Length: 0\r\n"},
    {"POST /echo HTTP/1.1\r\n", "", 200, "X-Length: 0\r\n"},
    {"POST /echo HTTP/1.0\r\nContent-Length: 3\r\n", "abc", 200, "X-Length: 3\r\n"},
    {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
     "3;x=y\r\nabc\r\nA\r\n0123456789\r\n"
     "0\r\nX: y\r\n\r\n",
     200, "X-Length: 13\r\n"},
    {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 200, "X-Length: 0\r\n"},
    {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", "0\r\n\r\n", 400,
     "ambiguous"},
    {"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n", "abc", 100,
     "X-Length: 3\r\n"},
    {"POST /echo HTTP/1.1\r\nContent-Encoding: identity\r\nContent-Length: 3\r\n", "abc", 200, ""},
    {"POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n", "abc", 415, ""},
    {"POST /echo HTTP/1.1\r\nContent-Encoding: br\r\nContent-Length: 3\r\n", "abc", 415, ""},
    {"POST /echo HTTP/1.1\r\nContent-Encoding: gzip, identity\r\nContent-Length: 3\r\n", "abc", 415,
     ""},
    {"POST /echo HTTP/1.1\r\nContent-Encoding: deflate\r\n", "", 415, ""},
    {"POST /small HTTP/1.1\r\nContent-Length: 10\r\n", "0123456789", 200, "X-Length: 10\r\n"},
    {"POST /small HTTP/1.1\r\nContent-Length: 11\r\n", "0123456789a", 413, "too large"},
    {"POST /small HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 11\r\n", "", 413, ""},
    {"POST /small HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "A\r\n0123456789\r\n0\r\n\r\n", 200,
     "X-Length: 10\r\n"},
    {"POST /small HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
     "A\r\n0123456789\r\n1\r\na\r\n"
     "0\r\n\r\n",
     413, "too large"},
    {"POST /none HTTP/1.1\r\nContent-Length: 3\r\n", "abc", 404, ""},
    {"GET /hello HTTP/1.1\r\nContent-Length: 3\r\n", "abc", 200, "hello"},
};

TEST(bodies_come_whole_or_are_refused)
{
    auto_served struct served s = start();

    for (size_t i = 0; i < ARRAY_LEN(body_rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        char text[1024];

        snprintf(text, sizeof(text), "%s" HOST "\r\n%s", body_rows[i].head, body_rows[i].body);
        if (raw_request(r, text) != body_rows[i].status)
            test_fail(__FILE__, __LINE__, "'%s' gives %s", text, r->data);
        assert_str_has(r->data, body_rows[i].has);
    }
}

TEST(a_large_body_is_refused_before_it_is_read)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);
    char piece[65536] = {0};
    int64_t began = clock_ms();

    raw_text(r, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000000\r\n\r\n");
    for (int i = 0; i < 100; i++)
        raw_send(r, piece, sizeof(piece));
    raw_drain(r, RAW_WAIT_MS);
    assert_int_eq(raw_status(r), 413);
    assert_true(clock_ms() - began < 3000);
}

TEST(all_bodies_together_are_bounded)
{
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .body_total = 100000});
    auto_raw struct raw *first = raw_open(s.port, 0), *second = raw_open(s.port, 0);
    char head[256], piece[60000] = {0};

    snprintf(head, sizeof(head),
             "POST /echo HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: 60001\r\n\r\n", s.port);
    raw_text(first, head);
    raw_send(first, piece, sizeof(piece));
    assert_false(raw_more(first, 100));
    raw_text(second, head);
    raw_send(second, piece, sizeof(piece));
    raw_drain(second, RAW_WAIT_MS);
    assert_int_eq(raw_status(second), 503);
    raw_text(first, "x");
    assert_true(raw_wait(first, "X-Length: 60001\r\n", RAW_WAIT_MS));
}

/* ---- time-outs and caps (API-06) ---- */

static struct served start_hasty(void)
{
    return served_start((struct http_options){
        .tables = tables,
        .hosts = hosts,
        .header_timeout_ms = 300,
        .idle_timeout_ms = 600,
        .body_timeout_ms = 300,
        .min_rate = 1000,
        .tick_ms = 50,
        .connections = 20,
        .connections_per_ip = 10,
    });
}

/* Sends byte by byte, each 50 ms; after how many ms the server ended it. */
static int64_t trickle(struct raw *r, const char *text)
{
    int64_t began = clock_ms();

    for (; *text && !r->ended && clock_ms() - began < 3000; text++) {
        raw_send(r, text, 1);
        raw_more(r, 50);
    }
    raw_drain(r, 3000);
    return clock_ms() - began;
}

TEST(slow_headers_and_bodies_are_cut)
{
    auto_served struct served s = start_hasty();
    auto_raw struct raw *silent_peer = raw_open(s.port, 0), *head = raw_open(s.port, 0);
    auto_raw struct raw *body = NULL;
    int64_t began = clock_ms(), ms = trickle(head, "GET /hello HTTP/1.1\r\n" HOST "X: aaaaaaaaaaa");

    assert_true(head->ended);
    if (ms < 250 || ms > 1500)
        test_fail(__FILE__, __LINE__, "slow headers are cut after %lld ms", (long long)ms);
    assert_true(raw_drain(silent_peer, 1000));
    assert_true(clock_ms() - began < 2000);
    body = raw_open(s.port, 0);
    raw_text(body, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n");
    ms = trickle(body, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_true(body->ended);
    if (ms < 250 || ms > 1500)
        test_fail(__FILE__, __LINE__, "a slow body is cut after %lld ms", (long long)ms);
}

TEST(an_idle_connection_has_longer_than_a_slow_header)
{
    auto_served struct served s = start_hasty();
    auto_raw struct raw *r = raw_open(s.port, 0);
    int64_t began;

    raw_text(r, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    assert_true(raw_wait(r, "hello", RAW_WAIT_MS));
    began = clock_ms();
    assert_false(raw_more(r, 400));
    assert_false(r->ended);
    assert_true(raw_drain(r, 2000));
    assert_true(clock_ms() - began >= 550);
}

TEST(idle_connections_make_room_for_new_ones)
{
    auto_served struct served s = served_start(
        (struct http_options){.tables = tables, .hosts = hosts, .connections_per_ip = 10});
    struct raw *all[15], *silent_peers[40];
    unsigned ended = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        all[i] = raw_open(s.port, 0);
        raw_text(all[i], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        assert_true(raw_wait(all[i], "hello", RAW_WAIT_MS));
    }
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        ended += raw_drain(all[i], i < 5 ? RAW_WAIT_MS : 1);
        assert_true(all[i]->ended == (i < 5));
    }
    assert_uint_eq(ended, 5);
    for (size_t i = 0; i < ARRAY_LEN(silent_peers); i++)
        silent_peers[i] = raw_open(s.port, 0);
    raw_free(&all[0]);
    all[0] = raw_open(s.port, 0);
    raw_text(all[0], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    assert_true(raw_wait(all[0], "hello", RAW_WAIT_MS));
    for (size_t i = 0; i < ARRAY_LEN(silent_peers); i++)
        raw_free(&silent_peers[i]);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        raw_free(&all[i]);
}

/* ---- start and stop ---- */

static const struct {
    const char *listen;
    bool remote;
    int r;
} listen_rows[] = {
    {"127.0.0.1:0", false, 0},    {"localhost:0", false, 0},
    {"127.0.0.5:0", false, 0},    {"0.0.0.0:0", true, 0},
    {"0.0.0.0:0", false, -1},     {"[::]:0", false, -1},
    {"192.0.2.1:0", false, -1},   {"127.0.0.1", false, -1},
    {"127.0.0.1:", false, -1},    {":8000", false, -1},
    {"127.0.0.1:x", false, -1},   {"127.0.0.1:65536", false, -1},
    {"example.com:0", false, -1}, {"", false, -1},
};

TEST(only_loopback_is_listened_on_unasked)
{
    for (size_t i = 0; i < ARRAY_LEN(listen_rows); i++) {
        struct http_options o = {.size = sizeof(o),
                                 .listen = listen_rows[i].listen,
                                 .allow_remote = listen_rows[i].remote};
        auto_served struct served s = {0};
        struct error err = {0};
        int r = http_server_start(&o, &s.server, &err);

        if ((r == 0) != (listen_rows[i].r == 0))
            test_fail(__FILE__, __LINE__, "'%s' gives %d %s", listen_rows[i].listen, r, err.text);
        if (r == 0)
            assert_true(http_server_port(s.server) > 0);
        else if (str_starts(listen_rows[i].listen, "0.0.0.0"))
            assert_str_has(err.text, "other machines");
    }
}

TEST(a_port_in_use_is_named)
{
    auto_served struct served s = start(), other = {0};
    char listen[32];
    struct http_options o = {.size = sizeof(o), .listen = listen};
    struct error err;

    snprintf(listen, sizeof(listen), "127.0.0.1:%u", s.port);
    assert_true(http_server_start(&o, &other.server, &err) < 0);
    assert_str_has(err.text, "cannot listen on port");
    snprintf(listen, sizeof(listen), "http://127.0.0.1:%u", s.port);
    assert_str_eq(http_server_url(s.server), listen);
}

TEST(a_port_is_named_before_anything_answers_there)
{
    struct http_listener l;
    struct http_options o = {.size = sizeof(o), .listener = &l};
    auto_served struct served s = {0}, other = {0};
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[sizeof(l.url)];
    struct error err;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    if (http_listener_open("127.0.0.1:0", false, &l, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", l.port);
    assert_str_eq(l.url, url);
    assert_false(l.is_any);
    sa.sin_port = htons(l.port);
    assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), -1);
    assert_int_eq(errno, ECONNREFUSED);
    assert_true(http_server_start(&o, &s.server, &err) == 0);
    assert_int_eq(l.fd, -1);
    assert_str_eq(http_server_url(s.server), url);
    assert_int_eq(http_server_port(s.server), l.port);
    o = (struct http_options){.size = sizeof(o), .listen = url + strlen("http://")};
    assert_true(http_server_start(&o, &other.server, &err) < 0);
    http_listener_close(&l);
}

TEST(ipv6_loopback_is_served_where_there_is_any)
{
    struct http_options o = {.size = sizeof(o), .listen = "[::1]:0", .tables = tables};
    auto_served struct served s = {0};
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    auto_raw struct raw *r = calloc(1, sizeof(*r));
    char text[128];
    struct error err;

    assert_not_null(r);
    r->fd = -1;
    if (http_server_start(&o, &s.server, &err) < 0)
        test_skip("no IPv6 here: %s", err.text);
    sa.sin6_port = htons(http_server_port(s.server));
    r->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_eq(connect(r->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    snprintf(text, sizeof(text), "GET /hello HTTP/1.1\r\nHost: [::1]:%u\r\n\r\n",
             http_server_port(s.server));
    assert_int_eq(raw_request(r, text), 200);
}
