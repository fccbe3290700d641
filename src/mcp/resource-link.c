/* SPDX-License-Identifier: MIT */
/* What a call has changed among the resources: links in its result, and word to who listens. */
#include "mcp/call-internal.h"

#include "base/str.h"
#include "mcp/resource-uri.h"

/* The answer has to stay fit for a model: what was exported is in the payload, too. */
enum { LINKS_MAX = 50, LINK_CHARS_MAX = 64 * 1024 };

struct after {
    struct mcp_server *server;
    yyjson_val *arguments;
    yyjson_val *payload;
    yyjson_mut_doc *doc;
    yyjson_mut_val *content;
};

static int link_add(const struct after *a, yyjson_val *file, const struct buf *uri)
{
    yyjson_mut_val *block = yyjson_mut_obj(a->doc);
    const char *path = json_get_str(file, "path", "");
    bool is_dir = str_eq(json_get_str(file, "type", ""), "directory");
    const char *mime = is_dir ? "application/gzip" : resource_mime(path);
    auto_buf struct buf name;

    buf_init(&name, 4 * (size_t)TREE_PATH_MAX);
    if (resource_name_format(&name, path) < 0)
        return -1;
    yyjson_mut_obj_add_str(a->doc, block, "type", "resource_link");
    yyjson_mut_obj_add_val(a->doc, block, "uri", json_mut_text(a->doc, buf_str(uri), uri->len));
    yyjson_mut_obj_add_val(a->doc, block, "name", json_mut_text(a->doc, buf_str(&name), name.len));
    if (is_dir)
        yyjson_mut_obj_add_str(a->doc, block, "description", "A folder, read as .tar.gz");
    if (mime)
        yyjson_mut_obj_add_str(a->doc, block, "mimeType", mime);
    if (!is_dir)
        yyjson_mut_obj_add_uint(a->doc, block, "size",
                                yyjson_get_uint(yyjson_obj_get(file, "size")));
    return yyjson_mut_arr_append(a->content, block) ? 0 : -1;
}

static void exported(const struct after *a)
{
    size_t i, max, links = 0, chars = 0;
    bool any = false;
    yyjson_val *file;
    auto_buf struct buf uri;

    buf_init(&uri, RESOURCE_URI_MAX);
    yyjson_arr_foreach(yyjson_obj_get(a->payload, "files"), i, max, file)
    {
        buf_clear(&uri);
        if (!json_get_bool(file, "success", false) ||
            resource_uri_format(&uri, json_get_str(file, "session_id", ""),
                                json_get_str(file, "path", "")) < 0)
            continue;
        any = true;
        mcp_notify(a->server, MCP_RESOURCE_UPDATED, buf_str(&uri));
        if (links < LINKS_MAX && chars + uri.len < LINK_CHARS_MAX && link_add(a, file, &uri) == 0) {
            links++;
            chars += uri.len;
        }
    }
    if (any)
        mcp_notify(a->server, MCP_RESOURCES_CHANGED, NULL);
}

static void stopped(const struct after *a)
{
    if (json_get_bool(a->payload, "success", false))
        mcp_session_ended(a->server, json_get_str(a->arguments, "session_id", ""));
}

/* Displays are resources, also those that the result shows whole. */
static void others(const struct after *a)
{
    size_t i, max;
    yyjson_mut_val *block;

    yyjson_mut_arr_foreach(a->content, i, max, block)
    {
        if (!yyjson_mut_equals_str(yyjson_mut_obj_get(block, "type"), "text")) {
            mcp_notify(a->server, MCP_RESOURCES_CHANGED, NULL);
            return;
        }
    }
}

void mcp_resources_after(const struct mcp_call *call, yyjson_val *arguments,
                         const struct buf *payload, yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    static const struct {
        const char *tool;
        void (*tell)(const struct after *a);
    } tells[] = {{"export_files", exported}, {"stop_session", stopped}};
    auto_json yyjson_doc *parsed = NULL;
    struct after a = {.server = call->server,
                      .arguments = arguments,
                      .doc = doc,
                      .content = yyjson_mut_obj_get(result, "content")};

    for (size_t i = 0; i < ARRAY_LEN(tells); i++) {
        if (!str_eq(call->entry->name, tells[i].tool))
            continue;
        if (json_parse(buf_str(payload), payload->len, &parsed, NULL) == 0) {
            a.payload = yyjson_doc_get_root(parsed);
            tells[i].tell(&a);
        }
        return;
    }
    others(&a);
}
