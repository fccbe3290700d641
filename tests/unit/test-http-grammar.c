/* SPDX-License-Identifier: MIT */
/* What HTTP says without a socket: targets (API-05), headers, Host and Origin, event streams. */
#include "base/str.h"
#include "tests/lib/test.h"
#include "wire/http.h"
#include "wire/sse.h"

/* The path's written form, "authority|path" for the absolute form; NULL for refused. */
static const struct {
    const char *target, *path;
} target_rows[] = {
    {"/", "/"},
    {"/a", "/a"},
    {"/a/b/", "/a/b/"},
    {"//x", "//x"},
    {"/a//b", "/a//b"},
    {"/a;x=1/b", "/a;x=1/b"},
    {"/%61", "/a"},
    {"/a%2fb", "/a%2Fb"},
    {"/a%2Fb", "/a%2Fb"},
    {"/a%252Fb", "/a%252Fb"},
    {"/a%25b", "/a%25b"},
    {"/a%5cb", "/a\\b"},
    {"/a%20b", "/a b"},
    {"/a+b", "/a+b"},
    {"/%C3%A9", "/\xc3\xa9"},
    {"/...", "/..."},
    {"/.a/..b", "/.a/..b"},
    {"/a?b=c", "/a"},
    {"/?", "/"},
    {"/a?b=../..&c=/%2e%2e/", "/a"},
    {"http://h:1/a", "h:1|/a"},
    {"HTTP://h/", "h|/"},
    {"http:///a", "|/a"},
    {"", NULL},
    {"*", NULL},
    {"a", NULL},
    {"h:80", NULL},
    {"http://h", NULL},
    {"http://h?a", NULL},
    {"https://h/a", NULL},
    {"ftp://h/a", NULL},
    {"/.", NULL},
    {"/..", NULL},
    {"/a/../b", NULL},
    {"/a/./b", NULL},
    {"/%2e%2e/", NULL},
    {"/%2e%2e%2fa", NULL},
    {"/a%2f..%2fb", NULL},
    {"/a%2f%2e", NULL},
    {"/.%2e", NULL},
    {"/%00", NULL},
    {"/a%00b", NULL},
    {"/a%", NULL},
    {"/a%4", NULL},
    {"/a%zz", NULL},
    {"/a%4g", NULL},
    {"/a#b", NULL},
    {"/a\\b", NULL},
    {"/a b", NULL},
    {"/a\tb", NULL},
    {"/a\x7f", NULL},
    {"/\xc3\xa9", NULL},
    {"/a<b>", NULL},
    {"/a\"", NULL},
    {"/a|b", NULL},
    {"/a?b=%00", NULL},
    {"/a?b=%4", NULL},
    {"/a?b=c#d", NULL},
};

TEST(a_target_has_one_form_or_none)
{
    for (size_t i = 0; i < ARRAY_LEN(target_rows); i++) {
        const char *text = target_rows[i].target;
        auto_arena struct arena arena = {.max = 1 << 20};
        struct http_target t;
        struct error err;
        int r = http_target_parse(text, strlen(text), &arena, &t, &err);
        const char *got = r == 0 && t.authority ? arena_printf(&arena, "%s|%s", t.authority, t.path)
                          : r == 0              ? t.path
                                                : NULL;

        if (!got != !target_rows[i].path || (got && !str_eq(got, target_rows[i].path)))
            test_fail(__FILE__, __LINE__, "'%s' gives '%s'", text, got ? got : "nothing");
    }
}

TEST(a_written_path_is_its_own_form)
{
    for (size_t i = 0; i < ARRAY_LEN(target_rows); i++) {
        auto_arena struct arena arena = {.max = 1 << 20};
        struct http_target a, b;
        const char *path = target_rows[i].path;

        if (!path || http_target_parse(path, strlen(path), &arena, &a, NULL) < 0)
            continue;
        assert_int_eq(http_target_parse(a.path, strlen(a.path), &arena, &b, NULL), 0);
        assert_str_eq(a.path, b.path);
    }
}

TEST(segments_and_queries_are_decoded_once)
{
    static const char text[] = "/a%2Fb/%2541?x=1&y=%26%3D+%2B&z&=e&&x=2";
    auto_arena struct arena arena = {.max = 1 << 20};
    struct http_target t;
    struct error err;

    assert_ok(http_target_parse(text, sizeof(text) - 1, &arena, &t, &err), err);
    assert_uint_eq(t.segment_count, 2);
    assert_str_eq(t.segments[0], "a/b");
    assert_str_eq(t.segments[1], "%41");
    assert_uint_eq(t.query_count, 5);
    assert_str_eq(t.query[1].name, "y");
    assert_str_eq(t.query[1].value, "&= +");
    assert_str_eq(t.query[2].name, "z");
    assert_str_eq(t.query[2].value, "");
    assert_str_eq(t.query[3].name, "");
    assert_str_eq(t.query[4].value, "2");
}

TEST(targets_are_bounded)
{
    auto_arena struct arena arena = {.max = 8 << 20};
    char text[70000];
    struct http_target t;

    memset(text, 'a', sizeof(text));
    text[0] = '/';
    assert_int_eq(http_target_parse(text, HTTP_TARGET_MAX, &arena, &t, NULL), 0);
    assert_int_eq(http_target_parse(text, 65536, &arena, &t, NULL), -ERR_LIMIT);
    for (size_t i = 0; i < 200; i += 2)
        text[i] = '/';
    assert_int_eq(http_target_parse(text, 2 * HTTP_SEGMENTS_MAX, &arena, &t, NULL), 0);
    assert_int_eq(http_target_parse(text, 2 * HTTP_SEGMENTS_MAX + 2, &arena, &t, NULL), -ERR_LIMIT);
    memcpy(text, "/?", 2);
    for (size_t i = 2; i < 1000; i += 2)
        memcpy(text + i, "a&", 2);
    assert_int_eq(http_target_parse(text, 2 + 2 * HTTP_QUERY_MAX, &arena, &t, NULL), 0);
    assert_int_eq(http_target_parse(text, 4 + 2 * HTTP_QUERY_MAX, &arena, &t, NULL), -ERR_LIMIT);
}

/* Headers as "name: value" lines; whether they may stand in a request of HTTP/1.minor. */
static const struct {
    const char *lines[4];
    unsigned minor;
    bool good;
} head_rows[] = {
    {{"Host: a"}, 1, true},
    {{"Host: a"}, 0, true},
    {{"HOST: a", "Content-Length: 5"}, 1, true},
    {{"Host: a", "Content-Length:\t 5 \t"}, 1, true},
    {{"Host: a", "Transfer-Encoding: chunked"}, 1, true},
    {{"Host: a", "transfer-encoding: Chunked"}, 1, true},
    {{"Host: a", "Origin: b"}, 1, true},
    {{"Host: a", "X: \xff"}, 1, true},
    {{NULL}, 1, false},
    {{"Host: a", "Host: a"}, 1, false},
    {{"Host: a", "Origin: b", "Origin: b"}, 1, false},
    {{"Host: a", "Content-Length: 5", "Content-Length: 5"}, 1, false},
    {{"Host: a", "Content-Length: 5", "Transfer-Encoding: chunked"}, 1, false},
    {{"Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"}, 1, false},
    {{"Host: a", "Transfer-Encoding: chunked"}, 0, false},
    {{"Host: a", "Transfer-Encoding: chunked, x"}, 1, false},
    {{"Host: a", "Transfer-Encoding: xchunked"}, 1, false},
    {{"Host: a", "Transfer-Encoding: \x0b"
                 "chunked"},
     1,
     false},
    {{"Host: a", "Transfer-Encoding: identity"}, 1, false},
    {{"Host: a", "Transfer-Encoding: "}, 1, false},
    {{"Host: a", "Content-Length: +5"}, 1, false},
    {{"Host: a", "Content-Length: -5"}, 1, false},
    {{"Host: a", "Content-Length: 0x5"}, 1, false},
    {{"Host: a", "Content-Length: 5,5"}, 1, false},
    {{"Host: a", "Content-Length: 5 5"}, 1, false},
    {{"Host: a", "Content-Length: "}, 1, false},
    {{"Host: a", "Content-Length: 9999999999999999999"}, 1, false},
    {{"Host: a", "X : y"}, 1, false},
    {{"Host: a", "X\t: y"}, 1, false},
    {{"Host: a", ": y"}, 1, false},
    {{"Host: a", "X(y): z"}, 1, false},
    {{"Host: a", "X: a\rb"}, 1, false},
    {{"Host: a", "X: a\x01"}, 1, false},
    {{"Host: a", "X: \x7f"}, 1, false},
};

static int head_run(const char *const *lines, unsigned minor)
{
    struct http_head head = {0};

    for (size_t i = 0; i < 4 && lines[i]; i++) {
        const char *colon = strchr(lines[i], ':');
        struct http_field f = {lines[i], colon + 1, (size_t)(colon - lines[i]), strlen(colon + 1)};

        if (http_head_add(&head, &f, NULL) < 0)
            return -1;
    }
    return http_head_check(&head, minor, NULL);
}

TEST(headers_stand_or_are_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(head_rows); i++) {
        if ((head_run(head_rows[i].lines, head_rows[i].minor) == 0) != head_rows[i].good)
            test_fail(__FILE__, __LINE__, "row %zu: %s", i,
                      head_rows[i].lines[1] ? head_rows[i].lines[1] : "alone");
    }
}

static const struct {
    const char *text, *host; /* NULL: refused */
    uint16_t port;
} authority_rows[] = {
    {"localhost", "localhost", 0},
    {"LocalHost:80", "localhost", 80},
    {"127.0.0.1:65535", "127.0.0.1", 65535},
    {"[::1]:1", "::1", 1},
    {"[0:0::1]", "::1", 0},
    {"a.example", "a.example", 0},
    {"localhost.", NULL, 0},
    {"localhost:", NULL, 0},
    {"localhost:0", NULL, 0},
    {"localhost:65536", NULL, 0},
    {"localhost:8a", NULL, 0},
    {"localhost:+8", NULL, 0},
    {"::1", NULL, 0},
    {"[::1", NULL, 0},
    {"[::1]x", NULL, 0},
    {"[localhost]", NULL, 0},
    {"[127.0.0.1]", NULL, 0},
    {"127.1", NULL, 0},
    {"0x7f.0.0.1", NULL, 0},
    {"2130706433", NULL, 0},
    {"user@localhost", NULL, 0},
    {"localhost:1@evil.test", NULL, 0},
    {"localhost/evil", NULL, 0},
    {"local host", NULL, 0},
    {"", NULL, 0},
    {":80", NULL, 0},
};

TEST(an_authority_is_read_strictly)
{
    for (size_t i = 0; i < ARRAY_LEN(authority_rows); i++) {
        const char *text = authority_rows[i].text;
        struct http_authority a;
        int r = http_authority_parse(text, strlen(text), &a);

        if ((r == 0) != (authority_rows[i].host != NULL))
            test_fail(__FILE__, __LINE__, "'%s' gives %d", text, r);
        if (r < 0)
            continue;
        assert_str_eq(a.host, authority_rows[i].host);
        assert_int_eq(a.port, authority_rows[i].port);
    }
}

static const struct {
    struct sse_event event;
    const char *text; /* NULL: refused */
} sse_rows[] = {
    {{.data = "a", .len = 1}, "data: a\n\n"},
    {{.event = "message", .id = "1", .data = "a", .len = 1}, "event: message\nid: 1\ndata: a\n\n"},
    {{.data = "", .len = 0}, "data: \n\n"},
    {{.data = "a\nb\r\nc\rd", .len = 8}, "data: a\ndata: b\ndata: c\ndata: d\n\n"},
    {{.data = "\n", .len = 1}, "data: \ndata: \n\n"},
    {{.data = "\r\n\r", .len = 3}, "data: \ndata: \ndata: \n\n"},
    {{.data = "a\r", .len = 2}, "data: a\ndata: \n\n"},
    {{.id = "1", .retry_ms = 500}, "id: 1\nretry: 500\n\n"},
    {{.event = "a\nb", .data = "c", .len = 1}, NULL},
    {{.event = "a\rb", .data = "c", .len = 1}, NULL},
    {{.id = "1\n\ndata: forged", .data = "c", .len = 1}, NULL},
};

TEST(events_keep_their_borders)
{
    for (size_t i = 0; i < ARRAY_LEN(sse_rows); i++) {
        auto_buf struct buf b = {.max = 4096};
        int r = sse_format(&sse_rows[i].event, &b);

        assert_int_eq(r, sse_rows[i].text ? 0 : -1);
        assert_str_eq(buf_str(&b), sse_rows[i].text ? sse_rows[i].text : "");
    }
}

TEST(an_event_that_does_not_fit_leaves_nothing)
{
    auto_buf struct buf b = {.max = 20};
    struct sse_event e = {.data = "0123456789012345", .len = 16};

    assert_int_eq(sse_format(&(struct sse_event){.data = "a", .len = 1}, &b), 0);
    assert_int_eq(sse_format(&e, &b), -1);
    assert_uint_eq(b.len, 9);
    assert_int_eq(sse_comment_format("keep-alive", &b), -1);
    buf_clear(&b);
    assert_int_eq(sse_comment_format("keep-alive", &b), 0);
    assert_str_eq(buf_str(&b), ": keep-alive\n\n");
    assert_int_eq(sse_comment_format("a\nb", &b), -1);
}
