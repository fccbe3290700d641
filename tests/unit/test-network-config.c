/* SPDX-License-Identifier: MIT */
/* NETWORK_* and index settings become egress's rules and the ports that have listeners. */
#include "engine/native/egress_config.h"

#include "base/buf.h"
#include "base/str.h"
#include "tests/lib/test.h"

static struct settings plain(void)
{
    return (struct settings){.network_ports = "80,443",
                             .network_allow = "",
                             .network_allowlist = "",
                             .proxy = "",
                             .no_proxy = "",
                             .pip_index = "",
                             .npm_registry = "",
                             .cran = ""};
}

static struct egress_config *fill(const struct settings *s)
{
    static struct egress_config config;
    struct error err;

    assert_ok(egress_config_fill(&config, s, &err), err);
    assert_ok(egress_config_check(&config, &err), err);
    return &config;
}

TEST(nothing_is_allowed_by_default)
{
    struct settings s = plain();
    struct egress_config *c = fill(&s);

    assert_uint_eq(c->allow_count, 0);
    assert_uint_eq(c->list_count, 0);
    assert_str_eq(c->proxy, "");
}

TEST(rules_name_hosts_addresses_and_ports)
{
    static const struct {
        const char *host;
        unsigned port;
    } wanted[] = {
        {"db.internal", 5432}, {"10.0.0.1", 0},       {"fd00::1", 8080},
        {"fd00::2", 0},        {"*.example.test", 0}, {"host.sandbox.internal", 11434},
        {"fe80::1", 0},
    };
    struct settings s = plain();
    struct egress_config *c;

    s.network_allow = " db.internal:5432, 10.0.0.1,,[fd00::1]:8080 [fd00::2],*.example.test,"
                      "host.sandbox.internal:11434, fe80::1 ";
    s.network_allowlist = "a.test:443";
    c = fill(&s);
    assert_uint_eq(c->allow_count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_str_eq(c->allow[i].host, wanted[i].host);
        assert_uint_eq(c->allow[i].port, wanted[i].port);
    }
    assert_uint_eq(c->list_count, 1);
    assert_str_eq(c->list[0].host, "a.test");
}

TEST(bad_rules_are_refused_by_the_setting_they_are_in)
{
    static const char *const bad[] = {
        "a:0",   "a:65536", "a:x",    "a:",          ":80",  "[::1",
        "[]:80", "[::1]x",  "[::1]:", "a:123456789", "a:-1", "a:+1",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct settings allow = plain(), list = plain();
        static struct egress_config c;
        struct error err;

        allow.network_allow = list.network_allowlist = bad[i];
        assert_int_eq(egress_config_fill(&c, &allow, &err), -ERR_INVALID);
        assert_str_has(err.text, "NETWORK_ALLOW:");
        assert_int_eq(egress_config_fill(&c, &list, &err), -ERR_INVALID);
        assert_str_has(err.text, "NETWORK_ALLOWLIST:");
    }
}

TEST(the_host_of_an_index_is_allowed_on_its_port)
{
    static const struct {
        const char *url, *host;
        unsigned port;
    } cases[] = {
        {"https://index.test/simple", "index.test", 443},
        {"http://index.test", "index.test", 80},
        {"https://user:p%40ss@index.test:8443/simple?x#y", "index.test", 8443},
        {"http://[fd00::5]:3141/root", "fd00::5", 3141},
        {"http://10.1.2.3:8081?q=a:b@c", "10.1.2.3", 8081},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct settings s = plain();
        struct egress_config *c;

        s.npm_registry = cases[i].url;
        c = fill(&s);
        assert_uint_eq(c->allow_count, 1);
        assert_str_eq(c->allow[0].host, cases[i].host);
        assert_uint_eq(c->allow[0].port, cases[i].port);
    }
}

TEST(an_index_that_is_no_web_address_is_refused)
{
    static const char *const bad[] = {"index.test", "ftp://index.test", "https://",
                                      "file:///x",  "https://user@",    "https://:443"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        static struct egress_config c;
        struct settings s = plain();
        struct error err;

        s.pip_index = bad[i];
        assert_int_eq(egress_config_fill(&c, &s, &err), -ERR_INVALID);
        assert_str_has(err.text, "SANDBOX_PIP_INDEX");
    }
}

TEST(ports_are_sorted_once_each_and_those_of_rules_among_them)
{
    static const uint16_t wanted[] = {80, 443, 3141, 5432, 8080};
    struct settings s = plain();
    uint16_t ports[JOB_PORTS];
    struct error err;
    size_t count;

    s.network_ports = "8080, 443,80 443";
    s.network_allow = "db:5432,nameless,b:80";
    s.pip_index = "http://index.test:3141/";
    assert_ok(egress_ports_fill(&s, ports, &count, &err), err);
    assert_uint_eq(count, ARRAY_LEN(wanted));
    assert_mem_eq(ports, wanted, sizeof(wanted));
    s = plain();
    s.network_ports = "";
    assert_ok(egress_ports_fill(&s, ports, &count, &err), err);
    assert_uint_eq(count, 0);
}

TEST(bad_ports_and_too_many_are_refused)
{
    static const char *const bad[] = {"0", "65536", "http", "80-90", "80;443", "00000080", "-1"};
    struct settings s = plain();
    auto_buf struct buf many;
    uint16_t ports[JOB_PORTS];
    struct error err;
    size_t count;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        s.network_ports = bad[i];
        assert_int_eq(egress_ports_fill(&s, ports, &count, &err), -ERR_INVALID);
        assert_str_has(err.text, "NETWORK_PORTS");
    }
    buf_init(&many, 4096);
    for (int i = 1; i <= JOB_PORTS + 1; i++)
        assert_int_eq(buf_printf(&many, "%d,", i), 0);
    s.network_ports = buf_str(&many);
    assert_int_eq(egress_ports_fill(&s, ports, &count, &err), -ERR_INVALID);
    s = plain();
    s.network_allow = buf_str(&many);
    assert_ok(egress_ports_fill(&s, ports, &count, &err), err);
}

TEST(more_rules_than_there_is_room_for_are_refused)
{
    static struct egress_config c;
    struct settings s = plain();
    auto_buf struct buf many;
    struct error err;

    buf_init(&many, 4096);
    for (int i = 0; i < EGRESS_RULES; i++)
        assert_int_eq(buf_printf(&many, "h%d,", i), 0);
    s.network_allow = buf_str(&many);
    assert_ok(egress_config_fill(&c, &s, &err), err);
    s.cran = "https://one.more/";
    assert_int_eq(egress_config_fill(&c, &s, &err), -ERR_INVALID);
    s.cran = "";
    assert_int_eq(buf_append_str(&many, "one.more"), 0);
    s.network_allow = buf_str(&many);
    assert_int_eq(egress_config_fill(&c, &s, &err), -ERR_INVALID);
}

TEST(a_proxy_that_is_too_long_is_refused)
{
    static struct egress_config c;
    struct settings s = plain();
    char text[2000];
    struct error err;

    memset(text, 'p', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    s.proxy = text;
    assert_int_eq(egress_config_fill(&c, &s, &err), -ERR_INVALID);
    /* It may hold a password. */
    assert_null(strstr(err.text, "ppp"));
}
