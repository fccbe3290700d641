/* SPDX-License-Identifier: MIT */
/*
 * HTTP calls to services that may be hostile: every size and time is bounded, redirects are not
 * followed (a key would go with them), and a cancel descriptor ends a call at once. By libcurl;
 * connections are kept and used again. From any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct http_client;

struct http_client_options {
    size_t size;                  /* sizeof(struct http_client_options) */
    const char *proxy, *no_proxy; /* NULL or "": none; loopback never goes through it */
    const char *ca_file;          /* NULL: the system's */
};

int http_client_new(const struct http_client_options *options, struct http_client **ret,
                    struct error *reterr) must_check;
/* As the settings say it of this process's own calls. */
int http_client_new_by(const struct settings *settings, struct http_client **ret,
                       struct error *reterr) must_check;
void http_client_free(struct http_client *c); /* when no call runs any more */

struct http_reply;

struct http_call {
    size_t size; /* sizeof(struct http_call) */
    const char *method, *url;
    const char *const *headers; /* "Name: value", ended by NULL; or NULL */
    const void *body;
    size_t len;

    /*
     * In place of `body`, where that is not in memory: puts at most `max` of its `len` bytes, from
     * `offset` on, into `to`. Returns how many; <0 ends the call with that failure, and so does 0.
     * A connection that was lost has it begin again.
     */
    ssize_t (*body_read)(void *user, uint64_t offset, char *to, size_t max, struct error *reterr);

    int cancel_fd; /* readable: the call ends with ERR_CANCELLED within 100 ms; -1: none */

    /* Only to public addresses, whatever the name resolves to; where a proxy is asked, it decides.
     */
    bool public_only;

    /* 0 stands for the default. */
    unsigned connect_timeout_ms; /* 10 s */
    unsigned idle_timeout_ms;    /* 120 s in which nothing comes; also for the first byte */
    unsigned total_timeout_ms;   /* 15 min */
    uint64_t reply_max;          /* 64 MiB of a reply's body; headers 256 KiB */

    /* Each piece of a body whose status is 2xx; <0 ends the call with that failure. NULL: the body
     * is kept in the reply. A body that is compressed is refused: nothing was asked to. */
    int (*on_data)(void *user, const char *data, size_t len, struct error *reterr);
    /* The reply's headers are there, before its body; or NULL. */
    void (*on_head)(void *user, const struct http_reply *reply);
    void *user;

    const char *keep; /* a header whose value is kept in the reply; NULL */
};

struct http_reply {
    unsigned status;
    char content_type[128]; /* lower case, without parameters */
    int64_t retry_after_ms; /* -1: not said; of Retry-After in seconds or as a date, and of
                               retry-after-ms; at most an hour */
    char kept[256];         /* the header that was to be kept; "" */
    struct buf body;        /* buf_done() it; of a failure at most 64 KiB */
};

/*
 * 0 when a reply came whole, whatever its status. ERR_UPSTREAM: no connection, a cut or malformed
 * reply; ERR_TIMEOUT; ERR_LIMIT: more than the bounds; ERR_CANCELLED. Error texts hold neither the
 * URL's query nor headers.
 */
int http_client_call(struct http_client *c, const struct http_call *call, struct http_reply *ret,
                     struct error *reterr) must_check;
