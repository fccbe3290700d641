/* SPDX-License-Identifier: MIT */
/* The API's own description as OpenAPI 3.1, written from the tables that requests are checked by.
 */
#include "api/describe.h"

#include "base/str.h"

#include <ctype.h>
#include <stdio.h>

enum { NAME_MAX_LEN = 160 };

#define REF_SCHEMA "#/components/schemas/"

static const struct route_entry *entry_find(const struct route_entry *entries,
                                            const struct api_operation *o)
{
    for (; entries && entries->path; entries++) {
        if (str_eq(entries->path, o->path) && str_eq(entries->method, o->method))
            return entries;
    }
    return NULL;
}

const struct route_entry *api_operation_route(const struct api *api, const struct api_operation *o)
{
    const struct route_entry *found = NULL;

    for (size_t i = 0; !found && api->tables[i].entries; i++)
        found = entry_find(api->tables[i].entries, o);
    for (size_t i = 0; !found && i < ARRAY_LEN(api->described); i++)
        found = entry_find(api->described[i], o);
    return found;
}

/* ---- parameters ---- */

/* Text that lives as long as the program. */
static yyjson_mut_val *raw(yyjson_mut_doc *doc, const char *json)
{
    return yyjson_mut_raw(doc, json);
}

static void parameter_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct api_parameter *p,
                          const char *in)
{
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_str(doc, v, "name", p->name);
    yyjson_mut_obj_add_str(doc, v, "in", in);
    yyjson_mut_obj_add_str(doc, v, "description", p->about);
    if (p->required)
        yyjson_mut_obj_add_bool(doc, v, "required", true);
    yyjson_mut_obj_add_val(doc, v, "schema", raw(doc, p->text));
}

static const struct api_parameter header_parameters[] = {
    {"Last-Event-ID", "{\"type\":\"string\"}",
     "The id of the last event that came: what followed it is sent again; -1: all of it", false},
    {"Prefer", "{\"type\":\"string\"}", "return=minimal: 204 without a body", false},
};

static void parameters_add(yyjson_mut_doc *doc, yyjson_mut_val *operation,
                           const struct api_operation *o)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, operation, "parameters");
    const char *names = o->query, *name;
    const struct api_parameter *p;
    size_t len;

    for (const char *at = strchr(o->path, '{'); at; at = strchr(at + 1, '{')) {
        p = api_parameter_find(api_path_parameters, at + 1, strcspn(at + 1, "}."));
        if (p)
            parameter_add(doc, list, p, "path");
    }
    while ((name = api_name_next(&names, &len))) {
        p = api_parameter_find(api_query_parameters, name, len);
        if (p)
            parameter_add(doc, list, p, "query");
    }
    if (o->flags & OPERATION_RESUME)
        parameter_add(doc, list, &header_parameters[0], "header");
    if (o->flags & OPERATION_MAY_BE_EMPTY)
        parameter_add(doc, list, &header_parameters[1], "header");
}

/* ---- bodies and answers ---- */

static yyjson_mut_val *ref_make(yyjson_mut_doc *doc, const char *name)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);
    char text[NAME_MAX_LEN];

    snprintf(text, sizeof(text), REF_SCHEMA "%s", name);
    yyjson_mut_obj_add_strcpy(doc, v, "$ref", text);
    return v;
}

static yyjson_mut_val *list_make(yyjson_mut_doc *doc, yyjson_mut_val *items)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, v, "type", "array");
    yyjson_mut_obj_add_val(doc, v, "items", items);
    return v;
}

static void content_add(yyjson_mut_doc *doc, yyjson_mut_val *holder, const char *type,
                        yyjson_mut_val *schema)
{
    yyjson_mut_val *content = yyjson_mut_obj_get(holder, "content");

    if (!content)
        content = yyjson_mut_obj_add_obj(doc, holder, "content");
    yyjson_mut_obj_add_val(doc, yyjson_mut_obj_add_obj(doc, content, type), "schema", schema);
}

/* A body that is missing is an empty object. */
static bool body_is_required(const struct api *api, const struct api_operation *o)
{
    auto_json yyjson_doc *empty = yyjson_read("{}", 2, 0);
    struct error error;

    return o->flags & OPERATION_ARRAY ||
           shapes_check(api->shapes, shapes_find(api->shapes, o->body), yyjson_doc_get_root(empty),
                        &error) < 0;
}

static void body_add(const struct api *api, yyjson_mut_doc *doc, yyjson_mut_val *operation,
                     const struct api_operation *o)
{
    yyjson_mut_val *body, *schema;

    if (!o->body)
        return;
    body = yyjson_mut_obj_add_obj(doc, operation, "requestBody");
    yyjson_mut_obj_add_bool(doc, body, "required", body_is_required(api, o));
    schema = ref_make(doc, o->body);
    if (o->flags & OPERATION_ARRAY) {
        schema = list_make(doc, schema);
        yyjson_mut_obj_add_int(doc, schema, "maxItems", API_BATCH_MAX);
    }
    content_add(doc, body, o->flags & OPERATION_FORM ? "multipart/form-data" : "application/json",
                schema);
}

static yyjson_mut_val *text_schema(yyjson_mut_doc *doc)
{
    return raw(doc, "{\"type\":\"string\"}");
}

static yyjson_mut_val *reply_schema(yyjson_mut_doc *doc, const struct api_operation *o)
{
    yyjson_mut_val *schema = ref_make(doc, o->reply), *any, *list;

    if (o->kind == REPLY_LIST)
        return list_make(doc, schema);
    if (!(o->flags & OPERATION_NULL))
        return schema;
    any = yyjson_mut_obj(doc);
    list = yyjson_mut_obj_add_arr(doc, any, "anyOf");
    yyjson_mut_arr_append(list, schema);
    yyjson_mut_arr_append(list, raw(doc, "{\"type\":\"null\"}"));
    return any;
}

static yyjson_mut_val *response_add(yyjson_mut_doc *doc, yyjson_mut_val *responses,
                                    const char *status, const char *about)
{
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, responses, status);

    yyjson_mut_obj_add_str(doc, v, "description", about);
    return v;
}

static void headers_add(yyjson_mut_doc *doc, yyjson_mut_val *response,
                        const struct api_operation *o)
{
    if (o->flags & OPERATION_PLACE)
        yyjson_mut_obj_add_val(
            doc, response, "headers",
            raw(doc, "{\"Content-Location\":{\"schema\":{\"type\":\"string\"},\"description\":"
                     "\"The run: /threads/T/runs/R\"},\"Location\":{\"schema\":{\"type\":"
                     "\"string\"},\"description\":\"Where it can be followed\"}}"));
    if (o->flags & OPERATION_PAGES)
        yyjson_mut_obj_add_val(
            doc, response, "headers",
            raw(doc, "{\"X-Pagination-Total\":{\"schema\":{\"type\":\"integer\"}},"
                     "\"X-Pagination-Next\":{\"schema\":{\"type\":\"integer\"},\"description\":"
                     "\"The next offset, where there is more\"}}"));
}

static void success_add(yyjson_mut_doc *doc, yyjson_mut_val *responses,
                        const struct api_operation *o)
{
    yyjson_mut_val *ok;

    if (o->kind == REPLY_EMPTY || (o->flags & OPERATION_MAY_BE_EMPTY))
        response_add(doc, responses, "204", "Done; there is no body");
    if (o->kind == REPLY_RPC)
        response_add(doc, responses, "202", "Taken; there is no body");
    if (o->kind == REPLY_EMPTY)
        return;
    ok = response_add(doc, responses, "200", "The answer");
    headers_add(doc, ok, o);
    if (o->reply)
        content_add(doc, ok, "application/json", reply_schema(doc, o));
    if (o->kind == REPLY_STREAM || o->kind == REPLY_RPC)
        content_add(doc, ok, "text/event-stream", text_schema(doc));
    if (o->kind == REPLY_TEXT)
        content_add(doc, ok, "text/plain", text_schema(doc));
    if (o->kind == REPLY_HTML || (o->flags & OPERATION_HTML))
        content_add(doc, ok, "text/html", text_schema(doc));
    if (o->kind == REPLY_BYTES)
        content_add(doc, ok, "*/*", raw(doc, "{}"));
}

static void responses_add(yyjson_mut_doc *doc, yyjson_mut_val *operation,
                          const struct api_operation *o)
{
    yyjson_mut_val *responses = yyjson_mut_obj_add_obj(doc, operation, "responses"), *error;

    success_add(doc, responses, o);
    if (str_eq(o->path, "/health")) {
        error = response_add(doc, responses, "503", "A part does not work");
        content_add(doc, error, "application/json", ref_make(doc, "Health"));
    }
    error = response_add(doc, responses, "default", "What went wrong");
    /* The endpoint's own failures are JSON-RPC responses. */
    content_add(doc, error, "application/json",
                str_eq(o->path, "/mcp") ? raw(doc, "{\"type\":\"object\"}")
                                        : ref_make(doc, "Error"));
}

/* ---- operations ---- */

/* "post_threads_thread_id_runs": what generators of clients call their functions. */
static void id_add(yyjson_mut_doc *doc, yyjson_mut_val *operation, const struct api_operation *o)
{
    char id[NAME_MAX_LEN];
    size_t len = 0;

    for (const char *s = o->method; *s && len + 1 < sizeof(id); s++)
        id[len++] = (char)tolower((unsigned char)*s);
    for (const char *s = o->path; *s && len + 1 < sizeof(id); s++) {
        if (isalnum((unsigned char)*s))
            id[len++] = *s;
        else if (id[len - 1] != '_')
            id[len++] = '_';
    }
    while (id[len - 1] == '_')
        len--;
    yyjson_mut_obj_add_strncpy(doc, operation, "operationId", id, len);
}

static void tag_add(yyjson_mut_doc *doc, yyjson_mut_val *operation, const struct api_operation *o)
{
    yyjson_mut_val *tags = yyjson_mut_obj_add_arr(doc, operation, "tags");
    size_t len;
    const char *tag = api_operation_tag(o, &len);

    yyjson_mut_arr_add_strncpy(doc, tags, tag, len);
}

static void operation_add(const struct api *api, yyjson_mut_doc *doc, yyjson_mut_val *paths,
                          const struct api_operation *o)
{
    const struct route_entry *route = api_operation_route(api, o);
    yyjson_mut_val *item = yyjson_mut_obj_get(paths, o->path), *operation;
    char method[8] = "";

    if (!route)
        return;
    if (!item)
        item = yyjson_mut_obj_add_obj(doc, paths, o->path);
    for (size_t i = 0; o->method[i] && i + 1 < sizeof(method); i++)
        method[i] = (char)tolower((unsigned char)o->method[i]);
    operation = yyjson_mut_obj(doc);
    yyjson_mut_obj_add(item, yyjson_mut_strcpy(doc, method), operation);
    id_add(doc, operation, o);
    tag_add(doc, operation, o);
    yyjson_mut_obj_add_str(doc, operation, "summary", route->summary);
    parameters_add(doc, operation, o);
    body_add(api, doc, operation, o);
    responses_add(doc, operation, o);
    if (api_has_keys(api) && (o->flags & OPERATION_OPEN))
        yyjson_mut_obj_add_arr(doc, operation, "security");
}

static void components_add(const struct api *api, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    yyjson_mut_val *components = yyjson_mut_obj_add_obj(doc, root, "components");
    yyjson_mut_val *schemas = yyjson_mut_obj_add_obj(doc, components, "schemas");

    for (const struct api_schema *s = api_schemas; s->name; s++)
        yyjson_mut_obj_add_val(doc, schemas, s->name, raw(doc, s->text));
    if (!api_has_keys(api))
        return;
    yyjson_mut_obj_add_val(
        doc, components, "securitySchemes",
        raw(doc, "{\"ApiKey\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"x-api-key\"},"
                 "\"Bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
    yyjson_mut_obj_add_val(doc, root, "security", raw(doc, "[{\"ApiKey\":[]},{\"Bearer\":[]}]"));
}

void api_openapi(struct http_request *req)
{
    const struct api *api = api_of(req);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc), *info, *paths;

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "openapi", "3.1.0");
    info = yyjson_mut_obj_add_obj(doc, root, "info");
    yyjson_mut_obj_add_str(doc, info, "title", "sandbox-agent");
    yyjson_mut_obj_add_str(doc, info, "version", PACKAGE_VERSION);
    yyjson_mut_obj_add_str(doc, info, "description",
                           "An agent that works in sandboxes, over the LangGraph Platform API");
    paths = yyjson_mut_obj_add_obj(doc, root, "paths");
    for (const struct api_operation *o = api_operations; o->path; o++)
        operation_add(api, doc, paths, o);
    components_add(api, doc, root);
    api_reply_doc(req, 200, owned);
}
