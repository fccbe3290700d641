/* SPDX-License-Identifier: MIT */
/* The resources that the official conformance suite reads. */
#include "mcp/fixture.h"

#include "base/str.h"

#define TEMPLATE_START "test://template/"
#define TEMPLATE_END "/data"

enum { TEMPLATE_ID_MAX = 256 };

static const struct fixture_resource {
    const char *uri, *name, *description, *mime, *member, *content;
} resources[] = {
    {"test://static-text", "static text", "A text that does not change", "text/plain", "text",
     "This is the content of the static text resource."},
    {"test://static-binary", "static binary", "A picture that does not change", "image/png", "blob",
     FIXTURE_PNG},
    {"test://watched-resource", "watched resource", "A text that is said to change", "text/plain",
     "text", "This is the content of the watched resource."},
};

void mcp_fixture_resources_list(yyjson_mut_doc *doc, yyjson_mut_val *list)
{
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_str(doc, o, "uri", resources[i].uri);
        yyjson_mut_obj_add_str(doc, o, "name", resources[i].name);
        yyjson_mut_obj_add_str(doc, o, "description", resources[i].description);
        yyjson_mut_obj_add_str(doc, o, "mimeType", resources[i].mime);
    }
}

void mcp_fixture_templates_list(yyjson_mut_doc *doc, yyjson_mut_val *list)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_str(doc, o, "uriTemplate", TEMPLATE_START "{id}" TEMPLATE_END);
    yyjson_mut_obj_add_str(doc, o, "name", "template");
    yyjson_mut_obj_add_str(doc, o, "description", "Data that has the id in it");
    yyjson_mut_obj_add_str(doc, o, "mimeType", "application/json");
}

static void content_fill(const char *uri, const struct fixture_resource *from, yyjson_mut_doc *doc,
                         yyjson_mut_val *result)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, result, "contents");
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_strcpy(doc, o, "uri", uri);
    yyjson_mut_obj_add_str(doc, o, "mimeType", from->mime);
    yyjson_mut_obj_add_strcpy(doc, o, from->member, from->content);
}

/* Only ids that mean nothing to JSON. */
static bool template_read(const char *uri, yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    struct fixture_resource found = {.mime = "application/json", .member = "text"};
    const char *id = uri + strlen(TEMPLATE_START);
    auto_buf struct buf text;
    int len;

    buf_init(&text, 4 * TEMPLATE_ID_MAX);
    if (!str_starts(uri, TEMPLATE_START))
        return false;
    len = (int)strspn(id, letters);
    if (!len || len > TEMPLATE_ID_MAX || !str_eq(id + len, TEMPLATE_END) ||
        buf_printf(&text, "{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}",
                   len, id, len, id) < 0)
        return false;
    found.content = text.data;
    content_fill(uri, &found, doc, result);
    return true;
}

bool mcp_fixture_read(const char *uri, yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        if (str_eq(resources[i].uri, uri)) {
            content_fill(uri, &resources[i], doc, result);
            return true;
        }
    }
    return template_read(uri, doc, result);
}
