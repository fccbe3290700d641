/* SPDX-License-Identifier: MIT */
/* Calls of tools (call.c), and what becomes of those that take long (task.c). */
#pragma once

#include "base/id.h"
#include "mcp/mcp-internal.h"

enum mcp_call_state {
    MCP_CALL_WORKING,
    MCP_CALL_INPUT,
    MCP_CALL_DONE,
    MCP_CALL_FAILED, /* with an error of the protocol; tools that fail are done */
    MCP_CALL_CANCELLED,
};

struct mcp_call;

/* How a call is done, on its thread: fills the result; or fails, and so does the request. */
typedef int mcp_call_fn(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *result,
                        struct error *reterr);

/* The key of the question for a line of input. */
#define MCP_LINE "line"

/*
 * One call of a tool, on a thread of its own. Its answer goes to `request`, which may change: a
 * call that needs a line from a modern client answers `input_required` and goes on with the request
 * that brings it; one that takes long may become a task, which no request waits for. All is guarded
 * by the server's lock but what does not change, and what the thread alone uses.
 */
struct mcp_call {
    unsigned refs;
    struct mcp_server *server;
    struct mcp_call *next; /* of the server's */
    char id[ID_LEN + 1];
    mcp_call_fn *run;
    const void *arg;
    const struct tool_entry *entry; /* of a tool; else NULL, as `tool` */
    struct tool_call *tool;
    struct mcp_request *first; /* holds the arguments */
    struct mcp_request *request;
    enum mcp_call_state state;
    bool is_task;
    unsigned round;            /* of questions */
    yyjson_mut_doc *questions; /* its root: those that are open, {key: {"method", "params"}} */
    yyjson_mut_doc *answers;   /* its root, by the same keys, where somebody waits for them */
    yyjson_mut_doc *result;    /* its root, when it is over and nobody took it */
    bool failed;               /* the result is {"code", "message"} */
    int64_t created_wall_ms, changed_wall_ms, created_ms;
    int64_t expires_ms; /* of what nobody waits for */
    char tail[512];     /* the newest output, for progress messages */
    size_t tail_len;
};

struct mcp_call *mcp_call_ref(struct mcp_call *call);
void mcp_call_unref(struct mcp_call *call);

/* Runs the tool with the request's arguments, and answers it. */
int mcp_call_start(struct mcp_request *r, const struct tool_entry *entry,
                   struct error *reterr) must_check;

/* The same for what is no tool. */
int mcp_call_start_work(struct mcp_request *r, mcp_call_fn *run, const void *arg,
                        struct error *reterr) must_check;

/* The call that the request waits for becomes a task at once, unless it has ended. */
void mcp_call_make_task(struct mcp_request *r);

/* Stops it; from any thread. */
void mcp_call_cancel(struct mcp_call *call);

/* A call by its id, referenced; NULL. */
struct mcp_call *mcp_call_find(struct mcp_server *s, const char *id);

/*
 * The request waits for the call from now on. Not when the call has another one, or `round` is not
 * that of its question; one that has ended meanwhile answers at once.
 */
bool mcp_call_attach(struct mcp_call *call, struct mcp_request *r, const char *round,
                     struct error *reterr) must_check;

/* Puts its question once more, to the request that brought no answer. */
void mcp_call_ask_again(struct mcp_call *call, struct mcp_request *r);

/* Waits for answers from now on; takes the document, whose root is {key: {"method", "params"}}. */
void mcp_call_ask(struct mcp_call *call, yyjson_mut_doc *questions);

/* The answer to one of its questions, or NULL for none; nothing happens when it is not open. */
void mcp_call_answer(struct mcp_call *call, const char *key, yyjson_val *answer);

/* The open questions, copied; NULL when there are none. */
yyjson_mut_val *mcp_call_questions(struct mcp_call *call, yyjson_mut_doc *doc);

/* Once a second: signs of life, tasks, what has expired. */
void mcp_calls_tick(struct mcp_server *s);
void mcp_calls_cancel(struct mcp_server *s);
void mcp_calls_progress(struct mcp_server *s, const char *text);

/* The members of a task (extension io.modelcontextprotocol/tasks). */
void mcp_task_fill(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *ret);

/* An `input_required` result with the call's questions, and the state to go on with. */
int mcp_input_required_fill(struct mcp_call *call, const struct mcp_request *r, yyjson_mut_doc *doc,
                            yyjson_mut_val *result) must_check;

/* The code of an error as JSON-RPC has it (request.c). */
int mcp_fault_code(const struct error *error);

/* The inputSchema of a tool that is offered; NULL for another name (tools.c). */
const char *mcp_tool_schema(const struct mcp_server *s, const char *name);

/* ---- threads (server.c) ---- */

enum { MCP_THREADS_MAX = 64 };

/* Runs `main` on a thread that the server waits for at its end. ERR_LIMIT when there are too many.
 */
typedef void mcp_thread_fn(void *user);
int mcp_thread_start(struct mcp_server *s, mcp_thread_fn *main, void *user,
                     struct error *reterr) must_check;

/* ---- sessions that end (sessions.c) ---- */

/* Once a second, by one thread: drops what is kept of those that died, and tells who listens. */
void mcp_sessions_tick(struct mcp_server *s);

/* The same for one that a call has ended, at once. */
void mcp_session_ended(struct mcp_server *s, const char *id);

/* ---- after a call (resource-link.c) ---- */

/* Adds links to what it exported, and tells who listens what became of the resources. */
void mcp_resources_after(const struct mcp_call *call, yyjson_val *arguments,
                         const struct buf *payload, yyjson_mut_doc *doc, yyjson_mut_val *result);
