/* SPDX-License-Identifier: MIT */
/*
 * The tools that a model is given. One file and one entry each; MCP and the agent offer what the
 * table holds. A call never fails to its caller: every failure is a payload that a model can act
 * on.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "session/run.h"
#include "session/transfer.h"

#include <stdbool.h>

struct session_manager;
struct tool_call;

/* Where a call works. All of it outlives the calls. */
struct tool_context {
    struct session_manager *manager;
    const char *owner;         /* the conversation; every tool checks it */
    struct import_roots roots; /* of the host's directories */
    const char *download_base; /* "https://host/threads/T/files/download", or NULL: no URLs */
    bool network_off;          /* its owner lets no new session have a network; atomic */
};

/* Who watches a call. */
struct tool_observer {
    /* Output, displays and input requests of a run, as they come, on the thread that runs the call;
     * or NULL. */
    void (*event)(void *user, const struct run_event *e);
    void *user;
    /* Whether somebody answers RUN_EVENT_INPUT by tool_call_input(). If not, a cell that reads a
     * line is told at once that nobody does. */
    bool answers_input;
};

struct tool_entry {
    const char *name;
    const char *title;
    const char *description;                             /* what a model reads */
    const char *input_schema, *output_schema;            /* JSON Schema 2020-12, objects */
    bool read_only, destructive, idempotent, open_world; /* MCP's hints */

    /*
     * `arguments` were checked and converted by the schema. Appends the payload, a JSON object
     * whose first member is "success"; or fails, and the caller makes the payload from the error.
     */
    int (*run)(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
               struct error *reterr);

    /* What of it has to be done in the order of the calls, without waiting; or NULL. */
    int (*begin)(struct tool_call *call, yyjson_val *arguments, struct error *reterr);
};

/* In the order in which they are listed; NULL at the end. */
extern const struct tool_entry *const tool_table[];

const struct tool_entry *tool_find(const char *name);

int tool_call_new(const struct tool_context *context, const struct tool_entry *tool,
                  const struct tool_observer *observer, struct tool_call **ret,
                  struct error *reterr) must_check;
void tool_call_free(struct tool_call *call);

/*
 * Checks the arguments (NULL: none) and takes the call's place in its session's queue, without
 * waiting. For who runs calls on threads: those of one session keep the order in which they came
 * when each is begun before the next. What fails is told by tool_call_run().
 */
void tool_call_begin(struct tool_call *call, yyjson_val *arguments);

/*
 * Runs the tool and appends the payload. Begins the call, where that was not done; if it was, the
 * arguments are not looked at again. Whether it succeeded: what the payload's own "success" says.
 * Only once per call.
 */
bool tool_call_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret);

/* Stops what the call waits for; from any thread, at any time. The payload still comes. */
void tool_call_cancel(struct tool_call *call);
bool tool_call_is_cancelled(struct tool_call *call);

/* Gives the running cell the line that it waits for; NULL: there is no answer. From any thread. */
int tool_call_input(struct tool_call *call, const char *line, size_t len,
                    struct error *reterr) must_check;

/*
 * What an owner may import from: its own folder in STORAGE_DIR and IMPORT_ALLOWED_DIRS. ERR_INVALID
 * names the setting. The arena owns the result.
 */
int tool_roots(const struct settings *settings, const char *owner, struct arena *arena,
               struct import_roots *ret, struct error *reterr) must_check;

DEFINE_CLEANUP(struct tool_call *, tool_call_free)
#define auto_tool_call __attribute__((cleanup(tool_call_free_cleanup)))
