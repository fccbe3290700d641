/* SPDX-License-Identifier: MIT */
/* The tool that ends a session. One that is not there any more is an answer, not a failure. */
#include "tools/tool-internal.h"

static int stop_session_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                            struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const char *id;
    int r = argument_text(arguments, "session_id", &id, reterr);

    if (r < 0)
        return r;
    r = session_stop(call->context->manager, id, call->context->owner, reterr);
    if (r < 0 && r != -ERR_NOT_FOUND)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", r == 0);
    yyjson_mut_obj_add_val(doc, root, "session_id", payload_echo(doc, id));
    if (r < 0)
        payload_add_stopped(call, doc, root);
    return json_mut_write(doc, ret, reterr);
}

const struct tool_entry tool_stop_session = {
    .name = "stop_session",
    .title = "Stop a session",
    .description =
        "Ends a session and frees its place. Its variables, its files and what was exported from "
        "it are gone for good, so do it only when nothing of it is needed any more: files that the "
        "user is to download have to be downloaded before. A call that runs in the session is "
        "ended. Also use it on a session that has died. `success` is false when there was no such "
        "session.",
    /* clang-format off */
    .input_schema = JSON({
        "type": "object",
        "properties": {
            "session_id": {
                "type": "string",
                "minLength": 1,
                "description": "The session_id that create_session returned."
            }
        },
        "required": ["session_id"]
    }),
    .output_schema = OUTPUT("session_id": {"type": "string"}),
    /* clang-format on */
    .read_only = false,
    .destructive = true,
    .idempotent = true,
    .open_world = false,
    .run = stop_session_run,
};
