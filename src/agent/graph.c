/* SPDX-License-Identifier: MIT */
/* What the graph is called and looks like. It is always the same, so its pictures are texts. */
#include "agent/agent-internal.h"

#include "base/sha256.h"

#include <stdio.h>

#define JSON(...) #__VA_ARGS__

static const char *const names[] = {"__start__", "model", "tools", "__end__"};
static const char *const nexts[] = {"[\"__start__\"]", "[\"model\"]", "[\"tools\"]", "[]"};

/* What the node that thinks is called in other agents, whose clients we serve, too. */
static const char *const model_names[] = {"agent", "model_request", "call_model"};

const char *agent_node_name(enum agent_node node)
{
    return names[node];
}

const char *agent_node_next(enum agent_node node)
{
    return nexts[node];
}

enum agent_node agent_node_of(const char *next)
{
    for (size_t i = 0; next && i < ARRAY_LEN(nexts); i++) {
        if (str_eq(nexts[i], next))
            return (enum agent_node)i;
    }
    return NODE_END;
}

int agent_node_parse(const char *name, enum agent_node *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(names[i], name)) {
            *ret = (enum agent_node)i;
            return 0;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(model_names); i++) {
        if (str_eq(model_names[i], name)) {
            *ret = NODE_MODEL;
            return 0;
        }
    }
    return -1;
}

void agent_digest(char ret[INTERRUPT_ID + 1], const char *const *texts)
{
    char hex[2 * SHA256_SIZE + 1];
    struct sha256 s;

    sha256_init(&s);
    for (; *texts; texts++)
        sha256_update(&s, *texts, strlen(*texts) + 1);
    sha256_finish_hex(&s, hex);
    memcpy(ret, hex, INTERRUPT_ID);
    ret[INTERRUPT_ID] = 0;
}

/* A UUID of version 8, which is for what has no version. */
void agent_task_id(const char *checkpoint_id, enum agent_node node, char ret[UUID_LEN + 1])
{
    char hex[INTERRUPT_ID + 1];

    agent_digest(hex, (const char *const[]){"task", checkpoint_id, names[node], NULL});
    hex[12] = '8';
    hex[16] = '8';
    snprintf(ret, UUID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

/* clang-format off */
static const char graph[] = JSON({
    "nodes": [
        {"id": "__start__", "type": "runnable",
         "data": {"id": ["langgraph", "utils", "RunnableCallable"], "name": "__start__"}},
        {"id": "model", "type": "runnable",
         "data": {"id": ["langgraph", "utils", "RunnableCallable"], "name": "model"}},
        {"id": "tools", "type": "runnable",
         "data": {"id": ["langgraph", "prebuilt", "ToolNode"], "name": "tools"}},
        {"id": "__end__", "type": "runnable",
         "data": {"id": ["langgraph", "utils", "RunnableCallable"], "name": "__end__"}}
    ],
    "edges": [
        {"source": "__start__", "target": "model"},
        {"source": "model", "target": "tools", "conditional": true},
        {"source": "model", "target": "__end__", "conditional": true},
        {"source": "tools", "target": "model"}
    ]
});

#define MESSAGES \
    "messages": { \
        "title": "Messages", \
        "type": "array", \
        "items": { \
            "type": "object", \
            "properties": { \
                "type": {"enum": ["human", "ai", "tool", "system", "remove"]}, \
                "content": {"anyOf": [{"type": "string"}, \
                                      {"type": "array", "items": {"type": "object"}}]}, \
                "id": {"type": ["string", "null"]} \
            } \
        } \
    }

#define RUN_KEYS \
    "chat_model": {"type": "string", "title": "Model"}, \
    "chat_model_provider": { \
        "type": "string", \
        "title": "Provider", \
        "enum": ["openai", "anthropic", "google_genai", "ollama", "direct"] \
    }, \
    "chat_model_api_key": {"type": "string", "title": "API key"}, \
    "chat_model_base_url": {"type": "string", "title": "Base URL"}, \
    "chat_model_supports_vision": {"type": ["boolean", "string"], "title": "Model takes images"}, \
    "system_prompt": {"type": "string", "title": "System prompt"}, \
    "approve_tools": { \
        "type": ["string", "array"], \
        "items": {"type": "string"}, \
        "title": "Tools whose calls a person approves" \
    }, \
    "answers_input": {"type": "boolean", "title": "Ask when a cell waits for input"}, \
    "inline_displays": {"type": "boolean", "title": "Large displays in place"}

/* What it is given is expanded first, words like "true" too: there must be none. */
#define JSON_OF(...) JSON(__VA_ARGS__)

static const char schemas[] = JSON_OF(
    "input_schema": {"title": "Input", "type": "object", "properties": {MESSAGES},
                     "required": ["messages"]},
    "output_schema": {"title": "Output", "type": "object", "properties": {MESSAGES},
                      "required": ["messages"]},
    "state_schema": {"title": "State", "type": "object", "properties": {MESSAGES},
                     "required": ["messages"]},
    "config_schema": {"title": "Config", "type": "object", "properties": {RUN_KEYS}},
    "context_schema": {"title": "Context", "type": "object", "properties": {RUN_KEYS}}
);
/* clang-format on */

int agent_graph_write(struct buf *ret)
{
    return buf_append(ret, graph, sizeof(graph) - 1);
}

int agent_schemas_write(const char *graph_id, struct buf *ret)
{
    if (buf_append_str(ret, "{\"graph_id\":") < 0 ||
        json_quote(ret, graph_id, strlen(graph_id)) < 0)
        return -1;
    return buf_printf(ret, ",%s}", schemas);
}
