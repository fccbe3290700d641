/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: a thread per connection, routes from tables that its user brings. A handler runs
 * on its connection's thread and may block; it answers once, by one of http_respond(), http_fail(),
 * http_respond_reader() and http_stream_open(). Before a handler runs, the request was checked:
 * header grammar, Host, Origin, path, method and size of the body.
 */
#pragma once

#include "base/error.h"
#include "http/request.h"
#include "http/stream.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stdint.h>

struct http_server;

/* ---- routes ---- */

typedef void http_handler_fn(struct http_request *req);

/*
 * "/a/{name}/b" matches one segment that is not empty by a name; "/a/{rest...}", only at the end,
 * all that follow (at least one). Where several entries match a path, the first one of the tables
 * does. HEAD is answered by the entry for GET, OPTIONS by the server.
 */
struct route_entry {
    const char *method; /* "GET" */
    const char *path;
    const char *summary; /* one line for people and OpenAPI */
    http_handler_fn *handler;
    size_t body_max; /* 0: the server's */

    /*
     * Where a body is not to be held in memory: called before the handler, on its thread, with each
     * piece. <0 answers with that error (ERR_LIMIT: 413), and the rest is not read. After a piece
     * follows either the handler or, once, a call with `data` NULL, so that nothing is left of a
     * body that ended early or was refused. What it keeps between the calls it hangs on the request
     * (http_set_context). A body that is empty has no pieces. NULL: http_body().
     */
    int (*on_body)(struct http_request *req, const char *data, size_t len, struct error *reterr);
};

/* Routes with what their handlers get by http_user(). */
struct route_table {
    const struct route_entry *entries; /* ended by one without a path */
    void *user;
};

/* ---- the server ---- */

/* A port that is taken before anything answers at it, for who has to name it first. */
struct http_listener {
    int fd; /* bound; -1: none, or a server has it */
    uint16_t port;
    char address[ADDR_TEXT];
    bool is_any;                  /* the address stands for all of this host */
    char url[HOST_PORT_TEXT + 8]; /* "http://127.0.0.1:8000", without a path */
};

/* "HOST:PORT"; port 0 is any; HOST an address or "localhost"; ERR_DENIED for one that other
 * machines reach, without `remote`. */
int http_listener_open(const char *listen, bool remote, struct http_listener *ret,
                       struct error *reterr) must_check;
void http_listener_close(struct http_listener *l);

struct http_options {
    size_t size;                    /* sizeof(struct http_options) */
    const char *listen;             /* see http_listener_open() */
    bool allow_remote;              /* without it only loopback addresses are listened on */
    struct http_listener *listener; /* in place of both; its descriptor is the server's then */

    const struct route_table *tables; /* ended by one without entries */

    /*
     * Who asks, before anything of the body is read and before the handler: says who it is by
     * http_set_principal(), or answers (401) and returns false. Not asked for OPTIONS. NULL: nobody
     * is asked.
     */
    bool (*admit)(void *user, struct http_request *req);
    void *admit_user;

    /*
     * Lists that end with NULL, or NULL. Hosts: "name" (any port) or "name:port", beside loopback
     * names with the server's own port; "*" is any. Origins: "scheme://host[:port]", beside those
     * of loopback names with the own port and the page's own; "*" is any.
     */
    const char *const *hosts, *const *origins;
    bool loopback_origins;   /* http:// pages of loopback names on any port are allowed, too */
    const char *cors_expose; /* response headers that pages may read: "A, B"; NULL */

    /* 0 stands for the default. */
    size_t body_max;             /* 32 MiB, of one request */
    size_t body_total;           /* 256 MiB, of all requests */
    size_t stream_buffer;        /* 1 MiB, of one stream */
    unsigned connections;        /* 4096, or fewer where descriptors are short */
    unsigned connections_per_ip; /* 256, but of loopback addresses all */
    unsigned min_rate;           /* 1024 bytes a second, of bodies and of slow readers */
    unsigned header_timeout_ms;  /* 10 s from the first byte to the end of the headers */
    unsigned idle_timeout_ms;    /* 60 s between requests */
    unsigned body_timeout_ms;    /* 10 s, and what min_rate allows for the bytes that came */
    unsigned send_timeout_ms;    /* 30 s in which a client takes less than min_rate allows */
    unsigned keep_alive_ms;      /* 15 s */
    unsigned tick_ms;            /* 250: how exactly time-outs are kept */
};

/* Listens when it returns 0. The options' lists and tables are used until the server is stopped.
 * The process's soft limit of descriptors is raised to the hard one. */
int http_server_start(const struct http_options *options, struct http_server **ret,
                      struct error *reterr) must_check;

uint16_t http_server_port(const struct http_server *server);
/* As in struct http_listener. */
const char *http_server_url(const struct http_server *server);

/*
 * Stops accepting, tells each stream (on_stop), lets answers end for `grace_ms`, then cuts
 * connections, waits `grace_ms` once more for handlers, and frees the server. New requests are
 * answered with 503. ERR_BUSY when handlers still run: the server is then left alone, and the
 * process had better end.
 */
int http_server_stop(struct http_server *server, unsigned grace_ms, struct error *reterr);
