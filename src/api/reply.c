/* SPDX-License-Identifier: MIT */
/* Bodies of requests and answers: the forms that clients of several servers send and expect. */
#include "api/describe.h"

#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { NESTED_MAX = 2, LIMIT_MAX = 1000 };

static void doc_release(void *doc)
{
    yyjson_doc_free(doc);
}

/* What a JSON body may call itself. A form is refused: only pages of others send one. */
static bool type_is_json(const struct http_request *req)
{
    const char *type = http_header(req, "Content-Type");

    return !type || strncasecmp(type, "application/json", 16) == 0 ||
           strncasecmp(type, "text/plain", 10) == 0;
}

static int body_refuse(struct http_request *req, unsigned status, const char *text)
{
    struct error error;

    error_set(&error, ERR_INVALID, "%s", text);
    http_fail(req, status, &error);
    return -1;
}

/* A string that holds JSON, which holds perhaps once more. */
static int body_parse(struct http_request *req, yyjson_doc **ret, struct error *reterr)
{
    const struct buf *body = http_body(req);
    yyjson_doc *doc = NULL;
    int r = body->len ? json_parse(body->data, body->len, &doc, reterr)
                      : json_parse("{}", 2, &doc, reterr);

    for (int depth = 0; r == 0 && depth < NESTED_MAX; depth++) {
        yyjson_val *root = yyjson_doc_get_root(doc);
        yyjson_doc *inner = NULL;

        if (!yyjson_is_str(root))
            break;
        r = json_parse(yyjson_get_str(root), yyjson_get_len(root), &inner, reterr);
        yyjson_doc_free(doc);
        doc = inner;
    }
    if (r == 0)
        r = json_keys_check(doc, reterr);
    if (r < 0) {
        yyjson_doc_free(doc);
        return r;
    }
    *ret = doc;
    return 0;
}

static int body_read(struct http_request *req, yyjson_val **ret)
{
    yyjson_doc *doc = NULL;
    struct error error;

    if (!type_is_json(req))
        return body_refuse(req, 415, "the body has to be application/json");
    if (body_parse(req, &doc, &error) < 0) {
        error_wrap(&error, "the body is not JSON");
        http_fail(req, error.code == ERR_NO_MEMORY ? 0 : 422, &error);
        return -1;
    }
    http_set_context(req, doc, doc_release);
    *ret = yyjson_doc_get_root(doc);
    return 0;
}

int api_body(struct http_request *req, yyjson_val **ret)
{
    if (body_read(req, ret) < 0)
        return -1;
    if (!yyjson_is_obj(*ret))
        return body_refuse(req, 422, "the body has to be a JSON object");
    return api_body_check(req, *ret);
}

int api_body_array(struct http_request *req, yyjson_val **ret)
{
    if (body_read(req, ret) < 0)
        return -1;
    if (!yyjson_is_arr(*ret))
        return body_refuse(req, 422, "the body has to be a JSON array");
    return api_body_check(req, *ret);
}

/* ---- failures ---- */

/* Where a failure goes in place of an answer, while a command of protocol v2 is done: its answer
 * says 200 in every case. */
static _Thread_local struct error *captured;

void api_capture(struct error *error)
{
    captured = error;
}

/* Whether the failure was taken. */
static bool capture(const struct error *error)
{
    if (captured)
        *captured = *error;
    return captured;
}

int api_fail(struct http_request *req, const struct error *error)
{
    unsigned status = error->code == ERR_BUSY ? 409 : 0;

    if (!capture(error))
        http_fail(req, status, error);
    return -1;
}

int api_unprocessable(struct http_request *req, const char *fmt, ...)
{
    struct error error;
    char text[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error_set(&error, ERR_INVALID, "%s", text);
    if (!capture(&error))
        http_fail(req, 422, &error);
    return -1;
}

int api_not_found(struct http_request *req, const char *what)
{
    struct error error;

    error_set(&error, ERR_NOT_FOUND, "no such %s", what);
    if (!capture(&error))
        http_fail(req, 404, &error);
    return -1;
}

const char *api_uuid(struct http_request *req, const char *param)
{
    const char *id = http_param(req, param);

    if (id && uuid_check(id))
        return id;
    api_unprocessable(req, "'%s' is not a UUID", param);
    return NULL;
}

bool api_thread_id_check(const char *id)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    return str_check_chars(id, set, 128);
}

const char *api_thread_id(struct http_request *req)
{
    const char *id = http_param(req, "thread_id");

    if (id && api_thread_id_check(id))
        return id;
    api_unprocessable(req, "a thread's id is 1 to 128 letters, digits, '-' and '_'");
    return NULL;
}

/* ---- answers ---- */

void api_reply(struct http_request *req, unsigned status, const struct buf *json)
{
    http_respond(req, status, "application/json", buf_str(json), json->len);
}

void api_reply_doc(struct http_request *req, unsigned status, const yyjson_mut_doc *doc)
{
    auto_buf struct buf text;
    struct error error;

    buf_init(&text, API_ANSWER_MAX);
    if (json_mut_write(doc, &text, &error) < 0)
        api_fail(req, &error);
    else
        api_reply(req, status, &text);
}

void api_reply_text(struct http_request *req, unsigned status, const char *json)
{
    http_respond(req, status, "application/json", json, strlen(json));
}

void api_reply_empty(struct http_request *req, unsigned status)
{
    http_respond(req, status, NULL, "", 0);
}

void api_pagination(struct http_request *req, const struct store_page *page, size_t count,
                    int64_t total)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)total);
    http_header_add(req, "X-Pagination-Total", text);
    if (page->offset + (int64_t)count >= total)
        return;
    snprintf(text, sizeof(text), "%lld", (long long)(page->offset + (int64_t)count));
    http_header_add(req, "X-Pagination-Next", text);
}

bool api_whole(yyjson_val *v, int64_t *ret)
{
    double d = yyjson_get_num(v);

    if (!yyjson_is_num(v) || d != trunc(d) || fabs(d) > 9007199254740992.0)
        return false;
    *ret = (int64_t)d;
    return true;
}

static int count_read(struct http_request *req, yyjson_val *body, const char *name, int64_t max,
                      int64_t *ret)
{
    yyjson_val *v = yyjson_obj_get(body, name);
    bool is_limit = str_eq(name, "limit");

    if (!v || yyjson_is_null(v))
        return 0;
    if (!api_whole(v, ret) || *ret < (is_limit ? 1 : 0) || *ret > max)
        return api_unprocessable(req, "'%s' has to be a number from %d to %lld", name, is_limit,
                                 (long long)max);
    return 0;
}

int api_page(struct http_request *req, yyjson_val *body, int64_t limit, int64_t limit_max,
             struct store_page *ret)
{
    const char *order = json_get_str(body, "sort_order", NULL);

    *ret = (struct store_page){.limit = limit, .sort_by = json_get_str(body, "sort_by", NULL)};
    if (count_read(req, body, "limit", limit_max, &ret->limit) < 0 ||
        count_read(req, body, "offset", INT32_MAX, &ret->offset) < 0)
        return -1;
    if (order && !str_eq(order, "asc") && !str_eq(order, "desc"))
        return api_unprocessable(req, "'sort_order' has to be \"asc\" or \"desc\"");
    ret->ascending = order && str_eq(order, "asc");
    return 0;
}

int api_query_page(struct http_request *req, int64_t limit_max, struct store_page *ret)
{
    const char *limit = http_query(req, "limit"), *offset = http_query(req, "offset");

    if ((limit && str_parse_int(limit, 1, limit_max, &ret->limit) < 0) ||
        (offset && str_parse_int(offset, 0, INT32_MAX, &ret->offset) < 0))
        return api_unprocessable(req,
                                 "'limit' has to be a number from 1 to %lld, 'offset' one "
                                 "from 0 on",
                                 (long long)limit_max);
    return 0;
}

void api_add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t us)
{
    char text[TIMESTAMP_TEXT];

    timestamp_format(us, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

void api_add_raw(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *json)
{
    if (json)
        yyjson_mut_obj_add_val(doc, object, key, yyjson_mut_raw(doc, json));
    else
        yyjson_mut_obj_add_null(doc, object, key);
}

void api_add_str(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *s)
{
    if (s)
        yyjson_mut_obj_add_str(doc, object, key, s);
    else
        yyjson_mut_obj_add_null(doc, object, key);
}

const char *api_member(struct http_request *req, yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    auto_buf struct buf text;

    if (!v || yyjson_is_null(v))
        return NULL;
    buf_init(&text, API_ANSWER_MAX);
    if (json_write(v, &text, NULL) < 0)
        return NULL;
    return arena_memdup(http_arena(req), buf_str(&text), text.len);
}

/* ---- names ---- */

bool api_graph_check(const char *graph_id)
{
    return str_eq(graph_id, AGENT_GRAPH) || str_eq(graph_id, AGENT_GRAPH_ALIAS);
}

const char *api_assistant_id(const char *given)
{
    if (api_graph_check(given) || str_eq(given, AGENT_ASSISTANT_ALIAS))
        return AGENT_ASSISTANT;
    return uuid_check(given) ? given : NULL;
}

const char *api_metadata_filter(struct http_request *req, yyjson_val *metadata)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root;
    auto_buf struct buf text;

    if (!yyjson_is_obj(metadata) || yyjson_obj_size(metadata) == 0 || !doc)
        return NULL;
    root = yyjson_val_mut_copy(doc, metadata);
    yyjson_mut_doc_set_root(doc, root);
    if (str_eq(json_get_str(metadata, "graph_id", ""), AGENT_GRAPH_ALIAS))
        yyjson_mut_obj_put(root, yyjson_mut_str(doc, "graph_id"), yyjson_mut_str(doc, AGENT_GRAPH));
    if (str_eq(json_get_str(metadata, "assistant_id", ""), AGENT_ASSISTANT_ALIAS))
        yyjson_mut_obj_put(root, yyjson_mut_str(doc, "assistant_id"),
                           yyjson_mut_str(doc, AGENT_ASSISTANT));
    buf_init(&text, MIB);
    if (json_mut_write(owned, &text, NULL) < 0)
        return "{}";
    return arena_memdup(http_arena(req), buf_str(&text), text.len);
}
