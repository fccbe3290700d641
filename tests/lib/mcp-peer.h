/* SPDX-License-Identifier: MIT */
/*
 * A client of an MCP server over a world without sandboxes (fake-engine.h): says lines, and keeps
 * what the server sends.
 */
#pragma once

#include "mcp/mcp.h"

#include "tests/lib/fake-engine.h"

#define MODERN_META(capabilities) \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":" capabilities "}"
#define META MODERN_META("{}")

enum { LINES_MAX = 64, WAIT_MS = 5000 };

/* A channel that keeps what is sent. */
struct record {
    struct mcp_channel channel; /* first */
    pthread_mutex_t lock;
    char *lines[LINES_MAX];
    int status[LINES_MAX];
    size_t count;
};

static inline void record_send(struct mcp_channel *c, const struct mcp_outgoing *m)
{
    struct record *r = (struct record *)c;

    pthread_mutex_lock(&r->lock);
    if (r->count < LINES_MAX) {
        r->status[r->count] = m->http_status;
        r->lines[r->count++] = strndup(m->json, m->len);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Forgets the lines that came. */
static inline void record_clear(struct record *r)
{
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->count; i++)
        free(r->lines[i]);
    r->count = 0;
    pthread_mutex_unlock(&r->lock);
}

static inline void record_free(struct mcp_channel *c)
{
    struct record *r = (struct record *)c;

    record_clear(r);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static inline struct record *record_new(void)
{
    struct record *r = calloc(1, sizeof(*r));

    if (!r)
        abort();
    r->channel = (struct mcp_channel){.send = record_send, .free = record_free, .refs = 1};
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

/* A server over a world without sandboxes, and one client of it. */
struct peer_client {
    struct world world;
    struct mcp_server *server;
    struct mcp_client *client;
    struct record *record;
};

static inline void peer_client_done(struct peer_client *p)
{
    if (p->client)
        mcp_client_free(p->client);
    if (p->record)
        mcp_channel_unref(&p->record->channel);
    if (p->server)
        mcp_server_stop(p->server);
    mcp_server_free(p->server);
    world_end(&p->world);
}

#define auto_peer_client __attribute__((cleanup(peer_client_done)))

static inline void peer_client_start(struct peer_client *p, bool fixture)
{
    struct error error;

    world_init(&p->world);
    world_start(&p->world);
    assert_ok(mcp_server_new(&(struct mcp_server_options){.size = sizeof(struct mcp_server_options),
                                                          .settings = &p->world.settings,
                                                          .manager = p->world.m,
                                                          .owner = "me",
                                                          .conformance_fixture = fixture},
                             &p->server, &error),
              error);
    p->record = record_new();
    p->client = mcp_client_new(p->server, &p->record->channel);
    assert_not_null(p->client);
}

static inline void say(struct peer_client *p, const char *json)
{
    mcp_client_receive(p->client, &p->record->channel, json, strlen(json));
}

/* The n-th line that was sent. */
static inline const char *line(struct peer_client *p, size_t n)
{
    for (int i = 0; i < WAIT_MS; i++) {
        const char *found = NULL;

        pthread_mutex_lock(&p->record->lock);
        if (n < p->record->count)
            found = p->record->lines[n];
        pthread_mutex_unlock(&p->record->lock);
        if (found)
            return found;
        usleep(1000);
    }
    test_fail(__FILE__, __LINE__, "line %zu did not come", n);
}

/* The handshake of the legacy era; its answer is line 0. */
static inline void initialize_as(struct peer_client *p, const char *capabilities)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
             "\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s,"
             "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
             capabilities);
    say(p, text);
    say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    assert_str_has(line(p, 0), "\"protocolVersion\":\"2025-11-25\"");
}

static inline void initialize(struct peer_client *p)
{
    initialize_as(p, "{}");
}
