/* SPDX-License-Identifier: MIT */
/*
 * The little of HTTP that an upstream proxy needs: the proxy's address in a URL, the CONNECT
 * request, and the status line and headers of its answer. Nothing here is ever logged by itself:
 * the request holds the proxy's credentials, and an answer may repeat them.
 */
#pragma once

#include "base/buf.h"
#include "wire/addr.h"

enum {
    CONNECT_HEADER_MAX = 8192, /* status line and headers of an answer */
    CONNECT_AUTH_SIZE = 1040,  /* room for the encoded credentials */
};

struct connect_proxy {
    bool used;
    bool literal; /* `addr` counts, else `host` */
    struct addr addr;
    char host[HOST_SIZE];
    uint16_t port;
    char auth[CONNECT_AUTH_SIZE]; /* base64 of "user:password"; empty: none. A secret */
};

/* http://[user[:password]@]host[:port][/]; port 80 unless given. Errors never repeat the text. */
int connect_proxy_parse(const char *url, struct connect_proxy *ret,
                        struct error *reterr) must_check;

/* "name" or "[v6 address]" with its port, as CONNECT and Host need it. */
const char *connect_target_format(const char *host, uint16_t port, char ret[HOST_PORT_TEXT]);

/* Appends the whole request. */
int connect_request_format(const struct connect_proxy *proxy, const char *target,
                           struct buf *ret) must_check;

struct connect_reply {
    int status;
    size_t length; /* of status line and headers; what follows belongs to the tunnel */
};

/*
 * Reads what has come so far. Returns 1 when the tunnel stands, 0 when more is needed, or <0 with
 * the reason why this is no tunnel: text of our own, with nothing of the answer but its number.
 */
int connect_reply_parse(const char *data, size_t len, struct connect_reply *ret,
                        struct error *reterr) must_check;
