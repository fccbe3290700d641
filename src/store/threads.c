/* SPDX-License-Identifier: MIT */
/*
 * Threads. Whoever changes what belongs to a thread changes its row first, so changes of one thread
 * wait for each other. A time to live counts from the last change: the sweep finds who may be over
 * by expires_us, and moves on those that were used since.
 */
#include "store/threads.h"
#include "store/merge.h"
#include "store/query.h"

#include "base/json.h"
#include "base/str.h"
#include "base/timestamp.h"

#include <math.h>

#define AT(member) offsetof(struct store_thread, member)
#define US_PER_MINUTE 60000000.0
#define TTL_US_MAX 4e15 /* some 126 years */

enum { IDS_MAX = 1000, SWEEP_MAX = 100, CREATE_TRIES = 3 };

static const struct query_column columns[] = {
    {"id", QUERY_TEXT, AT(id)},
    {"owner", QUERY_TEXT, AT(owner)},
    {"metadata", QUERY_TEXT, AT(metadata)},
    {"config", QUERY_TEXT, AT(config)},
    {"status", QUERY_TEXT, AT(status)},
    {"interrupts", QUERY_TEXT, AT(interrupts)},
    {"error", QUERY_TEXT, AT(error)},
    {"head", QUERY_TEXT, AT(head)},
    {"ttl", QUERY_TEXT, AT(ttl)},
    {"created_us", QUERY_INT, AT(created_us)},
    {"updated_us", QUERY_INT, AT(updated_us)},
    {"state_updated_us", QUERY_INT, AT(state_updated_us)},
    {"expires_us", QUERY_INT, AT(expires_us)},
};

static const struct query_sort sorts[] = {
    {"updated_at", "updated_us"}, {"created_at", "created_us"},
    {"thread_id", "id"},          {"state_updated_at", "state_updated_us"},
    {"status", "status"},
};

static const struct query_shape shape = {
    .table = "threads",
    .size = sizeof(struct store_thread),
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
    .sorts = sorts,
    .sort_count = ARRAY_LEN(sorts),
    .tie = "id",
};

struct work {
    const char *owner, *id;
    const struct store_thread *thread;
    const char *metadata, *ttl, *to;
    int64_t ttl_us, now_us;
    bool exists_ok;
    struct arena *arena;
    struct store_thread *ret;
};

static int refuse_missing(const char *id, struct error *reterr)
{
    return error_set(reterr, ERR_NOT_FOUND, "there is no thread '%.60s'", id);
}

/* ---- time to live ---- */

/* Microseconds of {"ttl": minutes, "strategy": ...} or of a number; 0 for NULL and null. */
static int ttl_parse(const char *ttl, int64_t *ret_us, bool *ret_deletes, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *root, *minutes;
    double us;
    int r;

    *ret_us = 0;
    *ret_deletes = true;
    if (!ttl)
        return 0;
    r = json_parse(ttl, strlen(ttl), &doc, reterr);
    if (r < 0)
        return r;
    root = yyjson_doc_get_root(doc);
    minutes = yyjson_is_obj(root) ? yyjson_obj_get(root, "ttl") : root;
    *ret_deletes = str_eq(json_get_str(root, "strategy", "delete"), "delete");
    if (!minutes || yyjson_is_null(minutes))
        return 0;
    us = yyjson_is_num(minutes) ? yyjson_get_num(minutes) * US_PER_MINUTE : -1;
    if (!isfinite(us) || us <= 0)
        return error_set(reterr, ERR_INVALID, "a ttl is a number of minutes above 0");
    *ret_us = (int64_t)MIN(us, TTL_US_MAX);
    return 0;
}

static int64_t expiry(int64_t since_us, int64_t ttl_us)
{
    return ttl_us ? since_us + ttl_us : 0;
}

/* ---- create ---- */

/* 1, or 0 when the owner has none of this id. */
static int find(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_select(&q, &shape);
    query_bind(&q, " WHERE id = ?", STORE_T(w->id));
    query_bind(&q, " AND owner = ?", STORE_T(w->owner));
    return query_one(&q, tx, &shape, w->arena, w->ret, reterr);
}

static int insert(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_insert(&q, &shape, w->thread);
    query_add(&q, " ON CONFLICT (id) DO NOTHING");
    query_returning(&q, &shape);
    return query_one(&q, tx, &shape, w->arena, w->ret, reterr);
}

/* One that is there, but not for us, may also have been removed in between. */
static int create_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;

    for (int i = 0; i < CREATE_TRIES; i++) {
        int r = insert(w, tx, reterr);

        if (r == 0 && w->exists_ok)
            r = find(w, tx, reterr);
        if (r != 0)
            return MIN(r, 0);
        if (!w->exists_ok)
            break;
    }
    return error_set(reterr, ERR_EXISTS, "a thread '%.60s' exists", w->id);
}

int store_thread_create(struct store *s, const struct store_thread *t, bool exists_ok,
                        struct arena *arena, struct store_thread *ret, struct error *reterr)
{
    struct store_thread new = *t;
    int64_t ttl_us, now = timestamp_now();
    bool deletes;
    int r = ttl_parse(t->ttl, &ttl_us, &deletes, reterr);

    if (r < 0)
        return r;
    new.metadata = t->metadata ? t->metadata : "{}";
    new.config = t->config ? t->config : "{}";
    new.status = t->status ? t->status : "idle";
    new.interrupts = t->interrupts ? t->interrupts : "{}";
    new.head = NULL;
    new.created_us = new.updated_us = new.state_updated_us = now;
    new.expires_us = expiry(now, ttl_us);
    return store_write(s, create_body,
                       &(struct work){.owner = t->owner,
                                      .id = t->id,
                                      .thread = &new,
                                      .exists_ok = exists_ok,
                                      .arena = arena,
                                      .ret = ret},
                       reterr);
}

/* ---- one ---- */

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int r = find(w, tx, reterr);

    return r == 0 ? refuse_missing(w->id, reterr) : MIN(r, 0);
}

int store_thread_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                     struct store_thread *ret, struct error *reterr)
{
    return store_read(s, get_body,
                      &(struct work){.owner = owner, .id = id, .arena = arena, .ret = ret}, reterr);
}

/* Locks the owner's thread; `ret` is what it is now. */
static int claim(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;
    int r;

    query_init(&q);
    query_bind(&q, "UPDATE threads SET run_seq = run_seq WHERE id = ?", STORE_T(w->id));
    query_bind(&q, " AND owner = ?", STORE_T(w->owner));
    query_returning(&q, &shape);
    r = query_one(&q, tx, &shape, w->arena, w->ret, reterr);
    return r == 0 ? refuse_missing(w->id, reterr) : MIN(r, 0);
}

static int update_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    const char *metadata;
    auto_query struct query q;
    int r = claim(w, tx, reterr);

    query_init(&q);
    if (r == 0)
        r = merge_json(w->ret->metadata, w->metadata, w->arena, &metadata, reterr);
    if (r < 0)
        return r;
    query_bind(&q, "UPDATE threads SET metadata = ?", STORE_T(metadata));
    query_bind(&q, ", updated_us = ?", STORE_I(w->now_us));
    query_bind_if(&q, ", ttl = ?", w->ttl);
    if (w->ttl)
        query_bind(&q, ", expires_us = ?", STORE_I(expiry(w->now_us, w->ttl_us)));
    query_bind(&q, " WHERE id = ?", STORE_T(w->id));
    query_returning(&q, &shape);
    return MIN(query_one(&q, tx, &shape, w->arena, w->ret, reterr), 0);
}

int store_thread_update(struct store *s, const char *owner, const char *id, const char *metadata,
                        const char *ttl, struct arena *arena, struct store_thread *ret,
                        struct error *reterr)
{
    struct work w = {.owner = owner,
                     .id = id,
                     .metadata = metadata,
                     .ttl = ttl,
                     .now_us = timestamp_now(),
                     .arena = arena,
                     .ret = ret};
    bool deletes;
    int r = ttl_parse(ttl, &w.ttl_us, &deletes, reterr);

    return r < 0 ? r : store_write(s, update_body, &w, reterr);
}

/* ---- delete ---- */

/* Blobs that another thread uses stay. Their rows are changed first: whoever is just about to use
 * one of them is then waited for, and seen. */
int store_thread_remove(struct store_tx *tx, const char *id, struct error *reterr)
{
    static const char *const statements[] = {
        "UPDATE blobs SET created_us = created_us WHERE sha256 IN "
        "(SELECT sha256 FROM thread_blobs WHERE thread_id = $1)",
        "DELETE FROM blobs WHERE sha256 IN (SELECT sha256 FROM thread_blobs WHERE thread_id = $1) "
        "AND NOT EXISTS (SELECT 1 FROM thread_blobs o WHERE o.sha256 = blobs.sha256 "
        "AND o.thread_id <> $1)",
        "DELETE FROM exports WHERE thread_id = $1",
        "DELETE FROM threads WHERE id = $1",
    };
    int64_t r =
        STORE_RUN(tx, "UPDATE threads SET run_seq = run_seq WHERE id = $1", reterr, STORE_T(id));

    if (r <= 0)
        return (int)r;
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        r = STORE_RUN(tx, statements[i], reterr, STORE_T(id));
        if (r < 0)
            return (int)r;
    }
    return 1;
}

static int delete_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    auto_arena struct arena scratch;
    struct store_thread seen;
    struct work look = *w;
    int r;

    arena_init(&scratch, 64 * MIB);
    look.arena = &scratch;
    look.ret = &seen;
    r = claim(&look, tx, reterr);
    if (r == 0)
        r = store_thread_remove(tx, w->id, reterr);
    return MIN(r, 0);
}

int store_thread_delete(struct store *s, const char *owner, const char *id, struct error *reterr)
{
    return store_write(s, delete_body, &(struct work){.owner = owner, .id = id}, reterr);
}

/* ---- copy ---- */

/* What a busy thread's copy is: nothing runs there. */
static void copy_of(const struct work *w, struct store_thread *ret)
{
    *ret = *w->ret;
    ret->id = w->to;
    if (str_eq(ret->status, "busy"))
        ret->status = "idle";
    ret->created_us = ret->updated_us = w->now_us;
}

static int copy_rows(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    static const char *const statements[] = {
        "UPDATE threads SET message_ref = (SELECT t.message_ref FROM threads t WHERE t.id = $1) "
        "WHERE id = $2",
        "INSERT INTO messages (thread_id, ref, json) "
        "SELECT $2, ref, json FROM messages WHERE thread_id = $1",
        "INSERT INTO checkpoints (thread_id, id, parent, step, source, next, tasks, metadata, "
        "pending, run_id, refs, created_us) SELECT $2, id, parent, step, source, next, tasks, "
        "metadata, pending, NULL, refs, created_us FROM checkpoints WHERE thread_id = $1",
        "INSERT INTO thread_blobs (thread_id, sha256) "
        "SELECT $2, sha256 FROM thread_blobs WHERE thread_id = $1",
    };

    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        int64_t r = STORE_RUN(tx, statements[i], reterr, STORE_T(w->id), STORE_T(w->to));

        if (r < 0)
            return (int)r;
    }
    return 0;
}

static int copy_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    struct store_thread new;
    struct work create = *w;
    int64_t ttl_us;
    bool deletes;
    int r = claim(w, tx, reterr);

    if (r < 0)
        return r;
    copy_of(w, &new);
    r = merge_json(w->ret->metadata, w->metadata, w->arena, &new.metadata, reterr);
    if (r == 0)
        r = ttl_parse(new.ttl, &ttl_us, &deletes, reterr);
    if (r < 0)
        return r;
    new.expires_us = expiry(w->now_us, ttl_us);
    create.thread = &new;
    r = insert(&create, tx, reterr);
    if (r == 0)
        return error_set(reterr, ERR_EXISTS, "a thread '%.60s' exists", w->to);
    return r < 0 ? r : copy_rows(w, tx, reterr);
}

int store_thread_copy(struct store *s, const char *owner, const char *id, const char *to,
                      struct arena *arena, struct store_thread *ret, struct error *reterr)
{
    auto_buf struct buf source;

    buf_init(&source, 4096);
    if (buf_append_str(&source, "{\"thread_id\":") < 0 || json_quote(&source, id, strlen(id)) < 0 ||
        buf_append_byte(&source, '}') < 0)
        return error_no_memory(reterr);
    return store_write(s, copy_body,
                       &(struct work){.owner = owner,
                                      .id = id,
                                      .metadata = buf_str(&source),
                                      .to = to,
                                      .now_us = timestamp_now(),
                                      .arena = arena,
                                      .ret = ret},
                       reterr);
}

/* ---- many ---- */

struct search {
    const char *owner;
    const struct store_thread_filter *filter;
    const struct store_page *page;
    struct query_rows rows;
    bool wanted;
    int64_t *ret_total;
};

static void add_filter(struct query *q, const void *user)
{
    const struct search *w = user;
    const struct store_thread_filter *f = w->filter;

    query_bind(q, " WHERE owner = ?", STORE_T(w->owner));
    query_bind_if(q, " AND status = ?", f->status);
    if (f->ids && f->id_count)
        query_bind_list(q, " AND id", f->ids, f->id_count);
    else if (f->ids)
        query_add(q, " AND 1 = 0");
    query_bind_if(q, " AND json_contains(metadata, ?)", f->metadata);
}

static int search_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct search *w = user;

    return query_search(&(struct query_search){.shape = &shape,
                                               .filter = add_filter,
                                               .user = w,
                                               .page = w->page,
                                               .rows = w->wanted ? &w->rows : NULL,
                                               .ret_total = w->ret_total},
                        tx, reterr);
}

int store_thread_search(struct store *s, const char *owner,
                        const struct store_thread_filter *filter, const struct store_page *page,
                        struct arena *arena, struct store_thread **ret, size_t *ret_count,
                        int64_t *ret_total, struct error *reterr)
{
    struct search w = {.owner = owner,
                       .filter = filter,
                       .page = page,
                       .rows = {.shape = &shape, .arena = arena},
                       .wanted = ret != NULL,
                       .ret_total = ret_total};
    int r;

    if (filter->ids && filter->id_count > IDS_MAX)
        return error_set(reterr, ERR_INVALID, "at most %d ids at once", IDS_MAX);
    r = store_read(s, search_body, &w, reterr);
    if (r < 0 || !ret)
        return r;
    *ret = w.rows.data;
    *ret_count = w.rows.count;
    return 0;
}

/* ---- the sweep ---- */

struct sweep {
    int64_t now_us;
    struct query_rows rows;
    size_t over; /* that many of the rows, moved to the front */
};

/* 1: its time is over; 0: it was used since, or is one that stays. */
static int sweep_one(const struct sweep *w, const struct store_thread *t, struct store_tx *tx,
                     struct error *reterr)
{
    int64_t r, ttl_us, used_us = MAX(t->updated_us, t->state_updated_us);
    bool deletes, over;

    if (ttl_parse(t->ttl, &ttl_us, &deletes, NULL) < 0 || !ttl_us) {
        deletes = false;
        ttl_us = 0;
    }
    over = ttl_us && used_us + ttl_us <= w->now_us;
    if (over && deletes)
        return 1;
    r = STORE_RUN(tx, "UPDATE threads SET expires_us = $1 WHERE id = $2 AND expires_us = $3",
                  reterr, STORE_I(expiry(over ? w->now_us : used_us, ttl_us)), STORE_T(t->id),
                  STORE_I(t->expires_us));
    return r < 0 ? (int)r : over;
}

static int sweep_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct sweep *w = user;
    auto_query struct query q;
    int64_t r;

    w->over = 0;
    query_init(&q);
    query_select(&q, &shape);
    query_bind(&q, " WHERE expires_us > 0 AND expires_us <= ?", STORE_I(w->now_us));
    query_bind(&q, " AND status <> 'busy' ORDER BY expires_us, id LIMIT ?", STORE_I(SWEEP_MAX));
    r = query_rows(&q, tx, &w->rows, reterr);
    for (size_t i = 0; r >= 0 && i < w->rows.count; i++) {
        struct store_thread *threads = w->rows.data;

        r = sweep_one(w, &threads[i], tx, reterr);
        if (r > 0)
            threads[w->over++] = threads[i];
    }
    return r < 0 ? (int)r : 0;
}

int store_thread_expired(struct store *s, int64_t now_us, struct arena *arena,
                         struct store_thread **ret, size_t *ret_count, struct error *reterr)
{
    struct sweep w = {.now_us = now_us, .rows = {.shape = &shape, .arena = arena}};
    int r = store_write(s, sweep_body, &w, reterr);

    if (r < 0)
        return r;
    *ret = w.rows.data;
    *ret_count = w.over;
    return 0;
}
