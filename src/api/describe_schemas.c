/* SPDX-License-Identifier: MIT */
/*
 * The schemas of all bodies and answers. Members that a body may have and that are passed over
 * stand here only where a client could count on them; others are taken and passed over, too.
 */
#include "api/describe.h"

#define JSON(...) #__VA_ARGS__

/* clang-format off */
const struct api_schema api_schemas[] = {
{"Error", JSON({
    "type": "object",
    "description": "What went wrong. `detail` and `message` are the same text",
    "required": ["detail", "error", "message"],
    "properties": {
        "detail": {"type": "string"},
        "error": {"type": "string", "description": "A word for the kind: NOT_FOUND"},
        "message": {"type": "string"},
        "details": {}
    }
})},
{"Root", JSON({
    "type": "object",
    "required": ["message", "version", "status"],
    "properties": {
        "message": {"type": "string"},
        "version": {"type": "string"},
        "status": {"const": "running"},
        "docs": {"type": "string"}
    }
})},
{"Info", JSON({
    "type": "object",
    "required": ["name", "version", "langgraph_py_version", "flags", "metadata", "status"],
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "langgraph_py_version": {"type": "string"},
        "sandbox_agent_version": {"type": "string"},
        "status": {"type": "string"},
        "flags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "metadata": {"type": "object"}
    }
})},
{"Ok", JSON({
    "type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}
})},
{"Status", JSON({
    "type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}
})},
{"Health", JSON({
    "type": "object",
    "required": ["status", "database", "langgraph_checkpointer", "langgraph_store"],
    "properties": {
        "status": {"enum": ["healthy", "unhealthy"]},
        "database": {"type": "string"},
        "langgraph_checkpointer": {"type": "string"},
        "langgraph_store": {"type": "string"},
        "store": {"type": "string"},
        "engine": {"type": "string"},
        "version": {"type": "string"}
    }
})},
{"OpenApi", JSON({
    "type": "object", "required": ["openapi", "info", "paths"], "properties": {
        "openapi": {"type": "string"}, "info": {"type": "object"}, "paths": {"type": "object"}
    }
})},
{"Map", JSON({"type": "object"})},
{"Count", JSON({"type": "integer", "minimum": 0})},
{"Metadata", JSON({
    "type": ["object", "null"], "description": "Any members"
})},
{"Limit", JSON({"type": ["integer", "null"], "minimum": 1, "maximum": 1000})},
{"Offset", JSON({"type": ["integer", "null"], "minimum": 0, "maximum": 2147483647})},
{"SortOrder", JSON({"enum": ["asc", "desc", null]})},
{"Names", JSON({"type": ["array", "null"], "items": {"type": "string"}})},

{"Assistant", JSON({
    "type": "object",
    "required": ["assistant_id", "graph_id", "name", "config", "context", "metadata", "version",
                 "created_at", "updated_at"],
    "properties": {
        "assistant_id": {"type": "string", "format": "uuid"},
        "graph_id": {"type": "string"},
        "name": {"type": "string"},
        "description": {"type": ["string", "null"]},
        "config": {"type": ["object", "null"]},
        "context": {"type": ["object", "null"]},
        "metadata": {"type": "object"},
        "version": {"type": "integer"},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "user_id": {"type": "string"}
    }
})},
{"Assistants", JSON({
    "type": "object",
    "required": ["assistants", "total"],
    "properties": {
        "assistants": {"type": "array", "items": {"$ref": "#/components/schemas/Assistant"}},
        "total": {"type": "integer"}
    }
})},
{"AssistantCreate", JSON({
    "type": "object",
    "required": ["graph_id"],
    "properties": {
        "graph_id": {"type": "string", "description": "sandbox-agent, or agent"},
        "assistant_id": {"type": ["string", "null"], "format": "uuid"},
        "name": {"type": ["string", "null"]},
        "description": {"type": ["string", "null"]},
        "config": {"$ref": "#/components/schemas/Config"},
        "context": {"type": ["object", "null"], "description": "The same as config.configurable"},
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "if_exists": {"enum": ["raise", "error", "do_nothing", null]}
    }
})},
{"AssistantUpdate", JSON({
    "type": "object",
    "properties": {
        "graph_id": {"type": ["string", "null"]},
        "name": {"type": ["string", "null"]},
        "description": {"type": ["string", "null"]},
        "config": {"$ref": "#/components/schemas/Config"},
        "context": {"type": ["object", "null"]},
        "metadata": {"$ref": "#/components/schemas/Metadata"}
    }
})},
{"AssistantFilter", JSON({
    "type": "object",
    "properties": {
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "graph_id": {"type": ["string", "null"]},
        "name": {"type": ["string", "null"], "description": "A part of it, in any case"}
    }
})},
{"AssistantSearch", JSON({
    "type": "object",
    "properties": {
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "graph_id": {"type": ["string", "null"]},
        "name": {"type": ["string", "null"], "description": "A part of it, in any case"},
        "limit": {"$ref": "#/components/schemas/Limit"},
        "offset": {"$ref": "#/components/schemas/Offset"},
        "sort_by": {"enum": ["assistant_id", "graph_id", "name", "created_at", "updated_at", null]},
        "sort_order": {"$ref": "#/components/schemas/SortOrder"},
        "select": {"$ref": "#/components/schemas/Names"}
    }
})},
{"AssistantVersions", JSON({
    "type": "object",
    "properties": {
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "limit": {"$ref": "#/components/schemas/Limit"},
        "offset": {"$ref": "#/components/schemas/Offset"}
    }
})},
{"AssistantLatest", JSON({
    "type": "object",
    "required": ["version"],
    "properties": {"version": {"type": "integer", "minimum": 1, "maximum": 2147483647}}
})},
{"Graph", JSON({
    "type": "object",
    "required": ["nodes", "edges"],
    "properties": {
        "nodes": {"type": "array", "items": {"type": "object", "required": ["id", "type"]}},
        "edges": {"type": "array", "items": {"type": "object", "required": ["source", "target"]}}
    }
})},
{"GraphSchemas", JSON({
    "type": "object",
    "required": ["graph_id", "input_schema", "output_schema", "state_schema", "config_schema",
                 "context_schema"],
    "properties": {"graph_id": {"type": "string"}},
    "additionalProperties": {"type": "object"}
})},

{"Config", JSON({
    "type": ["object", "null"],
    "properties": {
        "tags": {"$ref": "#/components/schemas/Names"},
        "recursion_limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 2147483647},
        "configurable": {
            "type": ["object", "null"],
            "description": "The model and how the agent works: see an assistant's schemas"
        }
    }
})},
{"Message", JSON({
    "type": "object",
    "required": ["type", "content"],
    "properties": {
        "type": {"enum": ["human", "ai", "system"]},
        "id": {"type": ["string", "null"], "maxLength": 64},
        "content": {"$ref": "#/components/schemas/Content"}
    }
})},
{"Content", JSON({
    "description": "a text, or an array of blocks",
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {
            "type": "object",
            "required": ["type", "text"],
            "properties": {"type": {"const": "text"}, "text": {"type": "string"}}
        }}
    ]
})},
{"Values", JSON({
    "type": ["object", "null"],
    "description": "The state's values; __interrupt__ where it waits, __error__ where it failed",
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}}
})},
{"Interrupts", JSON({
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id", "value"],
        "properties": {"id": {"type": "string"}, "value": {}}
    }
})},
{"Ttl", JSON({
    "description": "minutes, or an object with them",
    "anyOf": [
        {"type": "null"},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 100000000},
        {"type": "object", "required": ["ttl"], "properties": {
            "ttl": {"type": "number", "exclusiveMinimum": 0, "maximum": 100000000},
            "strategy": {"enum": ["delete", "keep_latest"]}
        }}
    ]
})},
{"Thread", JSON({
    "type": "object",
    "required": ["thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "config",
                 "status", "values", "interrupts"],
    "properties": {
        "thread_id": {"type": "string"},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "state_updated_at": {"type": "string", "format": "date-time"},
        "metadata": {"type": "object"},
        "config": {"type": "object"},
        "status": {"enum": ["idle", "busy", "interrupted", "error"]},
        "values": {"$ref": "#/components/schemas/Values"},
        "interrupts": {
            "type": "object",
            "additionalProperties": {"$ref": "#/components/schemas/Interrupts"}
        },
        "error": {},
        "ttl": {"$ref": "#/components/schemas/Ttl"},
        "user_id": {"type": "string"}
    }
})},
{"ThreadPart", JSON({
    "type": "object",
    "description": "A Thread; only the members that `select` names, if it names any",
    "properties": {
        "thread_id": {"type": "string"},
        "metadata": {"type": "object"},
        "status": {"enum": ["idle", "busy", "interrupted", "error"]},
        "values": {"$ref": "#/components/schemas/Values"},
        "extracted": {"type": "object"}
    }
})},
{"Threads", JSON({
    "type": "object",
    "required": ["threads", "total"],
    "properties": {
        "threads": {"type": "array", "items": {"$ref": "#/components/schemas/Thread"}},
        "total": {"type": "integer"}
    }
})},
{"ThreadName", JSON({
    "type": ["string", "null"], "minLength": 1, "maxLength": 128,
    "pattern": "^[A-Za-z0-9_-]+$"
})},
{"ThreadCreate", JSON({
    "type": "object",
    "properties": {
        "thread_id": {"$ref": "#/components/schemas/ThreadName"},
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "if_exists": {"enum": ["raise", "error", "do_nothing", null]},
        "ttl": {"$ref": "#/components/schemas/Ttl"},
        "supersteps": {
            "type": ["array", "null"],
            "maxItems": 1000,
            "items": {"type": "object", "required": ["updates"], "properties": {
                "updates": {"type": "array", "items": {"type": "object", "properties": {
                    "values": {"$ref": "#/components/schemas/StateValues"},
                    "as_node": {"$ref": "#/components/schemas/Node"}
                }}}
            }}
        }
    }
})},
{"ThreadUpdate", JSON({
    "type": "object",
    "properties": {
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "ttl": {"$ref": "#/components/schemas/Ttl"}
    }
})},
{"ThreadFilter", JSON({
    "type": "object",
    "properties": {
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "ids": {"type": ["array", "null"], "maxItems": 1000, "items": {"type": "string"}},
        "values": {"type": ["object", "null"], "maxProperties": 0,
                   "description": "Threads are not searched by it"},
        "status": {"enum": ["idle", "busy", "interrupted", "error", null]}
    }
})},
{"ThreadSearch", JSON({
    "type": "object",
    "properties": {
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "ids": {"type": ["array", "null"], "maxItems": 1000, "items": {"type": "string"}},
        "values": {"type": ["object", "null"], "maxProperties": 0,
                   "description": "Threads are not searched by it"},
        "status": {"enum": ["idle", "busy", "interrupted", "error", null]},
        "limit": {"$ref": "#/components/schemas/Limit"},
        "offset": {"$ref": "#/components/schemas/Offset"},
        "sort_by": {"enum": ["thread_id", "status", "created_at", "updated_at", "state_updated_at",
                             null]},
        "sort_order": {"$ref": "#/components/schemas/SortOrder"},
        "order_by": {"type": ["string", "null"], "description": "An older form: created_at DESC"},
        "select": {"$ref": "#/components/schemas/Names"},
        "extract": {
            "type": ["object", "null"],
            "maxProperties": 10,
            "description": "Names for paths: {\"last\": \"values.messages[-1].content\"}",
            "additionalProperties": {"type": "string"}
        }
    }
})},
{"ThreadPrune", JSON({
    "type": "object",
    "required": ["thread_ids"],
    "properties": {
        "thread_ids": {"type": "array", "maxItems": 1000, "items": {"type": "string"}},
        "strategy": {"enum": ["delete", "keep_latest", null]}
    }
})},
{"Pruned", JSON({
    "type": "object",
    "required": ["pruned_count"],
    "properties": {"pruned_count": {"type": "integer"}}
})},

{"Checkpoint", JSON({
    "type": ["object", "null"],
    "properties": {
        "thread_id": {"type": ["string", "null"]},
        "checkpoint_ns": {"type": ["string", "null"]},
        "checkpoint_id": {"type": ["string", "null"]},
        "checkpoint_map": {"type": ["object", "null"]}
    }
})},
{"ThreadState", JSON({
    "type": "object",
    "required": ["values", "next", "tasks", "metadata", "created_at", "checkpoint",
                 "parent_checkpoint"],
    "properties": {
        "values": {"$ref": "#/components/schemas/Values"},
        "next": {"type": "array", "items": {"type": "string"}},
        "tasks": {"type": "array", "items": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string"},
                "interrupts": {"$ref": "#/components/schemas/Interrupts"}
            }
        }},
        "interrupts": {"$ref": "#/components/schemas/Interrupts"},
        "metadata": {"type": ["object", "null"]},
        "created_at": {"type": ["string", "null"], "format": "date-time"},
        "checkpoint": {"$ref": "#/components/schemas/Checkpoint"},
        "parent_checkpoint": {"$ref": "#/components/schemas/Checkpoint"},
        "checkpoint_id": {"type": ["string", "null"]},
        "parent_checkpoint_id": {"type": ["string", "null"]}
    }
})},
{"Node", JSON({
    "type": ["string", "null"],
    "description": "The node that the edit is taken to come from",
    "examples": ["model", "tools", "__start__", "__end__", "__copy__"]
})},
{"StateValues", JSON({
    "type": ["object", "array", "null"],
    "description": "An object, or an array of them that are merged in order",
    "properties": {
        "messages": {"type": "array", "items": {"type": "object"}}
    },
    "items": {}
})},
{"StateEdit", JSON({
    "type": "object",
    "properties": {
        "values": {"$ref": "#/components/schemas/StateValues"},
        "as_node": {"$ref": "#/components/schemas/Node"},
        "checkpoint": {"$ref": "#/components/schemas/Checkpoint"},
        "checkpoint_id": {"type": ["string", "null"]}
    }
})},
{"StateEdited", JSON({
    "type": "object",
    "description": "The new checkpoint; the state itself where nothing was to be changed",
    "required": ["checkpoint"],
    "properties": {"checkpoint": {"$ref": "#/components/schemas/Checkpoint"}}
})},
{"StateAt", JSON({
    "type": "object",
    "required": ["checkpoint"],
    "properties": {
        "checkpoint": {"type": "object", "properties": {
            "checkpoint_id": {"type": ["string", "null"]}
        }},
        "subgraphs": {"type": ["boolean", "null"]}
    }
})},
{"History", JSON({
    "type": "object",
    "properties": {
        "limit": {"$ref": "#/components/schemas/Limit"},
        "before": {
            "description": "a checkpoint's id, or an object with it",
            "anyOf": [{"type": "null"}, {"type": "string"}, {"type": "object"}]
        },
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "checkpoint": {"$ref": "#/components/schemas/Checkpoint"}
    }
})},

{"StreamMode", JSON({
    "enum": ["values", "updates", "messages", "messages-tuple", "custom", "debug", "tasks",
             "checkpoints", "events", "tools"]
})},
{"NodeNames", JSON({
    "description": "\"*\", or an array of nodes' names",
    "anyOf": [
        {"type": "null"},
        {"enum": ["*"]},
        {"type": "array", "maxItems": 32, "items": {"type": "string"}}
    ]
})},
{"RunCreate", JSON({
    "type": "object",
    "required": ["assistant_id"],
    "properties": {
        "assistant_id": {"type": "string", "description": "A UUID, or a name of the graph"},
        "input": {
            "type": ["object", "null"],
            "description": "{\"messages\": [...]}; null goes on where a breakpoint stopped",
            "properties": {"messages": {
                "type": ["array", "object", "string", "null"],
                "items": {"anyOf": [
                    {"$ref": "#/components/schemas/Message"},
                    {"type": ["object", "array", "string"]}
                ]}
            }}
        },
        "command": {
            "type": ["object", "null"],
            "description": "The answer to what the thread waits for; then an input is passed over",
            "properties": {"resume": {}, "update": {}, "goto": {}}
        },
        "config": {"$ref": "#/components/schemas/Config"},
        "context": {"type": ["object", "null"], "description": "The same as config.configurable"},
        "metadata": {"$ref": "#/components/schemas/Metadata"},
        "stream_mode": {
            "description": "a stream mode, or an array of them",
            "anyOf": [
                {"type": "null"},
                {"$ref": "#/components/schemas/StreamMode"},
                {"type": "array", "items": {"$ref": "#/components/schemas/StreamMode"}}
            ]
        },
        "stream_subgraphs": {"type": ["boolean", "null"]},
        "stream_resumable": {"type": ["boolean", "null"]},
        "on_disconnect": {"enum": ["continue", "cancel", null]},
        "multitask_strategy": {"enum": ["enqueue", "reject", "interrupt", "rollback", null]},
        "if_not_exists": {"enum": ["create", "reject", null]},
        "checkpoint": {"$ref": "#/components/schemas/Checkpoint"},
        "checkpoint_id": {"type": ["string", "null"]},
        "interrupt_before": {"$ref": "#/components/schemas/NodeNames"},
        "interrupt_after": {"$ref": "#/components/schemas/NodeNames"},
        "durability": {"enum": ["sync", "async", "exit", null]},
        "on_completion": {"enum": ["delete", "keep", null]},
        "after_seconds": {"type": ["number", "null"], "minimum": 0, "maximum": 7776000},
        "webhook": {"type": "null", "description": "Is not served"},
        "feedback_keys": {},
        "langsmith_tracer": {}
    }
})},
{"RunCreateStateless", JSON({
    "allOf": [
        {"$ref": "#/components/schemas/RunCreate"},
        {"type": "object", "properties": {
            "thread_id": {"$ref": "#/components/schemas/ThreadName"}
        }}
    ]
})},
{"Run", JSON({
    "type": "object",
    "required": ["run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status",
                 "metadata", "kwargs", "multitask_strategy"],
    "properties": {
        "run_id": {"type": "string", "format": "uuid"},
        "thread_id": {"type": "string"},
        "assistant_id": {"type": "string", "format": "uuid"},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "status": {"enum": ["pending", "running", "error", "success", "timeout", "interrupted"]},
        "metadata": {"type": "object"},
        "kwargs": {"type": "object"},
        "multitask_strategy": {"enum": ["enqueue", "reject", "interrupt", "rollback"]},
        "input": {"type": ["object", "null"]},
        "output": {"$ref": "#/components/schemas/Values"},
        "error": {},
        "error_message": {"type": ["string", "null"]},
        "user_id": {"type": "string"}
    }
})},
{"RunUpdate", JSON({
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"enum": ["interrupted"]}}
})},
{"RunsCancel", JSON({
    "type": "object",
    "description": "a status, or a thread and its runs",
    "properties": {
        "status": {"enum": ["pending", "running", "all", null]},
        "thread_id": {"type": ["string", "null"]},
        "run_ids": {"type": ["array", "null"], "maxItems": 1000, "items": {"type": "string"}}
    },
    "anyOf": [
        {"required": ["status"], "properties": {"status": {"type": "string"}}},
        {"required": ["thread_id", "run_ids"], "properties": {
            "thread_id": {"type": "string"}, "run_ids": {"type": "array"}
        }}
    ]
})},

{"CronMembers", JSON({
    "type": "object",
    "properties": {
        "schedule": {"type": ["string", "null"], "maxLength": 256,
                     "description": "Five fields, or six with seconds: 0 9 * * mon-fri"},
        "timezone": {"type": ["string", "null"], "maxLength": 64,
                     "description": "A name of the time zone database: Europe/Berlin"},
        "end_time": {"type": ["string", "null"], "maxLength": 35, "format": "date-time"},
        "enabled": {"type": ["boolean", "null"]},
        "on_run_completed": {"enum": ["delete", "keep", null]}
    }
})},
{"CronCreate", JSON({
    "required": ["schedule", "assistant_id"],
    "allOf": [
        {"$ref": "#/components/schemas/RunCreate"},
        {"$ref": "#/components/schemas/CronMembers"}
    ]
})},
{"CronUpdate", JSON({
    "allOf": [
        {"$ref": "#/components/schemas/CronMembers"},
        {"type": "object", "properties": {
            "input": {"type": ["object", "null"]},
            "config": {"$ref": "#/components/schemas/Config"},
            "context": {"type": ["object", "null"]},
            "metadata": {"$ref": "#/components/schemas/Metadata"}
        }}
    ]
})},
{"CronFilter", JSON({
    "type": "object",
    "properties": {
        "assistant_id": {"type": ["string", "null"]},
        "thread_id": {"type": ["string", "null"]},
        "enabled": {"type": ["boolean", "null"]},
        "metadata": {"type": ["object", "null"], "maxProperties": 0,
                     "description": "Crons are not searched by it"}
    }
})},
{"CronSearch", JSON({
    "allOf": [
        {"$ref": "#/components/schemas/CronFilter"},
        {"type": "object", "properties": {
            "limit": {"$ref": "#/components/schemas/Limit"},
            "offset": {"$ref": "#/components/schemas/Offset"},
            "sort_by": {"enum": ["cron_id", "assistant_id", "thread_id", "next_run_date",
                                 "end_time", "created_at", "updated_at", null]},
            "sort_order": {"$ref": "#/components/schemas/SortOrder"}
        }}
    ]
})},
{"Cron", JSON({
    "type": "object",
    "required": ["cron_id", "assistant_id", "thread_id", "schedule", "timezone", "end_time",
                 "enabled", "on_run_completed", "payload", "metadata", "next_run_date",
                 "created_at", "updated_at"],
    "properties": {
        "cron_id": {"type": "string", "format": "uuid"},
        "assistant_id": {"type": "string", "format": "uuid"},
        "thread_id": {"type": ["string", "null"]},
        "schedule": {"type": "string"},
        "timezone": {"type": ["string", "null"]},
        "end_time": {"type": ["string", "null"], "format": "date-time"},
        "enabled": {"type": "boolean"},
        "on_run_completed": {"enum": ["delete", "keep"]},
        "payload": {"type": "object"},
        "metadata": {"type": "object"},
        "next_run_date": {"type": ["string", "null"], "format": "date-time"},
        "user_id": {"type": "string"},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"}
    }
})},

{"Command", JSON({
    "type": "object",
    "description": "A command of streaming protocol v2",
    "required": ["method"],
    "properties": {
        "id": {"type": ["integer", "string", "null"]},
        "method": {"type": "string", "examples": ["run.start", "input.respond"]},
        "params": {"type": ["object", "null"]}
    }
})},
{"CommandReply", JSON({
    "type": "object",
    "required": ["type", "id"],
    "properties": {
        "type": {"enum": ["success", "error"]},
        "id": {},
        "result": {"type": "object"},
        "meta": {"type": "object"},
        "error": {"type": "string"},
        "message": {"type": "string"}
    }
})},
{"EventStream", JSON({
    "type": "object",
    "required": ["channels"],
    "properties": {
        "channels": {
            "type": "array",
            "minItems": 1,
            "maxItems": 64,
            "items": {"anyOf": [
                {"enum": ["values", "updates", "messages", "tools", "lifecycle", "input",
                          "checkpoints", "tasks", "custom"]},
                {"type": "string", "pattern": "^custom:"}
            ]}
        },
        "namespaces": {
            "type": ["array", "null"],
            "maxItems": 32,
            "items": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 60}}
        },
        "depth": {"type": ["integer", "null"], "minimum": 0, "maximum": 1000},
        "since": {"type": ["integer", "null"], "minimum": 0, "maximum": 9007199254740991},
        "since_event_id": {"type": ["string", "null"]}
    }
})},

{"Labels", JSON({
    "description": "labels without dots, as an array or with dots between them",
    "anyOf": [
        {"type": "array", "minItems": 1, "maxItems": 32, "items": {
            "type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[^.\\u0000]+$"
        }},
        {"type": "string", "minLength": 1, "maxLength": 1024,
         "pattern": "^[^.\\u0000]+(\\.[^.\\u0000]+)*$"}
    ]
})},
{"LabelsPart", JSON({
    "description": "labels without dots, as an array or with dots between them; or null",
    "anyOf": [
        {"type": "null"},
        {"type": "array", "maxItems": 0},
        {"$ref": "#/components/schemas/Labels"}
    ]
})},
{"ItemKey", JSON({
    "type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[^\\u0000]+$"
})},
{"ItemPut", JSON({
    "type": "object",
    "required": ["namespace", "key", "value"],
    "properties": {
        "namespace": {"$ref": "#/components/schemas/Labels"},
        "key": {"$ref": "#/components/schemas/ItemKey"},
        "value": {"type": "object"},
        "index": {"description": "Passed over: items are not searched by meaning"},
        "ttl": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 100000000,
                "description": "Minutes"}
    }
})},
{"ItemDelete", JSON({
    "type": "object",
    "required": ["namespace", "key"],
    "properties": {
        "namespace": {"$ref": "#/components/schemas/Labels"},
        "key": {"$ref": "#/components/schemas/ItemKey"}
    }
})},
{"ItemSearch", JSON({
    "type": "object",
    "properties": {
        "namespace_prefix": {"$ref": "#/components/schemas/LabelsPart"},
        "filter": {
            "type": ["object", "null"],
            "description": "Members that the value has to have; operators are not known"
        },
        "limit": {"$ref": "#/components/schemas/Limit"},
        "offset": {"$ref": "#/components/schemas/Offset"},
        "query": {"type": ["string", "null"], "description": "A text that the value holds"},
        "refresh_ttl": {"type": ["boolean", "null"]}
    }
})},
{"Item", JSON({
    "type": "object",
    "required": ["namespace", "key", "value", "created_at", "updated_at"],
    "properties": {
        "namespace": {"type": "array", "items": {"type": "string"}},
        "key": {"type": "string"},
        "value": {"type": "object"},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "score": {"type": ["number", "null"]}
    }
})},
{"Items", JSON({
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
        "total": {"type": "integer"},
        "limit": {"type": "integer"},
        "offset": {"type": "integer"}
    }
})},
{"Namespaces", JSON({
    "type": "object",
    "properties": {
        "prefix": {"$ref": "#/components/schemas/LabelsPart"},
        "suffix": {"$ref": "#/components/schemas/LabelsPart"},
        "max_depth": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000},
        "limit": {"$ref": "#/components/schemas/Limit"},
        "offset": {"$ref": "#/components/schemas/Offset"}
    }
})},
{"NamespaceList", JSON({
    "type": "object",
    "required": ["namespaces"],
    "properties": {
        "namespaces": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    }
})},

{"Upload", JSON({
    "type": "object",
    "required": ["files"],
    "properties": {"files": {"type": "array", "minItems": 1,
                             "items": {"type": "string", "format": "binary"}}}
})},
{"Uploaded", JSON({
    "type": "object",
    "required": ["name", "path", "size"],
    "properties": {
        "name": {"type": "string"},
        "path": {"type": "string", "description": "What a tool imports it by"},
        "size": {"type": "integer"}
    }
})},
{"Files", JSON({
    "type": "object",
    "required": ["uploads", "exports"],
    "properties": {
        "uploads": {"type": "array", "items": {"type": "object", "required": ["name", "size"]}},
        "exports": {"type": "array", "items": {
            "type": "object", "required": ["session_id", "path", "type", "size"]
        }}
    }
})},
{"Settings", JSON({
    "type": "object",
    "required": ["chatModel", "chatModelProvider", "chatModelApiKey", "chatModelApiKeyHint",
                 "chatModelBaseUrl", "supportsVision", "vision", "networkEnabled",
                 "networkAllowed", "imagesToModel", "ready", "reason"],
    "properties": {
        "chatModel": {"type": "string"},
        "chatModelProvider": {"type": "string"},
        "chatModelApiKey": {"const": "", "description": "Is never given away"},
        "chatModelApiKeyHint": {"type": "string"},
        "chatModelBaseUrl": {"type": "string"},
        "supportsVision": {"type": "boolean"},
        "vision": {"enum": ["auto", "no", "yes"],
                   "description": "What was set; auto: as it is known of the model"},
        "networkEnabled": {"type": "boolean",
                           "description": "Whether new sandboxes of runs may have a network"},
        "networkAllowed": {"type": "boolean", "description": "Whether the operator lets them"},
        "imagesToModel": {"type": "boolean"},
        "ready": {"type": "boolean", "description": "Whether a run has a model to ask"},
        "reason": {"type": "string", "description": "Why not"}
    }
})},
{"SettingsUpdate", JSON({
    "type": "object",
    "properties": {
        "chatModel": {"type": ["string", "null"], "maxLength": 2048},
        "chatModelProvider": {
            "enum": ["openai", "anthropic", "google_genai", "ollama", "direct", "", null]
        },
        "chatModelApiKey": {"type": ["string", "null"], "maxLength": 2048,
                            "description": "Empty: the one that is stored stays"},
        "chatModelBaseUrl": {"type": ["string", "null"], "maxLength": 2048,
                             "description": "http or https; empty: the provider's own"},
        "supportsVision": {"type": ["boolean", "null"]},
        "vision": {"enum": ["auto", "no", "yes", null],
                   "description": "In place of supportsVision, which cannot say auto"},
        "networkEnabled": {"type": ["boolean", "null"]},
        "imagesToModel": {"type": ["boolean", "null"]},
        "reset": {"type": ["boolean", "null"],
                  "description": "Whether what cannot be opened any more is written anew"}
    }
})},
{"Session", JSON({
    "type": "object",
    "required": ["session_id", "runtime", "status", "thread_id", "busy", "created_at",
                 "last_activity"],
    "properties": {
        "session_id": {"type": "string"},
        "container_id": {"type": "string"},
        "container_name": {"type": "string"},
        "runtime": {"type": "string"},
        "status": {"type": "string"},
        "thread_id": {"type": "string"},
        "busy": {"type": "boolean"},
        "created_at": {"type": "string", "format": "date-time"},
        "last_activity": {"type": "string", "format": "date-time"}
    }
})},
{"SessionDone", JSON({
    "type": "object",
    "required": ["ok", "session_id"],
    "properties": {"ok": {"const": true}, "session_id": {"type": "string"}}
})},
{"RpcMessage", JSON({
    "type": "object",
    "description": "A message of the Model Context Protocol",
    "required": ["jsonrpc"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "method": {"type": "string"},
        "params": {"type": "object"},
        "result": {"type": "object"},
        "error": {"type": "object"}
    }
})},
{},
};
/* clang-format on */
