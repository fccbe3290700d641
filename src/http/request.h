/* SPDX-License-Identifier: MIT */
/*
 * A request as its handler sees it, and the ways to answer it. All of it is valid until the handler
 * returns, and belongs to its thread.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct http_request;
struct route_entry;

/* ---- what was asked ---- */

/* What the table of the request's route has. */
void *http_user(const struct http_request *req);
const char *http_method(const struct http_request *req); /* GET for HEAD */

/*
 * The path in its only form: every segment decoded once, then "/" and "%" inside of a segment
 * written as %2F and %25. Segments "." and "..", also around an encoded slash, were refused.
 */
const char *http_path(const struct http_request *req);
const struct route_entry *http_route(const struct http_request *req);

/* The name of who asks, kept for the request; "" before it is set. */
void http_set_principal(struct http_request *req, const char *name);
const char *http_principal(const struct http_request *req);

/* A pointer of the handler's own; `release` is called with it when the request ends, or another
 * takes its place. */
void http_set_context(struct http_request *req, void *context, void (*release)(void *context));
void *http_context(const struct http_request *req);

/* A segment's decoded text, or NULL. An encoded slash is a slash here, and any byte but NUL may be.
 */
const char *http_param(const struct http_request *req, const char *name);

/* The first value of the query, decoded, or NULL; the index-th one, 0 is the first. */
const char *http_query(const struct http_request *req, const char *name);
const char *http_query_at(const struct http_request *req, const char *name, size_t index);

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

/* {"detail": TEXT, "error": NAME, "message": TEXT, "details": null}, what the clients of three
 * kinds of servers look for. Status 0 takes that of the error's code. */
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
