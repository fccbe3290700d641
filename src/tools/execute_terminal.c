/* SPDX-License-Identifier: MIT */
/* The tool that runs a shell command in a session. */
#include "base/str.h"
#include "tools/tool-internal.h"

static int execute_terminal_begin(struct tool_call *call, yyjson_val *arguments,
                                  struct error *reterr)
{
    const char *id, *command;
    int r;

    if ((r = argument_text(arguments, "session_id", &id, reterr)) < 0 ||
        (r = argument_text(arguments, "command", &command, reterr)) < 0)
        return r;
    return tool_run_open(
        call, id,
        &(struct run_options){.kind = RUN_COMMAND,
                              .text = command,
                              .len = strlen(command),
                              .timeout_ms = argument_int(arguments, "timeout", 0) * 1000},
        reterr);
}

const struct tool_entry tool_execute_terminal = {
    .name = "execute_terminal",
    .title = "Run a shell command",
    .description =
        "Runs a command line with `sh -c` in the sandbox of a session, in /workspace, and returns "
        "its exit code, stdout and stderr. Use it to install packages (pip, npm, Rscript), to look "
        "at files, for git and other programs; use execute_code for the session's language. The "
        "command sees the same files as the code does, but not its variables, and a changed "
        "directory or variable of the shell does not last until the next call. `success` is true "
        "when the exit code is 0. When the time-out passes, the command and all that it started "
        "are ended, and what it printed so far is returned. It cannot ask for input: give answers "
        "by options such as `-y`.",
    /* clang-format off */
    .input_schema = JSON({
        "type": "object",
        "properties": {
            "session_id": {
                "type": "string",
                "minLength": 1,
                "description": "The session_id that create_session returned."
            },
            "command": {
                "type": "string",
                "minLength": 1,
                "description": "A command line for sh; pipes and && work."
            },
            "timeout": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": 300,
                "default": null,
                "description": "Seconds; null: 30 unless the server is configured otherwise."
            }
        },
        "required": ["session_id", "command"]
    }),
    .output_schema = RUN_OUTPUT(
        "exit_code": {
            "type": "integer",
            "description": "128 plus the signal's number when a signal ended it."
        },
        "signal": {"type": "integer"}
    ),
    /* clang-format on */
    .read_only = false,
    .destructive = true,
    .idempotent = false,
    .open_world = true,
    .begin = execute_terminal_begin,
    .run = tool_run_finish,
};
