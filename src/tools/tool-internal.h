/* SPDX-License-Identifier: MIT */
/* What the files of this room share: the call, and the parts of payloads. */
#pragma once

#include "base/id.h"
#include "session/session.h"
#include "tools/schema.h"
#include "tools/tool.h"

#include <pthread.h>

/* JSON as it stands, for schemas. */
#define JSON(...) #__VA_ARGS__

/*
 * The schema of a tool's payloads: the members given, and those of a failed call. Also a failed
 * call's payload fits, because clients check it.
 */
#define OUTPUT(...) OUTPUT_OF(#__VA_ARGS__)
#define RUN_OUTPUT(...) OUTPUT_OF(TOOL_OUTPUT_RUN "," #__VA_ARGS__) /* of what runs something */
#define OUTPUT_OF(members) \
    "{\"type\":\"object\",\"properties\":{\"success\":{\"type\":\"boolean\"}," members \
    "," TOOL_OUTPUT_FAILURE "},\"required\":[\"success\"]}"

/* clang-format off */
#define TOOL_OUTPUT_FAILURE \
    JSON("error": { \
        "type": ["string", "object", "null"], \
        "description": "What went wrong; an object when the code itself raised it." \
    }, \
    "details": { \
        "type": "array", \
        "items": {"type": "object"}, \
        "description": "Of INVALID_INPUT: which argument is wrong, and how." \
    }, \
    "hint": {"type": "string", "description": "What to do next."}, \
    "active_sessions": { \
        "type": "array", \
        "items": { \
            "type": "object", \
            "properties": { \
                "session_id": {"type": "string"}, \
                "runtime": {"type": "string"}, \
                "status": {"type": "string"} \
            }, \
            "required": ["session_id", "runtime", "status"] \
        } \
    })

#define TOOL_OUTPUT_RUN \
    JSON("status": {"enum": ["ok", "error", "timeout", "interrupted", "died"]}, \
    "state": {"enum": ["kept", "lost"], "description": "Whether the variables are still there."}, \
    "cause": {"type": ["string", "null"], "description": "Which limit or signal ended it."}, \
    "message": {"type": "string"}, \
    "stdout": {"type": "string"}, \
    "stderr": {"type": "string"}, \
    "duration_ms": {"type": "number"}, \
    "output": { \
        "type": "object", \
        "properties": { \
            "stdout_bytes": {"type": "integer"}, \
            "stderr_bytes": {"type": "integer"}, \
            "truncated": {"type": "boolean"} \
        } \
    }, \
    "session_id": {"type": "string"})
/* clang-format on */

struct tool_call {
    const struct tool_context *context;
    const struct tool_entry *tool;
    struct tool_observer observer; /* zero: nobody watches */
    struct schema *own_schema;     /* of a tool that is not in the table */

    /* Of the thread that begins it, then of the one that runs it. */
    bool begun;
    int begin_result;
    struct error begin_error;
    struct buf details;  /* of INVALID_INPUT */
    yyjson_doc *checked; /* the arguments */

    pthread_mutex_t lock;
    bool cancelled;
    struct run *run;         /* open, or NULL; referenced */
    char making[ID_LEN + 1]; /* the session that is being made, or "" */
};

/* ---- the call (call.c) ---- */

/* Between two steps of a call: ERR_CANCELLED after tool_call_cancel(). */
int tool_call_check(struct tool_call *call, struct error *reterr) must_check;

/* A cell or a command (run.c): into its session's queue, and then to its end and its result. */
int tool_run_open(struct tool_call *call, const char *session_id, const struct run_options *options,
                  struct error *reterr) must_check;
int tool_run_finish(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                    struct error *reterr) must_check;

/* ---- arguments (arguments.c) ---- */

/* A string argument as C has them: NULL when it is not there or null; ERR_INVALID with a NUL. */
int argument_text(yyjson_val *arguments, const char *name, const char **ret,
                  struct error *reterr) must_check;

/* An integer argument; `fallback` when it is not there or null. */
int64_t argument_int(yyjson_val *arguments, const char *name, int64_t fallback);

/* ---- payloads (payload.c) ---- */

/* The payload of a call that failed. */
int payload_error(struct tool_call *call, yyjson_val *arguments, const struct error *error,
                  struct buf *ret) must_check;

/* The payload of a call whose arguments do not fit; `details` is a JSON list. */
int payload_invalid(const struct buf *details, struct buf *ret) must_check;

/* Adds what a model needs to go on to a finished result object whose session has died. */
int payload_add_death(struct tool_call *call, const char *session_id, struct buf *ret,
                      struct error *reterr) must_check;

/* Adds to the payload of a stop what there is instead of the session that is not there. */
void payload_add_stopped(struct tool_call *call, yyjson_mut_doc *doc, yyjson_mut_val *root);

/*
 * An error's text as a caller may see it: paths of the host are left out. `own` and `other` are
 * paths that the caller gave, which are no secret; or NULL.
 */
yyjson_mut_val *payload_text(yyjson_mut_doc *doc, const struct error *error, const char *own,
                             const char *other);

/* A text that the caller gave, as an answer repeats it: no longer than any path may be. */
enum { PAYLOAD_ECHO_MAX = TREE_PATH_MAX };
yyjson_mut_val *payload_echo(yyjson_mut_doc *doc, const char *text);

/* The session is there and alive: ERR_NOT_FOUND, ERR_DIED. */
int tool_session_check(struct tool_call *call, const char *session_id, struct session_info *ret,
                       struct error *reterr) must_check;

extern const struct tool_entry tool_create_session, tool_execute_code, tool_execute_terminal,
    tool_import_files, tool_export_files, tool_stop_session, tool_list_sessions,
    tool_interrupt_session;
