/* SPDX-License-Identifier: MIT */
/* What a handler sees of its request, and the short ways to answer it. */
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "http/http-internal.h"

#include <strings.h>

void *http_user(const struct http_request *req)
{
    return req->server->options.user;
}

const char *http_method(const struct http_request *req)
{
    return str_eq(req->method, "HEAD") ? "GET" : req->method;
}

const char *http_path(const struct http_request *req)
{
    return req->target.path;
}

const struct route_entry *http_route(const struct http_request *req)
{
    return req->route;
}

static const char *pair_find(const struct http_pair *pairs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(pairs[i].name, name))
            return pairs[i].value;
    }
    return NULL;
}

const char *http_param(const struct http_request *req, const char *name)
{
    return pair_find(req->params, req->param_count, name);
}

const char *http_query(const struct http_request *req, const char *name)
{
    return pair_find(req->target.query, req->target.query_count, name);
}

/* The n-th header of a name. */
static const char *header_find(const struct http_request *req, const char *name, unsigned n)
{
    for (size_t i = 0; i < req->header_count; i++) {
        if (strcasecmp(req->headers[i].name, name) == 0 && n-- == 0)
            return req->headers[i].value;
    }
    return NULL;
}

const char *http_header(const struct http_request *req, const char *name)
{
    return header_find(req, name, 0);
}

bool http_header_repeats(const struct http_request *req, const char *name)
{
    return header_find(req, name, 1) != NULL;
}

struct buf *http_body(struct http_request *req)
{
    return &req->body;
}

struct arena *http_arena(struct http_request *req)
{
    return &req->arena;
}

bool http_is_gone(const struct http_request *req)
{
    return atomic_load(&req->server->stopping) || conn_is_half_closed(req->conn);
}

int http_fd(const struct http_request *req)
{
    return req->conn->fd;
}

/* ---- answers ---- */

void http_header_add(struct http_request *req, const char *name, const char *value)
{
    struct http_pair pair = {arena_strdup(&req->arena, name), arena_strdup(&req->arena, value)};

    if (!http_is_token(name, strlen(name)) || !http_is_value(value, strlen(value)) || !pair.name ||
        !pair.value || req->answer_count == HTTP_HEADERS_MAX) {
        log_warn("a response header is not sent name=%s", name);
        return;
    }
    req->answer_headers[req->answer_count++] = pair;
}

void http_respond(struct http_request *req, unsigned status, const char *content_type,
                  const void *body, size_t len)
{
    server_answer(req,
                  &(struct http_answer){
                      .status = status, .content_type = content_type, .body = body, .len = len});
}

void http_respond_reader(struct http_request *req, unsigned status, const char *content_type,
                         int64_t size, const struct http_reader *reader)
{
    server_answer(
        req, &(struct http_answer){
                 .status = status, .content_type = content_type, .size = size, .reader = reader});
}

void http_fail(struct http_request *req, unsigned status, const struct error *error)
{
    const struct error_entry *entry = error_entry(error->code);
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf text;

    buf_init(&text, 8192);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "error", entry->name);
    yyjson_mut_obj_add_val(doc, root, "message",
                           json_mut_text(doc, error->text, strlen(error->text)));
    if (json_mut_write(doc, &text, NULL) < 0)
        buf_clear(&text);
    http_respond(req, status ? status : (unsigned)entry->http_status, "application/json",
                 buf_str(&text), text.len);
}
