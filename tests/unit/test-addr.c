/* SPDX-License-Identifier: MIT */
/* Address classes, the one canonical parse of host names, and rules (NET-05 and a part of NET-02).
 */
#include "base/str.h"
#include "tests/lib/test.h"
#include "wire/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static const struct {
    const char *text;
    enum addr_class class;
} class_rows[] = {
    {"8.8.8.8", ADDR_PUBLIC},
    {"192.0.2.1", ADDR_PUBLIC},
    {"198.51.100.7", ADDR_PUBLIC},
    {"203.0.113.80", ADDR_PUBLIC},
    {"2001:db8::1", ADDR_PUBLIC},
    {"2606:4700:4700::1111", ADDR_PUBLIC},
    {"172.15.255.255", ADDR_PUBLIC},
    {"172.32.0.0", ADDR_PUBLIC},
    {"100.63.255.255", ADDR_PUBLIC},
    {"100.128.0.0", ADDR_PUBLIC},
    {"198.17.255.255", ADDR_PUBLIC},
    {"198.20.0.0", ADDR_PUBLIC},
    {"126.255.255.255", ADDR_PUBLIC},
    {"128.0.0.0", ADDR_PUBLIC},
    {"223.255.255.255", ADDR_PUBLIC},
    {"168.63.129.15", ADDR_PUBLIC},
    {"0.0.0.0", ADDR_UNSPECIFIED},
    {"0.1.2.3", ADDR_UNSPECIFIED},
    {"10.0.0.0", ADDR_PRIVATE},
    {"10.255.255.255", ADDR_PRIVATE},
    {"172.16.0.0", ADDR_PRIVATE},
    {"172.31.255.255", ADDR_PRIVATE},
    {"192.168.1.1", ADDR_PRIVATE},
    {"100.64.0.1", ADDR_SHARED},
    {"100.127.255.255", ADDR_SHARED},
    {"127.0.0.1", ADDR_LOOPBACK},
    {"127.255.255.254", ADDR_LOOPBACK},
    {"169.254.0.1", ADDR_LINK_LOCAL},
    {"169.254.169.254", ADDR_METADATA},
    {"169.254.170.2", ADDR_METADATA},
    {"100.100.100.200", ADDR_METADATA},
    {"168.63.129.16", ADDR_METADATA},
    {"192.0.0.192", ADDR_METADATA},
    {"fd00:ec2::254", ADDR_METADATA},
    {"fd20:ce::254", ADDR_METADATA},
    {"192.0.0.8", ADDR_RESERVED},
    {"192.88.99.1", ADDR_TRANSLATED},
    {"198.18.0.0", ADDR_FAKE},
    {"198.19.255.255", ADDR_FAKE},
    {"224.0.0.1", ADDR_MULTICAST},
    {"239.255.255.255", ADDR_MULTICAST},
    {"255.255.255.255", ADDR_MULTICAST},
    {"240.0.0.1", ADDR_RESERVED},
    {"::", ADDR_UNSPECIFIED},
    {"::1", ADDR_LOOPBACK},
    {"::2", ADDR_MAPPED},
    {"::10.0.0.1", ADDR_MAPPED},
    {"::ffff:10.0.0.1", ADDR_MAPPED},
    {"::ffff:8.8.8.8", ADDR_MAPPED},
    {"::ffff:0:8.8.8.8", ADDR_TRANSLATED},
    {"64:ff9b::8.8.8.8", ADDR_TRANSLATED},
    {"64:ff9b::10.0.0.1", ADDR_TRANSLATED},
    {"64:ff9b:1::1", ADDR_TRANSLATED},
    {"2001::1", ADDR_TRANSLATED},
    {"2002:a00:1::1", ADDR_TRANSLATED},
    {"2001:10::1", ADDR_RESERVED},
    {"2001:20::1", ADDR_RESERVED},
    {"100::1", ADDR_RESERVED},
    {"4000::1", ADDR_RESERVED},
    {"fc00::1", ADDR_PRIVATE},
    {"fdff::1", ADDR_PRIVATE},
    {"fe80::1", ADDR_LINK_LOCAL},
    {"febf::1", ADDR_LINK_LOCAL},
    {"fec0::1", ADDR_PRIVATE},
    {"ff02::1", ADDR_MULTICAST},
};

TEST(every_special_range_has_its_class)
{
    for (size_t i = 0; i < ARRAY_LEN(class_rows); i++) {
        struct addr a;

        if (addr_parse(class_rows[i].text, &a) < 0)
            test_fail(__FILE__, __LINE__, "cannot parse %s", class_rows[i].text);
        if (addr_classify(&a) != class_rows[i].class)
            test_fail(__FILE__, __LINE__, "%s is %s, not %s", class_rows[i].text,
                      addr_class_name(addr_classify(&a)), addr_class_name(class_rows[i].class));
    }
}

TEST(an_address_is_written_in_one_way)
{
    static const char *const bad[] = {
        "",          "1",         "127.1",          "0x7f.0.0.1",        "010.0.0.1", "1.2.3.4.5",
        "1.2.3.256", " 1.2.3.4",  "1.2.3.4 ",       "[1.2.3.4]",         "[::1",      "::1]",
        "[]",        "fe80::1%1", "2001:db8::1/64", "1:2:3:4:5:6:7:8:9",
    };
    struct addr a;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (addr_parse(bad[i], &a) == 0)
            test_fail(__FILE__, __LINE__, "'%s' is taken for an address", bad[i]);
    }
    assert_int_eq(addr_parse("[2001:db8::1]", &a), 0);
    assert_int_eq(a.family, 6);
}

TEST(an_address_survives_text_and_sockaddr)
{
    static const char *const texts[] = {"203.0.113.80", "2001:db8::5", "::1", "0.0.0.0"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct sockaddr_storage storage;
        struct addr a, b;
        char text[ADDR_TEXT];
        uint16_t port;

        assert_int_eq(addr_parse(texts[i], &a), 0);
        assert_str_eq(addr_format(&a, text), texts[i]);
        addr_to_sockaddr(&a, 443, &storage);
        assert_int_eq(addr_from_sockaddr((struct sockaddr *)&storage, &b, &port), 0);
        assert_true(addr_eq(&a, &b));
        assert_int_eq(port, 443);
    }
}

TEST(an_unknown_family_is_no_address)
{
    struct sockaddr_storage storage = {.ss_family = AF_UNIX};
    struct addr a;
    uint16_t port;

    assert_int_eq(addr_from_sockaddr((struct sockaddr *)&storage, &a, &port), -1);
}

TEST(a_mapped_address_becomes_what_it_means)
{
    struct addr a, b;
    char text[ADDR_TEXT];

    assert_int_eq(addr_parse("::ffff:10.1.2.3", &a), 0);
    addr_unmap(&a);
    assert_str_eq(addr_format(&a, text), "10.1.2.3");
    assert_int_eq(addr_parse("10.1.2.3", &b), 0);
    assert_true(addr_eq(&a, &b));
    assert_int_eq(addr_parse("2001:db8::ffff:a01:203", &a), 0);
    addr_unmap(&a);
    assert_int_eq(a.family, 6);
}

TEST(prefixes_count_bits)
{
    struct addr net, a;

    assert_int_eq(addr_parse("10.64.0.0", &net), 0);
    assert_int_eq(addr_parse("10.127.1.1", &a), 0);
    assert_true(addr_in_prefix(&a, &net, 10));
    assert_false(addr_in_prefix(&a, &net, 11));
    assert_true(addr_in_prefix(&a, &net, 0));
    assert_false(addr_in_prefix(&a, &net, 33));
    assert_int_eq(addr_parse("::", &net), 0);
    assert_false(addr_in_prefix(&a, &net, 0));
}

/* ---- names ---- */

static const struct {
    const char *text;
    const char *canonical; /* NULL: refused */
} host_rows[] = {
    {"example.com", "example.com"},
    {"EXAMPLE.Com", "example.com"},
    {"example.com.", "example.com"},
    {"xn--bcher-kva.example", "xn--bcher-kva.example"},
    {"_sip._tcp.example.com", "_sip._tcp.example.com"},
    {"my_bucket.example.com", "my_bucket.example.com"},
    {"a", "a"},
    {"1.example", "1.example"},
    {"0x7f.example", "0x7f.example"},
    {"a1", "a1"},
    {"", NULL},
    {".", NULL},
    {"example.com..", NULL},
    {".example.com", NULL},
    {"a..b", NULL},
    {"-a.example", NULL},
    {"a-.example", NULL},
    {"evil.com#.allowed.com", NULL},
    {"evil.com/.allowed.com", NULL},
    {"evil.com@allowed.com", NULL},
    {"evil.com:80", NULL},
    {"allowed.com evil.com", NULL},
    {"allowed.com\tevil", NULL},
    {"allowed.com\r\nHost: evil", NULL},
    {"*.example.com", NULL},
    {"b\303\274cher.example", NULL},
    {"127.0.0.1", NULL},
    {"127.1", NULL},
    {"2130706433", NULL},
    {"0x7f000001", NULL},
    {"0x7f.1", NULL},
    {"example.0X7F", NULL},
    {"example.0x", NULL},
    {"017700000001", NULL},
    {"example.1", NULL},
    {"1.2.3.4.", NULL},
    {"[::1]", NULL},
};

TEST(names_have_one_canonical_form)
{
    for (size_t i = 0; i < ARRAY_LEN(host_rows); i++) {
        char name[HOST_SIZE];
        int r = host_parse(host_rows[i].text, strlen(host_rows[i].text), name);

        if ((r == 0) != (host_rows[i].canonical != NULL))
            test_fail(__FILE__, __LINE__, "'%s' gives %d", host_rows[i].text, r);
        assert_str_eq(name, host_rows[i].canonical ? host_rows[i].canonical : "");
    }
}

TEST(a_nul_byte_does_not_end_a_name)
{
    static const char text[] = "allowed.com\0.evil";
    char name[HOST_SIZE];

    assert_int_eq(host_parse(text, sizeof(text) - 1, name), -1);
    assert_str_eq(name, "");
}

TEST(names_and_labels_have_their_lengths)
{
    char text[65536], name[HOST_SIZE];

    memset(text, 'a', sizeof(text));
    assert_int_eq(host_parse(text, 63, name), 0);
    assert_int_eq(host_parse(text, 64, name), -1);
    assert_int_eq(host_parse(text, sizeof(text), name), -1);
    for (size_t i = 9; i < 254; i += 10)
        text[i] = '.';
    assert_int_eq(host_parse(text, 253, name), 0);
    assert_uint_eq(strlen(name), 253);
    assert_int_eq(host_parse(text, 254, name), -1);
}

TEST(a_suffix_ends_at_a_label)
{
    assert_true(host_is_below("a.allowed.com", "allowed.com"));
    assert_true(host_is_below("a.b.allowed.com", "allowed.com"));
    assert_false(host_is_below("allowed.com", "allowed.com"));
    assert_false(host_is_below("xallowed.com", "allowed.com"));
    assert_false(host_is_below("allowed.com.evil.com", "allowed.com"));
    assert_false(host_is_below("com", "allowed.com"));
    assert_false(host_is_below("a.allowed.com", ""));
}

/* ---- rules ---- */

static bool rule_matches(const char *rule, const char *name)
{
    struct addr_rule r;
    char canonical[HOST_SIZE];
    struct error err;

    assert_ok(addr_rule_parse(rule, 0, &r, &err), err);
    return host_parse(name, strlen(name), canonical) == 0 && addr_rule_has_name(&r, canonical);
}

TEST(rules_match_names_exactly_or_below)
{
    assert_true(rule_matches("allowed.com", "allowed.com"));
    assert_true(rule_matches("Allowed.COM.", "ALLOWED.com"));
    assert_false(rule_matches("allowed.com", "a.allowed.com"));
    assert_false(rule_matches("allowed.com", "xallowed.com"));
    assert_false(rule_matches("allowed.com", "allowed.com.evil.com"));
    assert_true(rule_matches("*.allowed.com", "a.allowed.com"));
    assert_true(rule_matches("*.allowed.com", "a.b.Allowed.com."));
    assert_false(rule_matches("*.allowed.com", "allowed.com"));
    assert_false(rule_matches("*.allowed.com", "xallowed.com"));
    assert_false(rule_matches("*.allowed.com", "a.allowed.com.evil.com"));
    assert_true(rule_matches("*.com", "allowed.com"));
}

TEST(rules_that_are_none_are_refused)
{
    static const char *const bad[] = {
        "",         "*",         "*.",       "**.com",   "a.*.com", "*com",
        "a b",      "a,b",       "1.2.3",    "http://a", "a/b",     "10.0.0.0/8",
        "a.com:80", "*.1.2.3.4", "a\nb.com", ".com",     "*..com",  "[a.com]",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct addr_rule r;
        struct error err;

        if (addr_rule_parse(bad[i], 0, &r, &err) == 0)
            test_fail(__FILE__, __LINE__, "'%s' is taken for a rule", bad[i]);
        assert_int_eq(err.code, ERR_INVALID);
    }
}

TEST(rules_hold_for_their_port)
{
    struct addr_rule r;
    struct addr a;
    struct error err;

    assert_ok(addr_rule_parse("::ffff:10.0.0.1", 5432, &r, &err), err);
    assert_int_eq(addr_parse("10.0.0.1", &a), 0);
    assert_true(addr_rule_has_addr(&r, &a));
    assert_false(addr_rule_has_name(&r, "10.0.0.1"));
    assert_true(addr_rule_has_port(&r, 5432));
    assert_false(addr_rule_has_port(&r, 5433));
    r.port = 0;
    assert_true(addr_rule_has_port(&r, 1));
}

TEST(ports_are_split_from_hosts)
{
    static const struct {
        const char *text, *host;
        int port; /* -1: refused */
    } rows[] = {
        {"a.com", "a.com", 0},
        {"a.com:80", "a.com", 80},
        {"[::1]:443", "[::1]", 443},
        {"[::1]", "[::1]", 0},
        {"::1", "::1", 0},
        {"a.com:", "", -1},
        {"a.com:0", "", -1},
        {"a.com:65536", "", -1},
        {"a.com:8x", "", -1},
        {":80", "", -1},
        {"", "", -1},
        {"1.2.3.4:65535", "1.2.3.4", 65535},
        {"a.com:+80", "", -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char host[HOST_SIZE];
        uint16_t port = 0;
        int r = addr_split_port(rows[i].text, host, &port, NULL);

        if ((r == 0) != (rows[i].port >= 0))
            test_fail(__FILE__, __LINE__, "'%s' gives %d", rows[i].text, r);
        assert_str_eq(host, rows[i].host);
        if (r == 0)
            assert_int_eq(port, rows[i].port);
    }
}
