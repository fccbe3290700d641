/* SPDX-License-Identifier: MIT */
/* Requests; see chat_api.h. What the server says goes into error texts as it is: whoever shows them
 * makes them harmless. */
#include "cli/chat_api.h"

#include "base/str.h"

#include <limits.h>
#include <stdio.h>

enum { CONNECT_MS = 5000, IDLE_MS = 30000, PATH_MAX_LEN = 8192, BODY_MAX = 64 << 20 };

int chat_api_init(struct chat_api *a, const struct settings *s, struct error *reterr)
{
    *a = (struct chat_api){.key = s->api_key, .cancel_fd = -1};
    return http_client_new_by(s, &a->client, reterr);
}

void chat_api_done(struct chat_api *a)
{
    if (a->client)
        http_client_free(a->client);
    a->client = NULL;
}

/* ---- headers ---- */

int chat_headers_add(struct chat_headers *h, const char *name, const char *value)
{
    if (!value || !value[0])
        return 0;
    if (h->count + 1 >= CHAT_HEADERS || asprintf(&h->items[h->count], "%s: %s", name, value) < 0) {
        h->items[h->count] = NULL;
        return -1;
    }
    h->count++;
    return 0;
}

void chat_headers_done(struct chat_headers *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->items[i]);
    *h = (struct chat_headers){};
}

/* ---- one request ---- */

int chat_status_fail(const struct http_reply *reply, struct error *reterr)
{
    static const struct {
        unsigned status;
        enum error_code code;
        const char *text;
    } known[] = {
        {401, ERR_DENIED,
         "the server wants a key: set API_KEY to the one that it was started with"},
        {404, ERR_NOT_FOUND, "the server does not know it"},
        {409, ERR_BUSY, "the conversation is busy"},
        {413, ERR_LIMIT, "that is more than the server takes"},
        {429, ERR_LIMIT, "too many requests; wait a moment"},
    };
    auto_json yyjson_doc *doc = NULL;
    enum error_code code = reply->status < 500 ? ERR_INVALID : ERR_UPSTREAM;
    const char *text = "", *detail = NULL;

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].status == reply->status) {
            code = known[i].code;
            text = known[i].text;
        }
    }
    if (code != ERR_DENIED && json_parse(buf_str(&reply->body), reply->body.len, &doc, NULL) == 0)
        detail = json_get_str(yyjson_doc_get_root(doc), "message", NULL);
    if (detail || text[0])
        return error_set(reterr, code, "%.300s", detail ? detail : text);
    return error_set(reterr, code, "the server answers with status %u", reply->status);
}

static int headers_fill(struct chat_headers *h, const struct chat_api *a,
                        const struct chat_request *request)
{
    const char *type = request->content_type ? request->content_type : "application/json";

    if ((request->body || request->body_read) && chat_headers_add(h, "Content-Type", type) < 0)
        return -1;
    return chat_headers_add(h, "x-api-key", a->key);
}

int chat_api_send(struct chat_api *a, const struct chat_request *request, struct http_reply *ret,
                  struct error *reterr)
{
    auto_cleanup(chat_headers_done) struct chat_headers headers = {};
    auto_buf struct buf url;
    int r;

    *ret = (struct http_reply){};
    buf_init(&url, PATH_MAX_LEN);
    if (buf_printf(&url, "%s%s", a->base, request->path) < 0 ||
        headers_fill(&headers, a, request) < 0)
        return error_set(reterr, ERR_LIMIT, "the request is too long");
    r = http_client_call(
        a->client,
        &(struct http_call){.size = sizeof(struct http_call),
                            .method = request->method,
                            .url = buf_str(&url),
                            .headers = (const char *const *)headers.items,
                            .body = request->body,
                            .len = request->len,
                            .body_read = request->body_read,
                            .cancel_fd = a->cancel_fd,
                            .connect_timeout_ms = CONNECT_MS,
                            .idle_timeout_ms = request->timeout_ms ? request->timeout_ms : IDLE_MS,
                            .total_timeout_ms = request->timeout_ms ? UINT_MAX : 0,
                            .reply_max = request->on_data ? UINT64_MAX : BODY_MAX,
                            .on_data = request->on_data,
                            .on_head = request->on_head,
                            .user = request->user,
                            .keep = request->keep},
        ret, reterr);
    if (r == 0 && (ret->status < 200 || ret->status > 299))
        r = chat_status_fail(ret, reterr);
    if (r < 0)
        buf_done(&ret->body);
    return r;
}

int chat_api_json(struct chat_api *a, const char *method, const char *path, const char *json,
                  yyjson_doc **ret, struct error *reterr)
{
    struct chat_request request = {
        .method = method, .path = path, .body = json, .len = json ? strlen(json) : 0};
    struct http_reply reply;
    int r = chat_api_send(a, &request, &reply, reterr);

    *ret = NULL;
    if (r == 0 && reply.body.len > 0 &&
        (r = json_parse(reply.body.data, reply.body.len, ret, reterr)) < 0)
        r = error_set(reterr, ERR_PROTOCOL, "what the server answers is no JSON");
    buf_done(&reply.body);
    return r;
}
