/* SPDX-License-Identifier: MIT */
/* The API's own description, read from the route tables that serve it. */
#include "api/api-internal.h"

#include "base/str.h"

#include <ctype.h>

/* Operations of one path stand together, wherever the tables have them. */
static bool path_is_first(const struct api *api, size_t table, const struct route_entry *entry)
{
    for (size_t t = 0; t <= table; t++) {
        for (const struct route_entry *e = api->tables[t].entries; e->path; e++) {
            if (e == entry)
                return true;
            if (str_eq(e->path, entry->path))
                return false;
        }
    }
    return true;
}

static void parameters_add(yyjson_mut_doc *doc, yyjson_mut_val *operation, const char *path)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, operation, "parameters");

    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
        yyjson_mut_val *p = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_val *schema;

        yyjson_mut_obj_add_val(doc, p, "name",
                               yyjson_mut_strncpy(doc, at + 1, strcspn(at + 1, "}.")));
        yyjson_mut_obj_add_str(doc, p, "in", "path");
        yyjson_mut_obj_add_bool(doc, p, "required", true);
        schema = yyjson_mut_obj_add_obj(doc, p, "schema");
        yyjson_mut_obj_add_str(doc, schema, "type", "string");
    }
}

static void operation_add(yyjson_mut_doc *doc, yyjson_mut_val *item, const struct route_entry *e)
{
    yyjson_mut_val *operation = yyjson_mut_obj(doc);
    yyjson_mut_val *responses;
    char method[8] = "";

    for (size_t i = 0; e->method[i] && i + 1 < sizeof(method); i++)
        method[i] = (char)tolower((unsigned char)e->method[i]);
    yyjson_mut_obj_add(item, yyjson_mut_strcpy(doc, method), operation);
    yyjson_mut_obj_add_str(doc, operation, "summary", e->summary);
    parameters_add(doc, operation, e->path);
    responses = yyjson_mut_obj_add_obj(doc, operation, "responses");
    yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, responses, "default"), "description",
                           "The answer");
}

static void path_add(const struct api *api, yyjson_mut_doc *doc, yyjson_mut_val *paths,
                     const char *path)
{
    yyjson_mut_val *item = yyjson_mut_obj_add_obj(doc, paths, path);

    for (size_t t = 0; api->tables[t].entries; t++) {
        for (const struct route_entry *e = api->tables[t].entries; e->path; e++) {
            if (str_eq(e->path, path))
                operation_add(doc, item, e);
        }
    }
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
    paths = yyjson_mut_obj_add_obj(doc, root, "paths");
    for (size_t t = 0; api->tables[t].entries; t++) {
        for (const struct route_entry *e = api->tables[t].entries; e->path; e++) {
            if (path_is_first(api, t, e))
                path_add(api, doc, paths, e->path);
        }
    }
    api_reply_doc(req, 200, owned);
}

void api_docs(struct http_request *req)
{
    static const char page[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>sandbox-agent</title>"
        "<body><h1>sandbox-agent</h1><p>The API is described by <a "
        "href=\"/openapi.json\">openapi.json</a>.</p></body></html>";

    http_header_add(req, "Content-Security-Policy", "default-src 'self'");
    http_respond(req, 200, "text/html; charset=utf-8", page, sizeof(page) - 1);
}
