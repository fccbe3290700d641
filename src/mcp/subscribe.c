/* SPDX-License-Identifier: MIT */
/*
 * Who is told about changes. A legacy client gets them on its stream of events, modern ones as
 * messages of a request subscriptions/listen. The receivers are collected under the server's lock,
 * and written to without it. One that reads too slowly is dropped by its transport, after a while
 * in which who tells it waits.
 */
#include "mcp/mcp-internal.h"

#include "base/str.h"
#include "mcp/meta.h"

enum { URI_MAX = 16384 };

static const struct {
    const char *method, *filter;
    bool only_fixture; /* these lists never change else */
} changes[] = {
    [MCP_TOOLS_CHANGED] = {"notifications/tools/list_changed", "toolsListChanged", true},
    [MCP_PROMPTS_CHANGED] = {"notifications/prompts/list_changed", "promptsListChanged", true},
    [MCP_RESOURCES_CHANGED] = {"notifications/resources/list_changed", "resourcesListChanged",
                               false},
    [MCP_RESOURCE_UPDATED] = {"notifications/resources/updated", "resourceSubscriptions", false},
};

/* ---- legacy ---- */

/* Its place in the client's list; the end when it has none. Under the server's lock. */
static size_t subscription_find(const struct mcp_client *c, const char *uri)
{
    size_t i = 0;

    while (i < c->subscription_count && !str_eq(c->subscriptions[i], uri))
        i++;
    return i;
}

static const char *uri_param(const struct mcp_request *r, struct error *reterr)
{
    const char *uri = mcp_request_param(r, "uri", reterr);

    if (uri && strlen(uri) > URI_MAX) {
        error_set(reterr, ERR_INVALID, "the uri is longer than %d bytes", URI_MAX);
        return NULL;
    }
    return uri;
}

/* Any URI will do: that a resource is there, or will be, is not told to who may not see it. */
int mcp_resources_subscribe(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                            struct error *reterr)
{
    const char *uri = uri_param(r, reterr);
    auto_free char *copy = uri ? strdup(uri) : NULL;
    struct mcp_client *c;
    int n = 0;

    if (!uri)
        return -ERR_INVALID;
    if (!copy)
        return error_no_memory(reterr);
    pthread_mutex_lock(&r->server->lock);
    c = r->client;
    if (c && subscription_find(c, uri) == c->subscription_count) {
        if (c->subscription_count < MCP_SUBSCRIPTIONS_MAX)
            c->subscriptions[c->subscription_count++] = TAKE_PTR(copy);
        else
            n = error_set(reterr, ERR_LIMIT, "limit_reached: %d subscriptions",
                          MCP_SUBSCRIPTIONS_MAX);
    }
    pthread_mutex_unlock(&r->server->lock);
    return n;
}

int mcp_resources_unsubscribe(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                              struct error *reterr)
{
    const char *uri = uri_param(r, reterr);
    struct mcp_client *c;
    size_t i;

    if (!uri)
        return -ERR_INVALID;
    pthread_mutex_lock(&r->server->lock);
    c = r->client;
    i = c ? subscription_find(c, uri) : 0;
    if (c && i < c->subscription_count) {
        free(c->subscriptions[i]);
        c->subscriptions[i] = c->subscriptions[--c->subscription_count];
    }
    pthread_mutex_unlock(&r->server->lock);
    return MCP_DONE;
}

/* ---- modern ---- */

static int filter_check(yyjson_val *filter, struct error *reterr)
{
    yyjson_val *uris = yyjson_obj_get(filter, changes[MCP_RESOURCE_UPDATED].filter), *value;
    size_t i, max;

    if (!yyjson_is_obj(filter))
        return error_set(reterr, ERR_INVALID, "the parameter \"notifications\" is no object");
    for (i = 0; i < MCP_RESOURCE_UPDATED; i++) {
        value = yyjson_obj_get(filter, changes[i].filter);
        if (value && !yyjson_is_bool(value))
            return error_set(reterr, ERR_INVALID, "%s is no boolean", changes[i].filter);
    }
    if (uris && !yyjson_is_arr(uris))
        return error_set(reterr, ERR_INVALID, "resourceSubscriptions is no array");
    if (yyjson_arr_size(uris) > MCP_SUBSCRIPTIONS_MAX)
        return error_set(reterr, ERR_INVALID, "limit_reached: %d resourceSubscriptions",
                         MCP_SUBSCRIPTIONS_MAX);
    yyjson_arr_foreach(uris, i, max, value)
    {
        if (!yyjson_is_str(value))
            return error_set(reterr, ERR_INVALID, "resourceSubscriptions has what is no string");
    }
    return 0;
}

static bool change_is_offered(const struct mcp_server *s, enum mcp_change what)
{
    return s->fixture || !changes[what].only_fixture;
}

static void subscription_id_add(const struct mcp_request *r, yyjson_mut_doc *doc,
                                yyjson_mut_val *object)
{
    yyjson_mut_obj_add_val(doc, mcp_meta_of(doc, object), MCP_META_SUBSCRIPTION,
                           yyjson_val_mut_copy(doc, r->message.id));
}

/* What of the filter is honoured. */
static int acknowledgement_format(const struct mcp_request *r, yyjson_val *filter, struct buf *ret)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *params = yyjson_mut_obj(doc), *accepted;

    subscription_id_add(r, doc, params);
    accepted = yyjson_mut_obj_add_obj(doc, params, "notifications");
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        yyjson_val *value = yyjson_obj_get(filter, changes[i].filter);

        if (value && !yyjson_is_false(value) && change_is_offered(r->server, i))
            yyjson_mut_obj_add_val(doc, accepted, changes[i].filter,
                                   yyjson_val_mut_copy(doc, value));
    }
    return mcp_notification_format("notifications/subscriptions/acknowledged", doc, params, ret);
}

/*
 * The request's own lock is taken before anybody can find the filter, and kept until the
 * acknowledgement is sent: so that is the first message of the subscription.
 */
static void listen_begin(struct mcp_request *r, yyjson_val *filter, const struct buf *text)
{
    bool stopping;

    pthread_mutex_lock(&r->server->lock);
    pthread_mutex_lock(&r->lock);
    stopping = r->server->stopping;
    r->listens = filter;
    pthread_mutex_unlock(&r->server->lock);
    if (!r->answered)
        r->channel->send(r->channel,
                         &(struct mcp_outgoing){.json = buf_str(text), .len = text->len});
    pthread_mutex_unlock(&r->lock);
    if (stopping)
        mcp_listen_end(r->server, NULL);
}

int mcp_listen(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
               struct error *reterr)
{
    yyjson_val *filter = yyjson_obj_get(r->message.params, "notifications");
    auto_buf struct buf text;
    int n = filter_check(filter, reterr);

    if (n < 0)
        return n;
    buf_init(&text, MCP_MESSAGE_MAX);
    if (acknowledgement_format(r, filter, &text) < 0)
        return error_no_memory(reterr);
    listen_begin(r, filter, &text);
    return MCP_LATER;
}

/* ---- telling ---- */

/* One receiver: the events of a client, or a request that listens. */
struct receiver {
    struct mcp_channel *channel;
    struct mcp_request *request;
};

static bool filter_wants(yyjson_val *filter, enum mcp_change what, const char *uri)
{
    yyjson_val *value = yyjson_obj_get(filter, changes[what].filter), *item;
    size_t i, max;

    if (what != MCP_RESOURCE_UPDATED)
        return yyjson_is_true(value);
    yyjson_arr_foreach(value, i, max, item)
    {
        if (yyjson_equals_str(item, uri))
            return true;
    }
    return false;
}

static bool client_wants(const struct mcp_client *c, enum mcp_change what, const char *uri)
{
    return c->events && c->initialized &&
           (what != MCP_RESOURCE_UPDATED || subscription_find(c, uri) < c->subscription_count);
}

static size_t receivers_max(const struct mcp_server *s)
{
    size_t n = 0;

    for (const struct mcp_client *c = s->clients; c; c = c->next)
        n += 1 + c->request_count;
    return n;
}

/* Referenced. None when memory is short. */
static struct receiver *receivers_take(struct mcp_server *s, enum mcp_change what, const char *uri,
                                       size_t *ret_count)
{
    struct receiver *list;
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    list = calloc(receivers_max(s) + 1, sizeof(*list));
    for (struct mcp_client *c = s->clients; c && list; c = c->next) {
        if (client_wants(c, what, uri))
            list[n++].channel = mcp_channel_ref(c->events);
        for (struct mcp_request *r = c->requests; r; r = r->next) {
            if (r->listens && filter_wants(r->listens, what, uri))
                list[n++].request = mcp_request_ref(r);
        }
    }
    pthread_mutex_unlock(&s->lock);
    *ret_count = n;
    return list;
}

static void receiver_tell(const struct receiver *to, enum mcp_change what, const char *uri)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *params = yyjson_mut_obj(doc);
    auto_buf struct buf text;

    buf_init(&text, MIB);
    if (to->request)
        subscription_id_add(to->request, doc, params);
    if (what == MCP_RESOURCE_UPDATED)
        yyjson_mut_obj_add_strcpy(doc, params, "uri", uri);
    if (to->request)
        mcp_request_notify(to->request, changes[what].method, doc, params);
    else if (mcp_notification_format(changes[what].method, doc, params, &text) == 0)
        to->channel->send(to->channel,
                          &(struct mcp_outgoing){.json = buf_str(&text), .len = text.len});
}

void mcp_notify(struct mcp_server *s, enum mcp_change what, const char *uri)
{
    size_t count = 0;
    auto_free struct receiver *list = receivers_take(s, what, uri, &count);

    for (size_t i = 0; i < count; i++) {
        receiver_tell(&list[i], what, uri);
        mcp_channel_unref(list[i].channel);
        mcp_request_unref(list[i].request);
    }
}

/* ---- the end ---- */

/* One that listens, referenced; it listens no more. */
static struct mcp_request *listener_take(struct mcp_server *s, const struct mcp_client *only)
{
    struct mcp_request *found = NULL;

    pthread_mutex_lock(&s->lock);
    for (struct mcp_client *c = s->clients; c && !found; c = c->next) {
        for (struct mcp_request *r = c->requests; r && !found && (!only || c == only); r = r->next)
            found = r->listens ? mcp_request_ref(r) : NULL;
    }
    if (found)
        found->listens = NULL;
    pthread_mutex_unlock(&s->lock);
    return found;
}

void mcp_listen_end(struct mcp_server *s, struct mcp_client *c)
{
    struct mcp_request *r;

    while ((r = listener_take(s, c))) {
        auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *result = yyjson_mut_obj(doc);

        subscription_id_add(r, doc, result);
        mcp_request_answer(r, doc, result);
        mcp_request_unref(r);
    }
}
