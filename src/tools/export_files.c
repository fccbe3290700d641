/* SPDX-License-Identifier: MIT */
/* The tool that hands files out: it registers them, and their bytes move only when somebody asks.
 */
#include "base/str.h"
#include "tools/tool-internal.h"
#include "wire/url.h"

enum { LINK_MAX = 32768 };

static yyjson_mut_val *url_make(yyjson_mut_doc *doc, const char *base, const char *id,
                                const char *path)
{
    auto_buf struct buf url;

    buf_init(&url, LINK_MAX);
    if (!base || buf_printf(&url, "%s?session_id=%s&path=", base, id) < 0 ||
        url_percent_append(&url, path) < 0)
        return yyjson_mut_null(doc);
    return json_mut_text(doc, url.data, url.len);
}

struct exported {
    const char *source;
    struct export_info info;
    struct error error;
    int r;
};

static void exported_add(struct tool_call *call, yyjson_mut_doc *doc, yyjson_mut_val *list,
                         const char *id, const struct exported *e)
{
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
    const char *path = e->r == 0 ? e->info.path : e->source;

    yyjson_mut_obj_add_str(doc, item, "session_id", id);
    yyjson_mut_obj_add_val(doc, item, "path", payload_echo(doc, path));
    yyjson_mut_obj_add_bool(doc, item, "success", e->r == 0);
    yyjson_mut_obj_add_uint(doc, item, "size", e->r == 0 ? e->info.size : 0);
    if (e->r == 0)
        yyjson_mut_obj_add_str(doc, item, "type", e->info.type == 'd' ? "directory" : "file");
    yyjson_mut_obj_add_val(doc, item, "error",
                           e->r == 0 ? yyjson_mut_str(doc, "")
                                     : payload_text(doc, &e->error, e->source, e->info.path));
    yyjson_mut_obj_add_val(doc, item, "download_url",
                           e->r == 0 ? url_make(doc, call->context->download_base, id, path)
                                     : yyjson_mut_null(doc));
}

static void export_one(struct tool_call *call, const char *id, yyjson_val *entry,
                       struct exported *ret)
{
    const struct tool_context *context = call->context;

    ret->source = "";
    ret->info.path[0] = 0;
    ret->r = tool_call_check(call, &ret->error);
    if (ret->r == 0)
        ret->r = argument_text(entry, "source", &ret->source, &ret->error);
    if (ret->r == 0)
        ret->r = session_export(
            context->manager,
            &(struct session_path){.id = id, .owner = context->owner, .path = ret->source},
            &ret->info, &ret->error);
}

static int export_files_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                            struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    auto_free struct exported *e = malloc(sizeof(*e));
    yyjson_val *entry;
    struct session_info info;
    bool success = true;
    const char *id;
    size_t i, max;
    int r;

    if (!e)
        return error_no_memory(reterr);
    if ((r = argument_text(arguments, "session_id", &id, reterr)) < 0 ||
        (r = tool_session_check(call, id, &info, reterr)) < 0)
        return r;
    yyjson_arr_foreach(yyjson_obj_get(arguments, "files"), i, max, entry)
    {
        export_one(call, id, entry, e);
        if (e->r == -ERR_DIED)
            return error_set(reterr, ERR_DIED, "%s", e->error.text);
        success &= e->r == 0;
        exported_add(call, doc, list, id, e);
    }
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", success);
    yyjson_mut_obj_add_val(doc, root, "files", list);
    yyjson_mut_obj_add_str(doc, root, "error", "");
    return json_mut_write(doc, ret, reterr);
}

const struct tool_entry tool_export_files = {
    .name = "export_files",
    .title = "Export files",
    .description =
        "Offers files or folders of a session for download by the user, and makes them available "
        "to import_files of another session of this conversation. Only what is below /workspace "
        "can be exported; relative paths begin there. A folder is offered as a whole and is "
        "downloaded as an archive. Each entry of `files` in the result has the absolute path, the "
        "size, and where this server offers it a download_url to give to the user; an MCP client "
        "also gets a resource_link, by which it can read the content. An exported file stays "
        "available until its session ends, so do not stop the session before the user has what was "
        "exported. It is not necessary for plots and other displays, which come back from "
        "execute_code.",
    /* clang-format off */
    .input_schema = JSON({
        "type": "object",
        "properties": {
            "session_id": {
                "type": "string",
                "minLength": 1,
                "description": "The session that has the files."
            },
            "files": {
                "type": "array",
                "minItems": 1,
                "maxItems": 1000,
                "description": "What to export.",
                "items": {
                    "type": "object",
                    "properties": {
                        "source": {
                            "type": "string",
                            "minLength": 1,
                            "description": "Path of a file or folder below /workspace."
                        }
                    },
                    "required": ["source"]
                }
            }
        },
        "required": ["session_id", "files"]
    }),
    .output_schema = OUTPUT(
        "session_id": {"type": "string"},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "session_id": {"type": "string"},
                    "path": {"type": "string"},
                    "success": {"type": "boolean"},
                    "size": {"type": "integer"},
                    "type": {"enum": ["file", "directory"]},
                    "error": {"type": "string"},
                    "download_url": {"type": ["string", "null"]}
                },
                "required": ["session_id", "path", "success", "size", "error", "download_url"]
            }
        }
    ),
    /* clang-format on */
    .read_only = false,
    .destructive = false,
    .idempotent = true,
    .open_world = false,
    .run = export_files_run,
};
