/* SPDX-License-Identifier: MIT */
/*
 * What the API says of itself: operations, parameters and schemas, as tables. /openapi.json and
 * /docs are written from them, and requests are checked by them, so a description that is wrong
 * shows in the first test.
 */
#pragma once

#include "api/api-internal.h"

enum api_reply_kind {
    REPLY_JSON,   /* one of `reply` */
    REPLY_LIST,   /* an array of it */
    REPLY_EMPTY,  /* 204 */
    REPLY_STREAM, /* text/event-stream */
    REPLY_BYTES,  /* of any type */
    REPLY_TEXT,
    REPLY_HTML,
    REPLY_RPC, /* JSON-RPC: JSON, an event stream, or 202 */
};

/* One for each route of every table; found by method and path. */
struct api_operation {
    const char *method, *path;
    const char *query; /* names of parameters, with blanks between them; NULL */
    const char *body;  /* a schema's name; NULL: no body */
    enum api_reply_kind kind;
    const char *reply; /* a schema's name, or NULL */
    unsigned flags;
};

enum {
    OPERATION_OPEN = 1,          /* needs no key */
    OPERATION_FORM = 2,          /* the body is multipart/form-data */
    OPERATION_ARRAY = 4,         /* the body is an array of `body` */
    OPERATION_RESUME = 8,        /* goes on behind the header Last-Event-ID */
    OPERATION_NULL = 16,         /* null where there is none */
    OPERATION_MAY_BE_EMPTY = 32, /* 204 when the client asks for it */
    OPERATION_ENVELOPE = 64,     /* of a body that is malformed it says 400 */
    OPERATION_PLACE = 128,       /* headers say where the run is */
    OPERATION_PAGES = 256,       /* headers say how many there are */
    OPERATION_HTML = 512,        /* a page for who prefers one */
};

/* JSON Schema 2020-12 as text. */
struct api_schema {
    const char *name, *text;
};

struct api_parameter {
    const char *name, *text; /* its schema */
    const char *about;
    bool required;
};

/* All end with an entry without a name. */
extern const struct api_operation api_operations[];
extern const struct api_schema api_schemas[];
extern const struct api_parameter api_query_parameters[], api_path_parameters[];

const struct api_operation *api_operation_find(const char *method, const char *path);
const struct api_parameter *api_parameter_find(const struct api_parameter *list, const char *name,
                                               size_t len);
/* The next name of a list with blanks, and its length; NULL at the end. */
const char *api_name_next(const char **list, size_t *ret_len);

/* What operations belong together by: the first part of the path, or "system". */
const char *api_operation_tag(const struct api_operation *o, size_t *ret_len);

/* The route of an operation, with its summary; NULL where it is not served. */
const struct route_entry *api_operation_route(const struct api *api, const struct api_operation *o);

/* ---- checking (shape.c) ---- */

/* The schemas, parsed. */
struct shapes;

int shapes_new(struct shapes **ret, struct error *reterr) must_check;
void shapes_free(struct shapes *s);
yyjson_val *shapes_find(const struct shapes *s, const char *name);

/*
 * Whether a value is as the schema says: types, required members, enums, bounds, alternatives.
 * Patterns and formats are for the reader; who takes the value looks at them. ERR_INVALID names the
 * first member that is wrong.
 */
int shapes_check(const struct shapes *s, yyjson_val *schema, yyjson_val *value,
                 struct error *reterr) must_check;

/* A query's value, which is text: as the schema's type reads it. */
int shapes_check_text(yyjson_val *schema, const char *name, const char *value,
                      struct error *reterr) must_check;

/* The request's query by its operation; answers 422. */
int api_query_check(struct http_request *req);
/* The body by its operation, if that has one; answers 422. */
int api_body_check(struct http_request *req, yyjson_val *body);
