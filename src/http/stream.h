/* SPDX-License-Identifier: MIT */
/*
 * Answers that go on after their handler: written by any thread, or pulled by the connection's own
 * when the client may take more.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct http_request;
struct http_stream;

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

    /*
     * In place of http_stream_write(): called on the connection's thread when the client may take
     * bytes, again after each http_stream_wake(). The count; 0 when there is nothing now, and then
     * a comment may follow; -1 at the regular end, -2 to cut the connection, after which it is not
     * called again, nor on_gone. Nothing is copied or held for a client that does not read.
     */
    ssize_t (*pull)(void *user, char *ret, size_t len);
    unsigned keep_alive_ms;      /* 0: the server's */
    const char *keep_alive_text; /* the whole comment or what else a client passes over, at most
                                    100 bytes; NULL: the usual comment of an event stream */
};

/*
 * Answers with a body that any thread writes, also after the handler has returned, or that is
 * pulled. The headers are sent at once. The result belongs to the caller (http_stream_unref).
 * "text/event-stream" is not cached, nor buffered by proxies, and gets a comment after each
 * `keep_alive_ms` in which nothing was sent; so does any other type with a `keep_alive_text`.
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

/* `pull` has something, or its end is there. Any thread. */
void http_stream_wake(struct http_stream *stream);

/* The regular end, once what was written is sent. Later calls do nothing. */
void http_stream_close(struct http_stream *stream);

/* The end as a failure: the connection is cut, and no client takes the body for whole. */
void http_stream_abort(struct http_stream *stream);
bool http_stream_is_gone(struct http_stream *stream);

struct http_stream *http_stream_ref(struct http_stream *stream);
/* The last one of a stream that nobody closed aborts it, unless it is pulled. */
void http_stream_unref(struct http_stream *stream);

DEFINE_CLEANUP(struct http_stream *, http_stream_unref)
#define auto_http_stream __attribute__((cleanup(http_stream_unref_cleanup)))
