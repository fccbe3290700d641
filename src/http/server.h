/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: a thread per connection, routes from tables that its user brings. A handler runs
 * on its connection's thread and may block; it answers once, by one of http_respond(), http_fail(),
 * http_respond_reader() and http_stream_open(). Before a handler runs, the request was checked:
 * header grammar, Host, Origin, path, method and size of the body.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct http_server;
struct http_request;
struct http_stream;

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
};

/* ---- the server ---- */

struct http_options {
    size_t size;        /* sizeof(struct http_options) */
    const char *listen; /* "HOST:PORT"; port 0 is any; HOST an address or "localhost" */
    bool allow_remote;  /* without it only loopback addresses are listened on */

    const struct route_entry *const *tables; /* each ends with an entry without a path; NULL */
    void *user;                              /* http_user() of every request */

    /*
     * Lists that end with NULL, or NULL. Hosts: "name" (any port) or "name:port", beside loopback
     * names with the server's own port; "*" is any. Origins: "scheme://host[:port]", beside those
     * of loopback names with the own port and the page's own; "*" is any.
     */
    const char *const *hosts, *const *origins;
    const char *cors_expose; /* response headers that pages may read: "A, B"; NULL */

    /* 0 stands for the default. */
    size_t body_max;             /* 32 MiB, of one request */
    size_t body_total;           /* 256 MiB, of all requests */
    size_t stream_buffer;        /* 1 MiB, of one stream */
    unsigned connections;        /* 1024 */
    unsigned connections_per_ip; /* 256 */
    unsigned min_rate;           /* 1024 bytes a second, of bodies and of slow readers */
    unsigned header_timeout_ms;  /* 10 s from the first byte to the end of the headers */
    unsigned idle_timeout_ms;    /* 60 s between requests */
    unsigned body_timeout_ms;    /* 10 s, and what min_rate allows for the bytes that came */
    unsigned send_timeout_ms;    /* 30 s in which a client takes less than min_rate allows */
    unsigned keep_alive_ms;      /* 15 s */
    unsigned tick_ms;            /* 250: how exactly time-outs are kept */
};

/* Listens when it returns 0. The options' lists and tables are used until the server is stopped. */
int http_server_start(const struct http_options *options, struct http_server **ret,
                      struct error *reterr) must_check;

uint16_t http_server_port(const struct http_server *server);
/* "http://127.0.0.1:8000", without a path. */
const char *http_server_url(const struct http_server *server);

/*
 * Stops accepting, tells each stream (on_stop), lets answers end for `grace_ms`, then cuts
 * connections, waits `grace_ms` once more for handlers, and frees the server. New requests are
 * answered with 503. ERR_BUSY when handlers still run: the server is then left alone, and the
 * process had better end.
 */
int http_server_stop(struct http_server *server, unsigned grace_ms, struct error *reterr);

/* ---- a request; valid until its handler returns ---- */

void *http_user(const struct http_request *req);
const char *http_method(const struct http_request *req); /* GET for HEAD */

/*
 * The path in its only form: every segment decoded once, then "/" and "%" inside of a segment
 * written as %2F and %25. Segments "." and "..", also around an encoded slash, were refused.
 */
const char *http_path(const struct http_request *req);
const struct route_entry *http_route(const struct http_request *req);

/* A segment's decoded text, or NULL. An encoded slash is a slash here, and any byte but NUL may be.
 */
const char *http_param(const struct http_request *req, const char *name);

/* The first value of the query, decoded, or NULL. */
const char *http_query(const struct http_request *req, const char *name);

/* Any case; the first of several; without white space around it. NULL when there is none. */
const char *http_header(const struct http_request *req, const char *name);

/* Whether more than one line carries this header. */
bool http_header_repeats(const struct http_request *req, const char *name);

/* The whole body. The handler may take its memory (buf_take). */
struct buf *http_body(struct http_request *req);

struct arena *http_arena(struct http_request *req);

/* For handlers that block: whether the client has left or the server stops; and its socket, to
 * poll for POLLRDHUP beside other descriptors, never to read from. */
bool http_is_gone(const struct http_request *req);
int http_fd(const struct http_request *req);

/* ---- answers ---- */

/* Before the answer. A header that is not one is dropped, with a warning in the log. */
void http_header_add(struct http_request *req, const char *name, const char *value);

/* Content-Type is left out when NULL. The body is copied. */
void http_respond(struct http_request *req, unsigned status, const char *content_type,
                  const void *body, size_t len);

/* {"error": NAME, "message": TEXT}; status 0 takes that of the error's code. */
void http_fail(struct http_request *req, unsigned status, const struct error *error);

/*
 * A body that is pulled as the client takes it; `size` -1 for unknown. `read` gives up to `len`
 * bytes, 0 at the end, <0 for a failure, which cuts the connection so that no client takes the
 * body for whole; as does an end before `size`. `close` is called once, always, also when the
 * answer could not be given; both run on the connection's thread.
 */
struct http_reader {
    ssize_t (*read)(void *user, char *ret, size_t len);
    void (*close)(void *user);
    void *user;
};
void http_respond_reader(struct http_request *req, unsigned status, const char *content_type,
                         int64_t size, const struct http_reader *reader);

/* ---- streams ---- */

enum http_gone {
    HTTP_GONE_CLIENT, /* it has closed the connection */
    HTTP_GONE_SLOW,   /* it was dropped, because it did not take what was written */
    HTTP_GONE_STOP,   /* the server is stopped */
};

/*
 * All may be NULL. on_gone is called at most once: within a second after the client has left,
 * whether or not something is written; not by a thread that writes, and not begun after
 * http_stream_close(). on_stop is called by http_server_stop(), before, and may write and close.
 * on_done is called once, after all others, even when http_stream_open() fails: `user` is not used
 * any more.
 */
struct http_stream_options {
    unsigned status;
    const char *content_type;
    void (*on_gone)(void *user, enum http_gone why);
    void (*on_stop)(void *user);
    void (*on_done)(void *user);
    void *user;
};

/*
 * Answers with a body that any thread writes, also after the handler has returned. The result
 * belongs to the caller (http_stream_unref). "text/event-stream" is not cached, nor buffered by
 * proxies, and gets a comment every `keep_alive_ms` in which nothing was written.
 */
int http_stream_open(struct http_request *req, const struct http_stream_options *options,
                     struct http_stream **ret, struct error *reterr) must_check;

/*
 * All of `data`, in order, or a failure. Waits while the client's buffer is full; but a handler's
 * own writes never wait. ERR_CANCELLED once the client has left or the stream is closed;
 * ERR_TIMEOUT when the client is too slow: it is dropped then. Any thread.
 */
int http_stream_write(struct http_stream *stream, const void *data, size_t len,
                      struct error *reterr) must_check;

/* The regular end, once what was written is sent. Later calls do nothing. */
void http_stream_close(struct http_stream *stream);

/* The end as a failure: the connection is cut, and no client takes the body for whole. */
void http_stream_abort(struct http_stream *stream);
bool http_stream_is_gone(struct http_stream *stream);

struct http_stream *http_stream_ref(struct http_stream *stream);
/* The last one of a stream that nobody closed aborts it. */
void http_stream_unref(struct http_stream *stream);

DEFINE_CLEANUP(struct http_stream *, http_stream_unref)
#define auto_http_stream __attribute__((cleanup(http_stream_unref_cleanup)))
