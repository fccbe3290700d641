/* SPDX-License-Identifier: MIT */
/*
 * Items, the long-term store. One whose time is over is gone at once, for every reader; the sweep
 * only gives its room back. A namespace and those below it are a range of texts, because "/" is
 * what follows "." in the order of bytes.
 */
#include "store/items.h"
#include "store/query.h"

#include "base/timestamp.h"

#include <stdio.h>

#define AT(member) offsetof(struct store_item, member)

static const struct query_column columns[] = {
    {"namespace", QUERY_TEXT, AT(namespace)},  {"key", QUERY_TEXT, AT(key)},
    {"value", QUERY_TEXT, AT(value)},          {"created_us", QUERY_INT, AT(created_us)},
    {"updated_us", QUERY_INT, AT(updated_us)}, {"expires_us", QUERY_INT, AT(expires_us)},
    {"ttl_us", QUERY_INT, AT(ttl_us)},
};

static const struct query_sort sorts[] = {
    {"updated_at", "updated_us"},
    {"created_at", "created_us"},
    {"namespace", "namespace"},
    {"key", "key"},
};

static const struct query_shape shape = {
    .table = "items",
    .size = sizeof(struct store_item),
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
    .sorts = sorts,
    .sort_count = ARRAY_LEN(sorts),
    .tie = "namespace, key",
};

struct work {
    const char *owner, *namespace, *key;
    const struct store_item *item;
    int64_t now_us;
    struct arena *arena;
    struct store_item *ret;
};

static int refuse_missing(const struct work *w, struct error *reterr)
{
    return error_set(reterr, ERR_NOT_FOUND, "there is no item '%.60s' in '%.60s'", w->key,
                     w->namespace);
}

static int put_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    const struct store_item *item = w->item;
    int64_t r;

    r = STORE_RUN(tx,
                  "INSERT INTO items (owner, namespace, key, value, created_us, updated_us, "
                  "expires_us, ttl_us) VALUES ($1, $2, $3, $4, $5, $5, $6, $7) "
                  "ON CONFLICT (owner, namespace, key) DO UPDATE SET value = excluded.value, "
                  "created_us = CASE WHEN items.expires_us > 0 "
                  "AND items.expires_us <= excluded.created_us THEN excluded.created_us "
                  "ELSE items.created_us END, updated_us = excluded.updated_us, "
                  "expires_us = excluded.expires_us, ttl_us = excluded.ttl_us",
                  reterr, STORE_T(w->owner), STORE_T(item->namespace), STORE_T(item->key),
                  STORE_T(item->value), STORE_I(w->now_us),
                  STORE_I(item->ttl_us > 0 ? w->now_us + item->ttl_us : 0),
                  STORE_I(MAX(item->ttl_us, 0)));
    return r < 0 ? (int)r : 0;
}

int store_item_put(struct store *s, const char *owner, const struct store_item *item,
                   struct error *reterr)
{
    return store_write(s, put_body,
                       &(struct work){.owner = owner, .item = item, .now_us = timestamp_now()},
                       reterr);
}

static void add_alive(struct query *q, int64_t now_us)
{
    query_bind(q, " AND (expires_us = 0 OR expires_us > ?)", STORE_I(now_us));
}

static void add_key(struct query *q, const struct work *w)
{
    query_bind(q, " WHERE owner = ?", STORE_T(w->owner));
    query_bind(q, " AND namespace = ?", STORE_T(w->namespace));
    query_bind(q, " AND key = ?", STORE_T(w->key));
    add_alive(q, w->now_us);
}

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    auto_query struct query q;
    int r;

    query_init(&q);
    query_select(&q, &shape);
    add_key(&q, w);
    r = query_one(&q, tx, &shape, w->arena, w->ret, reterr);
    return r == 0 ? refuse_missing(w, reterr) : MIN(r, 0);
}

static int refresh_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    auto_query struct query q;
    int r;

    query_init(&q);
    query_bind(&q, "UPDATE items SET expires_us = ttl_us + ?", STORE_I(w->now_us));
    add_key(&q, w);
    query_add(&q, " AND ttl_us > 0");
    query_returning(&q, &shape);
    r = query_one(&q, tx, &shape, w->arena, w->ret, reterr);
    return r == 0 ? get_body(user, tx, reterr) : MIN(r, 0);
}

int store_item_get(struct store *s, const char *owner, const char *namespace, const char *key,
                   bool refresh, struct arena *arena, struct store_item *ret, struct error *reterr)
{
    struct work w = {.owner = owner,
                     .namespace = namespace,
                     .key = key,
                     .now_us = timestamp_now(),
                     .arena = arena,
                     .ret = ret};
    int r = store_read(s, get_body, &w, reterr);

    /* Most items live for ever: reading them writes nothing. */
    if (r < 0 || !refresh || !ret->ttl_us)
        return r;
    return store_write(s, refresh_body, &w, reterr);
}

static int delete_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_add(&q, "DELETE FROM items");
    add_key(&q, w);
    r = query_run(&q, tx, NULL, NULL, reterr);
    if (r == 0)
        return refuse_missing(w, reterr);
    return r < 0 ? (int)r : 0;
}

int store_item_delete(struct store *s, const char *owner, const char *namespace, const char *key,
                      struct error *reterr)
{
    return store_write(
        s, delete_body,
        &(struct work){
            .owner = owner, .namespace = namespace, .key = key, .now_us = timestamp_now()},
        reterr);
}

/* ---- many ---- */

struct search {
    const char *owner, *prefix, *below, *behind; /* "a", "a.", "a/" */
    const char *filter, *like;
    const struct store_page *page;
    int64_t now_us;
    struct query_rows rows;
};

static int search_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct search *w = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_select(&q, &shape);
    query_bind(&q, " WHERE owner = ?", STORE_T(w->owner));
    if (*w->prefix) {
        query_bind(&q, " AND (namespace = ?", STORE_T(w->prefix));
        query_bind(&q, " OR (namespace >= ?", STORE_T(w->below));
        query_bind(&q, " AND namespace < ?))", STORE_T(w->behind));
    }
    add_alive(&q, w->now_us);
    query_bind_if(&q, " AND lower(value) LIKE lower(?) ESCAPE '!'", w->like);
    query_bind_if(&q, " AND json_contains(value, ?)", w->filter);
    r = query_page(&q, &shape, w->page, reterr);
    if (r == 0)
        r = query_rows(&q, tx, &w->rows, reterr);
    return r < 0 ? (int)r : 0;
}

int store_item_search(struct store *s, const char *owner, const char *prefix, const char *filter,
                      const char *query, const struct store_page *page, struct arena *arena,
                      struct store_item **ret, size_t *ret_count, struct error *reterr)
{
    struct search w = {.owner = owner,
                       .prefix = prefix,
                       .below = arena_printf(arena, "%s.", prefix),
                       .behind = arena_printf(arena, "%s/", prefix),
                       .filter = filter,
                       .page = page,
                       .now_us = timestamp_now(),
                       .rows = {.shape = &shape, .arena = arena}};
    auto_buf struct buf like = {0};
    int r = query && *query ? query_like(query, &like, reterr) : 0;

    if (r == 0 && (!w.below || !w.behind))
        r = error_no_memory(reterr);
    if (r < 0)
        return r;
    w.like = like.len ? buf_str(&like) : NULL;
    r = store_read(s, search_body, &w, reterr);
    if (r < 0)
        return r;
    *ret = w.rows.data;
    *ret_count = w.rows.count;
    return 0;
}

struct name {
    const char *text;
};

static const struct query_column name_columns[] = {
    {"namespace", QUERY_TEXT, offsetof(struct name, text)},
};

static const struct query_shape name_shape = {
    .table = "items",
    .size = sizeof(struct name),
    .columns = name_columns,
    .column_count = ARRAY_LEN(name_columns),
};

static int namespaces_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct search *w = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_bind(&q, "SELECT DISTINCT namespace FROM items WHERE owner = ?", STORE_T(w->owner));
    add_alive(&q, w->now_us);
    query_add(&q, " ORDER BY namespace");
    r = query_rows(&q, tx, &w->rows, reterr);
    return r < 0 ? (int)r : 0;
}

int store_item_namespaces(struct store *s, const char *owner, struct arena *arena,
                          const char ***ret, size_t *ret_count, struct error *reterr)
{
    struct search w = {
        .owner = owner, .now_us = timestamp_now(), .rows = {.shape = &name_shape, .arena = arena}};
    const struct name *names;
    int r = store_read(s, namespaces_body, &w, reterr);

    if (r < 0)
        return r;
    names = w.rows.data;
    *ret = arena_alloc(arena, (w.rows.count + 1) * sizeof(**ret));
    if (!*ret)
        return error_no_memory(reterr);
    for (size_t i = 0; i < w.rows.count; i++)
        (*ret)[i] = names[i].text;
    *ret_count = w.rows.count;
    return 0;
}

static int expire_body(void *user, struct store_tx *tx, struct error *reterr)
{
    int64_t r = STORE_RUN(tx, "DELETE FROM items WHERE expires_us > 0 AND expires_us <= $1", reterr,
                          STORE_I(*(const int64_t *)user));

    return r < 0 ? (int)r : 0;
}

int store_item_expire(struct store *s, int64_t now_us, struct error *reterr)
{
    return store_write(s, expire_body, &now_us, reterr);
}
