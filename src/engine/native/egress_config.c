/* SPDX-License-Identifier: MIT */
/*
 * Reads NETWORK_* and the index settings. The host of an index counts as allowed, so that an index
 * on a private address works without a second setting.
 */
#include "engine/native/egress_config.h"

#include "base/str.h"

#include <stdio.h>

/* host[:port] or [v6]:port. `port` is 0 when none is given. */
static int host_port_parse(const char *text, size_t len, struct egress_rule *ret,
                           struct error *reterr)
{
    const char *end = text + len, *colon = NULL, *host = text;
    int64_t port = 0;
    size_t host_len;
    char number[8];

    if (len && text[0] == '[') {
        const char *close = memchr(text, ']', len);

        host = text + 1;
        if (!close)
            return error_set(reterr, ERR_INVALID, "'%.*s' has no ']'", (int)len, text);
        host_len = (size_t)(close - host);
        colon = close + 1 < end ? close + 1 : NULL;
    } else {
        colon = memchr(text, ':', len);
        /* Two colons without brackets: a bare IPv6 address. */
        if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
            colon = NULL;
        host_len = colon ? (size_t)(colon - text) : len;
    }
    if (host_len == 0 || host_len >= sizeof(ret->host))
        return error_set(reterr, ERR_INVALID, "'%.*s' names no host", (int)len, text);
    if (colon) {
        size_t n = (size_t)(end - colon - 1);

        if (*colon != ':' || n == 0 || n >= sizeof(number))
            return error_set(reterr, ERR_INVALID, "'%.*s' has a bad port", (int)len, text);
        memcpy(number, colon + 1, n);
        number[n] = 0;
        if (str_parse_int(number, 1, 65535, &port) < 0)
            return error_set(reterr, ERR_INVALID, "'%.*s' has a bad port", (int)len, text);
    }
    memcpy(ret->host, host, host_len);
    ret->host[host_len] = 0;
    ret->port = (uint16_t)port;
    return 0;
}

/* Comma list of rules. */
static int rules_parse(const char *list, const char *setting, struct egress_rule *rules,
                       uint32_t *count, struct error *reterr)
{
    while (*list) {
        size_t len = strcspn(list, ", ");

        if (len) {
            if (*count == EGRESS_RULES)
                return error_set(reterr, ERR_INVALID, "%s: more than %d entries", setting,
                                 EGRESS_RULES);
            if (host_port_parse(list, len, &rules[*count], reterr) < 0)
                return error_wrap(reterr, "%s", setting);
            *count += 1;
        }
        list += len + strspn(list + len, ", ");
    }
    return 0;
}

/* The host and port of an http(s) URL; credentials and path are passed over. */
static int url_rule_parse(const char *url, const char *setting, struct egress_rule *ret,
                          struct error *reterr)
{
    bool https = str_starts(url, "https://");
    const char *host, *at;
    size_t len;

    if (!https && !str_starts(url, "http://"))
        return error_set(reterr, ERR_INVALID, "%s: '%.80s' is no http or https address", setting,
                         url);
    host = strstr(url, "://") + 3;
    len = strcspn(host, "/?#");
    at = memrchr(host, '@', len);
    if (at) {
        len -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    if (host_port_parse(host, len, ret, reterr) < 0)
        return error_wrap(reterr, "%s", setting);
    if (!ret->port)
        ret->port = https ? 443 : 80;
    return 0;
}

/* Rules for the index settings; used for the config and for the ports. */
static int index_rules(const struct settings *s, struct egress_rule *rules, uint32_t *count,
                       struct error *reterr)
{
    const struct {
        const char *name, *url;
    } urls[] = {{"SANDBOX_PIP_INDEX", s->pip_index},
                {"SANDBOX_NPM_REGISTRY", s->npm_registry},
                {"SANDBOX_CRAN", s->cran}};

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        if (!urls[i].url[0])
            continue;
        if (*count == EGRESS_RULES)
            return error_set(reterr, ERR_INVALID, "NETWORK_ALLOW: too many entries");
        if (url_rule_parse(urls[i].url, urls[i].name, &rules[*count], reterr) < 0)
            return -ERR_INVALID;
        *count += 1;
    }
    return 0;
}

static int allow_rules(const struct settings *s, struct egress_rule *rules, uint32_t *count,
                       struct error *reterr)
{
    int r = rules_parse(s->network_allow, "NETWORK_ALLOW", rules, count, reterr);

    return r < 0 ? r : index_rules(s, rules, count, reterr);
}

int egress_config_fill(struct egress_config *ret, const struct settings *s, struct error *reterr)
{
    int r;

    *ret = (struct egress_config){.magic = EGRESS_MAGIC, .version = JOB_VERSION};
    if (str_copy(ret->proxy, sizeof(ret->proxy), s->proxy) < 0 ||
        str_copy(ret->no_proxy, sizeof(ret->no_proxy), s->no_proxy) < 0)
        return error_set(reterr, ERR_INVALID, "SANDBOX_PROXY or NO_PROXY is too long");
    r = allow_rules(s, ret->allow, &ret->allow_count, reterr);
    if (r == 0)
        r = rules_parse(s->network_allowlist, "NETWORK_ALLOWLIST", ret->list, &ret->list_count,
                        reterr);
    return r;
}

static int port_add(uint16_t port, uint16_t ret[JOB_PORTS], size_t *count)
{
    size_t at = 0;

    while (at < *count && ret[at] < port)
        at++;
    if (at < *count && ret[at] == port)
        return 0;
    if (*count == JOB_PORTS)
        return -1;
    memmove(ret + at + 1, ret + at, (*count - at) * sizeof(*ret));
    ret[at] = port;
    *count += 1;
    return 0;
}

static int ports_parse(const char *list, uint16_t ret[JOB_PORTS], size_t *count,
                       struct error *reterr)
{
    char number[8];

    while (*list) {
        size_t len = strcspn(list, ", ");
        int64_t port;

        if (len) {
            if (len >= sizeof(number))
                return error_set(reterr, ERR_INVALID, "NETWORK_PORTS: '%.20s' is no port", list);
            memcpy(number, list, len);
            number[len] = 0;
            if (str_parse_int(number, 1, 65535, &port) < 0)
                return error_set(reterr, ERR_INVALID, "NETWORK_PORTS: '%s' is no port", number);
            if (port_add((uint16_t)port, ret, count) < 0)
                return error_set(reterr, ERR_INVALID, "NETWORK_PORTS: more than %d", JOB_PORTS);
        }
        list += len + strspn(list + len, ", ");
    }
    return 0;
}

int egress_ports_fill(const struct settings *s, uint16_t ret[JOB_PORTS], size_t *ret_count,
                      struct error *reterr)
{
    auto_free struct egress_rule *rules = calloc(EGRESS_RULES, sizeof(*rules));
    uint32_t count = 0;
    int r;

    *ret_count = 0;
    if (!rules)
        return error_no_memory(reterr);
    if ((r = ports_parse(s->network_ports, ret, ret_count, reterr)) < 0 ||
        (r = allow_rules(s, rules, &count, reterr)) < 0)
        return r;
    for (uint32_t i = 0; i < count; i++) {
        if (rules[i].port && port_add(rules[i].port, ret, ret_count) < 0)
            return error_set(reterr, ERR_INVALID, "NETWORK_ALLOW: more than %d ports", JOB_PORTS);
    }
    return 0;
}
