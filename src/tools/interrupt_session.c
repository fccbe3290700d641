/* SPDX-License-Identifier: MIT */
/* The tool that interrupts what runs in a session. */
#include "tools/tool-internal.h"

static int interrupt_session_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                                 struct error *reterr)
{
    const struct tool_context *context = call->context;
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    struct session_info info;
    const char *id;
    int r;

    if ((r = argument_text(arguments, "session_id", &id, reterr)) < 0 ||
        (r = tool_session_check(call, id, &info, reterr)) < 0 ||
        (r = session_interrupt(context->manager, id, context->owner, reterr)) < 0)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", true);
    yyjson_mut_obj_add_str(doc, root, "session_id", id);
    yyjson_mut_obj_add_bool(doc, root, "interrupted", info.busy);
    return json_mut_write(doc, ret, reterr);
}

const struct tool_entry tool_interrupt_session = {
    .name = "interrupt_session",
    .title = "Interrupt a session",
    .description =
        "Interrupts the code or command that is running in a session, as Ctrl-C does. The call "
        "that runs it then returns with status `interrupted` and what was printed so far. "
        "Variables are kept when the code can be interrupted within two seconds; otherwise the "
        "interpreter is started afresh and the result says `state: lost`. Files are kept in any "
        "case. `interrupted` is false when nothing was running.",
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
    .output_schema = OUTPUT(
        "session_id": {"type": "string"},
        "interrupted": {"type": "boolean"}
    ),
    /* clang-format on */
    .read_only = false,
    .destructive = true,
    .idempotent = true,
    .open_world = false,
    .run = interrupt_session_run,
};
