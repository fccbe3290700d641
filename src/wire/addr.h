/* SPDX-License-Identifier: MIT */
/*
 * Internet addresses, host names and host:port rules. Every name that comes from a sandbox, a
 * setting or a proxy variable passes through host_parse() and is compared only in that form, so
 * that the text which was checked is the text which is used.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    ADDR_TEXT = 46,                  /* room for the longest address as text */
    HOST_SIZE = 254,                 /* room for the longest name */
    HOST_PORT_TEXT = HOST_SIZE + 10, /* room for [name]:port */
};

/* IPv4 uses the first four bytes. */
struct addr {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
};

/* What an address is for. Only ADDR_PUBLIC is reachable without an exception. */
enum addr_class {
    ADDR_PUBLIC, /* documentation ranges too: some resolvers hand them out */
    ADDR_UNSPECIFIED,
    ADDR_LOOPBACK,
    ADDR_PRIVATE,
    ADDR_LINK_LOCAL,
    ADDR_METADATA,   /* where clouds serve credentials; some of them are public addresses */
    ADDR_SHARED,     /* carrier-grade NAT */
    ADDR_FAKE,       /* 198.18.0.0/15, which stands for names inside a sandbox */
    ADDR_MULTICAST,  /* and broadcast */
    ADDR_MAPPED,     /* IPv6 forms of IPv4 addresses */
    ADDR_TRANSLATED, /* NAT64, 6to4, Teredo: a gateway turns them into other addresses */
    ADDR_RESERVED,
    ADDR_CLASS_COUNT,
};

enum addr_class addr_classify(const struct addr *a);
const char *addr_class_name(enum addr_class class);

/* "192.0.2.1", "2001:db8::1" or "[2001:db8::1]", nothing else. 0 or -1. */
int addr_parse(const char *s, struct addr *ret) must_check;
const char *addr_format(const struct addr *a, char ret[ADDR_TEXT]);
bool addr_eq(const struct addr *a, const struct addr *b);
bool addr_in_prefix(const struct addr *a, const struct addr *prefix, unsigned bits);

/* -1 for a family that is neither IPv4 nor IPv6. */
int addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret, uint16_t *ret_port) must_check;
socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret);

/* Turns ::ffff:a.b.c.d into a.b.c.d: what a dual-stack listener shows for an IPv4 client. */
void addr_unmap(struct addr *a);

/*
 * The canonical form of a host name: lower case, without a dot at the end; labels of 1 to 63
 * letters, digits, hyphens (not at an end) and underscores, at most 253 in all. A name whose last
 * label is a number in any notation is refused, because some resolvers read it as an address. 0 or
 * -1.
 */
int host_parse(const char *s, size_t len, char ret[HOST_SIZE]) must_check;

/* Whether `name` is below `suffix`, at a label's border. Both are canonical. */
bool host_is_below(const char *name, const char *suffix);

/* ---- rules: "name", "*.suffix" or an address, with a port or without ---- */

enum addr_rule_kind { ADDR_RULE_NAME, ADDR_RULE_SUFFIX, ADDR_RULE_ADDRESS };

struct addr_rule {
    enum addr_rule_kind kind;
    uint16_t port; /* 0: any */
    struct addr addr;
    char host[HOST_SIZE]; /* without the "*." */
};

int addr_rule_parse(const char *host, uint16_t port, struct addr_rule *ret,
                    struct error *reterr) must_check;
bool addr_rule_has_name(const struct addr_rule *rule, const char *name);
bool addr_rule_has_addr(const struct addr_rule *rule, const struct addr *a);
bool addr_rule_has_port(const struct addr_rule *rule, uint16_t port);

/* Splits "name:port", "[address]:port" or "name" (port 0) of a setting. */
int addr_split_port(const char *s, char ret_host[HOST_SIZE], uint16_t *ret_port,
                    struct error *reterr) must_check;
