/* SPDX-License-Identifier: MIT */
/* Every operation of the API: what it takes and what it gives. */
#include "api/describe.h"

#include "base/str.h"

#define JSON(...) #__VA_ARGS__

/* clang-format off */
const struct api_operation api_operations[] = {
    {"GET", "/", NULL, NULL, REPLY_JSON, "Root", OPERATION_OPEN | OPERATION_HTML},
    {"GET", "/info", NULL, NULL, REPLY_JSON, "Info", OPERATION_OPEN},
    {"GET", "/ok", "check_db", NULL, REPLY_JSON, "Ok", OPERATION_OPEN},
    {"GET", "/health", NULL, NULL, REPLY_JSON, "Health", OPERATION_OPEN},
    {"GET", "/ready", NULL, NULL, REPLY_JSON, "Status", OPERATION_OPEN},
    {"GET", "/live", NULL, NULL, REPLY_JSON, "Status", OPERATION_OPEN},
    {"GET", "/metrics", NULL, NULL, REPLY_TEXT, NULL, 0},
    {"GET", "/openapi.json", NULL, NULL, REPLY_JSON, "OpenApi", OPERATION_OPEN},
    {"GET", "/docs", NULL, NULL, REPLY_HTML, NULL, OPERATION_OPEN},

    {"POST", "/assistants/search", NULL, "AssistantSearch", REPLY_LIST, "Assistant",
     OPERATION_PAGES},
    {"POST", "/assistants/count", NULL, "AssistantFilter", REPLY_JSON, "Count", 0},
    {"GET", "/assistants", NULL, NULL, REPLY_JSON, "Assistants", 0},
    {"POST", "/assistants", NULL, "AssistantCreate", REPLY_JSON, "Assistant", 0},
    {"GET", "/assistants/{assistant_id}", NULL, NULL, REPLY_JSON, "Assistant", 0},
    {"PATCH", "/assistants/{assistant_id}", NULL, "AssistantUpdate", REPLY_JSON, "Assistant", 0},
    {"DELETE", "/assistants/{assistant_id}", "delete_threads", NULL, REPLY_JSON, "Status", 0},
    {"GET", "/assistants/{assistant_id}/graph", "xray", NULL, REPLY_JSON, "Graph", 0},
    {"GET", "/assistants/{assistant_id}/schemas", NULL, NULL, REPLY_JSON, "GraphSchemas", 0},
    {"GET", "/assistants/{assistant_id}/subgraphs", "recurse", NULL, REPLY_JSON, "Map", 0},
    {"GET", "/assistants/{assistant_id}/subgraphs/{namespace}", "recurse", NULL, REPLY_JSON, "Map",
     0},
    {"POST", "/assistants/{assistant_id}/versions", NULL, "AssistantVersions", REPLY_LIST,
     "Assistant", 0},
    {"POST", "/assistants/{assistant_id}/latest", NULL, "AssistantLatest", REPLY_JSON, "Assistant",
     0},

    {"POST", "/threads/search", NULL, "ThreadSearch", REPLY_LIST, "ThreadPart", OPERATION_PAGES},
    {"POST", "/threads/count", NULL, "ThreadFilter", REPLY_JSON, "Count", 0},
    {"POST", "/threads/prune", NULL, "ThreadPrune", REPLY_JSON, "Pruned", 0},
    {"GET", "/threads", NULL, NULL, REPLY_JSON, "Threads", 0},
    {"POST", "/threads", NULL, "ThreadCreate", REPLY_JSON, "Thread", 0},
    {"GET", "/threads/{thread_id}", NULL, NULL, REPLY_JSON, "Thread", 0},
    {"PATCH", "/threads/{thread_id}", NULL, "ThreadUpdate", REPLY_JSON, "Thread",
     OPERATION_MAY_BE_EMPTY},
    {"DELETE", "/threads/{thread_id}", NULL, NULL, REPLY_EMPTY, NULL, 0},
    {"POST", "/threads/{thread_id}/copy", NULL, NULL, REPLY_JSON, "Thread", 0},

    {"GET", "/threads/{thread_id}/state", "subgraphs ids inline", NULL, REPLY_JSON, "ThreadState",
     0},
    {"POST", "/threads/{thread_id}/state", NULL, "StateEdit", REPLY_JSON, "StateEdited", 0},
    {"POST", "/threads/{thread_id}/state/checkpoint", "ids inline", "StateAt", REPLY_JSON,
     "ThreadState", 0},
    {"GET", "/threads/{thread_id}/state/{checkpoint_id}", "subgraphs ids inline", NULL, REPLY_JSON,
     "ThreadState", 0},
    {"POST", "/threads/{thread_id}/history", "ids inline", "History", REPLY_LIST, "ThreadState", 0},
    {"GET", "/threads/{thread_id}/history", "limit before ids inline", NULL, REPLY_LIST,
     "ThreadState", 0},

    {"POST", "/threads/{thread_id}/runs", NULL, "RunCreate", REPLY_JSON, "Run", OPERATION_PLACE},
    {"POST", "/threads/{thread_id}/runs/stream", NULL, "RunCreate", REPLY_STREAM, NULL,
     OPERATION_PLACE},
    {"POST", "/threads/{thread_id}/runs/wait", NULL, "RunCreate", REPLY_JSON, "Values",
     OPERATION_PLACE},
    {"GET", "/threads/{thread_id}/runs", "limit offset status", NULL, REPLY_LIST, "Run", 0},
    {"GET", "/threads/{thread_id}/runs/{run_id}", NULL, NULL, REPLY_JSON, "Run", 0},
    {"GET", "/threads/{thread_id}/runs/{run_id}/stream", "stream_mode cancel_on_disconnect", NULL,
     REPLY_STREAM, NULL, OPERATION_RESUME},
    {"GET", "/threads/{thread_id}/runs/{run_id}/join", "cancel_on_disconnect", NULL, REPLY_JSON,
     "Values", 0},
    {"POST", "/threads/{thread_id}/runs/{run_id}/cancel", "wait action", NULL, REPLY_JSON, "Run",
     0},
    {"DELETE", "/threads/{thread_id}/runs/{run_id}", "force", NULL, REPLY_EMPTY, NULL, 0},
    {"PATCH", "/threads/{thread_id}/runs/{run_id}", NULL, "RunUpdate", REPLY_JSON, "Run", 0},
    {"POST", "/runs/stream", NULL, "RunCreateStateless", REPLY_STREAM, NULL, OPERATION_PLACE},
    {"POST", "/runs/wait", NULL, "RunCreateStateless", REPLY_JSON, "Values", OPERATION_PLACE},
    {"POST", "/runs", NULL, "RunCreateStateless", REPLY_JSON, "Run", OPERATION_PLACE},
    {"POST", "/runs/batch", NULL, "RunCreateStateless", REPLY_LIST, "Run", OPERATION_ARRAY},
    {"POST", "/runs/cancel", "action", "RunsCancel", REPLY_EMPTY, NULL, 0},

    {"POST", "/runs/crons", NULL, "CronCreate", REPLY_JSON, "Cron", 0},
    {"POST", "/threads/{thread_id}/runs/crons", NULL, "CronCreate", REPLY_JSON, "Cron", 0},
    {"PATCH", "/runs/crons/{cron_id}", NULL, "CronUpdate", REPLY_JSON, "Cron", 0},
    {"DELETE", "/runs/crons/{cron_id}", NULL, NULL, REPLY_EMPTY, NULL, 0},
    {"POST", "/runs/crons/search", NULL, "CronSearch", REPLY_LIST, "Cron", OPERATION_PAGES},
    {"POST", "/runs/crons/count", NULL, "CronFilter", REPLY_JSON, "Count", 0},

    {"POST", "/threads/{thread_id}/commands", NULL, "Command", REPLY_JSON, "CommandReply",
     OPERATION_ENVELOPE},
    {"POST", "/threads/{thread_id}/stream/events", NULL, "EventStream", REPLY_STREAM, NULL,
     OPERATION_RESUME},
    {"GET", "/threads/{thread_id}/stream", "stream_modes", NULL, REPLY_STREAM, NULL,
     OPERATION_RESUME},

    {"PUT", "/store/items", NULL, "ItemPut", REPLY_EMPTY, NULL, 0},
    {"GET", "/store/items", "namespace key refresh_ttl", NULL, REPLY_JSON, "Item", OPERATION_NULL},
    {"DELETE", "/store/items", NULL, "ItemDelete", REPLY_EMPTY, NULL, 0},
    {"POST", "/store/items/search", NULL, "ItemSearch", REPLY_JSON, "Items", 0},
    {"POST", "/store/namespaces", NULL, "Namespaces", REPLY_JSON, "NamespaceList", 0},

    {"POST", "/threads/{thread_id}/files/upload", NULL, "Upload", REPLY_LIST, "Uploaded",
     OPERATION_FORM},
    {"GET", "/threads/{thread_id}/files/download", "session_id path format", NULL, REPLY_BYTES,
     NULL, 0},
    {"GET", "/threads/{thread_id}/files", NULL, NULL, REPLY_JSON, "Files", 0},
    {"GET", "/threads/{thread_id}/blobs/{sha256}", NULL, NULL, REPLY_BYTES, NULL, 0},

    {"GET", "/settings", NULL, NULL, REPLY_JSON, "Settings", 0},
    {"PUT", "/settings", NULL, "SettingsUpdate", REPLY_JSON, "Settings", 0},
    {"GET", "/sessions", NULL, NULL, REPLY_LIST, "Session", 0},
    {"DELETE", "/sessions/{session_id}", NULL, NULL, REPLY_JSON, "SessionDone", 0},
    {"POST", "/sessions/{session_id}/interrupt", NULL, NULL, REPLY_JSON, "SessionDone", 0},

    {"POST", "/mcp", NULL, "RpcMessage", REPLY_RPC, "RpcMessage", 0},
    {"GET", "/mcp", NULL, NULL, REPLY_STREAM, NULL, OPERATION_RESUME},
    {"DELETE", "/mcp", NULL, NULL, REPLY_EMPTY, NULL, 0},
    {},
};

const struct api_parameter api_path_parameters[] = {
    {"assistant_id", JSON({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}),
     "Its UUID, or a name of the graph: sandbox-agent, agent", true},
    {"thread_id", JSON({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}),
     "A UUID, or another name of at most 128 letters, digits, - and _", true},
    {"run_id", JSON({"type": "string", "format": "uuid"}), "A UUID", true},
    {"checkpoint_id", JSON({"type": "string", "format": "uuid"}), "A UUID", true},
    {"cron_id", JSON({"type": "string", "format": "uuid"}), "A UUID", true},
    {"session_id", JSON({"type": "string", "pattern": "^[0-9a-f]{32}$"}),
     "32 hexadecimal digits", true},
    {"sha256", JSON({"type": "string", "pattern": "^[0-9a-f]{64}$"}), "64 hexadecimal digits",
     true},
    {"namespace", JSON({"type": "string", "minLength": 1}), "A subgraph's name", true},
    {},
};

const struct api_parameter api_query_parameters[] = {
    {"check_db", JSON({"type": "boolean"}), "Whether the database is asked, too", false},
    {"delete_threads", JSON({"type": "boolean"}), "Passed over: threads stay", false},
    {"xray", JSON({"type": ["boolean", "integer"], "minimum": 0}),
     "Passed over: there are no subgraphs to show", false},
    {"recurse", JSON({"type": "boolean"}), "Passed over: there are no subgraphs", false},
    {"subgraphs", JSON({"type": "boolean"}), "Passed over: there are no subgraphs", false},
    {"ids", JSON({"type": "boolean"}), "Of the messages only their ids", false},
    {"inline", JSON({"type": "boolean"}),
     "Whether large displays stand in the messages, not beside them", false},
    {"limit", JSON({"type": "integer", "minimum": 1, "maximum": 1000, "default": 10}),
     "How many at most", false},
    {"offset", JSON({"type": "integer", "minimum": 0, "maximum": 2147483647, "default": 0}),
     "How many are passed over", false},
    {"before", JSON({"type": "string", "format": "uuid"}), "Only those before this checkpoint",
     false},
    {"status",
     JSON({"enum": ["pending", "running", "success", "error", "timeout", "interrupted"]}),
     "Only runs of this status", false},
    {"stream_mode", JSON({"type": "string"}),
     "A mode; or a JSON array of them; may be repeated; all of the run's without it", false},
    {"stream_modes", JSON({"type": "string"}), "Passed over: all events are given", false},
    {"cancel_on_disconnect", JSON({"type": "boolean", "default": false}),
     "Whether the run is cancelled when the client leaves", false},
    {"wait", JSON({"type": "boolean", "default": false}), "Whether the run's end is waited for",
     false},
    {"action", JSON({"enum": ["interrupt", "rollback", "cancel"], "default": "interrupt"}),
     "rollback also removes the run and its checkpoints; cancel is interrupt", false},
    {"force", JSON({"type": "boolean", "default": false}), "Whether an active run is ended first",
     false},
    {"namespace",
     JSON({"type": "string", "minLength": 1, "pattern": "^[^.\\u0000]+(\\.[^.\\u0000]+)*$"}),
     "Labels with dots between them", true},
    {"key", JSON({"type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[^\\u0000]+$"}),
     "The item's key", true},
    {"refresh_ttl", JSON({"type": "boolean", "default": true}),
     "Whether its time to live begins anew", false},
    {"session_id", JSON({"type": "string", "minLength": 1}),
     "The sandbox that it was exported from", true},
    {"path", JSON({"type": "string", "minLength": 1}), "Where it is in the sandbox", true},
    {"format", JSON({"enum": ["zip", "tar.gz"]}), "Of a folder", false},
    {},
};
/* clang-format on */

const struct api_operation *api_operation_find(const char *method, const char *path)
{
    for (const struct api_operation *o = api_operations; o->path; o++) {
        if (str_eq(o->path, path) && str_eq(o->method, method))
            return o;
    }
    return NULL;
}

const char *api_operation_tag(const struct api_operation *o, size_t *ret_len)
{
    const char *tag =
        o->flags & OPERATION_OPEN || str_eq(o->path, "/metrics") ? "system" : o->path + 1;

    *ret_len = strcspn(tag, "/");
    return tag;
}

const struct api_parameter *api_parameter_find(const struct api_parameter *list, const char *name,
                                               size_t len)
{
    for (; list->name; list++) {
        if (strlen(list->name) == len && memcmp(list->name, name, len) == 0)
            return list;
    }
    return NULL;
}

const char *api_name_next(const char **list, size_t *ret_len)
{
    const char *name = *list;

    if (!name)
        return NULL;
    name += strspn(name, " ");
    *ret_len = strcspn(name, " ");
    *list = name + *ret_len;
    return *ret_len ? name : NULL;
}
