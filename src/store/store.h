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
#include "store/items.h"

#include <stdbool.h>
#include <stdint.h>

struct settings;
struct store;

/* PostgreSQL when POSTGRES_HOST is set (then a missing other POSTGRES_* is named), else SQLite in
 * the state directory. Applies migrations. `settings` outlives the store. */
int store_open(const struct settings *settings, struct store **ret,
               struct error *reterr) must_check;
void store_close(struct store *s);
const char *store_kind(const struct store *s); /* "sqlite", "postgres" */

/* Whether it answers and takes writes now; bounded by some seconds. */
int store_ping(struct store *s, struct error *reterr) must_check;

/* A page of a search. */
struct store_page {
    int64_t limit, offset;
    const char *sort_by; /* a name of the resource's own table of sortable columns (another one is
                            ERR_INVALID); NULL: default */
    bool ascending;
};

/* ---- assistants ---- */

struct store_assistant {
    const char *id, *owner;                    /* owner "" is the system's: seen by all */
    const char *graph_id, *name, *description; /* description may be NULL */
    const char *config, *context, *metadata;   /* JSON objects */
    int64_t version, created_us, updated_us;
};

/* Version 1. With `exists_ok` an assistant of this id that the owner sees is given back instead of
 * ERR_EXISTS. JSON members that are NULL are {}. */
int store_assistant_create(struct store *s, const struct store_assistant *a, bool exists_ok,
                           struct arena *arena, struct store_assistant *ret,
                           struct error *reterr) must_check;
int store_assistant_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                        struct store_assistant *ret, struct error *reterr) must_check;
/* A new version of what the caller made of the former one; versions begin with 1. Who sees the
 * system's assistants may not change them: ERR_DENIED. */
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
/* Newest first, whatever `page` says of the order; `created_us` is the version's. */
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
    const char *ttl;               /* JSON {"ttl": minutes, "strategy": ...} or minutes; NULL */
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
/* Some that nothing was done with for as long as their ttl says and that are not busy, of any
 * owner. Those whose strategy is not "delete" get their time anew, so each is told once. */
int store_thread_expired(struct store *s, int64_t now_us, struct arena *arena,
                         struct store_thread **ret, size_t *ret_count,
                         struct error *reterr) must_check;
