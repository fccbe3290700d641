/* SPDX-License-Identifier: MIT */
/*
 * Requests that wait for their answer. Whatever is sent for one goes through here, under its lock,
 * so that nothing follows the answer or a cancellation.
 */
#include "mcp/mcp-internal.h"

#include "base/clock.h"
#include "base/str.h"
#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"
#include "mcp/meta.h"

const char *const mcp_log_levels[] = {"debug",    "info",  "notice",    "warning", "error",
                                      "critical", "alert", "emergency", NULL};

int mcp_log_level_parse(const char *name)
{
    for (int i = 0; mcp_log_levels[i]; i++) {
        if (str_eq(mcp_log_levels[i], name))
            return i;
    }
    return -1;
}

struct mcp_channel *mcp_channel_ref(struct mcp_channel *c)
{
    __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
    return c;
}

void mcp_channel_unref(struct mcp_channel *c)
{
    if (c && __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) == 0)
        c->free(c);
}

struct mcp_request *mcp_request_ref(struct mcp_request *r)
{
    __atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
    return r;
}

void mcp_request_unref(struct mcp_request *r)
{
    if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL))
        return;
    mcp_call_unref(r->call);
    mcp_channel_unref(r->channel);
    yyjson_doc_free(r->doc);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- the end ---- */

/* Takes it from its client's list; drops the list's reference. Nothing is sent for it any more, and
 * whoever still needs what it asked for does not keep the client's connection. */
static void request_unlist(struct mcp_request *r)
{
    struct mcp_server *s = r->server;
    struct mcp_question *questions = NULL;
    struct mcp_channel *channel = NULL;
    struct mcp_call *call;
    bool found = false;

    pthread_mutex_lock(&s->lock);
    for (struct mcp_request **p = r->client ? &r->client->requests : NULL; p && *p && !found;) {
        found = *p == r;
        if (found) {
            *p = r->next;
            r->client->request_count--;
            questions = mcp_ask_detach(r);
            channel = TAKE_PTR(r->channel);
            r->client = NULL;
        } else {
            p = &(*p)->next;
        }
    }
    call = r->call;
    r->call = NULL;
    pthread_mutex_unlock(&s->lock);
    mcp_ask_forget(questions);
    mcp_channel_unref(channel);
    mcp_call_unref(call);
    if (found)
        mcp_request_unref(r);
}

/* Whether the caller is the one who answers. */
static bool answer_begin(struct mcp_request *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->answered) {
        r->answered = true;
        return true;
    }
    pthread_mutex_unlock(&r->lock);
    return false;
}

static void answer_send(struct mcp_request *r, const struct buf *text, int http_status)
{
    r->channel->send(r->channel, &(struct mcp_outgoing){.json = buf_str(text),
                                                        .len = text->len,
                                                        .final = true,
                                                        .http_status = http_status});
    pthread_mutex_unlock(&r->lock);
    request_unlist(r);
}

static void fault_text(const struct mcp_request *r, const struct jsonrpc_fault *fault,
                       struct buf *text)
{
    struct jsonrpc_fault bare = {fault->code, fault->message, NULL};

    buf_clear(text);
    /* The data may repeat what the client sent, and that may be too long to be said again. */
    if (jsonrpc_format_error(r->message.id, fault, text) < 0 &&
        jsonrpc_format_error(r->message.id, &bare, text) < 0)
        buf_clear(text);
}

void mcp_request_answer(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf text;
    int status = 200;

    buf_init(&text, MCP_ANSWER_MAX);
    if (!answer_begin(r))
        return;
    if (r->era == MCP_MODERN)
        mcp_meta_complete(doc, result);
    yyjson_mut_obj_add_str(doc, root, "jsonrpc", "2.0");
    yyjson_mut_obj_add_val(doc, root, "id", yyjson_val_mut_copy(doc, r->message.id));
    yyjson_mut_obj_add_val(doc, root, "result", result);
    yyjson_mut_doc_set_root(doc, root);
    if (json_mut_write(doc, &text, NULL) < 0) {
        fault_text(r,
                   &(struct jsonrpc_fault){JSONRPC_INTERNAL_ERROR, "the answer is too large", NULL},
                   &text);
        status = 500;
    }
    answer_send(r, &text, status);
}

/* Errors of the transport's level have a status of their own, in the modern era only. */
static int fault_status(const struct mcp_request *r, int code)
{
    static const struct {
        int code, status;
    } statuses[] = {
        {JSONRPC_METHOD_NOT_FOUND, 404}, {MCP_HEADER_MISMATCH, 400},
        {MCP_MISSING_CAPABILITY, 400},   {MCP_BAD_VERSION, 400},
        {JSONRPC_INVALID_PARAMS, 400},
    };

    for (size_t i = 0; r->era == MCP_MODERN && i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].code == code)
            return statuses[i].status;
    }
    return 200;
}

void mcp_request_fail(struct mcp_request *r, const struct jsonrpc_fault *fault)
{
    auto_buf struct buf text;

    buf_init(&text, MIB);
    if (!answer_begin(r))
        return;
    fault_text(r, fault, &text);
    answer_send(r, &text, fault_status(r, fault->code));
}

int mcp_fault_code(const struct error *error)
{
    bool callers = error->code == ERR_INVALID || error->code == ERR_NOT_FOUND;

    return callers ? JSONRPC_INVALID_PARAMS : JSONRPC_INTERNAL_ERROR;
}

void mcp_request_fail_error(struct mcp_request *r, const struct error *error)
{
    mcp_request_fail(r, &(struct jsonrpc_fault){mcp_fault_code(error), error->text, NULL});
}

void mcp_request_drop(struct mcp_request *r)
{
    if (!answer_begin(r))
        return;
    pthread_mutex_unlock(&r->lock);
    request_unlist(r);
}

/* ---- before the end ---- */

void mcp_request_send(struct mcp_request *r, const char *json, size_t len)
{
    pthread_mutex_lock(&r->lock);
    if (!r->answered)
        r->channel->send(r->channel, &(struct mcp_outgoing){.json = json, .len = len});
    pthread_mutex_unlock(&r->lock);
}

void mcp_request_pause(struct mcp_request *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->answered && r->channel->pause)
        r->channel->pause(r->channel);
    pthread_mutex_unlock(&r->lock);
}

void mcp_request_notify(struct mcp_request *r, const char *method, yyjson_mut_doc *doc,
                        yyjson_mut_val *params)
{
    auto_buf struct buf text;

    buf_init(&text, MIB);
    if (mcp_notification_format(method, doc, params, &text) == 0)
        mcp_request_send(r, buf_str(&text), text.len);
}

void mcp_request_progress(struct mcp_request *r, const char *message)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *params = yyjson_mut_obj(doc);
    int64_t now = clock_ms();
    double value;

    if (!r->progress_token)
        return;
    pthread_mutex_lock(&r->lock);
    value = (double)(now - r->started_ms) / 1000;
    if (value <= r->progress)
        value = r->progress + 0.001;
    r->progress = value;
    r->progress_ms = now;
    pthread_mutex_unlock(&r->lock);
    yyjson_mut_obj_add_val(doc, params, "progressToken",
                           yyjson_val_mut_copy(doc, r->progress_token));
    yyjson_mut_obj_add_real(doc, params, "progress", value);
    if (message && message[0])
        yyjson_mut_obj_add_strcpy(doc, params, "message", message);
    mcp_request_notify(r, "notifications/progress", doc, params);
}

void mcp_request_log(struct mcp_request *r, const char *level, const char *text)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *params = yyjson_mut_obj(doc);

    if (r->log_level < 0 || mcp_log_level_parse(level) < r->log_level)
        return;
    yyjson_mut_obj_add_strcpy(doc, params, "level", level);
    yyjson_mut_obj_add_str(doc, params, "logger", "sandbox-agent");
    yyjson_mut_obj_add_strcpy(doc, params, "data", text);
    mcp_request_notify(r, "notifications/message", doc, params);
}

bool mcp_request_is_over(struct mcp_request *r)
{
    bool over;

    pthread_mutex_lock(&r->server->lock);
    over = r->server->stopping;
    pthread_mutex_unlock(&r->server->lock);
    pthread_mutex_lock(&r->lock);
    over |= r->answered;
    pthread_mutex_unlock(&r->lock);
    return over;
}

/* ---- what it asks ---- */

const char *mcp_request_param(const struct mcp_request *r, const char *name, struct error *reterr)
{
    yyjson_val *value = yyjson_obj_get(r->message.params, name);
    const char *text = yyjson_get_str(value);

    if (!text || strlen(text) != yyjson_get_len(value)) {
        error_set(reterr, ERR_INVALID, "the parameter \"%s\" is missing or no string", name);
        return NULL;
    }
    return text;
}
