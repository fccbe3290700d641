/* SPDX-License-Identifier: MIT */
/*
 * The calls of one step of the tools. Calls of one session run in their order, on one thread; those
 * of other sessions beside them. What happens is collected here and told by the run's own thread.
 * A batch may outlive its run: while a cell in it waits for a line, it is held until somebody
 * brings one.
 */
#pragma once

#include "agent/agent-internal.h"
#include "tools/tool.h"
#include "wire/utf8.h"

enum { BATCH_CALLS = 64 };

enum item_state { ITEM_WAITS, ITEM_RUNS, ITEM_ASKS, ITEM_DONE };

struct piece {
    const char *stream; /* "stdout", "stderr", "display" */
    struct buf data;    /* text; JSON of a display */
};

struct tool_item {
    struct tool_batch *batch;
    const char *id, *name;
    yyjson_val *args; /* NULL: malformed */
    size_t group;     /* of calls that run one after the other */
    bool asked;       /* its approval was asked for, whatever this run's rules say */

    /* Under the lock of the batch. */
    enum item_state state;
    struct tool_call *call; /* while it runs */
    char *question;         /* JSON {"prompt","password"}, while it asks */
    unsigned questions;
    struct piece *pieces; /* not told yet */
    size_t piece_count, piece_bytes, dropped;

    /* Of the thread that runs it; then of the run's. */
    struct utf8_repair repair[2];
    struct buf payload;
    bool is_error;

    /* Of the run's thread. */
    struct message *message; /* its result */
    bool told_start, told_end;
    int64_t told_ms;
};

struct tool_batch {
    atomic_uint refs;
    struct tool_batch *next; /* of the agent's list */
    int64_t held_ms;

    struct agent *agent;
    char *thread_id;
    char key[UUID_LEN + 1]; /* the checkpoint at which the step began */
    struct asked asked;
    yyjson_doc *edits[2 * BATCH_CALLS]; /* of arguments in place of the model's */
    size_t edit_count;
    struct message *edited; /* the AI message then */
    struct arena arena;
    struct tool_context context;

    struct tool_item *items;
    size_t count, group_count;
    bool answers_input;

    int wake; /* eventfd: something has happened */
    pthread_mutex_t lock;
    bool cancelled;
};

/* Takes over what is asked; only what has no answer yet becomes an item. */
int batch_new(struct walk *w, struct asked *asked, struct tool_batch **ret,
              struct error *reterr) must_check;
void batch_unref(struct tool_batch *b);
DEFINE_CLEANUP(struct tool_batch *, batch_unref)
#define auto_batch __attribute__((cleanup(batch_unref_cleanup)))

/* Takes a document over, which lives as long as the batch. */
int batch_keep(struct tool_batch *b, yyjson_doc *doc, struct error *reterr) must_check;

/* Gives an item its result without running it. */
int batch_refuse(struct tool_item *item, const char *text, struct error *reterr) must_check;

/* Runs what has no result yet. */
void batch_start(struct tool_batch *b);

/* Tells what happens: 0 when all is done, 1 when cells ask and nothing else goes on. */
int batch_follow(struct tool_batch *b, struct walk *w, struct error *reterr) must_check;

/* The line that an item asks for; NULL: there is none. One that no longer asks has lost it. */
void batch_answer(struct tool_item *item, const char *line, size_t len);

/* Stops everything, without waiting. */
void batch_cancel(struct tool_batch *b);

/* ---- those that wait (agent.c) ---- */

/* Takes a reference over, and gives one back; NULL when there is none. */
void agent_hold(struct agent *a, struct tool_batch *b);
struct tool_batch *agent_held_take(struct agent *a, const char *thread_id, const char *key);
