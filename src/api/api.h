/* SPDX-License-Identifier: MIT */
/*
 * The LangGraph Platform (Agent Server) API with the built-in agent, as route tables for the HTTP
 * server. Contract: the published OpenAPI of Agent Server and what its clients call.
 */
#pragma once

#include "base/error.h"
#include "base/uuid.h"
#include "http/server.h"

struct api;
struct session_manager;
struct settings;

/* A file of the page, as the build has put it into the program. */
struct page_file {
    const char *path; /* "/assets/index-B2x.js"; NULL ends a table */
    const char *etag; /* a digest of its content */
    const void *bytes;
    size_t len;
    uint64_t size; /* unpacked */
    bool gzip;     /* whether `bytes` are compressed */
};

/* Made by tools/embed-ui; empty where no page was built. */
extern const struct page_file page_files[];

struct api_options {
    size_t size; /* sizeof(struct api_options) */
    const struct settings *settings;
    struct session_manager *manager;
    const struct page_file *page; /* NULL: none */
    const char *page_dir;         /* read the page's files from there instead; NULL */
};

/* Opens the store, reads the keys, takes up what a former process left. */
int api_new(const struct api_options *options, struct api **ret, struct error *reterr) must_check;

/* The tables, all with the api as their user; ended by one without entries. Valid while it is. */
const struct route_table *api_tables(const struct api *api);

/* http_options.admit, with the api as its user: knows keys and owners. */
bool api_admit(void *user, struct http_request *req);

/* Whether a key is asked for: only then another address than loopback may be listened on. */
bool api_has_keys(const struct api *api);
bool api_keys_are_set(const struct settings *settings); /* the same, before there is one */

/* Response headers that pages may read. */
#define API_CORS_EXPOSE \
    "Content-Location, Location, X-Pagination-Total, X-Pagination-Next, " \
    "X-Request-Id, Mcp-Session-Id"

/*
 * The thread that the sessions of an owner's MCP clients belong to. With an id in `ret` that one,
 * which is made anew when it was deleted; with "" the owner's, which is made when there is none.
 */
int api_mcp_thread(struct api *api, const char *owner, char ret[UUID_LEN + 1],
                   struct error *reterr) must_check;

/* Whether the owner's settings leave new sandboxes without a network ("networkEnabled"). */
int api_network_is_off(struct api *api, const char *owner, bool *ret,
                       struct error *reterr) must_check;

/* The files of the page: the last table of the port, because every other route comes first. */
struct route_table api_page_table(struct api *api);

/* Tables of other doors on the same port: what /openapi.json lists beside its own. */
void api_describe(struct api *api, const struct route_entry *entries);

/* Starts taking runs from the queue, once the port is known ("http://127.0.0.1:8000"). */
int api_start(struct api *api, const char *url, struct error *reterr) must_check;

/*
 * Takes no more runs, lets those that are active end for `grace_ms`, then interrupts them; their
 * state is saved and their streams have their last event when it returns. Then the HTTP server is
 * stopped, and the api freed. False when some do not end: then nothing may be freed.
 */
bool api_stop(struct api *api, unsigned grace_ms) must_check;
void api_free(struct api *api);
