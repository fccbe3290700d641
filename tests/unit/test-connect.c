/* SPDX-License-Identifier: MIT */
/* The proxy's URL, the request to it, and every way in which its answer can be wrong (NET-06). */
#include "base/str.h"
#include "tests/lib/test.h"
#include "wire/connect.h"

TEST(a_proxy_url_is_read)
{
    struct connect_proxy p;
    struct error err;

    assert_ok(connect_proxy_parse("http://proxy.example:3128", &p, &err), err);
    assert_str_eq(p.host, "proxy.example");
    assert_int_eq(p.port, 3128);
    assert_false(p.literal);
    assert_str_eq(p.auth, "");
    assert_ok(connect_proxy_parse("HTTP://10.0.0.1/", &p, &err), err);
    assert_true(p.literal);
    assert_int_eq(p.port, 80);
    assert_ok(connect_proxy_parse("http://[2001:db8::1]:8080", &p, &err), err);
    assert_true(p.literal);
    assert_int_eq(p.addr.family, 6);
    assert_int_eq(p.port, 8080);
}

TEST(credentials_are_decoded_and_encoded)
{
    struct connect_proxy p;
    struct error err;

    assert_ok(connect_proxy_parse("http://user:p%40ss@proxy.example:1", &p, &err), err);
    assert_str_eq(p.auth, "dXNlcjpwQHNz");
    assert_ok(connect_proxy_parse("http://user@proxy.example:1", &p, &err), err);
    assert_str_eq(p.auth, "dXNlcjo=");
    assert_ok(connect_proxy_parse("http://a:b@c@proxy.example:1", &p, &err), err);
    assert_str_eq(p.auth, "YTpiQGM=");
    assert_str_eq(p.host, "proxy.example");
}

TEST(a_bad_proxy_url_is_refused_without_being_repeated)
{
    static const char *const bad[] = {
        "",
        "proxy.example:3128",
        "https://canary:canary@proxy.example:3128",
        "socks5://canary@proxy.example",
        "http://",
        "http://canary:canary@",
        "http://canary%0d%0aX: y@proxy.example:1",
        "http://canary%zz@proxy.example:1",
        "http://canary%4@proxy.example:1",
        "http://canary:x@proxy.example:0",
        "http://canary:x@proxy.example:99999",
        "http://canary:x@proxy.example:1/path",
        "http://canary:x@proxy example:1",
        "http://canary:x@127.1:1",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct connect_proxy p;
        struct error err;

        if (connect_proxy_parse(bad[i], &p, &err) == 0)
            test_fail(__FILE__, __LINE__, "'%s' is taken for a proxy", bad[i]);
        assert_null(strstr(err.text, "canary"));
    }
}

TEST(credentials_have_a_longest_length)
{
    char url[2048] = "http://";
    struct connect_proxy p;
    struct error err;

    memset(url + 7, 'u', 767);
    memcpy(url + 7 + 767, "@p:1", 5);
    assert_ok(connect_proxy_parse(url, &p, &err), err);
    memset(url + 7, 'u', 768);
    memcpy(url + 7 + 768, "@p:1", 5);
    assert_int_eq(connect_proxy_parse(url, &p, &err), -ERR_INVALID);
}

TEST(a_request_names_its_target_twice)
{
    auto_buf struct buf b = {.max = 4096};
    struct connect_proxy p;
    struct error err;
    char target[HOST_PORT_TEXT];

    assert_ok(connect_proxy_parse("http://u:p@proxy.example:1", &p, &err), err);
    connect_target_format("example.com", 443, target);
    assert_int_eq(connect_request_format(&p, target, &b), 0);
    assert_str_eq(buf_str(&b), "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n"
                               "Proxy-Authorization: Basic dTpw\r\n\r\n");
    assert_str_eq(connect_target_format("2001:db8::1", 80, target), "[2001:db8::1]:80");
}

static const struct {
    const char *text;
    int result;      /* 1 stands, 0 more, -1 refused */
    const char *why; /* part of the reason */
} reply_rows[] = {
    {"", 0, NULL},
    {"H", 0, NULL},
    {"HTTP/1.1 200 OK\r\n", 0, NULL},
    {"HTTP/1.1 200 OK\r\nVia: x\r\n", 0, NULL},
    {"HTTP/1.1 200 OK\r\n\r\n", 1, NULL},
    {"HTTP/1.0 200\r\n\r\n", 1, NULL},
    {"HTTP/1.1 200 Connection established\n\n", 1, NULL},
    {"HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n", 1, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 1, NULL},
    {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", -1, "407"},
    {"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", -1, "redirect (302)"},
    {"HTTP/1.1 200 OK\r\nLOCATION: http://x/\r\n\r\n", -1, "200 and a redirect"},
    {"HTTP/1.1 403 Forbidden\r\n\r\n", -1, "refused (403)"},
    {"HTTP/1.1 502 Bad\r\n\r\n", -1, "refused (502)"},
    {"HTTP/1.1 100 Continue\r\n\r\n", -1, "refused (100)"},
    {"HTTP/2 200\r\n\r\n", -1, "not HTTP"},
    {"SSH-2.0-OpenSSH", -1, "not HTTP"},
    {"X", -1, "not HTTP"},
    {"\r\n", -1, "not HTTP"},
    {"HTTP/1.1 20\r\n\r\n", -1, "not HTTP"},
    {"HTTP/1.1 2000 OK\r\n\r\n", -1, "not HTTP"},
    {"HTTP/1.1 099 OK\r\n\r\n", -1, "not HTTP"},
    {"HTTP/1.1  200 OK\r\n\r\n", -1, "not HTTP"},
    {"HTTP/1.1 200 a\x1b[2Jb\r\n\r\n", -1, "not HTTP"},
    {"HTTP/1.1 200 OK\rLocation: x\r\n\r\n", -1, "not HTTP"},
};

TEST(answers_stand_wait_or_are_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(reply_rows); i++) {
        struct connect_reply reply;
        struct error err = {};
        int r = connect_reply_parse(reply_rows[i].text, strlen(reply_rows[i].text), &reply, &err);

        if ((r > 0) - (r < 0) != reply_rows[i].result)
            test_fail(__FILE__, __LINE__, "'%s' gives %d", reply_rows[i].text, r);
        if (r < 0)
            assert_str_has(err.text, reply_rows[i].why);
        if (r > 0)
            assert_uint_eq(reply.length, strlen(reply_rows[i].text));
    }
}

TEST(what_follows_the_headers_is_the_tunnels)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nA: b\r\n\r\nSSH-2.0\r\n\r\n";
    struct connect_reply reply;

    assert_int_eq(connect_reply_parse(text, sizeof(text) - 1, &reply, NULL), 1);
    assert_str_eq(text + reply.length, "SSH-2.0\r\n\r\n");
}

TEST(headers_that_never_end_are_refused)
{
    char text[CONNECT_HEADER_MAX + 100] = "HTTP/1.1 200 OK\r\n";
    size_t len = strlen(text);
    struct connect_reply reply;
    struct error err;

    while (len < CONNECT_HEADER_MAX - 1) {
        text[len] = len % 50 ? 'a' : '\n';
        len++;
    }
    assert_int_eq(connect_reply_parse(text, len, &reply, &err), 0);
    text[len++] = 'a';
    assert_int_eq(connect_reply_parse(text, len, &reply, &err), -ERR_LIMIT);
}

TEST(an_answer_never_speaks_through_the_reason)
{
    static const char text[] = "HTTP/1.1 407 canary\r\nX: canary\r\n\r\n";
    struct connect_reply reply;
    struct error err;

    assert_int_eq(connect_reply_parse(text, sizeof(text) - 1, &reply, &err), -ERR_DENIED);
    assert_null(strstr(err.text, "canary"));
}
