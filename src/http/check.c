/* SPDX-License-Identifier: MIT */
/*
 * What is asked of every request before its body is read: target, Host, Origin, route, size and
 * coding of the body; and preflights, which ask for nothing else.
 */
#include "base/str.h"
#include "http/http-internal.h"

#include <strings.h>

enum { CORS_HEADERS_MAX = 4096 };

static int refuse(struct http_request *req, unsigned status, const char *text)
{
    req->refused = status;
    return error_set(&req->error,
                     status == 403   ? ERR_DENIED
                     : status == 404 ? ERR_NOT_FOUND
                     : status == 413 ? ERR_LIMIT
                     : status == 503 ? ERR_UNAVAILABLE
                                     : ERR_INVALID,
                     "%s", text);
}

static int hosts_check(struct http_request *req)
{
    const struct http_guard *guard = &req->server->guard;
    const struct http_head *head = &req->head;
    const char *absolute = req->target.authority;
    struct http_authority host, other;

    if (http_authority_parse(head->host.value, head->host.value_len, &host) < 0 ||
        !http_guard_host(guard, &host))
        return refuse(req, 403, "this server does not answer to that Host");
    if (absolute && (http_authority_parse(absolute, strlen(absolute), &other) < 0 ||
                     !str_eq(host.host, other.host) || host.port != other.port))
        return refuse(req, 400, "the request's target and its Host differ");
    if (head->origins == 0)
        return 0;
    if (!http_guard_origin(guard, &head->origin, &host))
        return refuse(req, 403, "pages of that Origin may not use this server");
    req->cors_origin = head->origin.value;
    return 0;
}

/* A page that asks what it may send. Also where nothing is: it shall read the 404 that follows. */
static bool is_preflight(const struct http_request *req)
{
    return str_eq(req->method, "OPTIONS") && req->cors_origin &&
           http_header(req, "Access-Control-Request-Method");
}

static int route_check(struct http_request *req)
{
    auto_buf struct buf allow;

    buf_init(&allow, 256);
    req->route = route_find(req, http_method(req), &allow);
    if (req->route || is_preflight(req))
        return 0;
    if (!allow.len)
        return refuse(req, 404, "there is nothing at this path");
    http_header_add(req, "Allow", buf_str(&allow));
    return str_eq(req->method, "OPTIONS") ? 0 : refuse(req, 405, "this path has other methods");
}

static int body_check(struct http_request *req)
{
    const char *coding = http_header(req, "Content-Encoding");

    req->body_max =
        req->route && req->route->body_max ? req->route->body_max : req->server->options.body_max;
    buf_init(&req->body, req->body_max);
    if (coding && strcasecmp(coding, "identity") != 0)
        return refuse(req, 415, "the request's body has a Content-Encoding, which is not taken");
    if (req->head.length > req->body_max)
        return refuse(req, 413, "the request's body is too large");
    return 0;
}

int http_request_check(struct http_request *req)
{
    int r = http_target_parse(req->raw, req->raw_len, &req->arena, &req->target, &req->error);

    if (r < 0) {
        req->refused = r == -ERR_LIMIT ? 414 : r == -ERR_INVALID ? 400 : 500;
        return r;
    }
    if (hosts_check(req) < 0 || route_check(req) < 0)
        return -ERR_INVALID;
    if (atomic_load(&req->server->stopping))
        return refuse(req, 503, "the server is stopping");
    return body_check(req);
}

/* Of a list of names those that are names. */
static void names_copy(struct buf *ret, const char *list)
{
    while (*list) {
        size_t len, full = strcspn(list, ",");

        len = full;
        while (len > 0 && strchr(" \t", list[len - 1]))
            len--;
        for (; len > 0 && strchr(" \t", *list); len--, full--)
            list++;
        if (http_is_token(list, len))
            (void)!buf_printf(ret, "%s%.*s", ret->len ? ", " : "", (int)len, list);
        list += full + (list[full] == ',');
    }
}

void http_options_answer(struct http_request *req)
{
    const char *names = http_header(req, "Access-Control-Request-Headers");
    const char *private = http_header(req, "Access-Control-Request-Private-Network");
    auto_buf struct buf headers;

    buf_init(&headers, CORS_HEADERS_MAX);
    if (is_preflight(req)) {
        names_copy(&headers, names ? names : "");
        http_header_add(req, "Access-Control-Allow-Methods",
                        "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS");
        if (headers.len)
            http_header_add(req, "Access-Control-Allow-Headers", buf_str(&headers));
        if (private && str_eq(private, "true"))
            http_header_add(req, "Access-Control-Allow-Private-Network", "true");
        http_header_add(req, "Access-Control-Max-Age", "600");
    }
    http_respond(req, 204, NULL, "", 0);
}
