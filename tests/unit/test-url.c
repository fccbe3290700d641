/* SPDX-License-Identifier: MIT */
/* URLs of settings: one reading, and hosts that a secret may not be sent to. */
#include "wire/url.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <stdio.h>

static struct url parsed(const char *text)
{
    struct error err;
    struct url u;

    assert_ok(url_parse(text, &u, &err), err);
    return u;
}

TEST(url_is_read_into_one_form)
{
    static const struct {
        const char *text, *origin, *path;
    } cases[] = {
        {"https://api.example.test/v1", "https://api.example.test:443", "/v1"},
        {"http://Api.EXAMPLE.test./v1/", "http://api.example.test:80", "/v1"},
        {"HTTPS://a", "https://a:443", ""},
        {"http://a/", "http://a:80", ""},
        {"http://a///", "http://a:80", ""},
        {"http://a:8080/x//y/", "http://a:8080", "/x//y"},
        {"http://127.0.0.1:11434", "http://127.0.0.1:11434", ""},
        {"http://[::1]:8000/v1", "http://[::1]:8000", "/v1"},
        {"http://[0:0:0:0:0:0:0:1]", "http://[::1]:80", ""},
        {"http://[2001:DB8::0:1]/", "http://[2001:db8::1]:80", ""},
        {"http://[::ffff:10.0.0.1]/", "http://10.0.0.1:80", ""},
        {"http://[::ffff:7f00:1]/", "http://127.0.0.1:80", ""},
        {"https://x_y-z.test:65535/a.b/..c/...", "https://x_y-z.test:65535", "/a.b/..c/..."},
        {"https://a/%7Euser/%41", "https://a:443", "/%7Euser/%41"},
        {"https://a/v1/models/gem:stream", "https://a:443", "/v1/models/gem:stream"},
        {"https://a/@me", "https://a:443", "/@me"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct url u = parsed(cases[i].text);
        char origin[HOST_SIZE + 32];

        assert_int_eq(url_origin_format(&u, origin, sizeof(origin)), 0);
        assert_str_eq(origin, cases[i].origin);
        assert_str_eq(u.path, cases[i].path);
    }
}

TEST(url_is_refused_when_it_has_two_readings)
{
    static const char *const cases[] = {
        "",
        "a",
        "//a",
        "http:",
        "http:/a",
        "http://",
        "http:///x",
        "http://:80/",
        "ftp://a",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "httpss://a",
        " http://a",
        "http://a ",
        "http://a b",
        "http://a\t",
        "http://a\n",
        "http://a\r\nHost: b",
        "http://\x7f",
        "http://a\\b",
        "http://a\\@b",
        "http://a/b\\c",
        "http://user@a",
        "http://user:pw@a",
        "http://@a",
        "http://a@b:80/",
        "http://a#@b",
        "http://a?x",
        "http://a/?x",
        "http://a/#x",
        "http://a/x#",
        "http://a:0",
        "http://a:65536",
        "http://a:",
        "http://a:+1",
        "http://a: 1",
        "http://a:80:80",
        "http://a:8o",
        "http://a:000080",
        "http://a/.",
        "http://a/..",
        "http://a/../b",
        "http://a/b/./c",
        "http://a/%2e%2E/b",
        "http://a/.%2e",
        "http://a/%2e",
        "http://a/b%2fc",
        "http://a/b%5Cc",
        "http://a/%",
        "http://a/%2",
        "http://a/%zz",
        "http://a/%00",
        "http://a/%0d%0a",
        "http://a/%7f",
        "http://-a",
        "http://a-",
        "http://a..b",
        "http://.a",
        "http://a%41",
        "http://\xc3\xa4",
        "http://a/\xc3\xa4",
        "http://[::1",
        "http://::1",
        "http://::1/",
        "http://[::1]x",
        "http://[127.0.0.1]",
        "http://[fe80::1%25eth0]",
        "http://[fe80::1%eth0]",
        "http://[]",
        "http://[a]",
        "http://a,b",
        "http://a;b",
        "http://a|b",
        "http://a\"b",
        "http://<a>",
    };
    struct error err;
    struct url u;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (url_parse(cases[i], &u, &err) != -ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' is taken: %s %u %s", cases[i], u.host, u.port,
                      u.path);
        assert_null(strstr(err.text, "pw"));
    }
}

/* Other spellings of an address would pass as a name here and be connected to as an address. */
TEST(url_takes_no_address_in_disguise)
{
    static const char *const cases[] = {
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.1",
        "127.0.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.0x1",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.0.0.1",
        "0",
        "0x",
        "a.0x7f",
        "localhost.1",
        "169.254.43518",
        "127.000.000.001",
        "1.1.1.1..",
    };
    char text[128];
    struct url u;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(text, sizeof(text), "http://%s/", cases[i]);
        if (url_parse(text, &u, NULL) != -ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' is taken as %s", text, u.host);
    }
}

TEST(url_has_a_bound)
{
    auto_free char *text = malloc(URL_MAX + 1);
    struct url u;

    assert_not_null(text);
    memset(text, 'a', URL_MAX);
    memcpy(text, "http://a/", 9);
    text[URL_MAX] = 0;
    assert_int_eq(url_parse(text, &u, NULL), -ERR_INVALID);
    text[URL_MAX - 1] = 0;
    assert_int_eq(url_parse(text, &u, NULL), 0);
    assert_uint_eq(strlen(u.path), URL_MAX - 1 - 8);
}

TEST(url_origin_needs_room)
{
    struct url u = parsed("https://example.test");
    char text[24];

    assert_int_eq(url_origin_format(&u, text, sizeof(text)), -1);
    assert_str_eq(text, "");
    u = parsed("https://example.tes");
    assert_int_eq(url_origin_format(&u, text, sizeof(text)), 0);
    assert_str_eq(text, "https://example.tes:443");
}

TEST(url_knows_hosts_that_are_not_public)
{
    static const char *const loopback[] = {"localhost",         "a.localhost", "LOCALHOST.",
                                           "127.0.0.1",         "127.255.1.2", "[::1]",
                                           "[::ffff:127.0.0.1]"};
    static const char *const private[] = {
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.1.1",
        "100.64.0.1",
        "100.127.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "0.1.2.3",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.0.192",
        "[::]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[fd00:ec2::254]",
        "[::ffff:10.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[::10.0.0.1]",
        "[::ffff:0:10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::1]",
        "[2002:0a00:0001::1]",
        "[2001:0:1::1]",
        "metadata.google.internal",
        "metadata",
    };
    static const char *const public[] = {
        "api.openai.test", "1.1.1.1",           "172.32.0.1",
        "100.128.0.1",     "[2606:4700::1111]", "[::ffff:1.1.1.1]",
        "localhosts",      "notlocalhost",      "localhost.example.test"};
    char text[128];
    struct url u;

    for (size_t i = 0; i < ARRAY_LEN(loopback); i++) {
        snprintf(text, sizeof(text), "http://%s/", loopback[i]);
        u = parsed(text);
        if (!url_is_loopback(&u) || !url_is_private(&u))
            test_fail(__FILE__, __LINE__, "%s is not loopback", text);
    }
    for (size_t i = 0; i < ARRAY_LEN(private); i++) {
        snprintf(text, sizeof(text), "http://%s/", private[i]);
        u = parsed(text);
        if (url_is_loopback(&u) || !url_is_private(&u))
            test_fail(__FILE__, __LINE__, "%s is not private", text);
    }
    for (size_t i = 0; i < ARRAY_LEN(public); i++) {
        snprintf(text, sizeof(text), "http://%s/", public[i]);
        u = parsed(text);
        if (url_is_loopback(&u) || url_is_private(&u))
            test_fail(__FILE__, __LINE__, "%s is not public", text);
    }
}

TEST(percent_encoding_leaves_what_is_unreserved)
{
    auto_buf struct buf b;

    buf_init(&b, 4096);
    assert_int_eq(url_percent_append(&b, "aZ09-._~/ %\xc3\xa9"), 0);
    assert_str_eq(buf_str(&b), "aZ09-._~%2F%20%25%C3%A9");
}
