/* SPDX-License-Identifier: MIT */
/* MCP at /mcp of the API's server: an MCP server for each owner who asks. */
#pragma once

#include "api/api.h"

struct mcp_doors;

struct mcp_doors_options {
    size_t size; /* sizeof(struct mcp_doors_options) */
    const struct settings *settings;
    struct session_manager *manager;
    struct api *api;
};

int mcp_doors_new(const struct mcp_doors_options *options, struct mcp_doors **ret,
                  struct error *reterr) must_check;

/* What the routes of /mcp have as their user. */
void *mcp_doors_user(struct mcp_doors *doors);

/* A line about an image build or an install. Any thread; `doors` may be NULL. */
void mcp_doors_progress(struct mcp_doors *doors, const char *text);

/* Once the HTTP server is stopped: ends all calls. False when one does not end: then nothing that
 * it uses may be freed. */
bool mcp_doors_stop(struct mcp_doors *doors);
/* When nothing tells of progress any more. */
void mcp_doors_free(struct mcp_doors *doors);
