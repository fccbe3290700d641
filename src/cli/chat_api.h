/* SPDX-License-Identifier: MIT */
/* Plain requests of the chat to the API. Streams are chat_stream.h's. */
#pragma once

#include "base/json.h"
#include "base/settings.h"
#include "http/client.h"

struct chat_api {
    struct http_client *client;
    char base[256]; /* without a slash at the end */
    const char *key;
    int cancel_fd; /* readable: a person wants no more of this call; -1 */
};

struct chat_request {
    const char *method, *path; /* the path holds only what url_percent_append() has put there */
    const char *body;          /* NULL: none */
    size_t len;
    /* In place of `body`; see struct http_call. */
    ssize_t (*body_read)(void *user, uint64_t offset, char *to, size_t max, struct error *reterr);
    const char *content_type; /* NULL: JSON */
    unsigned timeout_ms;      /* in which nothing moves; 0: half a minute, and 15 for all of it */

    /* Each piece of a good answer goes here instead; see struct http_call. */
    int (*on_data)(void *user, const char *data, size_t len, struct error *reterr);
    void (*on_head)(void *user, const struct http_reply *reply);
    void *user;
    const char *keep;
};

int chat_api_init(struct chat_api *a, const struct settings *s, struct error *reterr) must_check;
void chat_api_done(struct chat_api *a);

/* Sends it; whatever is not 2xx is an error with the server's own words. buf_done(&ret->body). */
int chat_api_send(struct chat_api *a, const struct chat_request *request, struct http_reply *ret,
                  struct error *reterr) must_check;

/* The answer as a document; NULL when it has no body. `json` may be NULL. */
int chat_api_json(struct chat_api *a, const char *method, const char *path, const char *json,
                  yyjson_doc **ret, struct error *reterr) must_check;

/* The headers of a request: "Name: value", ended by NULL; their memory is the struct's. */
enum { CHAT_HEADERS = 5 };
struct chat_headers {
    char *items[CHAT_HEADERS];
    size_t count;
};
int chat_headers_add(struct chat_headers *h, const char *name, const char *value) must_check;
void chat_headers_done(struct chat_headers *h);

/* What a status that is not 2xx means. */
int chat_status_fail(const struct http_reply *reply, struct error *reterr);
