/* SPDX-License-Identifier: MIT */
/*
 * What the server remembers: assistants, threads, runs, checkpoints, messages, blobs, items, crons,
 * exports and sealed settings; in SQLite or PostgreSQL. All calls from any thread. Every function
 * that takes an `owner` sees only what is that owner's: anything else is ERR_NOT_FOUND.
 *
 * Texts of results live in the arena that is given. Where a member is called JSON it is a text that
 * the caller has made sure to be JSON.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

struct settings;
struct store;

/* PostgreSQL when POSTGRES_HOST is set (then a missing other POSTGRES_* is named), else SQLite in
 * the state directory. Applies migrations. */
int store_open(const struct settings *settings, struct store **ret,
               struct error *reterr) must_check;
void store_close(struct store *s);
const char *store_kind(const struct store *s); /* "sqlite", "postgres" */

/* Whether it answers and takes writes now; bounded by some seconds. */
int store_ping(struct store *s, struct error *reterr) must_check;

/* A page of a search. */
struct store_page {
    int64_t limit, offset;
    const char *sort_by; /* a name of the resource's own table of sortable columns; NULL: default */
    bool ascending;
};

/* ---- assistants ---- */

struct store_assistant {
    const char *id, *owner;                    /* owner "" is the system's: seen by all */
    const char *graph_id, *name, *description; /* description may be NULL */
    const char *config, *context, *metadata;   /* JSON objects */
    int64_t version, created_us, updated_us;
};

/* With `exists_ok` an assistant of this id is given back instead of ERR_EXISTS. */
int store_assistant_create(struct store *s, const struct store_assistant *a, bool exists_ok,
                           struct arena *arena, struct store_assistant *ret,
                           struct error *reterr) must_check;
int store_assistant_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                        struct store_assistant *ret, struct error *reterr) must_check;
/* A new version of what the caller made of the former one; versions begin with 1. */
int store_assistant_update(struct store *s, const char *owner, const struct store_assistant *a,
                           struct arena *arena, struct store_assistant *ret,
                           struct error *reterr) must_check;
int store_assistant_delete(struct store *s, const char *owner, const char *id,
                           struct error *reterr) must_check;

struct store_assistant_filter {
    const char *graph_id, *name; /* name: part of it, any case; NULL: any */
    const char *metadata;        /* JSON that the metadata contains; NULL */
};
/* `ret` NULL: only the count. */
int store_assistant_search(struct store *s, const char *owner,
                           const struct store_assistant_filter *filter,
                           const struct store_page *page, struct arena *arena,
                           struct store_assistant **ret, size_t *ret_count, int64_t *ret_total,
                           struct error *reterr) must_check;
/* Newest first. */
int store_assistant_versions(struct store *s, const char *owner, const char *id,
                             const char *metadata, const struct store_page *page,
                             struct arena *arena, struct store_assistant **ret, size_t *ret_count,
                             struct error *reterr) must_check;
int store_assistant_set_version(struct store *s, const char *owner, const char *id, int64_t version,
                                struct arena *arena, struct store_assistant *ret,
                                struct error *reterr) must_check;

/* ---- threads ---- */

struct store_thread {
    const char *id, *owner;
    const char *metadata, *config; /* JSON objects */
    const char *status;            /* idle, busy, interrupted, error */
    const char *interrupts;        /* JSON object {task_id: [interrupt]}; "{}" */
    const char *error;             /* text of the last run's failure, or NULL */
    const char *head;              /* newest checkpoint id, or NULL */
    const char *ttl;               /* JSON, or NULL */
    int64_t created_us, updated_us, state_updated_us, expires_us; /* 0: never */
};

int store_thread_create(struct store *s, const struct store_thread *t, bool exists_ok,
                        struct arena *arena, struct store_thread *ret,
                        struct error *reterr) must_check;
int store_thread_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                     struct store_thread *ret, struct error *reterr) must_check;
/* Merges `metadata` (JSON object, or NULL) into the thread's own, member by member; sets the ttl
 * where one is given. */
int store_thread_update(struct store *s, const char *owner, const char *id, const char *metadata,
                        const char *ttl, struct arena *arena, struct store_thread *ret,
                        struct error *reterr) must_check;
/* With its runs, checkpoints, messages, blobs, crons and exports. */
int store_thread_delete(struct store *s, const char *owner, const char *id,
                        struct error *reterr) must_check;
/* All checkpoints and messages under another id; metadata too, and `thread_id` of the source. */
int store_thread_copy(struct store *s, const char *owner, const char *id, const char *to,
                      struct arena *arena, struct store_thread *ret,
                      struct error *reterr) must_check;

struct store_thread_filter {
    const char *metadata;   /* JSON contained in it; NULL */
    const char *status;     /* NULL: any */
    const char *const *ids; /* NULL: any */
    size_t id_count;
};
/* Default order: updated, newest first; ties by id. */
int store_thread_search(struct store *s, const char *owner,
                        const struct store_thread_filter *filter, const struct store_page *page,
                        struct arena *arena, struct store_thread **ret, size_t *ret_count,
                        int64_t *ret_total, struct error *reterr) must_check;
/* Ids (of any owner) whose time to live is over and that are not busy; their owners beside them. */
int store_thread_expired(struct store *s, int64_t now_us, struct arena *arena,
                         struct store_thread **ret, size_t *ret_count,
                         struct error *reterr) must_check;

/* ---- blobs: what a message refers to by the SHA-256 of its bytes ---- */

struct store_blob {
    const char *sha256; /* 64 hex digits */
    const char *mime;
    const char *data; /* as in the message: base64 or text */
    size_t len;
};
int store_blob_put(struct store *s, const char *thread_id, const struct store_blob *b,
                   struct error *reterr) must_check;
/* Only one that a message of this thread refers to. */
int store_blob_get(struct store *s, const char *thread_id, const char *sha256, struct arena *arena,
                   struct store_blob *ret, struct error *reterr) must_check;

/* ---- items: the long-term store ---- */

struct store_item {
    const char *namespace;   /* labels joined by "."; no label is empty or holds one */
    const char *key, *value; /* JSON object */
    int64_t created_us, updated_us, expires_us, ttl_us;
};
int store_item_put(struct store *s, const char *owner, const struct store_item *item,
                   struct error *reterr) must_check;
/* Its time to live begins again when `refresh`. */
int store_item_get(struct store *s, const char *owner, const char *namespace, const char *key,
                   bool refresh, struct arena *arena, struct store_item *ret,
                   struct error *reterr) must_check;
int store_item_delete(struct store *s, const char *owner, const char *namespace, const char *key,
                      struct error *reterr) must_check;
/* `prefix` "" is all; `filter`: JSON contained in the value; `query`: text that the value holds. */
int store_item_search(struct store *s, const char *owner, const char *prefix, const char *filter,
                      const char *query, const struct store_page *page, struct arena *arena,
                      struct store_item **ret, size_t *ret_count, struct error *reterr) must_check;
/* All distinct namespaces of the owner, sorted. */
int store_item_namespaces(struct store *s, const char *owner, struct arena *arena,
                          const char ***ret, size_t *ret_count, struct error *reterr) must_check;
int store_item_expire(struct store *s, int64_t now_us, struct error *reterr) must_check;

/* ---- crons ---- */

struct store_cron {
    const char *id, *owner, *assistant_id, *thread_id; /* thread_id NULL: a fresh one per run */
    const char *schedule, *timezone;                   /* timezone NULL: UTC */
    const char *payload, *metadata, *on_run_completed; /* JSON, JSON, word or NULL */
    bool enabled;
    int64_t next_us, end_us, created_us, updated_us; /* end_us 0: never */
};
int store_cron_put(struct store *s, const struct store_cron *c, struct error *reterr) must_check;
int store_cron_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                   struct store_cron *ret, struct error *reterr) must_check;
int store_cron_delete(struct store *s, const char *owner, const char *id,
                      struct error *reterr) must_check;
struct store_cron_filter {
    const char *assistant_id, *thread_id; /* NULL: any */
    int enabled;                          /* -1: any */
};
int store_cron_search(struct store *s, const char *owner, const struct store_cron_filter *filter,
                      const struct store_page *page, struct arena *arena, struct store_cron **ret,
                      size_t *ret_count, int64_t *ret_total, struct error *reterr) must_check;
/* Takes one that is due, of any owner, and moves it to `next_us` (the caller computes it from
 * `find`): so of several servers one starts it. 1, or 0 when none is due. */
typedef int64_t store_cron_next_fn(const struct store_cron *c, int64_t after_us);
int store_cron_take(struct store *s, int64_t now_us, store_cron_next_fn *next, struct arena *arena,
                    struct store_cron *ret, struct error *reterr) must_check;

/* ---- exports and settings ---- */

struct store_export {
    const char *thread_id, *session_id, *path;
};
int store_export_put(struct store *s, const struct store_export *e,
                     struct error *reterr) must_check;
/* Of one session, or of all when `session_id` is NULL. */
int store_export_list(struct store *s, const char *session_id, struct arena *arena,
                      struct store_export **ret, size_t *ret_count,
                      struct error *reterr) must_check;
int store_export_delete(struct store *s, const char *session_id, struct error *reterr) must_check;

/* A sealed text (sealed.h); NULL when there is none. */
int store_settings_get(struct store *s, const char *owner, struct arena *arena, const char **ret,
                       struct error *reterr) must_check;
int store_settings_put(struct store *s, const char *owner, const char *sealed,
                       struct error *reterr) must_check;
