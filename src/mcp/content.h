/* SPDX-License-Identifier: MIT */
/*
 * From a tool's payload to an MCP result: text, pictures and sounds as blocks under a budget, links
 * to what is whole, and never base64 in text or structured content. Pictures are reduced by a
 * program in the sandbox that drew them; none is decoded here.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdint.h>

struct displays;
struct session_manager;

/* 0: the default, which is in the comment. */
struct content_limits {
    uint32_t side;        /* pixels, of the longest side of a picture: 1568 */
    size_t media_bytes;   /* of one picture or sound, before base64: 500,000 */
    size_t media_chars;   /* of all base64 in one answer: 700,000 */
    size_t message_chars; /* of the whole answer as JSON, in bytes: 1,048,576 */
};

struct content_context {
    struct session_manager *manager;
    struct displays *displays;
    const char *owner;
    struct content_limits limits;
};

/* What a tool gave. */
struct content_payload {
    const char *session_id; /* NULL: of no session; then nothing is kept and nothing reduced */
    const char *json;
    size_t len;
    bool success;
};

/*
 * Adds `content`, `structuredContent` and `isError` to `result`, an object of `doc`. Written
 * without white space it stays below the limit whatever the payload is. Reducing pictures may take
 * half a minute at most.
 */
int content_format(const struct content_context *c, const struct content_payload *p,
                   yyjson_mut_doc *doc, yyjson_mut_val *result, struct error *reterr) must_check;
