/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox may reach. Pure decisions over the configuration; the caller resolves, asks again
 * for each address, and dials. A refusal is a short text for the log.
 */
#pragma once

#include "wire/connect.h"
#include "wire/job.h"

/* The name under which the host's own loopback is reached, on ports that a rule allows. */
#define POLICY_HOST_NAME "host.sandbox.internal"

enum { POLICY_NO_PROXY = 64 };

/* One entry of NO_PROXY: a name with all below it, or an address prefix. */
struct policy_bypass {
    struct addr addr;
    unsigned bits;
    char host[HOST_SIZE]; /* empty: `addr` and `bits` count */
};

struct policy {
    struct connect_proxy proxy;
    bool bypass_all; /* NO_PROXY is "*" */
    size_t bypass_count;
    struct policy_bypass bypass[POLICY_NO_PROXY];
    size_t allow_count;
    struct addr_rule allow[EGRESS_RULES]; /* exceptions from the refusal of addresses */
    size_t list_count;
    struct addr_rule list[EGRESS_RULES]; /* all that mode `allowlist` reaches */
};

/* Reads a checked configuration. Fails on a rule or proxy that it cannot honour. */
int policy_init(struct policy *p, const struct egress_config *config,
                struct error *reterr) must_check;

enum route {
    ROUTE_REFUSE,
    ROUTE_HOST,    /* the host's loopback, unchecked */
    ROUTE_DIRECT,  /* dial what policy_check() lets pass: the address, or those of the name */
    ROUTE_PROXY,   /* CONNECT; an address must pass policy_check(), a name the proxy resolves */
    ROUTE_INSPECT, /* a listed name behind a proxy: direct where it is private, else the proxy */
};

/* What a connection is for. */
struct target {
    enum job_network network;
    const char *name;        /* NULL: an address without a name */
    const struct addr *addr; /* the address, where there is no name */
    uint16_t port;
};

/* Whether the stub answers this name at all. */
bool policy_has_name(const struct policy *p, enum job_network network, const char *name);

/* With ROUTE_REFUSE, *ret_reason says why. */
enum route policy_route(const struct policy *p, const struct target *t, const char **ret_reason);

/* NULL when `a` may be dialled for the target, else why not. */
const char *policy_check(const struct policy *p, const struct target *t, const struct addr *a);

/* Whether a rule of NETWORK_ALLOW names this target and address. */
bool policy_is_allowed(const struct policy *p, const struct target *t, const struct addr *a);
