/* SPDX-License-Identifier: MIT */
/*
 * The part of the store that is not conversations: blobs, items, crons, exports and sealed
 * settings. Included by store.h, whose rules hold here, too.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct store;
struct store_page;

/* ---- blobs: what a message refers to by the SHA-256 of its bytes ---- */

struct store_blob {
    const char *sha256; /* of `data`, 64 hex digits */
    const char *mime;   /* the message's counts; this is what the first one said */
    const char *data;   /* as in the message: base64 or text */
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
/* Makes or replaces it; it lives for ttl_us, 0: for ever. The times are not read. */
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
/* Makes or replaces it; ERR_EXISTS for an id of somebody else. */
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
/* Takes one that is due, of any owner, and moves it to what `next` says, 0: never again. So of
 * several servers one starts it. `ret` is as it was, due at its next_us. 1, or 0: none is due. */
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
