/* SPDX-License-Identifier: MIT */
/*
 * What the files of this room share. server.c speaks with the HTTP library, listen.c makes the
 * socket and connection.c watches all of them, check.c and route.c decide what a request may reach,
 * request.c is what its handler sees, stream.c what goes on after the handler.
 */
#pragma once

#include "http/server.h"
#include "wire/http.h"

#include <pthread.h>
#include <stdatomic.h>

struct MHD_Connection;
struct MHD_Daemon;

enum {
    HTTP_ARENA_MAX = 64 << 20, /* what a body of the largest size becomes */
    HTTP_PARAMS_MAX = 16,
    HTTP_HEADERS_MAX = 128,
    HTTP_ANSWER_HEADERS_MAX = 32,
};

/* ---- connections: one per socket, known to the watcher ---- */

enum conn_phase {
    CONN_FRESH, /* nothing has come yet, or the first headers are coming */
    CONN_IDLE,  /* between two requests, or the next headers are coming */
    CONN_BODY,
    CONN_HANDLER,
    CONN_SEND,
};

struct http_conn {
    struct http_server *server;
    struct http_conn *next, *prev;
    int fd;
    struct addr addr; /* the peer's */
    /* Under the server's lock: */
    enum conn_phase phase;
    int64_t since;             /* when the phase, or its window, began */
    uint64_t mark;             /* bytes received (idle) or acknowledged (send) when it began */
    bool coming;               /* the first byte of a request has come, and `since` is when */
    atomic_uint_fast64_t body; /* bytes of this request's body */
    atomic_int cut;            /* 1 + enum http_gone once we ended it; else 0 */
};

/* Lists a new connection. Where there are too many, of all or of its address, the one that waits
 * for a request for longest is cut: so idle ones do not keep out who asks. With the lock held. */
void conn_admit(struct http_conn *conn);

void conn_phase_set(struct http_conn *conn, enum conn_phase phase);

/* Ends the connection at once, from any thread that holds the server's lock. */
void conn_cut(struct http_conn *conn, enum http_gone why);

/* The peer sends nothing any more: it left, or closed its half. */
bool conn_is_half_closed(const struct http_conn *conn);

/* Lets the peer read our last answer although what it sends is not read: bounded by a second. */
void conn_linger(const struct http_conn *conn);

/* Ends a body so that even a client of HTTP/1.0 cannot take it for whole. */
void conn_reset(const struct http_conn *conn);

/* Enforces the time-outs until the server's `watch_stop`. */
void *conn_watch_main(void *server);

/* A condition that waits by the monotonic clock, as deadlines are. */
void http_cond_init(pthread_cond_t *cond);
void http_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline);

/* ---- the server ---- */

struct http_server {
    struct http_options options; /* with the defaults filled in */
    struct http_guard guard;
    struct http_listener at;
    struct MHD_Daemon *daemon;

    pthread_mutex_t lock;      /* of all below */
    pthread_cond_t changed;    /* active, or conns */
    pthread_cond_t watch_wake; /* watch_stop */
    struct http_conn *conns;
    struct http_stream *streams;
    unsigned active; /* requests between their headers and the end of their answer */
    bool watch_stop;
    bool loopback_exempt; /* from connections_per_ip */
    pthread_t watch;
    atomic_bool stopping;
    atomic_size_t body_bytes;
};

/* With the defaults; raises the limit of descriptors. */
void http_options_fill(struct http_server *server, const struct http_options *given);

/* Fills what is known once the port is, and listens there. */
int http_listen(struct http_server *server, struct error *reterr) must_check;

/* ---- a request ---- */

struct http_request {
    struct http_server *server;
    struct http_conn *conn;
    struct MHD_Connection *mhd;
    struct arena arena;
    struct buf body;
    size_t body_max, body_len;
    size_t body_counted; /* of the server's body_bytes */

    char *raw;          /* the target as it came */
    const char *raw_at; /* where the library has it */
    size_t raw_len;
    const char *method;
    unsigned minor; /* HTTP/1.minor */
    struct http_target target;
    struct http_head head;
    struct http_field *headers;
    size_t header_count;
    const struct route_entry *route;
    void *user; /* of the route's table */
    const char *principal;
    void *context;
    void (*context_release)(void *context);
    struct http_pair params[HTTP_PARAMS_MAX];
    size_t param_count;

    struct http_pair answer_headers[HTTP_ANSWER_HEADERS_MAX];
    size_t answer_count;
    const char *cors_origin; /* allowed and to be named in the answer */
    bool has_body;
    bool body_began; /* on_body() was called, and its end is still to be told */
    bool started;    /* the headers were checked */
    bool counted;    /* among the active ones */
    bool answered;
    bool last;        /* the connection is closed after the answer */
    bool unread;      /* some of the body will never be read */
    unsigned refused; /* the status to refuse with once the request is whole; 0 */
    struct error error;
};

struct http_answer {
    unsigned status;
    const char *content_type;
    const void *body;
    size_t len;
    int64_t size; /* of a reader; -1 */
    const struct http_reader *reader;
    struct http_stream *stream;
};

/* Takes over the reader, or a reference of the stream. */
void server_answer(struct http_request *req, const struct http_answer *answer);

/* {"detail": ...}, the one form of errors. 0, or <0 without memory. */
int http_error_write(const struct error *error, struct buf *ret) must_check;

/* ---- checks: before a body is read ---- */

/* Everything that needs no body. <0 with the status in `refused`. */
int http_request_check(struct http_request *req);

/* To OPTIONS: what the path has, and what an allowed page may send. */
void http_options_answer(struct http_request *req);

/* ---- streams ---- */

int stream_new(struct http_request *req, const struct http_stream_options *options,
               struct http_stream **ret, struct error *reterr) must_check;

/* On the connection's thread: bytes for the client; waits for them. 0 at the regular end, -1 when
 * the connection is to be cut. */
ssize_t stream_pull(struct http_stream *stream, char *ret, size_t len);

/* The connection is done with the stream; drops its reference. */
void stream_detach(struct http_stream *stream);

/* Of all streams: on_stop, with so long for what waits to be written; or the end. */
void streams_stop(struct http_server *server, unsigned grace_ms);
void streams_cut(struct http_server *server);

/* ---- routes ---- */

/* The entry for method and path, its parameters in the request; else NULL with the methods that
 * the path has in `allow` ("" when it has none at all). */
const struct route_entry *route_find(struct http_request *req, const char *method,
                                     struct buf *allow);
