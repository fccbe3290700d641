/* SPDX-License-Identifier: MIT */
/* What is reachable by which way, in each mode, with and without a proxy. */
#include "base/str.h"
#include "egress/policy.h"
#include "tests/lib/test.h"

static struct policy policy;

/* Rules are "host" or "host:port", separated by spaces. */
static uint32_t rules_fill(struct egress_rule *rules, const char *text)
{
    uint32_t count = 0;

    while (text && *text) {
        size_t len = strcspn(text, " ");
        char rule[300];
        struct error err;

        memcpy(rule, text, len);
        rule[len] = 0;
        assert_ok(addr_split_port(rule, rules[count].host, &rules[count].port, &err), err);
        count++;
        text += len + (text[len] == ' ');
    }
    return count;
}

struct setting {
    const char *allow, *list, *proxy, *no_proxy;
};

#define policy_set(...) policy_set_up(&(struct setting){__VA_ARGS__})

static void policy_set_up(const struct setting *s)
{
    static struct egress_config config;
    struct error err;

    memset(&config, 0, sizeof(config));
    config.allow_count = rules_fill(config.allow, s->allow);
    config.list_count = rules_fill(config.list, s->list);
    assert_int_eq(str_copy(config.proxy, sizeof(config.proxy), s->proxy ? s->proxy : ""), 0);
    assert_int_eq(
        str_copy(config.no_proxy, sizeof(config.no_proxy), s->no_proxy ? s->no_proxy : ""), 0);
    assert_ok(policy_init(&policy, &config, &err), err);
}

static enum route route_name(enum job_network network, const char *name, uint16_t port)
{
    const struct target t = {.network = network, .name = name, .port = port};
    const char *reason;
    enum route route = policy_route(&policy, &t, &reason);

    assert_true((route == ROUTE_REFUSE) == (reason != NULL));
    return route;
}

static enum route route_public(const char *name, uint16_t port)
{
    return route_name(JOB_NETWORK_PUBLIC, name, port);
}

static enum route route_addr(enum job_network network, const char *text, uint16_t port)
{
    struct addr a;
    const struct target t = {.network = network, .addr = &a, .port = port};
    const char *reason;

    assert_int_eq(addr_parse(text, &a), 0);
    return policy_route(&policy, &t, &reason);
}

/* NULL name: the address is the target itself. */
static bool may_dial(const char *name, const char *text, uint16_t port)
{
    struct addr a;
    const struct target t = {.network = JOB_NETWORK_PUBLIC, .name = name, .addr = &a, .port = port};

    assert_int_eq(addr_parse(text, &a), 0);
    return policy_check(&policy, &t, &a) == NULL;
}

TEST(none_reaches_nothing)
{
    policy_set(.list = "a.com", .allow = "a.com");
    assert_int_eq(route_name(JOB_NETWORK_NONE, "a.com", 443), ROUTE_REFUSE);
    assert_int_eq(route_addr(JOB_NETWORK_NONE, "8.8.8.8", 443), ROUTE_REFUSE);
    assert_false(policy_has_name(&policy, JOB_NETWORK_NONE, "a.com"));
}

TEST(public_reaches_public_addresses_only)
{
    policy_set(.allow = NULL);
    assert_int_eq(route_public("a.com", 443), ROUTE_DIRECT);
    assert_int_eq(route_addr(JOB_NETWORK_PUBLIC, "8.8.8.8", 443), ROUTE_DIRECT);
    assert_true(may_dial("a.com", "8.8.8.8", 443));
    assert_true(may_dial(NULL, "203.0.113.1", 443));
    assert_false(may_dial("a.com", "10.0.0.1", 443));
    assert_false(may_dial("a.com", "127.0.0.1", 443));
    assert_false(may_dial("a.com", "::1", 443));
    assert_false(may_dial("a.com", "198.18.0.1", 443));
    assert_false(may_dial("a.com", "::ffff:8.8.8.8", 443));
    assert_false(may_dial(NULL, "169.254.169.254", 80));
    assert_false(may_dial(NULL, "168.63.129.16", 80));
    assert_true(policy_has_name(&policy, JOB_NETWORK_PUBLIC, "a.com"));
    assert_false(policy_has_name(&policy, JOB_NETWORK_PUBLIC, "4.3.2.1.in-addr.arpa"));
}

TEST(a_rule_opens_a_private_address_for_its_port)
{
    policy_set(.allow = "db.corp:5432 10.0.0.9:80 *.lan");
    assert_true(may_dial("db.corp", "10.0.0.1", 5432));
    assert_true(may_dial("db.corp", "127.0.0.1", 5432));
    assert_false(may_dial("db.corp", "10.0.0.1", 80));
    assert_false(may_dial("x.db.corp", "10.0.0.1", 5432));
    assert_true(may_dial("a.lan", "192.168.0.1", 443));
    assert_true(may_dial(NULL, "10.0.0.9", 80));
    assert_true(may_dial("evil.com", "10.0.0.9", 80));
    assert_false(may_dial("evil.com", "10.0.0.9", 443));
    assert_false(may_dial("evil.com", "10.0.0.8", 80));
}

TEST(a_rule_with_a_name_opens_no_metadata)
{
    policy_set(.allow = "db.corp 169.254.169.254:80 fe80::1");
    assert_false(may_dial("db.corp", "169.254.1.1", 80));
    assert_false(may_dial("db.corp", "100.100.100.200", 80));
    assert_false(may_dial("db.corp", "198.18.0.1", 80));
    assert_false(may_dial("db.corp", "224.0.0.1", 80));
    assert_false(may_dial("db.corp", "0.0.0.0", 80));
    assert_false(may_dial("db.corp", "::ffff:10.0.0.1", 80));
    assert_true(may_dial("db.corp", "169.254.169.254", 80));
    assert_true(may_dial(NULL, "169.254.169.254", 80));
    assert_true(may_dial(NULL, "fe80::1", 80));
}

TEST(allowlist_reaches_the_list_only)
{
    policy_set(.list = "a.com:443 *.b.com 203.0.113.5:443", .allow = "c.com");
    assert_int_eq(route_name(JOB_NETWORK_ALLOWLIST, "a.com", 443), ROUTE_DIRECT);
    assert_int_eq(route_name(JOB_NETWORK_ALLOWLIST, "a.com", 80), ROUTE_REFUSE);
    assert_int_eq(route_name(JOB_NETWORK_ALLOWLIST, "x.a.com", 443), ROUTE_REFUSE);
    assert_int_eq(route_name(JOB_NETWORK_ALLOWLIST, "x.b.com", 80), ROUTE_DIRECT);
    assert_int_eq(route_name(JOB_NETWORK_ALLOWLIST, "b.com", 80), ROUTE_REFUSE);
    assert_int_eq(route_name(JOB_NETWORK_ALLOWLIST, "c.com", 443), ROUTE_REFUSE);
    assert_int_eq(route_addr(JOB_NETWORK_ALLOWLIST, "203.0.113.5", 443), ROUTE_DIRECT);
    assert_int_eq(route_addr(JOB_NETWORK_ALLOWLIST, "203.0.113.5", 80), ROUTE_REFUSE);
    assert_int_eq(route_addr(JOB_NETWORK_ALLOWLIST, "203.0.113.6", 443), ROUTE_REFUSE);
    assert_true(policy_has_name(&policy, JOB_NETWORK_ALLOWLIST, "a.com"));
    assert_false(policy_has_name(&policy, JOB_NETWORK_ALLOWLIST, "c.com"));
    assert_false(policy_has_name(&policy, JOB_NETWORK_ALLOWLIST, "xa.com"));
}

TEST(the_host_must_be_named_with_its_port)
{
    policy_set(.allow = "host.sandbox.internal:8080 *.internal *.sandbox.internal");
    assert_int_eq(route_public("host.sandbox.internal", 8080), ROUTE_HOST);
    assert_int_eq(route_public("host.sandbox.internal", 80), ROUTE_REFUSE);
    policy_set(.allow = "host.sandbox.internal:8080", .proxy = "http://p:1");
    assert_int_eq(route_public("host.sandbox.internal", 8080), ROUTE_HOST);
}

TEST(a_proxy_takes_all_but_what_is_inside)
{
    policy_set(.allow = "index.example db.corp 10.0.0.9:80", .proxy = "http://p.example:3128",
               .no_proxy = "near.example, .dot.example,192.0.2.0/24");
    assert_int_eq(route_public("a.com", 80), ROUTE_PROXY);
    assert_int_eq(route_public("index.example", 443), ROUTE_INSPECT);
    assert_int_eq(route_public("near.example", 443), ROUTE_DIRECT);
    assert_int_eq(route_public("a.near.example", 443), ROUTE_DIRECT);
    assert_int_eq(route_public("xnear.example", 443), ROUTE_PROXY);
    assert_int_eq(route_public("a.dot.example", 443), ROUTE_DIRECT);
    assert_int_eq(route_addr(JOB_NETWORK_PUBLIC, "8.8.8.8", 80), ROUTE_PROXY);
    assert_int_eq(route_addr(JOB_NETWORK_PUBLIC, "192.0.2.9", 80), ROUTE_DIRECT);
    assert_int_eq(route_addr(JOB_NETWORK_PUBLIC, "10.0.0.9", 80), ROUTE_DIRECT);
}

TEST(local_names_do_not_go_to_a_proxy)
{
    static const char *const names[] = {
        "localhost", "a.localhost", "intranet",      "db.local", "metadata.google.internal",
        "x.corp",    "printer.lan", "metadata.goog",
    };

    policy_set(.proxy = "http://p.example:3128");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_eq(route_public(names[i], 80), ROUTE_REFUSE);
}

TEST(no_proxy_may_be_everything)
{
    policy_set(.proxy = "http://p.example:3128", .no_proxy = "*");
    assert_int_eq(route_public("a.com", 80), ROUTE_DIRECT);
}

TEST(odd_entries_of_no_proxy_match_nothing)
{
    policy_set(.proxy = "http://p:1", .no_proxy = ",, a.com/8 10.0.0.0/33 [::1 * .");
    assert_int_eq(route_public("b.com", 80), ROUTE_DIRECT); /* the star */
    policy_set(.proxy = "http://p:1", .no_proxy = "a.com/8,10.0.0.0/33,[::1,.,..");
    assert_int_eq(route_public("a.com", 80), ROUTE_PROXY);
    assert_uint_eq(policy.bypass_count, 0);
}

TEST(a_bad_configuration_is_named)
{
    static struct egress_config config;
    struct error err;

    memset(&config, 0, sizeof(config));
    config.allow_count = 1;
    memcpy(config.allow[0].host, "a b", 4);
    assert_int_eq(policy_init(&policy, &config, &err), -ERR_INVALID);
    assert_str_has(err.text, "NETWORK_ALLOW: rule 1");
    config.allow_count = 0;
    memcpy(config.proxy, "https://canary@p:1", 19);
    assert_int_eq(policy_init(&policy, &config, &err), -ERR_INVALID);
    assert_str_has(err.text, "SANDBOX_PROXY");
    assert_null(strstr(err.text, "canary"));
}
