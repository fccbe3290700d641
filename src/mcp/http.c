/* SPDX-License-Identifier: MIT */
/*
 * The endpoint /mcp of the streamable HTTP transport, for both eras: which one a message is of,
 * and what its headers have to say. Legacy messages belong to sessions; a modern one stands alone,
 * and is cancelled when its stream is closed.
 */
#include "mcp/http-internal.h"

#include "base/str.h"
#include "mcp/meta.h"

#include <strings.h>

enum { TRANSPORT_ERROR = -32000, SESSION_NOT_FOUND = -32001 };

/* An error of the transport, in the form of a response to the message. */
static void refuse(struct http_request *req, unsigned status, yyjson_val *id, int code,
                   const char *text)
{
    auto_buf struct buf body;

    buf_init(&body, 8192);
    if (jsonrpc_format_error(id, &(struct jsonrpc_fault){code, text, NULL}, &body) < 0)
        buf_clear(&body);
    http_respond(req, status, "application/json", buf_str(&body), body.len);
}

static void accepted(struct http_request *req)
{
    http_respond(req, 202, NULL, "", 0);
}

static void no_memory(struct http_request *req)
{
    struct error error;

    error_no_memory(&error);
    http_fail(req, 0, &error);
}

/* ---- eras ---- */

static const char *version_of(const struct http_request *req)
{
    return http_header(req, "MCP-Protocol-Version");
}

/* Versions are dates, so those after the last legacy one are modern; what is no date is taken for
 * one to come. */
static bool version_is_modern(const char *version)
{
    return version && strcmp(version, MCP_VERSION_LEGACY) > 0;
}

static bool message_is_modern(const struct http_request *req, const struct jsonrpc_message *m)
{
    yyjson_val *meta = yyjson_obj_get(m->params, "_meta");

    if (yyjson_obj_get(meta, "io.modelcontextprotocol/protocolVersion"))
        return true;
    if (m->method && str_eq(m->method, "initialize"))
        return false;
    if (m->method &&
        (str_eq(m->method, "server/discover") || str_eq(m->method, "subscriptions/listen")))
        return true;
    return version_is_modern(version_of(req));
}

/* ---- what both do ---- */

/* Gives the message to the peer, and its answer to the client. */
static void message_handle(struct http_request *req, struct mcp_peer *p,
                           const struct jsonrpc_message *m, bool streams)
{
    struct exchange *x = exchange_new(p, req, streams);
    const struct buf *body = http_body(req);

    if (!x) {
        no_memory(req);
        return;
    }
    mcp_client_receive(p->client, exchange_channel(x), body->data, body->len);
    mcp_session_check(p);
    if (m->kind == JSONRPC_REQUEST)
        exchange_answer(x);
    else
        accepted(req);
    mcp_channel_unref(exchange_channel(x));
}

static void modern_post(struct mcp_http *h, struct http_request *req,
                        const struct jsonrpc_message *m)
{
    auto_mcp_peer struct mcp_peer *p = NULL;
    const char *accept = http_header(req, "Accept");
    bool streams = mcp_accept_has(accept, "text/event-stream");
    struct error error;

    if (m->kind == JSONRPC_RESPONSE) {
        refuse(req, 400, m->id, JSONRPC_INVALID_REQUEST,
               "responses are not taken in this version: answer by inputResponses");
        return;
    }
    if (!streams && !mcp_accept_has(accept, "application/json")) {
        refuse(req, 406, m->id, JSONRPC_INVALID_REQUEST,
               "Accept has neither application/json nor text/event-stream");
        return;
    }
    if (!streams && m->method && str_eq(m->method, "subscriptions/listen")) {
        refuse(req, 406, m->id, JSONRPC_INVALID_REQUEST, "Accept has no text/event-stream");
        return;
    }
    if (mcp_headers_check(h, req, m, &error) < 0) {
        refuse(req, 400, m->id, MCP_HEADER_MISMATCH, error.text);
        return;
    }
    p = mcp_peer_new(h, true);
    if (p)
        message_handle(req, p, m, streams);
    else
        no_memory(req);
}

/* ---- sessions ---- */

/* The session that the request names, referenced; else it is answered. */
static struct mcp_peer *session_of(struct mcp_http *h, struct http_request *req, yyjson_val *id)
{
    const char *session = http_header(req, "Mcp-Session-Id"), *version = version_of(req);
    struct mcp_peer *p = NULL;

    if (version && !mcp_version_is_legacy(version))
        refuse(req, 400, id, TRANSPORT_ERROR, "MCP-Protocol-Version is not supported");
    else if (!session)
        refuse(req, 400, id, TRANSPORT_ERROR,
               "the header Mcp-Session-Id is missing: begin with initialize");
    else if (!(p = mcp_session_find(h, session)))
        refuse(req, 404, id, SESSION_NOT_FOUND, "there is no such session: initialize again");
    return p;
}

/* A session begins with a peer that is listed only when the handshake went well. */
static void initialize_post(struct mcp_http *h, struct http_request *req,
                            const struct jsonrpc_message *m)
{
    auto_mcp_peer struct mcp_peer *p = mcp_peer_new(h, false);
    struct exchange *x = p ? exchange_new(p, req, true) : NULL;
    const struct buf *body = http_body(req);
    struct error error;

    if (!x) {
        no_memory(req);
        return;
    }
    mcp_client_receive(p->client, exchange_channel(x), body->data, body->len);
    if (!mcp_client_is_initialized(p->client)) {
        exchange_answer(x);
    } else if (mcp_session_add(p, &error) < 0) {
        refuse(req, 503, m->id, TRANSPORT_ERROR, error.text);
    } else {
        http_header_add(req, "Mcp-Session-Id", p->id);
        exchange_answer(x);
    }
    mcp_channel_unref(exchange_channel(x));
}

static void legacy_post(struct mcp_http *h, struct http_request *req,
                        const struct jsonrpc_message *m)
{
    auto_mcp_peer struct mcp_peer *p = NULL;
    const char *accept = http_header(req, "Accept");
    bool begins = m->kind == JSONRPC_REQUEST && str_eq(m->method, "initialize");

    if (!mcp_accept_has(accept, "application/json") ||
        !mcp_accept_has(accept, "text/event-stream")) {
        refuse(req, 406, m->id, TRANSPORT_ERROR,
               "Accept needs both application/json and text/event-stream");
        return;
    }
    if (begins && !http_header(req, "Mcp-Session-Id")) {
        initialize_post(h, req, m);
        return;
    }
    p = session_of(h, req, m->id);
    if (p)
        message_handle(req, p, m, true);
}

/* ---- routes ---- */

/* The endpoint of who asks; NULL: answered. */
static struct mcp_http *http_of(struct http_request *req)
{
    struct mcp_http *h = http_user(req), *found = NULL;

    if (!h->find)
        return h;
    return h->find(h->find_user, req, &found) < 0 ? NULL : found;
}

static bool content_is_json(const struct http_request *req)
{
    const char *type = http_header(req, "Content-Type");
    size_t len = type ? strcspn(type, "; \t") : 0;

    return len == strlen("application/json") && strncasecmp(type, "application/json", len) == 0;
}

static void on_post(struct http_request *req)
{
    const struct buf *body = http_body(req);
    struct mcp_http *h = http_of(req);
    auto_json yyjson_doc *doc = NULL;
    struct jsonrpc_message m;
    struct error error;
    int code;

    if (!h)
        return;
    /* Pages may send other types anywhere without being asked first. */
    if (!content_is_json(req))
        refuse(req, 415, NULL, JSONRPC_INVALID_REQUEST, "Content-Type is not application/json");
    else if (jsonrpc_parse(buf_str(body), body->len, &doc, &m, &code, &error) < 0)
        refuse(req, 400, m.id, code, error.text);
    else if (message_is_modern(req, &m))
        modern_post(h, req, &m);
    else
        legacy_post(h, req, &m);
}

/* GET and DELETE are of the legacy era. False: it is answered. */
static bool legacy_check(struct http_request *req)
{
    if (!version_is_modern(version_of(req)))
        return true;
    http_header_add(req, "Allow", "POST");
    refuse(req, 405, NULL, JSONRPC_INVALID_REQUEST, "this version of the protocol has only POST");
    return false;
}

/* A stream that was lost, or closed to be asked for later. */
static void resume(struct http_request *req, struct mcp_peer *p, const char *id)
{
    struct error error;
    int r;

    mcp_peer_use(p, 1);
    r = event_logs_resume(p->logs, req, id, &error);
    mcp_peer_use(p, -1);
    if (r == -ERR_NOT_FOUND)
        refuse(req, 400, NULL, TRANSPORT_ERROR, error.text);
    else if (r < 0)
        http_fail(req, 0, &error);
}

static void on_get(struct http_request *req)
{
    auto_mcp_peer struct mcp_peer *p = NULL;
    struct mcp_http *h = http_of(req);
    struct exchange *x;
    struct error error;

    if (!h || !legacy_check(req))
        return;
    if (!mcp_accept_has(http_header(req, "Accept"), "text/event-stream")) {
        refuse(req, 406, NULL, TRANSPORT_ERROR, "Accept has no text/event-stream");
        return;
    }
    p = session_of(h, req, NULL);
    if (!p)
        return;
    if (http_header(req, "Last-Event-ID")) {
        resume(req, p, http_header(req, "Last-Event-ID"));
        return;
    }
    x = exchange_new(p, req, true);
    if (!x) {
        no_memory(req);
        return;
    }
    /* Before it is open: who has left already must find it there. */
    mcp_session_set_events(p, x, NULL);
    if (exchange_listen(x, &error) < 0) {
        mcp_session_set_events(p, NULL, x);
        http_fail(req, 0, &error);
    }
    mcp_session_check(p);
    mcp_channel_unref(exchange_channel(x));
}

static void on_delete(struct http_request *req)
{
    auto_mcp_peer struct mcp_peer *p = NULL;
    struct mcp_http *h = http_of(req);

    if (!h || !legacy_check(req))
        return;
    p = session_of(h, req, NULL);
    if (!p)
        return;
    if (mcp_session_end(p))
        http_respond(req, 204, NULL, "", 0);
    else
        refuse(req, 404, NULL, SESSION_NOT_FOUND, "there is no such session");
}

const struct route_entry mcp_http_routes[] = {
    {"POST", "/mcp", "A message of the Model Context Protocol", on_post, MCP_MESSAGE_MAX, NULL},
    {"GET", "/mcp", "The server's own messages to a session", on_get, 0, NULL},
    {"DELETE", "/mcp", "Ends a session", on_delete, 0, NULL},
    {.path = NULL},
};
