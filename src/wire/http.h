/* SPDX-License-Identifier: MIT */
/*
 * The parts of HTTP that need no socket: header grammar, where a body ends, the request's target,
 * and which Host and Origin a server answers to. All of it is stricter than the standard asks for,
 * because what is read leniently here may be read otherwise by a proxy in front of us.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stdint.h>

enum { HTTP_TARGET_MAX = 8192, HTTP_SEGMENTS_MAX = 64, HTTP_QUERY_MAX = 128 };

/* ---- headers ---- */

struct http_field {
    const char *name, *value;
    size_t name_len, value_len;
};

bool http_is_token(const char *s, size_t len);

/* Visible characters, spaces, tabs and bytes from 0x80 on: nothing that ends a line. */
bool http_is_value(const char *s, size_t len);

/* What the headers of one request say about its body and its host. Start with {}. */
struct http_head {
    unsigned hosts, lengths, codings, origins;
    uint64_t length;
    struct http_field host, origin; /* as they came, without white space around the value */
};

/* ERR_INVALID for a name that is no token, a value with control characters, a Content-Length that
 * is not digits only, or another Transfer-Encoding than "chunked". */
int http_head_add(struct http_head *head, const struct http_field *field,
                  struct error *reterr) must_check;

/* After the last field: one Host, at most one Origin and Content-Length, and never both a length
 * and a coding; no coding in HTTP/1.0. */
int http_head_check(const struct http_head *head, unsigned minor, struct error *reterr) must_check;

/* ---- the target of a request ---- */

struct http_pair {
    const char *name, *value;
};

struct http_target {
    const char *authority; /* of the absolute form "http://authority/path"; else NULL */
    const char *path;      /* segments joined; "/" and "%" inside of one are %2F and %25 */
    const char *segments[HTTP_SEGMENTS_MAX]; /* decoded once; "/" has one that is empty */
    size_t segment_count;
    struct http_pair *query; /* decoded, "+" is a space */
    size_t query_count;
};

/*
 * ERR_INVALID for anything but "/path?query" and the absolute form: also for "*", an escape that is
 * none, %00, a fragment, a backslash, bytes that must be escaped, and segments "." and ".."; parts
 * of a segment around an encoded slash count as segments there. ERR_LIMIT for too many of anything.
 * All strings live in the arena.
 */
int http_target_parse(const char *text, size_t len, struct arena *arena, struct http_target *ret,
                      struct error *reterr) must_check;

/* ---- Host and Origin ---- */

struct http_authority {
    char host[HOST_SIZE]; /* lower case; an address in its canonical form, without brackets */
    uint16_t port;        /* 0: none was given */
};

/* "name", "name:port", "address", "[address]:port"; no user, no dot at the end. 0 or -1. */
int http_authority_parse(const char *s, size_t len, struct http_authority *ret) must_check;

struct http_guard {
    uint16_t port;     /* the server's own */
    const char *bound; /* an address that it listens on beside loopback, or NULL */
    const char *const *hosts, *const *origins; /* further ones, ended by NULL; or NULL */
    bool loopback_origins;                     /* http:// and a loopback name with any port */
};

/* localhost, 127.0.0.1, [::1] and `bound` with the own port; a host of the list; "*" is any. */
bool http_guard_host(const struct http_guard *guard, const struct http_authority *host);

/* http:// and one of the former with the own port, or a loopback name with any where that is
 * allowed; http(s):// and what Host says; one of the list; "*" is any. "null" is nobody's. */
bool http_guard_origin(const struct http_guard *guard, const struct http_field *origin,
                       const struct http_authority *host);
