/* SPDX-License-Identifier: MIT */
/* The tool that lists the sessions of a conversation. */
#include "base/str.h"
#include "tools/tool-internal.h"

#include <time.h>

static void created_add(yyjson_mut_doc *doc, yyjson_mut_val *item, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    yyjson_mut_obj_add_strcpy(doc, item, "created_at", text);
}

static void session_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct session_info *s)
{
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_str(doc, item, "session_id", s->id);
    yyjson_mut_obj_add_str(doc, item, "runtime", s->runtime);
    yyjson_mut_obj_add_str(doc, item, "status", session_status_name(s->status));
    yyjson_mut_obj_add_bool(doc, item, "busy", s->busy);
    created_add(doc, item, s->created_wall_ms);
    yyjson_mut_obj_add_sint(doc, item, "idle_seconds", s->idle_ms / 1000);
    yyjson_mut_obj_add_str(doc, item, "network",
                           s->network == JOB_NETWORK_NONE ? "none" : "public");
    yyjson_mut_obj_add_val(doc, item, "dependencies", yyjson_mut_raw(doc, s->dependencies));
    if (s->death[0])
        yyjson_mut_obj_add_str(doc, item, "cause", s->death);
}

static int list_sessions_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                             struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *sessions;
    auto_free struct session_info *list = NULL;
    size_t count = 0;
    int r = session_list(call->context->manager, call->context->owner, &list, &count, reterr);

    if (r < 0)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", true);
    sessions = yyjson_mut_obj_add_arr(doc, root, "sessions");
    for (size_t i = 0; i < count; i++)
        session_add(doc, sessions, &list[i]);
    return json_mut_write(doc, ret, reterr);
}

const struct tool_entry tool_list_sessions = {
    .name = "list_sessions",
    .title = "List sessions",
    .description =
        "Lists the sessions of this conversation: session_id, language, whether code is running "
        "in it, when it was created and for how long it has been idle. Use it when a session_id "
        "has been lost, or when a limit of sessions is met, to find one to go on with or to stop. "
        "A session with status `dead` cannot be used any more; `cause` tells why, and stop_session "
        "removes it from the list.",
    /* clang-format off */
    .input_schema = JSON({"type": "object", "properties": {}}),
    .output_schema = OUTPUT(
        "sessions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "session_id": {"type": "string"},
                    "runtime": {"type": "string"},
                    "status": {"enum": ["starting", "running", "dead"]},
                    "busy": {"type": "boolean"},
                    "created_at": {"type": "string"},
                    "idle_seconds": {"type": "integer"},
                    "network": {"enum": ["none", "public"]},
                    "dependencies": {"type": "object"},
                    "cause": {"type": "string"}
                },
                "required": ["session_id", "runtime", "status", "busy"]
            }
        }
    ),
    /* clang-format on */
    .read_only = true,
    .destructive = false,
    .idempotent = true,
    .open_world = false,
    .run = list_sessions_run,
};
