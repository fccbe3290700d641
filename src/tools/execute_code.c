/* SPDX-License-Identifier: MIT */
/* The tool that runs a cell in a session's kernel. */
#include "tools/tool-internal.h"

static int execute_code_begin(struct tool_call *call, yyjson_val *arguments, struct error *reterr)
{
    yyjson_val *code = yyjson_obj_get(arguments, "code");
    const char *id;
    int r = argument_text(arguments, "session_id", &id, reterr);

    if (r < 0)
        return r;
    return tool_run_open(
        call, id,
        &(struct run_options){.kind = RUN_CODE,
                              .text = yyjson_get_str(code),
                              .len = yyjson_get_len(code),
                              .timeout_ms = argument_int(arguments, "timeout", 0) * 1000},
        reterr);
}

const struct tool_entry tool_execute_code = {
    .name = "execute_code",
    .title = "Run code",
    .description =
        "Runs code in the interpreter of a session (Python, Node.js or R) and returns what it "
        "printed, the value of its last expression and what it displayed. Variables, imports, "
        "functions and files are kept from call to call in the same session, so build on earlier "
        "results instead of running everything again. `success` is false when the code raised an "
        "error: read `error` and `stderr`, correct the code, and go on in the same session. Plots, "
        "images, HTML and audio come back in `display_outputs`; plots are captured by themselves, "
        "saving them to a file is not necessary. When the time-out passes, the code is "
        "interrupted: what it printed so far is returned, and `state` tells whether the variables "
        "were kept or lost. Code that asks for a line (input(), readline()) gets what the user "
        "answers, where the client can ask, and otherwise an error at once. Calls to one session "
        "run one after the other, calls to different sessions at the same time.",
    /* clang-format off */
    .input_schema = JSON({
        "type": "object",
        "properties": {
            "session_id": {
                "type": "string",
                "minLength": 1,
                "description": "The session_id that create_session returned."
            },
            "code": {
                "type": "string",
                "minLength": 1,
                "description": "Source text in the language of the session; any number of lines."
            },
            "timeout": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": 300,
                "default": null,
                "description": "Seconds; null: 30 unless the server is configured otherwise."
            }
        },
        "required": ["session_id", "code"]
    }),
    .output_schema = RUN_OUTPUT(
        "result": {
            "type": ["object", "null"],
            "description": "The value of the last expression, as {MIME type: data}."
        },
        "display_outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "description": "A MIME type."},
                    "data": {"description": "Where it is short enough to be read here."},
                    "text": {"type": "string", "description": "What it looks like as text."},
                    "metadata": {"type": "object"},
                    "uri": {"type": "string", "description": "The whole, as a resource."},
                    "size": {"type": "integer", "description": "Bytes of the whole."},
                    "width": {"type": "integer"},
                    "height": {"type": "integer"},
                    "note": {"type": "string", "description": "What it is, or why it is not shown."}
                },
                "required": ["type"]
            }
        },
        "late_output": {
            "type": "object",
            "description": "What was printed between this call and the one before."
        }
    ),
    /* clang-format on */
    .read_only = false,
    .destructive = true,
    .idempotent = false,
    .open_world = true,
    .begin = execute_code_begin,
    .run = tool_run_finish,
};
