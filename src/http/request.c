/* SPDX-License-Identifier: MIT */
/* What a handler sees of its request, and the short ways to answer it. */
#include "http/request.h"

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "http/http-internal.h"

#include <strings.h>

void *http_user(const struct http_request *req)
{
    return req->user;
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

void http_set_principal(struct http_request *req, const char *name)
{
    req->principal = arena_strdup(&req->arena, name);
}

const char *http_principal(const struct http_request *req)
{
    return req->principal ? req->principal : "";
}

void http_set_context(struct http_request *req, void *context, void (*release)(void *context))
{
    if (req->context && req->context_release)
        req->context_release(req->context);
    req->context = context;
    req->context_release = release;
}

void *http_context(const struct http_request *req)
{
    return req->context;
}

/* The n-th pair of a name. */
static const char *pair_find(const struct http_pair *pairs, size_t count, const char *name,
                             size_t n)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(pairs[i].name, name) && n-- == 0)
            return pairs[i].value;
    }
    return NULL;
}

const char *http_param(const struct http_request *req, const char *name)
{
    return pair_find(req->params, req->param_count, name, 0);
}

const char *http_query(const struct http_request *req, const char *name)
{
    return http_query_at(req, name, 0);
}

const char *http_query_at(const struct http_request *req, const char *name, size_t index)
{
    return pair_find(req->target.query, req->target.query_count, name, index);
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
        !pair.value || req->answer_count == HTTP_ANSWER_HEADERS_MAX) {
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

int http_error_write(const struct error *error, struct buf *ret)
{
    const struct error_entry *entry = error_entry(error->code);
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    size_t len = strlen(error->text);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "detail", json_mut_text(doc, error->text, len));
    yyjson_mut_obj_add_str(doc, root, "error", entry->name);
    yyjson_mut_obj_add_val(doc, root, "message", json_mut_text(doc, error->text, len));
    yyjson_mut_obj_add_null(doc, root, "details");
    return json_mut_write(doc, ret, NULL);
}

void http_fail(struct http_request *req, unsigned status, const struct error *error)
{
    auto_buf struct buf text;

    buf_init(&text, 8192);
    if (http_error_write(error, &text) < 0)
        buf_clear(&text);
    http_respond(req, status ? status : (unsigned)error_entry(error->code)->http_status,
                 "application/json", buf_str(&text), text.len);
}
