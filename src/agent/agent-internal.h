/* SPDX-License-Identifier: MIT */
/* What the files of the agent share: the agent, a walk through its graph, and the parts of both. */
#pragma once

#include "agent/agent.h"
#include "agent/view.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/uuid.h"

#include <pthread.h>

struct tool_batch;

enum {
    AGENT_BUDGETS = 4096, /* conversations whose model calls are counted */
    AGENT_HELD_MAX = 64,  /* steps that wait for a line */
    INTERRUPT_ID = 32,    /* hex digits */
};
#define AGENT_JSON_MAX (1 * GIB) /* of one event */
#define AGENT_ARENA_MAX (1 * GIB)

struct agent_budget {
    char key[INTERRUPT_ID + 1]; /* of the conversation; "" is free */
    int64_t since_ms, count;
};

struct agent {
    const struct settings *settings;
    struct store *store;
    struct session_manager *manager;
    struct llm *llm;
    char *public_url;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned workers;        /* threads that run calls */
    struct tool_batch *held; /* a list, newest first */
    struct agent_budget *budgets;
};

/* ---- a walk: one run's way through the graph ---- */

struct walk {
    struct agent *agent;
    const struct agent_run_spec *spec;
    agent_event_fn *event;
    void *user;
    struct agent_outcome *out;

    struct arena arena;
    struct store_checkpoint at; /* where it stands; id NULL: nowhere yet */
    char newest[UUID_LEN + 1];  /* of the thread; "" */
    struct transcript messages;
    enum agent_node next;
    int64_t steps;   /* supersteps that are done */
    bool fence_lost; /* another server has the run */
    bool restarted;  /* a former attempt of this run was cut off after `at` */
    bool goes_on;    /* the first step is one that an interrupt held back */

    /* The step under way. */
    enum agent_node node;
    char task_id[UUID_LEN + 1];
    struct transcript update; /* the messages that it gives */
    struct buf interrupts;    /* JSON array, where it was interrupted */
    struct buf pending;       /* what has to be remembered then */
    const char *error_type;   /* of a failure that the error's code does not name; NULL */
    yyjson_val *resume;       /* the answer to an interrupt; NULL */
    bool keeps_question;      /* it did not fit, and may be given again */
};

/* Fills in step, node and task. */
void walk_emit(struct walk *w, const struct agent_event *e);
bool walk_skips(const struct walk *w, enum agent_event_type type);
bool walk_is_cancelled(const struct walk *w);
/* A failure of a name of its own. */
int walk_refuse(struct walk *w, const char *type, struct error *reterr, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes a checkpoint of what the walk has, and tells of it. */
int walk_save(struct walk *w, const char *source, enum agent_node next,
              struct error *reterr) must_check;
/* Tells the state; `interrupts` NULL: without. */
int walk_tell_values(struct walk *w, const char *interrupts, struct error *reterr) must_check;
int walk_tell_checkpoint(struct walk *w, struct error *reterr) must_check;
/* What the checkpoint says about the step that was tried: its error, or its interrupts. */
int walk_mark(struct walk *w, const char *error, const char *interrupts, const char *pending,
              struct error *reterr) must_check;

/* Where a run begins (start.c): loads, and does what its input or command says. */
int walk_start(struct walk *w, struct error *reterr) must_check;

/* The two nodes: 0 done, 1 interrupted (`interrupts` and `pending` are filled). */
int step_model(struct walk *w, struct error *reterr) must_check;
int step_tools(struct walk *w, struct error *reterr) must_check;

/* ---- names ---- */

/* Also those that other agents' graphs use. 0 or -1. */
int agent_node_parse(const char *name, enum agent_node *ret) must_check;
const char *agent_node_next(enum agent_node node); /* as `next` of a checkpoint */
enum agent_node agent_node_of(const char *next);   /* the reverse */

/* Every task of a checkpoint has an id that follows from both. */
void agent_task_id(const char *checkpoint_id, enum agent_node node, char ret[UUID_LEN + 1]);

/* ---- states ---- */

/* {"messages":[...]} appended. */
int state_values_write(struct agent *a, const char *thread_id, const struct transcript *t,
                       bool inline_displays, struct buf *ret, struct error *reterr) must_check;
/* [message, ...] appended. */
int state_messages_write(struct agent *a, const char *thread_id, const struct transcript *t,
                         bool inline_displays, struct buf *ret, struct error *reterr) must_check;
/* The debug payload of a checkpoint, appended. */
int state_debug_write(struct agent *a, const struct agent_state *state, bool inline_displays,
                      struct buf *ret, struct error *reterr) must_check;
/* The messages of the `values` of an input or an edit: an object, or an array of objects or pairs.
 * ERR_INVALID. */
int state_values_apply(struct transcript *t, yyjson_val *values, struct error *reterr) must_check;

/* {id, name, path, error, interrupts, ...} in `doc`. */
struct task_view {
    const char *id;
    enum agent_node node;
    const char *error, *interrupts; /* NULL; JSON array or NULL */
};
yyjson_mut_val *task_make(yyjson_mut_doc *doc, const struct task_view *task);

/* A checkpoint of `messages` after `parent`; the strings of `ret` are in the arena, and it has no
 * refs: the messages have them. */
struct checkpoint_plan {
    const char *thread_id;
    const struct store_checkpoint *parent; /* NULL: the root */
    const char *after;                     /* an id that its own is larger than; NULL */
    const char *source, *run_id, *pending;
    int64_t step;
    enum agent_node next;
    const char *graph_id, *assistant_id, *metadata; /* NULL */
};
int checkpoint_write(struct agent *a, const struct store_fence *fence,
                     const struct checkpoint_plan *plan, struct transcript *messages,
                     struct arena *arena, struct store_checkpoint *ret,
                     struct error *reterr) must_check;

/* ---- calls of a conversation's last AI message ---- */

struct asked_call {
    const char *id, *name;
    yyjson_val *args;    /* an object; NULL when it is malformed */
    const char *problem; /* of a malformed one */
    bool is_answered;    /* a tool message after it has its id */
};

struct asked {
    struct message *ai; /* referenced; NULL: there are none */
    yyjson_doc *doc;    /* of it */
    struct asked_call *calls;
    size_t count;
};

int asked_load(const struct transcript *t, struct asked *ret, struct error *reterr) must_check;
void asked_done(struct asked *a);
#define auto_asked __attribute__((cleanup(asked_done)))
/* Whether a step has something to do after these messages. */
bool asked_any(const struct transcript *t);

/* ---- budget ---- */

/* Counts a call of a model. ERR_LIMIT. */
int agent_budget_take(struct agent *a, const char *thread_id, struct error *reterr) must_check;

/* ---- digests ---- */

/* 32 hex digits of texts that are told apart, NULL at the end. */
void agent_digest(char ret[INTERRUPT_ID + 1], const char *const *texts);
