/* SPDX-License-Identifier: MIT */
/*
 * From a message to its method. The era is told by the message itself: a modern request names its
 * version in `_meta`; everything else is legacy, where nothing but `initialize` and `ping` comes
 * before the handshake.
 */
#include "mcp/mcp-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"
#include "mcp/meta.h"

#include <sched.h>
#include <stdio.h>

static int ping(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                struct error *reterr)
{
    return MCP_DONE;
}

static int set_level(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                     struct error *reterr)
{
    const char *name = mcp_request_param(r, "level", reterr);
    int level = name ? mcp_log_level_parse(name) : -1;

    if (!name)
        return -ERR_INVALID;
    if (level < 0)
        return error_set(reterr, ERR_INVALID, "there is no log level '%.20s'", name);
    pthread_mutex_lock(&r->server->lock);
    if (r->client)
        r->client->log_level = level;
    pthread_mutex_unlock(&r->server->lock);
    return MCP_DONE;
}

static const struct mcp_method methods[] = {
    {"initialize", MCP_ON_LEGACY | MCP_BEFORE_INITIALIZE, mcp_initialize},
    {"ping", MCP_ON_LEGACY | MCP_BEFORE_INITIALIZE, ping},
    {"logging/setLevel", MCP_ON_LEGACY, set_level},
    {"server/discover", MCP_ON_MODERN | MCP_CACHEABLE, mcp_discover},
    {"tools/list", MCP_ON_BOTH | MCP_CACHEABLE, mcp_tools_list},
    {"tools/call", MCP_ON_BOTH, mcp_tools_call},
    {"resources/list", MCP_ON_BOTH | MCP_CACHEABLE, mcp_resources_list},
    {"resources/templates/list", MCP_ON_BOTH | MCP_CACHEABLE, mcp_resources_templates},
    {"resources/read", MCP_ON_BOTH | MCP_CACHEABLE | MCP_ON_THREAD, mcp_resources_read},
    {"resources/subscribe", MCP_ON_LEGACY, mcp_resources_subscribe},
    {"resources/unsubscribe", MCP_ON_LEGACY, mcp_resources_unsubscribe},
    {"subscriptions/listen", MCP_ON_MODERN, mcp_listen},
    {"prompts/list", MCP_ON_BOTH | MCP_CACHEABLE | MCP_FIXTURE, mcp_prompts_list},
    {"prompts/get", MCP_ON_BOTH | MCP_FIXTURE, mcp_prompts_get},
    {"completion/complete", MCP_ON_BOTH | MCP_FIXTURE, mcp_complete},
    {"tasks/get", MCP_ON_MODERN, mcp_task_get},
    {"tasks/update", MCP_ON_MODERN, mcp_task_update},
    {"tasks/cancel", MCP_ON_MODERN, mcp_task_cancel},
};

static const struct mcp_method *method_find(const struct mcp_request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (str_eq(methods[i].name, r->message.method) && methods[i].flags & r->era)
            return methods[i].flags & MCP_FIXTURE && !r->server->fixture ? NULL : &methods[i];
    }
    return NULL;
}

/* ---- requests ---- */

static bool message_is_modern(const struct mcp_client *c, const struct jsonrpc_message *m)
{
    yyjson_val *meta = yyjson_obj_get(m->params, "_meta");
    bool spoke_modern;

    pthread_mutex_lock(&c->server->lock);
    spoke_modern = c->spoke_modern;
    pthread_mutex_unlock(&c->server->lock);
    return c->era == MCP_MODERN || (spoke_modern && !str_eq(m->method, "initialize")) ||
           str_eq(m->method, "server/discover") || str_eq(m->method, "subscriptions/listen") ||
           yyjson_obj_get(meta, "io.modelcontextprotocol/protocolVersion");
}

/* Puts it into the client's list; the list has a reference of its own. */
static int request_list(struct mcp_client *c, struct mcp_request *r, struct error *reterr)
{
    struct mcp_server *s = c->server;
    int n = 0;

    pthread_mutex_lock(&s->lock);
    for (struct mcp_request *other = c->requests; other && n == 0; other = other->next) {
        if (yyjson_equals(other->message.id, r->message.id))
            n = error_set(reterr, ERR_INVALID, "a request with this id is under way");
    }
    if (n == 0 && c->request_count >= MCP_REQUESTS_MAX)
        n = error_set(reterr, ERR_LIMIT, "%d requests are under way", MCP_REQUESTS_MAX);
    if (n == 0) {
        r->client = c;
        r->next = c->requests;
        c->requests = mcp_request_ref(r);
        c->request_count++;
        r->capabilities = c->capabilities;
        r->log_level = c->log_level;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static struct mcp_request *request_new(struct mcp_client *c, struct mcp_channel *channel,
                                       yyjson_doc *doc, const struct jsonrpc_message *m)
{
    struct mcp_request *r = calloc(1, sizeof(*r));
    yyjson_val *token;

    if (!r)
        return NULL;
    token = yyjson_obj_get(yyjson_obj_get(m->params, "_meta"), "progressToken");
    *r = (struct mcp_request){
        .refs = 1,
        .server = c->server,
        .channel = mcp_channel_ref(channel),
        .era = message_is_modern(c, m) ? MCP_MODERN : MCP_LEGACY,
        .doc = doc,
        .message = *m,
        .progress_token = yyjson_is_str(token) || yyjson_is_int(token) ? token : NULL,
        .log_level = -1,
        .started_ms = clock_ms(),
    };
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

static void not_found(struct mcp_request *r)
{
    char text[JSONRPC_METHOD_MAX + 40];

    snprintf(text, sizeof(text), "method not found: %s", r->message.method);
    mcp_request_fail(r, &(struct jsonrpc_fault){JSONRPC_METHOD_NOT_FOUND, text, NULL});
}

/* What it sends from now on is of this era, but for a handshake. */
static void client_is_modern(struct mcp_client *c)
{
    pthread_mutex_lock(&c->server->lock);
    c->spoke_modern = !c->initialized;
    pthread_mutex_unlock(&c->server->lock);
}

static bool may_handle(struct mcp_client *c, struct mcp_request *r, const struct mcp_method *method)
{
    static const struct jsonrpc_fault early = {
        JSONRPC_INVALID_REQUEST,
        "not initialized: begin with initialize, or with server/discover (" MCP_VERSION_MODERN ")",
        NULL};

    if (r->era == MCP_MODERN) {
        if (mcp_meta_check(r) < 0)
            return false;
        client_is_modern(c);
        return true;
    }
    if ((method && method->flags & MCP_BEFORE_INITIALIZE) || mcp_client_is_initialized(c))
        return true;
    mcp_request_fail(r, &early);
    return false;
}

static void method_run(struct mcp_request *r, const void *arg)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    const struct mcp_method *method = arg;
    struct error error = {};
    int n = method->handle(r, doc, result, &error);

    if (n == MCP_DONE && r->era == MCP_MODERN && method->flags & MCP_CACHEABLE)
        mcp_meta_cacheable(doc, result);
    if (n == MCP_DONE)
        mcp_request_answer(r, doc, result);
    else if (n < 0)
        mcp_request_fail_error(r, &error);
}

static void request_handle(struct mcp_client *c, struct mcp_request *r)
{
    const struct mcp_method *method = method_find(r);
    struct error error;

    if (!may_handle(c, r, method))
        return;
    if (!method)
        not_found(r);
    else if (!(method->flags & MCP_ON_THREAD))
        method_run(r, method);
    else if (mcp_work_start(r, method_run, method, &error) < 0)
        mcp_request_fail_error(r, &error);
}

static void request_receive(struct mcp_client *c, struct mcp_channel *channel, yyjson_doc *doc,
                            const struct jsonrpc_message *m)
{
    auto_mcp_request struct mcp_request *r = request_new(c, channel, doc, m);
    struct error error;

    if (!r) {
        yyjson_doc_free(doc);
        return;
    }
    if (request_list(c, r, &error) < 0)
        mcp_request_fail_error(r, &error);
    else
        request_handle(c, r);
}

/* ---- notifications ---- */

static struct mcp_request *request_find(struct mcp_client *c, yyjson_val *id)
{
    struct mcp_request *r;

    for (r = c->requests; r && !yyjson_equals(r->message.id, id); r = r->next)
        ;
    return r ? mcp_request_ref(r) : NULL;
}

/* Nothing more is sent for it, and what it waits for is stopped. */
static void request_cancel(struct mcp_request *r)
{
    struct mcp_call *call;

    pthread_mutex_lock(&r->server->lock);
    call = r->call ? mcp_call_ref(r->call) : NULL;
    pthread_mutex_unlock(&r->server->lock);
    mcp_request_drop(r);
    if (call)
        mcp_call_cancel(call);
    mcp_call_unref(call);
}

static void cancelled(struct mcp_client *c, const struct jsonrpc_message *m)
{
    auto_mcp_request struct mcp_request *r = NULL;
    yyjson_val *id = yyjson_obj_get(m->params, "requestId");

    pthread_mutex_lock(&c->server->lock);
    if (id)
        r = request_find(c, id);
    pthread_mutex_unlock(&c->server->lock);
    if (r && !str_eq(r->message.method, "initialize"))
        request_cancel(r);
}

static void notification_receive(struct mcp_client *c, const struct jsonrpc_message *m)
{
    if (str_eq(m->method, "notifications/cancelled"))
        cancelled(c, m);
}

void mcp_client_receive(struct mcp_client *c, struct mcp_channel *channel, const char *json,
                        size_t len)
{
    auto_json yyjson_doc *doc = NULL;
    struct jsonrpc_message m;
    auto_buf struct buf text;
    struct error error;
    int code, r = jsonrpc_parse(json, len, &doc, &m, &code, &error);

    if (r == 0 && m.kind == JSONRPC_REQUEST) {
        request_receive(c, channel, TAKE_PTR(doc), &m);
    } else if (r == 0 && m.kind == JSONRPC_NOTIFICATION) {
        notification_receive(c, &m);
    } else if (r == 0) {
        mcp_ask_answered(c, &m);
    } else {
        buf_init(&text, MIB);
        if (jsonrpc_format_error(m.id, &(struct jsonrpc_fault){code, error.text, NULL}, &text) == 0)
            channel->send(channel, &(struct mcp_outgoing){.json = buf_str(&text),
                                                          .len = text.len,
                                                          .final = true,
                                                          .http_status = 400});
    }
}

/* ---- clients ---- */

struct mcp_client *mcp_client_new(struct mcp_server *s, struct mcp_channel *events)
{
    struct mcp_client *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->server = s;
    c->events = events ? mcp_channel_ref(events) : NULL;
    c->log_level = -1;
    pthread_mutex_lock(&s->lock);
    c->next = s->clients;
    s->clients = c;
    pthread_mutex_unlock(&s->lock);
    return c;
}

void mcp_client_set_modern(struct mcp_client *c)
{
    c->era = MCP_MODERN;
}

void mcp_client_set_events(struct mcp_client *c, struct mcp_channel *events)
{
    struct mcp_channel *before;

    pthread_mutex_lock(&c->server->lock);
    before = c->events;
    c->events = events ? mcp_channel_ref(events) : NULL;
    pthread_mutex_unlock(&c->server->lock);
    mcp_channel_unref(before);
}

bool mcp_client_is_initialized(struct mcp_client *c)
{
    bool initialized;

    pthread_mutex_lock(&c->server->lock);
    initialized = c->initialized;
    pthread_mutex_unlock(&c->server->lock);
    return initialized;
}

/* The newest request of the channel; of any when that is NULL. Referenced. */
static struct mcp_request *request_of_channel(struct mcp_client *c,
                                              const struct mcp_channel *channel)
{
    struct mcp_request *r;

    pthread_mutex_lock(&c->server->lock);
    for (r = c->requests; r && channel && r->channel != channel; r = r->next)
        ;
    if (r)
        mcp_request_ref(r);
    pthread_mutex_unlock(&c->server->lock);
    return r;
}

void mcp_client_channel_gone(struct mcp_client *c, struct mcp_channel *channel)
{
    struct mcp_request *r;

    while ((r = request_of_channel(c, channel))) {
        request_cancel(r);
        mcp_request_unref(r);
        /* One that is being answered at this moment leaves the list by itself. */
        sched_yield();
    }
}

void mcp_client_free(struct mcp_client *c)
{
    struct mcp_server *s = c->server;
    struct mcp_client **p;

    mcp_listen_end(s, c);
    mcp_client_channel_gone(c, NULL);
    pthread_mutex_lock(&s->lock);
    for (p = &s->clients; *p != c; p = &(*p)->next)
        ;
    *p = c->next;
    pthread_mutex_unlock(&s->lock);
    mcp_channel_unref(c->events);
    for (size_t i = 0; i < c->subscription_count; i++)
        free(c->subscriptions[i]);
    free(c);
}
