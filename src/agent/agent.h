/* SPDX-License-Identifier: MIT */
/*
 * The agent: a graph of two nodes. `model` asks a model, `tools` does what it called; a superstep
 * is one of them, and a checkpoint is written after each. Names as in LangGraph: __start__, model,
 * tools, __end__.
 */
#pragma once

#include "agent/message.h"
#include "llm/llm.h"
#include "store/runs.h"

struct agent;
struct session_manager;
struct settings;

#define AGENT_GRAPH "sandbox-agent"
#define AGENT_GRAPH_ALIAS "agent"
/* The ids that Agent Servers give to the assistants of graphs of these names: version 5 UUIDs in
 * the namespace 6ba7b821-9dad-11d1-80b4-00c04fd430c8. */
#define AGENT_ASSISTANT "9fdf3917-3483-5853-8316-c231bb6dee0f"
#define AGENT_ASSISTANT_ALIAS "fe096781-5601-53d2-b2f6-0d3403f7e9ca"

enum agent_node { NODE_START, NODE_MODEL, NODE_TOOLS, NODE_END };
const char *agent_node_name(enum agent_node node);

struct agent_options {
    size_t size; /* sizeof(struct agent_options) */
    const struct settings *settings;
    struct store *store;
    struct session_manager *manager;
    struct llm *llm;
    const char *public_url; /* API_BASE_URL: for download URLs */
};

int agent_new(const struct agent_options *options, struct agent **ret,
              struct error *reterr) must_check;
void agent_free(struct agent *a); /* when no run is active */

/* ---- a run ---- */

/* Which model: what the run's `configurable` says, else the owner's settings, else the server's.
 * The caller has resolved it (a stored key only for the host that it was given for). */
struct agent_model {
    struct llm_model model;
    int vision; /* 1, 0, or -1: as known */
};

struct agent_run_spec {
    size_t size; /* sizeof(struct agent_run_spec) */
    struct store_fence fence;
    const char *run_id, *thread_id, *owner, *assistant_id, *graph_id;
    struct agent_model model;
    const char *system_prompt; /* NULL: ours */

    yyjson_val *input;         /* the run's input object, or NULL: go on from the checkpoint */
    yyjson_val *command;       /* {resume?, update?, goto?}, or NULL */
    const char *checkpoint_id; /* where to start; NULL: the head */
    /* Node names, or "*" alone; NULL: none. */
    const char *const *interrupt_before, *const *interrupt_after;
    const char *const *approve; /* tools whose calls a person approves; "*" for all; NULL */
    int64_t max_steps;          /* supersteps: recursion_limit or MAX_ITERATIONS */
    const char *metadata;       /* JSON object for checkpoints' metadata; NULL */
    int cancel_fd;              /* readable: stop */
    bool recovered;             /* a former attempt was cut off at this checkpoint: what its tools
                                   step had begun is answered as of unknown outcome, and not done
                                   again; `input` counts where it had not come to apply it */
    bool answers_input;         /* a cell that waits for a line interrupts the run */
    bool inline_displays;       /* messages of events hold all data */
    bool network_off;           /* no new session may have a network */
    uint32_t skip;              /* bits (1u << AGENT_TASK) of events whose `json` nobody reads: of
                                   TASK, CHECKPOINT and MODEL_START it is left out then */
};

/* What happens, in order, on the thread of the run. */
enum agent_event_type {
    AGENT_VALUES,      /* after a superstep, and after the input was applied: json is the state's
                          {"messages":[...]}, `interrupts` the array to go with it, or NULL */
    AGENT_CHECKPOINT,  /* committed: json is the debug payload; checkpoint_id, parent_id, source */
    AGENT_TASK,        /* a node begins: json {id, name, input, triggers} */
    AGENT_TASK_RESULT, /* and has ended: json {id, name, error, result, interrupts} */
    AGENT_UPDATE,      /* json is the node's update, {"messages":[...]} or null */
    AGENT_INTERRUPT,   /* json is the array of interrupts, empty for a breakpoint */
    AGENT_MODEL_START, /* json: the messages that the model was given, [[message, ...]] */
    AGENT_CHUNK,       /* json: an AIMessageChunk; `delta`, NULL for the last one */
    AGENT_MODEL_END,   /* json: the whole AI message */
    AGENT_MESSAGE,     /* json: a message that was not streamed (a tool's) */
    AGENT_TOOL_START,  /* tool_call_id, tool_name, json: the arguments */
    AGENT_TOOL_EVENT,  /* tool_call_id, tool_name, json {"type":"stdout","data":...} and the like */
    AGENT_TOOL_END,    /* tool_call_id, tool_name, json: the tool message */
    AGENT_TOOL_ERROR,  /* the same, of a call that failed */
    AGENT_CUSTOM,      /* json: anything */
};

struct agent_event {
    enum agent_event_type type;
    enum agent_node node;
    const char *task_id; /* UUID of the node's task; "" outside of one */
    int64_t step;
    const char *json;
    size_t len;
    const char *interrupts;
    const char *checkpoint_id, *parent_id, *source;
    const char *message_id; /* of CHUNK, MODEL_*, MESSAGE */
    const struct llm_delta *delta;
    const struct llm_usage *usage; /* of the last CHUNK and MODEL_END */
    const char *finish_reason;
    const char *tool_call_id, *tool_name;
    const char *input; /* of TOOL_END and TOOL_ERROR: the arguments, JSON */
};

typedef void agent_event_fn(void *user, const struct agent_event *e);

enum agent_end { AGENT_SUCCESS, AGENT_INTERRUPTED, AGENT_CANCELLED, AGENT_FAILED };

struct agent_outcome {
    enum agent_end end;
    bool waits;          /* `next` of the last checkpoint is not empty */
    char error_type[64]; /* of FAILED: "GraphRecursionError", "AuthenticationError", ... */
    struct error error;
    char checkpoint_id[UUID_LEN + 1]; /* the newest */
    struct buf values;                /* {"messages":[...]} and __interrupt__; buf_done() it */
    struct buf interrupts;            /* {task_id: [interrupt]} for the thread; buf_done() it */
};

/*
 * Runs until the graph ends, is interrupted, cancelled or fails; the state is saved in every case.
 * <0 only when nothing could be done at all (the fence was lost, the store is gone).
 */
int agent_run(struct agent *a, const struct agent_run_spec *spec, agent_event_fn *event, void *user,
              struct agent_outcome *ret, struct error *reterr) must_check;

/* Ends what interrupted runs of a thread left waiting: cells that wait for a line. */
void agent_forget(struct agent *a, const char *thread_id);

/* ---- states, for whoever reads or edits them ---- */

struct agent_state {
    struct store_checkpoint checkpoint; /* in the arena; id NULL: the thread never ran */
    struct transcript messages;         /* transcript_done() */
    bool ids_only;                      /* of messages only their ids are written */
};

/* `checkpoint_id` NULL: the head. */
int agent_state_load(struct agent *a, const char *thread_id, const char *checkpoint_id,
                     struct arena *arena, struct agent_state *ret, struct error *reterr) must_check;

/* {"values","next","tasks","interrupts","metadata","created_at","checkpoint","parent_checkpoint",
 * "checkpoint_id","parent_checkpoint_id"}, appended. */
int agent_state_write(struct agent *a, const struct agent_state *state, bool inline_displays,
                      struct buf *ret, struct error *reterr) must_check;

/* An edit as a superstep of its own: `values` an object, an array of objects, or null;
 * `as_node` NULL: the node that wrote last; "__copy__" forks, "__end__" leaves nothing to do. */
struct agent_edit {
    const char *thread_id;
    const char *checkpoint_id; /* the parent; NULL: the head */
    yyjson_val *values;
    const char *as_node;
    const char *metadata; /* JSON object for the checkpoint; NULL */
};
int agent_state_edit(struct agent *a, const struct agent_edit *edit,
                     char ret_checkpoint[UUID_LEN + 1], struct error *reterr) must_check;

/* The graph for pictures ({"nodes","edges"}) and its JSON Schemas ({"graph_id","input_schema",
 * "output_schema","state_schema","config_schema","context_schema"}), appended. */
int agent_graph_write(struct buf *ret) must_check;
int agent_schemas_write(const char *graph_id, struct buf *ret) must_check;
