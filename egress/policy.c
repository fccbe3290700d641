/* SPDX-License-Identifier: MIT */
/*
 * The rules. Two questions are kept apart: may this target be reached at all (the mode, the list),
 * and may this very address be dialled (its class, NETWORK_ALLOW). Behind a proxy the second one
 * can only be asked of literals and of names that are dialled directly, so names that mean
 * something inside a network are refused there by their form.
 */
#include "egress/policy.h"

#include "base/str.h"

static int rules_parse(const struct egress_rule *rules, size_t count, struct addr_rule *ret,
                       struct error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (addr_rule_parse(rules[i].host, rules[i].port, &ret[i], reterr) < 0)
            return error_wrap(reterr, "rule %zu", i + 1);
    }
    return 0;
}

/* "10.0.0.0/8", "::1", "example.com", ".example.com". What is none of these matches nothing. */
static bool bypass_parse(char *text, struct policy_bypass *ret)
{
    char *slash = strchr(text, '/');
    int64_t bits = 0;

    *ret = (struct policy_bypass){};
    if (slash)
        *slash = 0;
    if (addr_parse(text, &ret->addr) == 0) {
        ret->bits = ret->addr.family == 4 ? 32 : 128;
        if (slash && str_parse_int(slash + 1, 0, ret->bits, &bits) < 0)
            return false;
        if (slash)
            ret->bits = (unsigned)bits;
        return true;
    }
    text += *text == '.';
    return !slash && host_parse(text, strlen(text), ret->host) == 0;
}

/* Commas and spaces separate. What cannot be read matches nothing, so it still goes to the proxy.
 */
static void no_proxy_parse(struct policy *p, const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ", ");
        char text[HOST_SIZE];

        if (len > 0 && len < sizeof(text) && p->bypass_count < POLICY_NO_PROXY) {
            memcpy(text, list, len);
            text[len] = 0;
            p->bypass_all |= str_eq(text, "*");
            p->bypass_count += bypass_parse(text, &p->bypass[p->bypass_count]);
        }
        list += len + (list[len] != 0);
    }
}

int policy_init(struct policy *p, const struct egress_config *config, struct error *reterr)
{
    *p = (struct policy){.allow_count = config->allow_count, .list_count = config->list_count};
    if (rules_parse(config->allow, p->allow_count, p->allow, reterr) < 0)
        return error_wrap(reterr, "NETWORK_ALLOW");
    if (rules_parse(config->list, p->list_count, p->list, reterr) < 0)
        return error_wrap(reterr, "NETWORK_ALLOWLIST");
    if (config->proxy[0] && connect_proxy_parse(config->proxy, &p->proxy, reterr) < 0)
        return error_wrap(reterr, "SANDBOX_PROXY");
    no_proxy_parse(p, config->no_proxy);
    return 0;
}

/* ---- rules ---- */

/* Port 0 as a question: on whatever port. */
static bool rule_has(const struct addr_rule *rule, const char *name, const struct addr *a,
                     uint16_t port)
{
    if (port && !addr_rule_has_port(rule, port))
        return false;
    return (name && addr_rule_has_name(rule, name)) || (a && addr_rule_has_addr(rule, a));
}

static bool rules_have(const struct addr_rule *rules, size_t count, const struct target *t,
                       const struct addr *a)
{
    for (size_t i = 0; i < count; i++) {
        if (rule_has(&rules[i], t->name, a, t->port))
            return true;
    }
    return false;
}

/* An address is on the list only by itself: what a listed name resolves to is not asked here. */
static bool is_listed(const struct policy *p, const struct target *t)
{
    return rules_have(p->list, p->list_count, t, t->name ? NULL : t->addr);
}

bool policy_is_allowed(const struct policy *p, const struct target *t, const struct addr *a)
{
    return rules_have(p->allow, p->allow_count, t, a);
}

/* The host's loopback must be named itself: "*.internal" does not open it. */
static bool host_is_allowed(const struct policy *p, uint16_t port)
{
    for (size_t i = 0; i < p->allow_count; i++) {
        if (p->allow[i].kind == ADDR_RULE_NAME && str_eq(p->allow[i].host, POLICY_HOST_NAME) &&
            addr_rule_has_port(&p->allow[i], port))
            return true;
    }
    return false;
}

/* As curl reads NO_PROXY: a name stands for itself and all below it. */
static bool is_bypassed(const struct policy *p, const struct target *t)
{
    for (size_t i = 0; i < p->bypass_count; i++) {
        const struct policy_bypass *b = &p->bypass[i];

        if (t->name && b->host[0] && (str_eq(t->name, b->host) || host_is_below(t->name, b->host)))
            return true;
        if (!t->name && !b->host[0] && addr_in_prefix(t->addr, &b->addr, b->bits))
            return true;
    }
    return p->bypass_all;
}

/* ---- names ---- */

/* Names that have a meaning only inside somebody's network, or are used for it. */
static bool name_is_local(const char *name)
{
    static const char *const suffixes[] = {
        "localhost", "local",   "internal",  "intranet", "lan",         "home",
        "corp",      "private", "home.arpa", "onion",    "localdomain", "metadata.goog",
    };

    if (!strchr(name, '.'))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (str_eq(name, suffixes[i]) || host_is_below(name, suffixes[i]))
            return true;
    }
    return false;
}

bool policy_has_name(const struct policy *p, enum job_network network, const char *name)
{
    const struct target t = {.network = network, .name = name};

    if (str_eq(name, "arpa") || host_is_below(name, "arpa"))
        return false;
    if (network == JOB_NETWORK_PUBLIC)
        return true;
    return network == JOB_NETWORK_ALLOWLIST && is_listed(p, &t);
}

/* ---- routes ---- */

static enum route refuse(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return ROUTE_REFUSE;
}

static enum route route_name(const struct policy *p, const struct target *t,
                             const char **ret_reason)
{
    if (str_eq(t->name, POLICY_HOST_NAME))
        return host_is_allowed(p, t->port)
                   ? ROUTE_HOST
                   : refuse(ret_reason, "this port of the host is not in NETWORK_ALLOW");
    if (!p->proxy.used || is_bypassed(p, t))
        return ROUTE_DIRECT;
    if (policy_is_allowed(p, t, NULL))
        return ROUTE_INSPECT;
    if (name_is_local(t->name))
        return refuse(ret_reason, "a local name behind a proxy");
    return ROUTE_PROXY;
}

/* An inner address that a rule opens is nothing that a proxy outside could dial. */
static enum route route_addr(const struct policy *p, const struct target *t)
{
    if (!p->proxy.used || is_bypassed(p, t) || addr_classify(t->addr) != ADDR_PUBLIC)
        return ROUTE_DIRECT;
    return ROUTE_PROXY;
}

enum route policy_route(const struct policy *p, const struct target *t, const char **ret_reason)
{
    *ret_reason = NULL;
    if (t->network == JOB_NETWORK_NONE)
        return refuse(ret_reason, "no network");
    if (t->network == JOB_NETWORK_ALLOWLIST && !is_listed(p, t))
        return refuse(ret_reason, "not in NETWORK_ALLOWLIST");
    return t->name ? route_name(p, t, ret_reason) : route_addr(p, t);
}

/* ---- addresses ---- */

/* Classes that no rule opens, and those that only a rule with the very address opens. */
static bool class_is_closed(enum addr_class class)
{
    return class == ADDR_FAKE || class == ADDR_MULTICAST || class == ADDR_UNSPECIFIED ||
           class == ADDR_MAPPED;
}

static bool class_needs_address(enum addr_class class)
{
    return class == ADDR_METADATA || class == ADDR_LINK_LOCAL;
}

/*
 * Rules with an address and rules with a name are asked apart: an address in a rule was written by
 * the operator, but what a name resolves to is up to whoever runs its zone.
 */
const char *policy_check(const struct policy *p, const struct target *t, const struct addr *a)
{
    enum addr_class class = addr_classify(a);
    struct target by_addr = *t;

    if (class == ADDR_PUBLIC)
        return NULL;
    by_addr.name = NULL;
    if (!class_is_closed(class) && policy_is_allowed(p, &by_addr, a))
        return NULL;
    if (!class_is_closed(class) && !class_needs_address(class) && policy_is_allowed(p, t, a))
        return NULL;
    return addr_class_name(class);
}
