/* SPDX-License-Identifier: MIT */
/*
 * Each request has a thread, which waits for the answer of its POST; what else comes is sent on at
 * once, so that a notification never overtakes what follows it. A session of the legacy era that
 * the API has lost (it was started anew) is begun again with the client's own `initialize`.
 *
 * Calls of one sandbox keep their order: a call is posted when the reply to the one before has
 * begun, because then it stands in the sandbox's queue.
 */
#include "cli/mcp_relay.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/local_server.h"
#include "http/client.h"
#include "mcp/mcp.h"
#include "wire/jsonrpc.h"
#include "wire/sse.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    PROBE_MS = 2000,
    CONNECT_MS = 5000,
    IDLE_MS = 60000, /* the API says something every 15 s */
    NOTE_MS = 10000,
    CALL_MS = 7 * 86400 * 1000,
    CANCEL_MS = 300,
    AGAIN_MS = 1000,
    CALLS_MAX = 128,
    STACK_BYTES = 512 * 1024,
    HEADERS_MAX = 10,
};
#define ANSWER_MAX (MCP_MESSAGE_MAX * 4)

struct relay {
    struct http_client *client;
    char *url; /* of /mcp */
    const char *key;
    struct mcp_channel *out;
    int stop_fd;              /* readable: the listener ends */
    pthread_mutex_t renewing; /* before the lock */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct relayed *calls;
    size_t count;
    bool stopping;
    char session[256]; /* legacy: as the API calls it */
    char *initialize;  /* legacy: the client's message */

    /* Of the thread that reads: */
    bool modern, listens;
    pthread_t listener;
};

/* A message of the client, and what comes of it. */
struct relayed {
    struct relay *relay;
    struct relayed *next;
    unsigned refs;          /* under the lock, as are `started` and what follows */
    struct relayed *before; /* of the same sandbox; referenced */
    bool started, cancelled, answered;
    bool modern; /* its era */
    bool quiet;  /* our own: the client hears nothing of it */
    int cancel_fd;
    unsigned timeout_ms;

    char *text;
    size_t len;
    yyjson_doc *doc;
    struct jsonrpc_message m; /* of a GET: none */
    struct http_reply reply;
    struct sse_parser events;
    struct buf body;
};

/* ---- messages ---- */

static void relayed_free(struct relayed *c)
{
    buf_done(&c->reply.body);
    buf_done(&c->body);
    sse_parser_done(&c->events);
    yyjson_doc_free(c->doc);
    if (c->cancel_fd >= 0)
        close(c->cancel_fd);
    free(c->text);
    free(c);
}

static void relayed_unref(struct relayed *c)
{
    struct relay *r;
    unsigned refs;

    if (!c)
        return;
    r = c->relay;
    pthread_mutex_lock(&r->lock);
    refs = --c->refs;
    pthread_mutex_unlock(&r->lock);
    if (refs == 0)
        relayed_free(c);
}
DEFINE_CLEANUP(struct relayed *, relayed_unref)
#define auto_relayed __attribute__((cleanup(relayed_unref_cleanup)))

static int relayed_new(struct relay *r, const char *text, size_t len, struct relayed **ret,
                       struct error *reterr)
{
    auto_relayed struct relayed *c = calloc(1, sizeof(*c));

    if (!c)
        return error_no_memory(reterr);
    *c = (struct relayed){.relay = r, .refs = 1, .cancel_fd = -1, .timeout_ms = NOTE_MS};
    buf_init(&c->body, ANSWER_MAX);
    sse_parser_init(&c->events, ANSWER_MAX);
    c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->cancel_fd < 0)
        return error_sys(reterr, errno, "cannot make an event descriptor");
    c->text = malloc(len + 1);
    if (!c->text)
        return error_no_memory(reterr);
    memcpy(c->text, text, len);
    c->text[len] = 0;
    c->len = len;
    *ret = TAKE_PTR(c);
    return 0;
}

static bool is_request(const struct relayed *c)
{
    return c->m.kind == JSONRPC_REQUEST && c->m.id;
}

static bool method_is(const struct relayed *c, const char *method)
{
    return c->m.method && str_eq(c->m.method, method);
}

/* ---- to the client ---- */

/* On one line, whatever white space stands between the tokens. */
static void line_send(struct relay *r, const char *json, size_t len)
{
    auto_buf struct buf line;

    buf_init(&line, len + 1);
    if (buf_append(&line, json, len) < 0)
        return;
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '\n' || line.data[i] == '\r')
            line.data[i] = ' ';
    }
    r->out->send(r->out, &(struct mcp_outgoing){.json = buf_str(&line), .len = line.len});
}

/* A message of the API's; what is none is dropped. After a cancellation no answer follows. */
static void deliver(struct relayed *c, const char *json, size_t len)
{
    struct relay *r = c->relay;
    auto_json yyjson_doc *doc = NULL;
    struct jsonrpc_message m;
    struct error error;
    bool answer, dropped;
    int code;

    if (jsonrpc_parse(json, len, &doc, &m, &code, &error) < 0) {
        log_warn("a message of the API cannot be read: %s", error.text);
        return;
    }
    answer = m.kind == JSONRPC_RESPONSE;
    pthread_mutex_lock(&r->lock);
    dropped = c->quiet || r->stopping ||
              (answer && (c->cancelled || c->answered || !yyjson_equals(m.id, c->m.id)));
    c->answered |= answer && !dropped;
    pthread_mutex_unlock(&r->lock);
    if (!dropped)
        line_send(r, json, len);
}

static void fail(struct relayed *c, int code, const char *text)
{
    auto_buf struct buf body;

    buf_init(&body, 8192);
    if (jsonrpc_format_error(c->m.id, &(struct jsonrpc_fault){code, text, NULL}, &body) == 0)
        line_send(c->relay, buf_str(&body), body.len);
}

/* ---- headers ---- */

/* Methods whose requests name something, and where. */
static const struct {
    const char *method, *param;
} named[] = {
    {"tools/call", "name"},  {"prompts/get", "name"},    {"resources/read", "uri"},
    {"tasks/get", "taskId"}, {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"},
};

static const char *version_of(const struct relayed *c)
{
    return json_get_str(yyjson_obj_get(c->m.params, "_meta"),
                        "io.modelcontextprotocol/protocolVersion", NULL);
}

/* Of the message, or of those before it. */
static bool is_modern(const struct relayed *c, bool before)
{
    if (version_of(c) || method_is(c, "server/discover") || method_is(c, "subscriptions/listen"))
        return true;
    return before && !method_is(c, "initialize");
}

static bool value_is_plain(const char *s)
{
    size_t len = strlen(s);

    for (const char *p = s; *p; p++) {
        if (*p < 0x20 || *p > 0x7e)
            return false;
    }
    return len > 0 && s[0] != ' ' && s[len - 1] != ' ' && !str_starts(s, "=?");
}

struct header_list {
    struct arena arena;
    const char *items[HEADERS_MAX + 1];
    size_t count;
};

static void header_add(struct header_list *list, const char *name, const char *value)
{
    auto_buf struct buf text;

    buf_init(&text, MIB);
    if (list->count == HEADERS_MAX || !value)
        return;
    if (value_is_plain(value)) {
        list->items[list->count] = arena_printf(&list->arena, "%s: %s", name, value);
    } else {
        if (base64_encode(&text, value, strlen(value)) < 0)
            return;
        list->items[list->count] =
            arena_printf(&list->arena, "%s: =?base64?%s?=", name, buf_str(&text));
    }
    if (list->items[list->count])
        list->count++;
}

static void modern_add(struct header_list *list, const struct relayed *c)
{
    const char *version = version_of(c);

    header_add(list, "MCP-Protocol-Version", version ? version : MCP_VERSION_MODERN);
    header_add(list, "Mcp-Method", c->m.method);
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (method_is(c, named[i].method))
            header_add(list, "Mcp-Name", json_get_str(c->m.params, named[i].param, NULL));
    }
}

static void headers_fill(struct header_list *list, const struct relayed *c, const char *session)
{
    *list = (struct header_list){};
    arena_init(&list->arena, 2 * MIB);
    if (c->text)
        header_add(list, "Content-Type", "application/json");
    header_add(list, "Accept", "application/json, text/event-stream");
    if (c->relay->key[0])
        header_add(list, "x-api-key", c->relay->key);
    if (c->modern)
        modern_add(list, c);
    else if (session[0])
        header_add(list, "Mcp-Session-Id", session);
}

/* ---- one POST ---- */

static bool status_is_good(unsigned status)
{
    return status >= 200 && status < 300;
}

static void on_head(void *user, const struct http_reply *reply)
{
    struct relayed *c = user;
    struct relay *r = c->relay;

    pthread_mutex_lock(&r->lock);
    c->started = true;
    if (method_is(c, "initialize") && reply->kept[0])
        memcpy(r->session, reply->kept, sizeof(r->session));
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static int on_event(void *user, const char *event, const char *data, size_t len,
                    struct error *reterr)
{
    if (len > 0 && str_eq(event, "message"))
        deliver(user, data, len);
    return 0;
}

static int on_data(void *user, const char *data, size_t len, struct error *reterr)
{
    struct relayed *c = user;

    if (str_eq(c->reply.content_type, "text/event-stream"))
        return sse_parser_feed(&c->events, data, len, on_event, c, reterr);
    return buf_append(&c->body, data, len) < 0
               ? error_set(reterr, ERR_LIMIT, "the answer is above its limit")
               : 0;
}

static int exchange(struct relayed *c, const char *method, const char *session,
                    struct error *reterr)
{
    struct header_list headers;
    int r;

    buf_done(&c->reply.body);
    buf_clear(&c->body);
    sse_parser_done(&c->events);
    sse_parser_init(&c->events, ANSWER_MAX);
    headers_fill(&headers, c, session);
    r = http_client_call(c->relay->client,
                         &(struct http_call){.size = sizeof(struct http_call),
                                             .method = method,
                                             .url = c->relay->url,
                                             .headers = headers.items,
                                             .body = c->text,
                                             .len = c->len,
                                             .cancel_fd = c->cancel_fd,
                                             .connect_timeout_ms = CONNECT_MS,
                                             .idle_timeout_ms = IDLE_MS,
                                             .total_timeout_ms = c->timeout_ms,
                                             .reply_max = UINT64_MAX,
                                             .on_data = on_data,
                                             .on_head = on_head,
                                             .user = c,
                                             .keep = "Mcp-Session-Id"},
                         &c->reply, reterr);
    arena_done(&headers.arena);
    return r;
}

static void session_copy(struct relay *r, char ret[256])
{
    pthread_mutex_lock(&r->lock);
    memcpy(ret, r->session, sizeof(r->session));
    pthread_mutex_unlock(&r->lock);
}

/* A message of our own to the API. */
static int say(struct relay *r, const char *text, const char *session, struct error *reterr)
{
    auto_relayed struct relayed *c = NULL;
    int code, result = relayed_new(r, text, strlen(text), &c, reterr);

    if (result == 0)
        result = jsonrpc_parse(c->text, c->len, &c->doc, &c->m, &code, reterr);
    if (result < 0)
        return result;
    c->quiet = true;
    c->modern = is_modern(c, false);
    result = exchange(c, "POST", session, reterr);
    if (result == 0 && !status_is_good(c->reply.status))
        result = error_set(reterr, ERR_UPSTREAM, "the API answers %u", c->reply.status);
    return result;
}

/* Begins a session in place of one that the API does not know any more. */
static int session_renew(struct relay *r, const char *old)
{
    static const char done[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    char session[256];
    struct error error;
    int result = -1;

    pthread_mutex_lock(&r->renewing);
    session_copy(r, session);
    if (!str_eq(session, old))
        result = 0; /* by another thread */
    else if (r->initialize && (result = say(r, r->initialize, "", &error)) == 0) {
        session_copy(r, session);
        result = say(r, done, session, &error);
        if (result == 0)
            log_info("a session of the API was lost, and is begun anew");
    }
    pthread_mutex_unlock(&r->renewing);
    return result;
}

static int post(struct relayed *c, struct error *reterr)
{
    char session[256] = "";
    int r;

    if (!method_is(c, "initialize"))
        session_copy(c->relay, session);
    r = exchange(c, "POST", session, reterr);
    if (r < 0 || c->reply.status != 404 || !session[0] || c->modern ||
        session_renew(c->relay, session) < 0)
        return r;
    session_copy(c->relay, session);
    return exchange(c, "POST", session, reterr);
}

/* ---- requests ---- */

/* Whatever came, the client's request has an answer, unless it was cancelled. */
static void answer(struct relayed *c, int r, const struct error *error)
{
    const struct buf *body = status_is_good(c->reply.status) ? &c->body : &c->reply.body;
    struct relay *relay = c->relay;
    char text[sizeof(error->text) + 64];
    bool open;

    if (r == 0 && body->len > 0)
        deliver(c, body->data, body->len);
    pthread_mutex_lock(&relay->lock);
    open = !c->answered && !c->cancelled && !relay->stopping;
    pthread_mutex_unlock(&relay->lock);
    if (!open)
        return;
    if (r < 0)
        snprintf(text, sizeof(text), "the API does not answer: %s", error->text);
    else
        snprintf(text, sizeof(text), "the API has given no answer (HTTP status %u)",
                 c->reply.status);
    fail(c, JSONRPC_INTERNAL_ERROR, text);
}

static bool turn_has_come(const struct relayed *c)
{
    return !c->before || c->before->started || c->cancelled || c->relay->stopping;
}

static void *call_main(void *arg)
{
    struct relayed *c = arg, **at;
    struct relay *r = c->relay;
    struct error error = {};
    bool over, last;

    pthread_mutex_lock(&r->lock);
    while (!turn_has_come(c))
        pthread_cond_wait(&r->changed, &r->lock);
    over = c->cancelled || r->stopping;
    pthread_mutex_unlock(&r->lock);
    relayed_unref(TAKE_PTR(c->before));
    if (!over)
        answer(c, post(c, &error), &error);
    pthread_mutex_lock(&r->lock);
    for (at = &r->calls; *at != c; at = &(*at)->next)
        ;
    *at = c->next;
    c->started = true;
    last = --c->refs == 0;
    r->count--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    /* From here on the relay may be gone. */
    if (last)
        relayed_free(c);
    return NULL;
}

static const char *sandbox_of(const struct relayed *c)
{
    yyjson_val *arguments = yyjson_obj_get(c->m.params, "arguments");

    return method_is(c, "tools/call") ? json_get_str(arguments, "session_id", NULL) : NULL;
}

/* Puts it before all others; false when there are too many. */
static bool call_enter(struct relayed *c)
{
    const char *sandbox = sandbox_of(c), *other;
    struct relay *r = c->relay;
    bool entered;

    pthread_mutex_lock(&r->lock);
    entered = r->count < CALLS_MAX;
    if (entered) {
        for (struct relayed *p = r->calls; p && sandbox && !c->before; p = p->next) {
            other = sandbox_of(p);
            if (other && str_eq(other, sandbox)) {
                c->before = p;
                p->refs++;
            }
        }
        c->next = r->calls;
        r->calls = c;
        r->count++;
    }
    pthread_mutex_unlock(&r->lock);
    return entered;
}

static int thread_start(pthread_t *ret, bool detached, void *(*main)(void *), void *arg)
{
    pthread_attr_t attr;
    int e;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (detached)
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    e = pthread_create(ret, &attr, main, arg);
    pthread_attr_destroy(&attr);
    return e ? -1 : 0;
}

/* Takes the message. */
static void call_start(struct relayed *c)
{
    pthread_t thread;

    c->timeout_ms = CALL_MS;
    if (!call_enter(c)) {
        fail(c, JSONRPC_INTERNAL_ERROR, "limit_reached: too many calls are running; wait for one");
        relayed_unref(c);
    } else if (thread_start(&thread, true, call_main, c) < 0) {
        /* Then the messages behind it wait. */
        call_main(c);
    }
}

/* ---- cancellation ---- */

/* In the modern era a stream that is closed says it; in the legacy era the notification does, and
 * has to come after the request. */
static void call_cancel(struct relay *r, const struct relayed *notification)
{
    yyjson_val *id = yyjson_obj_get(notification->m.params, "requestId");
    int64_t until = clock_deadline(CANCEL_MS);
    struct timespec ts = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    struct relayed *c;

    pthread_mutex_lock(&r->lock);
    for (c = r->calls; c && !yyjson_equals(c->m.id, id); c = c->next)
        ;
    if (c) {
        c->cancelled = true;
        c->refs++;
        pthread_cond_broadcast(&r->changed);
    }
    while (c && !notification->modern && !c->started && clock_ms() < until)
        pthread_cond_timedwait(&r->changed, &r->lock, &ts);
    pthread_mutex_unlock(&r->lock);
    if (c && notification->modern)
        (void)!eventfd_write(c->cancel_fd, 1);
    relayed_unref(c);
}

/* ---- the API's own messages ---- */

static void *listener_main(void *arg)
{
    struct relay *r = arg;
    struct pollfd stop = {.fd = r->stop_fd, .events = POLLIN};

    do {
        auto_relayed struct relayed *c = NULL;
        char session[256];
        struct error error;

        session_copy(r, session);
        if (relayed_new(r, "", 0, &c, &error) < 0)
            continue;
        free(TAKE_PTR(c->text));
        close(c->cancel_fd);
        c->cancel_fd = fcntl(r->stop_fd, F_DUPFD_CLOEXEC, 3);
        c->timeout_ms = CALL_MS;
        if (exchange(c, "GET", session, &error) < 0)
            log_debug("the API's own messages are not heard: %s", error.text);
    } while (poll(&stop, 1, AGAIN_MS) == 0);
    return NULL;
}

static void listen_start(struct relay *r)
{
    char session[256];

    session_copy(r, session);
    if (!r->listens && session[0])
        r->listens = thread_start(&r->listener, false, listener_main, r) == 0;
}

/* ---- from the client ---- */

static int relay_begin(void *user, struct mcp_channel *out, struct error *reterr)
{
    struct relay *r = user;

    r->out = out;
    return 0;
}

static void initialize_keep(struct relay *r, const struct relayed *c)
{
    pthread_mutex_lock(&r->renewing);
    free(r->initialize);
    r->initialize = strdup(c->text);
    pthread_mutex_unlock(&r->renewing);
}

/* What has no answer is sent on before the next message is read. */
static void note_send(struct relay *r, struct relayed *c)
{
    struct error error;
    bool cancels = method_is(c, "notifications/cancelled");

    if (cancels)
        call_cancel(r, c);
    if ((!cancels || !c->modern) && post(c, &error) < 0)
        log_warn("a notification did not reach the API: %s", error.text);
    if (method_is(c, "notifications/initialized"))
        listen_start(r);
    relayed_unref(c);
}

static void relay_line(void *user, struct mcp_channel *out, const char *json, size_t len)
{
    struct relay *r = user;
    struct relayed *c = NULL;
    struct error error;
    int code = JSONRPC_INTERNAL_ERROR;

    if (relayed_new(r, json, len, &c, &error) < 0) {
        log_error("a message is lost: %s", error.text);
        return;
    }
    if (jsonrpc_parse(c->text, c->len, &c->doc, &c->m, &code, &error) < 0) {
        fail(c, code, error.text);
        relayed_unref(c);
        return;
    }
    r->modern = c->modern = is_modern(c, r->modern);
    if (method_is(c, "initialize"))
        initialize_keep(r, c);
    if (is_request(c))
        call_start(c);
    else
        note_send(r, c);
}

static void session_end(struct relay *r)
{
    auto_relayed struct relayed *c = NULL;
    char session[256];
    struct error error;

    session_copy(r, session);
    if (!session[0] || relayed_new(r, "", 0, &c, &error) < 0)
        return;
    free(TAKE_PTR(c->text));
    c->timeout_ms = PROBE_MS;
    if (exchange(c, "DELETE", session, &error) < 0)
        log_debug("the session was not ended: %s", error.text);
}

/* The client has left, and with it goes all that it waits for. */
static void relay_end(void *user)
{
    struct relay *r = user;

    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    for (struct relayed *c = r->calls; c; c = c->next)
        (void)!eventfd_write(c->cancel_fd, 1);
    pthread_cond_broadcast(&r->changed);
    while (r->count > 0)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    (void)!eventfd_write(r->stop_fd, 1);
    if (r->listens)
        pthread_join(r->listener, NULL);
    session_end(r);
}

int relay_run(struct relay *r, int in, int out, int stop_fd, struct error *reterr)
{
    return mcp_stdio_serve(&(struct mcp_stdio){.size = sizeof(struct mcp_stdio),
                                               .in = in,
                                               .out = out,
                                               .stop_fd = stop_fd,
                                               .begin = relay_begin,
                                               .line = relay_line,
                                               .end = relay_end,
                                               .user = r},
                           reterr);
}

/* ---- whether there is one ---- */

/* Whether it takes our key, and serves /mcp. */
static bool api_takes_us(struct relay *r)
{
    static const char discover[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"server/discover\",\"params\":{\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"" MCP_VERSION_MODERN "\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
    struct error error;

    if (say(r, discover, "", &error) == 0)
        return true;
    log_warn("messages are not handed on to the API (is API_KEY right?): %s", error.text);
    return false;
}

static int relay_new(const struct settings *s, struct relay **ret, struct error *reterr)
{
    struct relay *r = calloc(1, sizeof(*r));
    pthread_condattr_t attr;
    int result;

    if (!r)
        return error_no_memory(reterr);
    r->key = s->api_key;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->renewing, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
    r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    result = r->stop_fd < 0 ? error_sys(reterr, errno, "cannot make an event descriptor") : 0;
    if (result == 0 && asprintf(&r->url, "%s/mcp", s->api_base_url) < 0) {
        r->url = NULL;
        result = error_no_memory(reterr);
    }
    if (result == 0)
        result = http_client_new_by(s, &r->client, reterr);
    if (result < 0)
        relay_free(r);
    else
        *ret = r;
    return result;
}

int relay_find(const struct settings *settings, struct relay **ret, struct error *reterr)
{
    struct relay *r = NULL;
    struct error why;
    int result;

    if (!settings->api_base_url[0])
        return 0;
    result = relay_new(settings, &r, reterr);
    if (result < 0)
        return result;
    result = local_server_find(r->client, settings->api_base_url, &why);
    if (result < 0)
        log_warn("messages are not handed on to an API: %s", why.text);
    if (result <= 0 || !api_takes_us(r)) {
        relay_free(r);
        return 0;
    }
    *ret = r;
    return 1;
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    http_client_free(r->client);
    if (r->stop_fd >= 0)
        close(r->stop_fd);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->renewing);
    pthread_mutex_destroy(&r->lock);
    free(r->initialize);
    free(r->url);
    free(r);
}
