/* SPDX-License-Identifier: MIT */
/*
 * Who is asked for, and when: before anything of a body is read, after what is nobody's matter, and
 * never for OPTIONS. Then what handlers get by their table, and repeated values of a query.
 */
#include "base/str.h"
#include "tests/lib/rawhttp.h"

#include <stdatomic.h>

static atomic_int asked;

/* "good" is somebody, "silent" gets no answer, all others a 401. */
static bool admit(void *user, struct http_request *req)
{
    const char *key = http_header(req, "X-Key");
    struct error error;

    atomic_fetch_add(&asked, 1);
    if (key && str_eq(key, "good")) {
        char name[32];

        snprintf(name, sizeof(name), "%s of %s", (const char *)user, (const char *)http_user(req));
        http_set_principal(req, name);
        return true;
    }
    if (key && str_eq(key, "silent"))
        return false;
    http_header_add(req, "WWW-Authenticate", "Bearer");
    error_set(&error, ERR_DENIED, "a key is needed");
    http_fail(req, 401, &error);
    return false;
}

static void show(struct http_request *req)
{
    const char *third = http_query_at(req, "id", 2);
    char *text = arena_printf(http_arena(req), "[%s] %s %zu %s %s.", http_principal(req),
                              (const char *)http_user(req), http_body(req)->len,
                              third ? third : "-", http_query_at(req, "id", 3) ? "more" : "none");

    http_respond(req, 200, "text/plain", text, strlen(text));
}

static const struct route_entry first[] = {
    {"GET", "/first", "", show, 0, NULL},
    {"POST", "/first", "", show, 1000, NULL},
    {.path = NULL},
};
static const struct route_entry second[] = {
    {"GET", "/first", "", show, 0, NULL},
    {"PUT", "/first", "", show, 0, NULL},
    {"GET", "/second", "", show, 0, NULL},
    {.path = NULL},
};
static char one[] = "one", two[] = "two", kim[] = "kim";
static const struct route_table tables[] = {{first, one}, {second, two}, {.entries = NULL}};
static const char *const hosts[] = {"h", NULL};

static struct served start(void)
{
    atomic_store(&asked, 0);
    return served_start((struct http_options){.tables = tables,
                                              .hosts = hosts,
                                              .admit = admit,
                                              .admit_user = kim,
                                              .loopback_origins = true});
}

#define GOOD "X-Key: good\r\n"

static const struct {
    const char *line, *more, *body;
    int status, asked;
    const char *has;
} rows[] = {
    {"GET /first", GOOD, "", 200, 1, "[kim of one] one 0 - none."},
    {"PUT /first", GOOD, "", 200, 1, "[kim of two] two 0 - none."},
    {"GET /second?id=a&x=y&id=b&id=c%20d", GOOD, "", 200, 1, "two 0 c d none."},
    {"GET /second?id=a&id=b&id=&id=d", GOOD, "", 200, 1, "two 0  more."},
    {"HEAD /second", GOOD, "", 200, 1, ""},
    {"POST /first", GOOD "Content-Length: 3\r\n", "abc", 200, 1, "one 3 "},
    {"POST /first", GOOD "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", 200, 1,
     "one 3 "},
    {"POST /first", GOOD "Expect: 100-continue\r\nContent-Length: 3\r\n", "abc", 100, 1, "one 3 "},
    {"GET /first", "", "", 401, 1,
     "{\"detail\":\"a key is needed\",\"error\":\"DENIED\",\"message\":\"a key is needed\","
     "\"details\":null}"},
    {"GET /first", "X-Key: bad\r\n", "", 401, 1, "WWW-Authenticate: Bearer\r\n"},
    {"POST /first", "", "", 401, 1, "a key is needed"},
    {"POST /first", "Content-Length: 3\r\n", "abc", 401, 1, "Connection: close\r\n"},
    {"POST /first", "Transfer-Encoding: chunked\r\n", "", 401, 1, "Connection: close\r\n"},
    {"POST /first", "Expect: 100-continue\r\nContent-Length: 3\r\n", "", 401, 1, "a key"},
    {"GET /first", "X-Key: silent\r\n", "", 500, 1, "not answered"},
    {"POST /first", "X-Key: silent\r\nContent-Length: 3\r\n", "abc", 401, 1, "not admitted"},
    {"GET /none", "", "", 404, 0, ""},
    {"DELETE /first", "", "", 405, 0, ""},
    {"POST /first", "Content-Length: 1001\r\n", "", 413, 0, ""},
    {"GET /first", "Origin: http://evil.test\r\n", "", 403, 0, ""},
    {"GET /first?%", "", "", 400, 0, ""},
    {"OPTIONS /first", "", "", 204, 0, "Allow: GET, HEAD, POST, PUT, OPTIONS\r\n"},
    {"OPTIONS /first", "Origin: http://localhost:3000\r\nAccess-Control-Request-Method: GET\r\n",
     "", 204, 0, "Access-Control-Allow-Origin: http://localhost:3000\r\n"},
    /* A page may read why it is refused. */
    {"GET /first", "Origin: http://localhost:3000\r\n", "", 401, 1,
     "Access-Control-Allow-Origin: http://localhost:3000\r\n"},
};

TEST(a_principal_is_asked_for_before_a_body_is_read)
{
    auto_served struct served s = start();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        char text[1024];

        atomic_store(&asked, 0);
        snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: h\r\n%s\r\n%s", rows[i].line,
                 rows[i].more, rows[i].body);
        if (raw_request(r, text) != rows[i].status || atomic_load(&asked) != rows[i].asked)
            test_fail(__FILE__, __LINE__, "'%s' asks %d times and gives %s", text,
                      atomic_load(&asked), r->data);
        assert_str_has(r->data, rows[i].has);
    }
}

TEST(a_stranger_need_not_send_the_body)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);

    raw_text(r, "POST /first HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
    assert_true(raw_wait(r, "a key is needed", RAW_WAIT_MS));
    raw_text(r, "GET /second HTTP/1.1\r\nHost: h\r\n" GOOD "\r\n");
    raw_drain(r, RAW_WAIT_MS);
    assert_uint_eq(raw_answers(r), 1);
}

TEST(each_request_of_a_connection_is_asked_for)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);

    raw_text(r, "GET /first HTTP/1.1\r\nHost: h\r\n" GOOD "\r\n"
                "GET /first HTTP/1.1\r\nHost: h\r\n\r\n"
                "GET /second HTTP/1.1\r\nHost: h\r\n" GOOD "Connection: close\r\n\r\n");
    assert_true(raw_drain(r, RAW_WAIT_MS));
    assert_uint_eq(raw_answers(r), 3);
    assert_int_eq(atomic_load(&asked), 3);
    assert_str_has(r->data, "a key is needed");
    assert_str_has(r->data, "[kim of two]");
}
