/* SPDX-License-Identifier: MIT */
/* What the files of this room share: requests, calls of tools, and the tables of methods. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "mcp/mcp.h"
#include "tools/tool.h"
#include "wire/jsonrpc.h"

#include <pthread.h>
#include <stdint.h>

enum mcp_era { MCP_LEGACY = 1, MCP_MODERN = 2 };

#define MCP_ANSWER_MAX ((size_t)64 << 20)
#define MCP_PAYLOAD_MAX ((size_t)512 << 20) /* of a tool, before it is made fit for a model */

enum { MCP_REQUESTS_MAX = 128, MCP_SUBSCRIPTIONS_MAX = 256 };

/* What a client can be asked for. */
enum mcp_capability {
    MCP_CAN_ELICIT = 1, /* by a form */
    MCP_CAN_SAMPLE = 2,
    MCP_CAN_LIST_ROOTS = 4,
    MCP_CAN_TASKS = 8, /* modern */
};

struct displays;
struct mcp_call;
struct mcp_question;

struct mcp_server {
    const struct settings *settings;
    struct session_manager *manager;
    const char *owner;
    bool fixture;
    struct arena arena; /* of `context` */
    struct tool_context context;
    struct displays *displays;
    struct session_watch *watch; /* guarded by the lock */
    struct mcp_state_key *state_key;

    pthread_mutex_t lock; /* of what follows; taken before a client's and a request's */
    pthread_cond_t changed;
    struct mcp_client *clients;
    struct mcp_call *calls; /* running, suspended, or tasks that are remembered */
    size_t call_count;
    unsigned threads; /* of calls */
    bool stopping;
    pthread_t ticker;
    bool ticker_started;
};

/* A request that waits for its answer. Referenced by whoever works for it. */
struct mcp_request {
    unsigned refs;
    struct mcp_server *server;
    struct mcp_client *client;   /* NULL once it is gone; guarded by the server's lock */
    struct mcp_channel *channel; /* until it is answered */
    struct mcp_request *next;    /* of the client's; guarded by the server's lock */
    enum mcp_era era;
    yyjson_doc *doc; /* the message */
    struct jsonrpc_message message;
    unsigned capabilities; /* of the client, enum mcp_capability */
    yyjson_val *progress_token;
    int log_level; /* index into mcp_log_levels; -1: none */

    pthread_mutex_t lock;
    bool answered; /* or cancelled: nothing more is sent for it */
    int64_t started_ms;
    double progress;
    int64_t progress_ms;            /* when the last one was sent */
    struct mcp_question *questions; /* to the client, unanswered; guarded by the server's lock */
    struct mcp_call *call;          /* whose answer it waits for, referenced; NULL */
    yyjson_val *listens; /* subscriptions/listen: its filter, once it was acknowledged; guarded by
                          * the server's lock */
};

struct mcp_client {
    struct mcp_server *server;
    struct mcp_client *next;
    struct mcp_channel *events;
    enum mcp_era era;  /* by its transport; 0: each message tells */
    bool spoke_modern; /* and was not initialized: what has no `_meta` lacks it */
    bool initialized;
    int log_level;         /* legacy: by logging/setLevel; -1 */
    unsigned capabilities; /* legacy: as `initialize` told */
    struct mcp_request *requests;
    size_t request_count;
    size_t question_count;
    uint64_t question_next;
    char *subscriptions[MCP_SUBSCRIPTIONS_MAX]; /* legacy: URIs */
    size_t subscription_count;
};

/* ---- requests (request.c) ---- */

struct mcp_request *mcp_request_ref(struct mcp_request *r);
void mcp_request_unref(struct mcp_request *r);

/* Answers, once; later answers are dropped. The result's members are those of `result`, an object
 * of `doc`. */
void mcp_request_answer(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result);
void mcp_request_fail(struct mcp_request *r, const struct jsonrpc_fault *fault);
void mcp_request_fail_error(struct mcp_request *r, const struct error *error);

/* Sends nothing more for it, and takes it from its client. */
void mcp_request_drop(struct mcp_request *r);

/* Notifications that belong to it: dropped after the answer. `params` is an object of `doc`. */
void mcp_request_notify(struct mcp_request *r, const char *method, yyjson_mut_doc *doc,
                        yyjson_mut_val *params);

/* Progress, where the client asked for it; the value grows by itself. */
void mcp_request_progress(struct mcp_request *r, const char *message);

/* notifications/message, where the client's level lets it pass. */
void mcp_request_log(struct mcp_request *r, const char *level, const char *text);

/* A string parameter; NULL with an error when it is missing or holds a NUL. */
const char *mcp_request_param(const struct mcp_request *r, const char *name, struct error *reterr);

/* A message of ours that belongs to it, as it is. */
void mcp_request_send(struct mcp_request *r, const char *json, size_t len);

/* Sends its client away until it asks again, where the transport can. */
void mcp_request_pause(struct mcp_request *r);

/* Whether nobody waits for its answer any more. */
bool mcp_request_is_over(struct mcp_request *r);

extern const char *const mcp_log_levels[]; /* debug ... emergency, NULL */
int mcp_log_level_parse(const char *name);

DEFINE_CLEANUP(struct mcp_request *, mcp_request_unref)
#define auto_mcp_request __attribute__((cleanup(mcp_request_unref_cleanup)))

/* ---- methods (dispatch.c) ---- */

enum mcp_method_flags {
    MCP_ON_LEGACY = 1,
    MCP_ON_MODERN = 2,
    MCP_ON_BOTH = 3,
    MCP_BEFORE_INITIALIZE = 4,
    MCP_CACHEABLE = 8,  /* modern: ttlMs and cacheScope are added */
    MCP_ON_THREAD = 16, /* takes its time */
    MCP_FIXTURE = 32,   /* only with the conformance fixture */
};

enum { MCP_DONE = 0, MCP_LATER = 1 };

/*
 * MCP_DONE: `result` is the answer. MCP_LATER: it is answered elsewhere, or was. Less than 0:
 * `reterr` is.
 */
typedef int mcp_method_fn(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                          struct error *reterr);

struct mcp_method {
    const char *name;
    unsigned flags;
    mcp_method_fn *handle;
};

mcp_method_fn mcp_tools_list, mcp_tools_call;                                  /* tools.c */
mcp_method_fn mcp_resources_list, mcp_resources_templates, mcp_resources_read; /* resources.c */
mcp_method_fn mcp_resources_subscribe, mcp_resources_unsubscribe, mcp_listen;  /* subscribe.c */
mcp_method_fn mcp_prompts_list, mcp_prompts_get, mcp_complete;                 /* prompts.c */
mcp_method_fn mcp_task_get, mcp_task_update, mcp_task_cancel;                  /* task.c */

/* ---- work on a thread of its own (work.c) ---- */

typedef void mcp_work_fn(struct mcp_request *r, const void *arg);

/* Runs it with a reference to the request. What takes long has to look at mcp_request_is_over(). */
int mcp_work_start(struct mcp_request *r, mcp_work_fn *run, const void *arg,
                   struct error *reterr) must_check;

/* ---- changes (subscribe.c) ---- */

enum mcp_change {
    MCP_TOOLS_CHANGED,
    MCP_PROMPTS_CHANGED,
    MCP_RESOURCES_CHANGED,
    MCP_RESOURCE_UPDATED,
};

/* Tells who listens; from any thread, without the server's lock. `uri` of an updated one. */
void mcp_notify(struct mcp_server *s, enum mcp_change what, const char *uri);

/* Answers the listening requests of a client, or of all: the server ends. */
void mcp_listen_end(struct mcp_server *s, struct mcp_client *c);
