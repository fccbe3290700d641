/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC 2.0 messages (https://www.jsonrpc.org/specification) as MCP uses them: no batches, ids
 * are strings or integers, params are an object.
 */
#pragma once

#include "base/json.h"

enum {
    JSONRPC_PARSE_ERROR = -32700,
    JSONRPC_INVALID_REQUEST = -32600,
    JSONRPC_METHOD_NOT_FOUND = -32601,
    JSONRPC_INVALID_PARAMS = -32602,
    JSONRPC_INTERNAL_ERROR = -32603,
};

enum { JSONRPC_ID_MAX = 256, JSONRPC_METHOD_MAX = 128 };

enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_RESPONSE };

/* Points into the document that it was read from. */
struct jsonrpc_message {
    enum jsonrpc_kind kind;
    yyjson_val *id; /* of a request or a response */
    const char *method;
    yyjson_val *params; /* an object, or NULL */
    yyjson_val *result, *error;
};

/*
 * Parses one message: strict JSON, no key twice in one object. `ret->id` is set also after a
 * failure where it could be read, for the error response; `ret_code` is the JSON-RPC code to answer
 * with.
 */
int jsonrpc_parse(const char *text, size_t len, yyjson_doc **ret_doc, struct jsonrpc_message *ret,
                  int *ret_code, struct error *reterr) must_check;

/* Appends an error response. `id` NULL: null. `data` may be NULL. */
struct jsonrpc_fault {
    int code;
    const char *message;
    yyjson_mut_val *data;
};
int jsonrpc_format_error(yyjson_val *id, const struct jsonrpc_fault *fault,
                         struct buf *ret) must_check;
