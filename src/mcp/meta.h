/* SPDX-License-Identifier: MIT */
/* The parts of messages that are the same everywhere: `_meta`, versions, who the server is. */
#pragma once

#include "mcp/mcp-internal.h"

#define MCP_EXTENSION_TASKS "io.modelcontextprotocol/tasks"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* resultType and the server's identity, where the result has none yet. */
void mcp_meta_complete(yyjson_mut_doc *doc, yyjson_mut_val *result);

/* ttlMs, unless the method has said one, and cacheScope. */
void mcp_meta_cacheable(yyjson_mut_doc *doc, yyjson_mut_val *result);

/* The member `_meta` of an object, made when it is missing. */
yyjson_mut_val *mcp_meta_of(yyjson_mut_doc *doc, yyjson_mut_val *object);

/* What a modern request has to carry. A fault is answered here: then less than 0. */
int mcp_meta_check(struct mcp_request *r);

/* Bits of enum mcp_capability from a ClientCapabilities object, or none. */
unsigned mcp_capabilities_parse(yyjson_val *declared);

/* Whether it is a version that `initialize` agrees to. */
bool mcp_version_is_legacy(const char *version);

/* {"name", "title", "version"} */
yyjson_mut_val *mcp_server_info(yyjson_mut_doc *doc);

int mcp_notification_format(const char *method, yyjson_mut_doc *doc, yyjson_mut_val *params,
                            struct buf *ret) must_check;

mcp_method_fn mcp_initialize, mcp_discover;
