/* SPDX-License-Identifier: MIT */
/* What the files of this room share: one file per resource, and what answers and bodies look like.
 */
#pragma once

#include "agent/agent.h"
#include "api/api.h"
#include "api/live.h"
#include "base/json.h"
#include "base/settings.h"
#include "base/timestamp.h"
#include "store/runs.h"
#include "store/sealed.h"

struct http_client;
struct key_table;
struct limiter;
struct page;
struct shapes;
struct thread_logs;

/* Bytes of one JSON answer, and of one request's arena beside it. */
#define API_ANSWER_MAX (256 * MIB)

enum { API_BATCH_MAX = 100 }; /* runs that are created at once */

struct api {
    const struct settings *settings;
    struct session_manager *manager;
    struct store *store;
    struct sealed_keys keys;
    struct http_client *client;
    struct llm *llm;
    struct agent *agent;
    struct key_table *principals;
    struct limiter *limiter;
    struct shapes *shapes;       /* of bodies and queries */
    struct live *live;           /* runs of this process */
    struct thread_logs *threads; /* event logs of protocol v2 */
    struct crons *crons;
    struct page *page; /* for people */
    struct route_table tables[16];
    const struct route_entry *described[8]; /* of other doors */
    char url[256];
    int64_t started_us;
};

/* ---- requests ---- */

static inline struct api *api_of(const struct http_request *req)
{
    return http_user(req);
}

/*
 * The body as a JSON object, {} when it is empty: also as text/plain, and as a string that holds
 * JSON, because a well-known client sends that. On a failure the answer is given, and <0 returned.
 * `*ret` is freed with the request.
 */
int api_body(struct http_request *req, yyjson_val **ret);
/* The same where an array is asked for. */
int api_body_array(struct http_request *req, yyjson_val **ret);

/* Answers with the error; returns <0. Status 422 stands in for a bad member's 400 where the clients
 * tell the two apart: use api_unprocessable(). */
int api_fail(struct http_request *req, const struct error *error);
int api_unprocessable(struct http_request *req, const char *fmt, ...) printf_like(2, 3);
int api_not_found(struct http_request *req, const char *what);

/* From now on failures of this thread are put there in place of an answer; NULL ends it. */
void api_capture(struct error *error);

/* A path's {name} that has to be a UUID; answers 422 and gives NULL when it is not one. */
const char *api_uuid(struct http_request *req, const char *param);
/* A path's thread id: 1 to 128 of A-Z a-z 0-9 _ -; NULL as above. */
const char *api_thread_id(struct http_request *req);
bool api_thread_id_check(const char *id);

/* ---- answers ---- */

void api_reply(struct http_request *req, unsigned status, const struct buf *json);
void api_reply_doc(struct http_request *req, unsigned status, const yyjson_mut_doc *doc);
void api_reply_text(struct http_request *req, unsigned status, const char *json);
void api_reply_empty(struct http_request *req, unsigned status); /* 202, 204 */
/* X-Pagination-Total, and X-Pagination-Next when there is more. */
void api_pagination(struct http_request *req, const struct store_page *page, size_t count,
                    int64_t total);

/* limit, offset, sort_by, sort_order of a body; answers 422 and gives <0 when one is out of its
 * bounds. */
int api_page(struct http_request *req, yyjson_val *body, int64_t limit, int64_t limit_max,
             struct store_page *ret);

/* A whole number that a double tells apart, also one that is written 30.0. */
bool api_whole(yyjson_val *v, int64_t *ret);

/* limit and offset of the query; limit as it stands in `ret` when there is none. */
int api_query_page(struct http_request *req, int64_t limit_max, struct store_page *ret);

/* Members of an answer. */
void api_add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t us);
/* JSON text as a value; null for NULL. The text is not copied: it outlives the document. */
void api_add_raw(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *json);
void api_add_str(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *s);

/* Compact JSON text of a member in the request's arena, or NULL when it is absent or null. */
const char *api_member(struct http_request *req, yyjson_val *object, const char *key);

/* ---- names of the graph and its assistants ---- */

/* The canonical id of "sandbox-agent", "agent", their ids, and any other UUID; NULL: no such. */
const char *api_assistant_id(const char *given);
bool api_graph_check(const char *graph_id); /* one of the graph's two names */
/* A metadata filter in which the alias names were replaced; the arena's, or the same. */
const char *api_metadata_filter(struct http_request *req, yyjson_val *metadata);

/* ---- models ---- */

/* What an owner has set by PUT /settings; NULL and -1: not set. In an arena. */
struct owner_settings {
    const char *model, *provider, *base_url, *api_key;
    const char *key_origin; /* the host that the key was given for: "https://host:port" */
    int vision, network, images_to_model;
};
/* ERR_DENIED when the stored text cannot be opened with the present key: not the same as none. */
int api_owner_settings(struct api *api, const char *owner, struct arena *arena,
                       struct owner_settings *ret, struct error *reterr) must_check;

/*
 * Which model a run thinks with: `configurable` of the run, then the assistant's, then the owner's
 * settings, then the server's. A stored key goes only to the host that it was given for; a base URL
 * of a client may not lead to private addresses but those that PRIVATE_MODEL_HOSTS names.
 */
int api_model_resolve(struct api *api, const char *owner, yyjson_val *configurable,
                      struct arena *arena, struct agent_model *ret,
                      struct error *reterr) must_check;

/* ---- threads ---- */

/* Ends the sessions of a thread, its waiting cells, uploads and exports; in the store nothing. */
void api_thread_clean(struct api *api, const char *thread_id);
int api_thread_delete(struct api *api, const char *owner, const char *thread_id,
                      struct error *reterr) must_check;

/* {"messages": [...]} of a checkpoint (NULL: the newest); <0 and nothing when there is none. */
int api_values_append(struct api *api, const char *thread_id, const char *checkpoint_id,
                      struct buf *ret) must_check;

/* At the start: the system's assistant, and exports of sessions that live on. */
int api_recover(struct api *api, struct error *reterr) must_check;

/* At the start and once a minute: threads and items whose time is over, exports of sessions that
 * are gone. */
void api_sweep(struct api *api);

/* The thread that sweeps, and, with the setting CRONS, starts what is planned. */
int crons_start(struct api *api, struct error *reterr) must_check;
void crons_stop(struct api *api);

/* Handlers of openapi.c and docs.c. */
void api_openapi(struct http_request *req);
void api_docs(struct http_request *req);

/* ---- the tables ---- */

extern const struct route_entry api_system_routes[], api_assistant_routes[], api_thread_routes[],
    api_state_routes[], api_run_routes[], api_item_routes[], api_cron_routes[], api_event_routes[],
    api_file_routes[], api_settings_routes[], api_session_routes[];
