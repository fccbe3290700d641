/* SPDX-License-Identifier: MIT */
/*
 * Checks arguments against the part of JSON Schema that our tools use, and converts them on the way
 * as pydantic does in its lax mode: a model that writes "30" for 30 is understood. Only a boolean
 * is no number here. All errors are found at once, in the form in which pydantic lists them.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>

/* SCHEMA_ERRORS_MAX: more are not listed. SCHEMA_STEPS_MAX: values looked at, whatever they are. */
enum { SCHEMA_DEPTH_MAX = 64, SCHEMA_ERRORS_MAX = 50, SCHEMA_STEPS_MAX = 1 << 20 };

struct schema;

/*
 * Keywords: type (one or a list), properties, required, additionalProperties, items, enum, const,
 * minLength, maxLength, pattern (a POSIX extended one), minimum, maximum, minItems, maxItems,
 * maxProperties, anyOf, default, $ref to "#/$defs/NAME". Others are for the reader.
 */
int schema_new(const char *text, size_t len, struct schema **ret, struct error *reterr) must_check;
void schema_free(struct schema *s);

/*
 * Checks `value` (NULL: an empty object). When it fits, `ret` is a converted copy without the keys
 * that the schema does not know, but with its defaults. When not: ERR_INVALID, and `details` is
 * appended a JSON list of {"type", "loc", "msg", "input", "ctx"?}. Any other failure appends
 * nothing.
 */
int schema_check(const struct schema *s, yyjson_val *value, yyjson_doc **ret, struct buf *details,
                 struct error *reterr) must_check;

DEFINE_CLEANUP(struct schema *, schema_free)
#define auto_schema __attribute__((cleanup(schema_free_cleanup)))
