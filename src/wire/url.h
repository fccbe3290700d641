/* SPDX-License-Identifier: MIT */
/* http and https URLs of settings and clients: one strict parse, and one form to compare hosts by.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stdint.h>

enum { URL_MAX = 2048 };

struct url {
    bool https;
    char host[HOST_SIZE]; /* lower case; an address in its canonical form, without brackets */
    uint16_t port;        /* the scheme's own when none is given */
    char path[URL_MAX];   /* with a leading slash, without one at the end; "" for none */
};

/* ERR_INVALID for another scheme, a user, a query, a fragment, control characters, spaces,
 * backslashes, dots as segments, and hosts that are neither a name nor an address. */
int url_parse(const char *text, struct url *ret, struct error *reterr) must_check;

/* "https://host:port": what a secret is bound to. */
int url_origin_format(const struct url *u, char *ret, size_t size) must_check;

/* Whether the host is a loopback name or address; whether it is an address that is not public
 * (private, link-local, metadata, ...). Names are not resolved. */
bool url_is_loopback(const struct url *u);
bool url_is_private(const struct url *u);

/* Percent-encodes all but what RFC 3986 calls unreserved, the slash too; appended. */
int url_percent_append(struct buf *ret, const char *text) must_check;
