/* SPDX-License-Identifier: MIT */
/*
 * JSON by yyjson; the only file that includes its header. All rooms may use yyjson's inline
 * accessors through it. Parsing goes through json_parse(), because yyjson itself has no limits.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <yyjson.h>

/* A value takes up to 40 bytes beside its text, so "[[],[],..." would be a bomb without a limit. */
enum { JSON_DEPTH_MAX = 64, JSON_VALUES_MAX = 2 << 20 };

/* A document from hostile bytes: strict UTF-8, no trailing data, within both limits. */
int json_parse(const char *data, size_t len, yyjson_doc **ret, struct error *reterr) must_check;

/* Fails when an object has a key twice: two readers could then see two different messages. */
int json_keys_check(yyjson_doc *doc, struct error *reterr) must_check;

static inline void json_doc_cleanup(yyjson_doc **doc)
{
    yyjson_doc_free(*doc);
}
static inline void json_mut_doc_cleanup(yyjson_mut_doc **doc)
{
    yyjson_mut_doc_free(*doc);
}
#define auto_json __attribute__((cleanup(json_doc_cleanup)))
#define auto_json_mut __attribute__((cleanup(json_mut_doc_cleanup)))

/* String member of an object, or `fallback`. */
const char *json_get_str(yyjson_val *object, const char *key, const char *fallback);
bool json_get_bool(yyjson_val *object, const char *key, bool fallback);

/* Appends the value as compact JSON text. */
int json_write(yyjson_val *value, struct buf *ret, struct error *reterr) must_check;
int json_mut_write(const yyjson_mut_doc *doc, struct buf *ret, struct error *reterr) must_check;

/* A string value that may hold any UTF-8 text, copied into the document. */
yyjson_mut_val *json_mut_text(yyjson_mut_doc *doc, const char *text, size_t len);

/* Appends valid UTF-8 as a JSON string with its quotes. */
int json_quote(struct buf *ret, const char *text, size_t len) must_check;
