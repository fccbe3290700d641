/* SPDX-License-Identifier: MIT */
/*
 * The tool that brings files in. Each entry succeeds or fails by itself; only when the session they
 * go to is gone the whole call fails.
 */
#include "base/base64.h"
#include "base/str.h"
#include "tools/tool-internal.h"
#include "wire/utf8.h"

enum { CONTENT_MAX = 64 * 1024 * 1024 };

/* One entry of the arguments and what became of it. */
struct imported {
    struct import_source from;
    struct buf content; /* decoded; or empty */
    const char *source, *destination;
    struct import_result result;
    struct error error;
    int r;
};

/* Base64 as it is mailed around is broken into lines. */
static int content_decode(yyjson_val *v, struct buf *ret, struct error *reterr)
{
    const char *text = yyjson_get_str(v), *end = text + yyjson_get_len(v);
    auto_buf struct buf joined;

    buf_init(&joined, 2 * (size_t)CONTENT_MAX);
    while (text < end && *text) {
        size_t n = strcspn(text, " \t\r\n");

        if (buf_append(&joined, text, MIN(n, (size_t)(end - text))) < 0)
            return error_set(reterr, ERR_LIMIT, "file_content is above %d bytes", CONTENT_MAX);
        text += n + (text[n] != 0);
    }
    if (text < end || base64_decode(ret, buf_str(&joined), joined.len) < 0)
        return error_set(reterr, ERR_INVALID, "file_content is no base64, or above %d bytes",
                         CONTENT_MAX);
    return 0;
}

static int content_parse(yyjson_val *entry, struct imported *i, struct error *reterr)
{
    yyjson_val *v = yyjson_obj_get(entry, "file_content");
    const char *encoding = json_get_str(entry, "encoding", "utf-8");
    int r = 0;

    if (!yyjson_is_str(v))
        return error_set(reterr, ERR_INVALID,
                         "give source, or session_id and path, or file_content and destination");
    if (!i->destination[0])
        return error_set(reterr, ERR_INVALID,
                         "destination is missing: file_content needs it, as the file's name");
    i->from.kind = IMPORT_CONTENT;
    i->from.content = yyjson_get_str(v);
    i->from.len = yyjson_get_len(v);
    if (str_eq(encoding, "base64")) {
        r = content_decode(v, &i->content, reterr);
        i->from.content = buf_str(&i->content);
        i->from.len = i->content.len;
    }
    return r;
}

/* Of several sources in one entry another session's comes first. */
static int entry_parse(yyjson_val *entry, struct imported *i, struct error *reterr)
{
    const char *session, *path, *source, *destination;
    int r;

    if ((r = argument_text(entry, "destination", &destination, reterr)) < 0 ||
        (r = argument_text(entry, "session_id", &session, reterr)) < 0 ||
        (r = argument_text(entry, "path", &path, reterr)) < 0 ||
        (r = argument_text(entry, "source", &source, reterr)) < 0)
        return r;
    if (destination)
        i->destination = destination;
    i->from.extract = json_get_bool(entry, "extract", false);
    if (session && path) {
        i->from.kind = IMPORT_SESSION;
        i->from.session_id = session;
        i->from.path = path;
    } else if (source) {
        i->from.kind = IMPORT_HOST;
        i->from.path = source;
    } else {
        return content_parse(entry, i, reterr);
    }
    return 0;
}

static void import_one(struct tool_call *call, const char *id, yyjson_val *entry,
                       struct imported *i)
{
    const struct tool_context *context = call->context;

    i->destination = "";
    i->from = (struct import_source){};
    i->result = (struct import_result){};
    buf_clear(&i->content);
    i->r = tool_call_check(call, &i->error);
    if (i->r == 0)
        i->r = entry_parse(entry, i, &i->error);
    if (i->r == 0)
        i->r = session_import(
            context->manager,
            &(struct session_path){.id = id, .owner = context->owner, .path = i->destination},
            &i->from, &context->roots, &i->result, &i->error);
}

/* As the reference writes it: "session:path" for another session's. */
static yyjson_mut_val *source_text(yyjson_mut_doc *doc, const struct imported *i)
{
    const char *session = i->from.session_id, *path = i->from.path;
    auto_buf struct buf text;

    if (!path)
        return yyjson_mut_str(doc, i->from.kind == IMPORT_CONTENT ? "file_content" : "");
    buf_init(&text, 2 * (size_t)PAYLOAD_ECHO_MAX);
    if (session && (buf_append(&text, session, utf8_cut(session, strlen(session), ID_LEN)) < 0 ||
                    buf_append_byte(&text, ':') < 0))
        return NULL;
    if (buf_append(&text, path, utf8_cut(path, strlen(path), PAYLOAD_ECHO_MAX)) < 0)
        return NULL;
    return json_mut_text(doc, buf_str(&text), text.len);
}

static void imported_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct imported *i)
{
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
    const char *destination = i->r == 0 ? i->result.destination : i->destination;

    yyjson_mut_obj_add_val(doc, item, "source", source_text(doc, i));
    yyjson_mut_obj_add_val(doc, item, "destination", payload_echo(doc, destination));
    yyjson_mut_obj_add_bool(doc, item, "success", i->r == 0);
    yyjson_mut_obj_add_uint(doc, item, "size", i->r == 0 ? i->result.size : 0);
    if (i->r == 0)
        yyjson_mut_obj_add_uint(doc, item, "files", i->result.files);
    yyjson_mut_obj_add_val(doc, item, "error",
                           i->r == 0
                               ? yyjson_mut_str(doc, "")
                               : payload_text(doc, &i->error, i->from.path, i->result.destination));
}

static void imported_done(struct imported **i)
{
    if (*i)
        buf_done(&(*i)->content);
    free(*i);
}

/* A session that died meanwhile has lost also what came before. */
static int gone_check(struct tool_call *call, const char *id, const struct imported *i,
                      struct error *reterr)
{
    struct session_info info;

    if (i->r != -ERR_DIED && i->r != -ERR_NOT_FOUND)
        return 0;
    return tool_session_check(call, id, &info, reterr);
}

static int import_files_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                            struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    auto_cleanup(imported_done) struct imported *i = calloc(1, sizeof(*i));
    struct session_info info;
    yyjson_val *entry;
    bool success = true;
    size_t at, max;
    const char *id;
    int r;

    if (!i)
        return error_no_memory(reterr);
    buf_init(&i->content, CONTENT_MAX);
    if ((r = argument_text(arguments, "session_id", &id, reterr)) < 0 ||
        (r = tool_session_check(call, id, &info, reterr)) < 0)
        return r;
    yyjson_arr_foreach(yyjson_obj_get(arguments, "files"), at, max, entry)
    {
        import_one(call, id, entry, i);
        if ((r = gone_check(call, id, i, reterr)) < 0)
            return r;
        success &= i->r == 0;
        imported_add(doc, list, i);
    }
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", success);
    yyjson_mut_obj_add_val(doc, root, "files", list);
    yyjson_mut_obj_add_str(doc, root, "error", "");
    return json_mut_write(doc, ret, reterr);
}

const struct tool_entry tool_import_files = {
    .name = "import_files",
    .title = "Import files",
    .description =
        "Copies files or folders into a session. An entry has one of three sources: `source`, an "
        "absolute path on the host in a folder that the operator allows by IMPORT_ALLOWED_DIRS "
        "(such as the path of an upload that the user names); `session_id` and `path`, a file or "
        "folder that was exported from another session by export_files, also of another language; "
        "or `file_content`, the content itself, as text or base64, which needs a `destination`. "
        "`destination` is relative to /workspace, or an absolute path below /workspace, /tmp or "
        "/home/sandbox; without it a source keeps its name, and one that ends in a slash is a "
        "folder to put it in. With `extract`, the source is a tar or zip archive and its content "
        "is put there. Each entry of `files` in the result tells the destination and the size, or "
        "the error: one that fails does not stop the others. An existing file of the same name is "
        "replaced.",
    /* clang-format off */
    .input_schema = JSON({
        "type": "object",
        "properties": {
            "session_id": {
                "type": "string",
                "minLength": 1,
                "description": "The session that gets the files."
            },
            "files": {
                "type": "array",
                "minItems": 1,
                "maxItems": 1000,
                "description": "What to import.",
                "items": {
                    "type": "object",
                    "description": "source, session_id and path, or file_content and destination",
                    "properties": {
                        "source": {
                            "type": ["string", "null"],
                            "minLength": 1,
                            "description": "Absolute path of a file or folder on the host."
                        },
                        "session_id": {
                            "type": ["string", "null"],
                            "minLength": 1,
                            "description": "The session from which `path` was exported."
                        },
                        "path": {
                            "type": ["string", "null"],
                            "minLength": 1,
                            "description": "Exported path in that session."
                        },
                        "file_content": {
                            "type": ["string", "null"],
                            "description": "The content itself; needs destination."
                        },
                        "encoding": {
                            "type": ["string", "null"],
                            "enum": ["utf-8", "base64", null],
                            "default": "utf-8",
                            "description": "How file_content is written; base64 for bytes."
                        },
                        "destination": {
                            "type": ["string", "null"],
                            "description": "Where it goes, relative to /workspace, or absolute."
                        },
                        "extract": {
                            "type": ["boolean", "null"],
                            "default": false,
                            "description": "Whether to unpack the source, a tar or zip archive."
                        }
                    }
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
                    "source": {"type": "string"},
                    "destination": {"type": "string"},
                    "success": {"type": "boolean"},
                    "size": {"type": "integer", "description": "Bytes."},
                    "files": {"type": "integer", "description": "How many; of a folder more."},
                    "error": {"type": "string"}
                },
                "required": ["source", "destination", "success", "size", "error"]
            }
        }
    ),
    /* clang-format on */
    .read_only = false,
    .destructive = true,
    .idempotent = true,
    .open_world = false,
    .run = import_files_run,
};
