/* SPDX-License-Identifier: MIT */
/*
 * The Model Context Protocol server: one dispatch for two eras and two transports. A transport
 * makes a client per peer, gives it the messages that come, and writes what is sent to its
 * channels.
 *
 * Legacy (up to 2025-11-25) begins with `initialize` and may be asked by the server; modern
 * (2026-07-28) is stateless, each request carries its version and the client's capabilities in
 * `_meta`, and what the server needs is a result `input_required`. A client is of the era of its
 * first request. Source: modelcontextprotocol.io/specification, both revisions.
 */
#pragma once

#include "base/error.h"
#include "http/server.h"

#include <stdbool.h>
#include <stddef.h>

struct session_manager;
struct settings;
struct mcp_server;
struct mcp_client;
struct mcp_channel;

#define MCP_VERSION_MODERN "2026-07-28"
#define MCP_VERSION_LEGACY "2025-11-25" /* the newest of that era */

/* Bytes of one message from a client. */
#define MCP_MESSAGE_MAX ((size_t)32 << 20)

enum { MCP_HEADER_MISMATCH = -32020, MCP_MISSING_CAPABILITY = -32021, MCP_BAD_VERSION = -32022 };

/* A message on its way to a client: one line of JSON. */
struct mcp_outgoing {
    const char *json;
    size_t len;
    bool final;      /* the response of the request whose channel this is */
    int http_status; /* of a final one */
};

/*
 * Where messages go: all of a stdio client, or the answer to one POST. Referenced by its requests;
 * `send` is called by any thread, one at a time per channel; a message that cannot be delivered is
 * dropped there.
 */
struct mcp_channel {
    void (*send)(struct mcp_channel *c, const struct mcp_outgoing *m);
    void (*free)(struct mcp_channel *c);
    void (*pause)(struct mcp_channel *c); /* sends the client away until it asks again; or NULL */
    unsigned refs;                        /* 1 at the start */
};

struct mcp_channel *mcp_channel_ref(struct mcp_channel *c);
void mcp_channel_unref(struct mcp_channel *c);

struct mcp_server_options {
    size_t size; /* sizeof(struct mcp_server_options) */
    const struct settings *settings;
    struct session_manager *manager;
    const char *owner;         /* the conversation that all sessions belong to */
    const char *download_base; /* of tool_context; NULL: no URLs. Both outlive the server */
    bool conformance_fixture;  /* the tools, prompts and resources of the official suite, too */
};

int mcp_server_new(const struct mcp_server_options *options, struct mcp_server **ret,
                   struct error *reterr) must_check;

/*
 * Cancels every call and waits until all have ended. False when one does not end: then nothing that
 * it uses may be freed. No message may come any more.
 */
bool mcp_server_stop(struct mcp_server *s);
void mcp_server_free(struct mcp_server *s);

/* Whether new sandboxes have no network, as its owner has set it by now. Any thread. */
void mcp_server_set_network_off(struct mcp_server *s, bool off);

/* A line about an image build or an install, for the calls that wait for it. Any thread. */
void mcp_server_progress(struct mcp_server *s, const char *text);

/*
 * A peer. `events` gets what belongs to no request (legacy: the stream of a GET); it may be NULL,
 * and be set later by mcp_client_set_events().
 */
struct mcp_client *mcp_client_new(struct mcp_server *s, struct mcp_channel *events);

/* The transport knows that every message of this client is of the modern era. */
void mcp_client_set_modern(struct mcp_client *c);
void mcp_client_set_events(struct mcp_client *c, struct mcp_channel *events);

/* Cancels what the client had under way, and forgets it. */
void mcp_client_free(struct mcp_client *c);

/*
 * Handles one message. A response, and notifications that belong to it, go to `channel`, perhaps
 * later and from another thread; a bad message is answered there, too.
 */
void mcp_client_receive(struct mcp_client *c, struct mcp_channel *channel, const char *json,
                        size_t len);

/* Cancels the requests that are answered on this channel: its peer has gone (modern HTTP). */
void mcp_client_channel_gone(struct mcp_client *c, struct mcp_channel *channel);

bool mcp_client_is_initialized(struct mcp_client *c); /* legacy: `initialize` was answered */

/* ---- the transports ---- */

/*
 * Messages of a stdio client for whoever handles them: a line each. `begin` gets the channel to the
 * client, `line` each message that comes, `end` is called when the client has left or `stop_fd` is
 * readable: what is sent afterwards may be dropped.
 */
struct mcp_stdio {
    size_t size; /* sizeof(struct mcp_stdio) */
    int in, out, stop_fd;
    int (*begin)(void *user, struct mcp_channel *out, struct error *reterr);
    void (*line)(void *user, struct mcp_channel *out, const char *json, size_t len);
    void (*end)(void *user);
    void *user;
};

int mcp_stdio_serve(const struct mcp_stdio *transport, struct error *reterr) must_check;

/* Serves stdin and stdout until the end of input; `stop_fd` readable ends it, too. */
int mcp_stdio_run(struct mcp_server *s, int in, int out, int stop_fd,
                  struct error *reterr) must_check;

/*
 * The endpoint /mcp for both eras, as routes of an HTTP server whose user is a struct mcp_http.
 * Free it when the HTTP server is stopped.
 */
struct mcp_http;

extern const struct route_entry mcp_http_routes[];

int mcp_http_new(struct mcp_server *s, struct mcp_http **ret, struct error *reterr) must_check;

/*
 * The same for a server of several owners: `find` gives the endpoint of who asks
 * (http_principal()), which lives as long as the routes are served; or it answers, and returns <0.
 */
typedef int mcp_http_find_fn(void *user, struct http_request *req, struct mcp_http **ret);

int mcp_http_new_shared(mcp_http_find_fn *find, void *user, struct mcp_http **ret,
                        struct error *reterr) must_check;
void mcp_http_free(struct mcp_http *h);
