/* SPDX-License-Identifier: MIT */
/*
 * Assistants and their versions. The row of an assistant is its current version; the versions are
 * beside it, and changing the row first is what makes changes of one assistant wait for each other.
 */
#include "store/query.h"

#include "base/str.h"
#include "base/timestamp.h"

#define AT(member) offsetof(struct store_assistant, member)

static const struct query_column columns[] = {
    {"id", QUERY_TEXT, AT(id)},
    {"owner", QUERY_TEXT, AT(owner)},
    {"graph_id", QUERY_TEXT, AT(graph_id)},
    {"name", QUERY_TEXT, AT(name)},
    {"description", QUERY_TEXT, AT(description)},
    {"config", QUERY_TEXT, AT(config)},
    {"context", QUERY_TEXT, AT(context)},
    {"metadata", QUERY_TEXT, AT(metadata)},
    {"version", QUERY_INT, AT(version)},
    {"created_us", QUERY_INT, AT(created_us)},
    {"updated_us", QUERY_INT, AT(updated_us)},
};

static const struct query_sort sorts[] = {
    {"created_at", "created_us"},
    {"updated_at", "updated_us"},
    {"assistant_id", "id"},
    {"graph_id", "graph_id"},
    {"name", "name"},
};

static const struct query_shape shape = {
    .table = "assistants",
    .size = sizeof(struct store_assistant),
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
    .sorts = sorts,
    .sort_count = ARRAY_LEN(sorts),
    .tie = "id",
};

struct work {
    const char *owner, *id;
    const struct store_assistant *assistant;
    bool exists_ok;
    int64_t version;
    struct arena *arena;
    struct store_assistant *ret;
};

static int refuse_missing(const char *id, struct error *reterr)
{
    return error_set(reterr, ERR_NOT_FOUND, "there is no assistant '%.60s'", id);
}

/* 1, or 0 when the owner sees none of this id. */
static int find(const struct work *w, const char *owner, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_select(&q, &shape);
    query_bind(&q, " WHERE id = ?", STORE_T(w->id));
    query_bind(&q, " AND (owner = ? OR owner = '')", STORE_T(owner));
    return query_one(&q, tx, &shape, w->arena, w->ret, reterr);
}

/* The row as it is now becomes a version. */
static int keep_version(struct store_tx *tx, const char *id, struct error *reterr)
{
    int64_t r = STORE_RUN(tx,
                          "INSERT INTO assistant_versions (assistant_id, version, graph_id, name, "
                          "description, config, context, metadata, created_us) "
                          "SELECT id, version, graph_id, name, description, config, context, "
                          "metadata, updated_us FROM assistants WHERE id = $1",
                          reterr, STORE_T(id));

    return r < 0 ? (int)r : 0;
}

/* ---- create ---- */

static int insert(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;
    int r;

    query_init(&q);
    query_insert(&q, &shape, w->assistant);
    query_add(&q, " ON CONFLICT (id) DO NOTHING");
    query_returning(&q, &shape);
    r = query_one(&q, tx, &shape, w->arena, w->ret, reterr);
    if (r <= 0)
        return r;
    r = keep_version(tx, w->id, reterr);
    return r < 0 ? r : 1;
}

static int create_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int r = insert(w, tx, reterr);

    if (r != 0)
        return MIN(r, 0);
    r = w->exists_ok ? find(w, w->owner, tx, reterr) : 0;
    if (r != 0)
        return MIN(r, 0);
    return error_set(reterr, ERR_EXISTS, "an assistant '%.60s' exists", w->id);
}

static const char *or_empty(const char *json)
{
    return json ? json : "{}";
}

int store_assistant_create(struct store *s, const struct store_assistant *a, bool exists_ok,
                           struct arena *arena, struct store_assistant *ret, struct error *reterr)
{
    struct store_assistant new = *a;

    new.version = 1;
    new.config = or_empty(a->config);
    new.context = or_empty(a->context);
    new.metadata = or_empty(a->metadata);
    new.created_us = new.updated_us = timestamp_now();
    return store_write(s, create_body,
                       &(struct work){.owner = a->owner,
                                      .id = a->id,
                                      .assistant = &new,
                                      .exists_ok = exists_ok,
                                      .arena = arena,
                                      .ret = ret},
                       reterr);
}

/* ---- one ---- */

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int r = find(w, w->owner, tx, reterr);

    return r == 0 ? refuse_missing(w->id, reterr) : MIN(r, 0);
}

int store_assistant_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                        struct store_assistant *ret, struct error *reterr)
{
    return store_read(s, get_body,
                      &(struct work){.owner = owner, .id = id, .arena = arena, .ret = ret}, reterr);
}

/* Locks the row of one that the owner may change. */
static int claim(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    struct store_assistant seen;
    struct work look = *w;
    int64_t n =
        STORE_RUN(tx, "UPDATE assistants SET updated_us = updated_us WHERE id = $1 AND owner = $2",
                  reterr, STORE_T(w->id), STORE_T(w->owner));
    int r;

    if (n != 0)
        return n < 0 ? (int)n : 0;
    look.ret = &seen;
    r = find(&look, w->owner, tx, reterr);
    if (r > 0)
        return error_set(reterr, ERR_DENIED, "the assistant '%.60s' is the system's", w->id);
    return r < 0 ? r : refuse_missing(w->id, reterr);
}

static int set_row(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    const struct store_assistant *a = w->assistant;
    auto_query struct query q;

    query_init(&q);
    query_bind(&q, "UPDATE assistants SET graph_id = ?", STORE_T(a->graph_id));
    query_bind(&q, ", name = ?", STORE_T(a->name));
    query_bind(&q, ", description = ?", STORE_T(a->description));
    query_bind(&q, ", config = ?", STORE_T(or_empty(a->config)));
    query_bind(&q, ", context = ?", STORE_T(or_empty(a->context)));
    query_bind(&q, ", metadata = ?", STORE_T(or_empty(a->metadata)));
    query_bind(&q, ", updated_us = ?", STORE_I(timestamp_now()));
    query_bind(&q,
               ", version = 1 + (SELECT MAX(v.version) FROM assistant_versions v "
               "WHERE v.assistant_id = assistants.id) WHERE id = ?",
               STORE_T(w->id));
    query_returning(&q, &shape);
    return query_one(&q, tx, &shape, w->arena, w->ret, reterr);
}

static int update_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int r = claim(w, tx, reterr);

    if (r == 0)
        r = set_row(w, tx, reterr);
    return r < 0 ? r : keep_version(tx, w->id, reterr);
}

int store_assistant_update(struct store *s, const char *owner, const struct store_assistant *a,
                           struct arena *arena, struct store_assistant *ret, struct error *reterr)
{
    return store_write(
        s, update_body,
        &(struct work){.owner = owner, .id = a->id, .assistant = a, .arena = arena, .ret = ret},
        reterr);
}

/* What would start runs of it goes with it. */
static int delete_body(void *user, struct store_tx *tx, struct error *reterr)
{
    static const char *const statements[] = {"DELETE FROM crons WHERE assistant_id = $1",
                                             "DELETE FROM assistants WHERE id = $1"};
    const struct work *w = user;
    int64_t r = claim(w, tx, reterr);

    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(statements); i++)
        r = STORE_RUN(tx, statements[i], reterr, STORE_T(w->id));
    return r < 0 ? (int)r : 0;
}

int store_assistant_delete(struct store *s, const char *owner, const char *id, struct error *reterr)
{
    auto_arena struct arena scratch;

    arena_init(&scratch, 64 * MIB);
    return store_write(s, delete_body, &(struct work){.owner = owner, .id = id, .arena = &scratch},
                       reterr);
}

/* ---- many ---- */

struct search {
    const char *owner;
    const struct store_assistant_filter *filter;
    const struct store_page *page;
    const char *like;
    struct query_rows rows;
    bool wanted;
    int64_t *ret_total;
};

static void add_filter(struct query *q, const void *user)
{
    const struct search *w = user;

    query_bind(q, " WHERE (owner = ? OR owner = '')", STORE_T(w->owner));
    query_bind_if(q, " AND graph_id = ?", w->filter->graph_id);
    query_bind_if(q, " AND lower(name) LIKE lower(?) ESCAPE '!'", w->like);
    query_bind_if(q, " AND json_contains(metadata, ?)", w->filter->metadata);
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

int store_assistant_search(struct store *s, const char *owner,
                           const struct store_assistant_filter *filter,
                           const struct store_page *page, struct arena *arena,
                           struct store_assistant **ret, size_t *ret_count, int64_t *ret_total,
                           struct error *reterr)
{
    struct search w = {.owner = owner,
                       .filter = filter,
                       .page = page,
                       .rows = {.shape = &shape, .arena = arena},
                       .wanted = ret != NULL,
                       .ret_total = ret_total};
    auto_buf struct buf like = {0};
    int r = filter->name ? query_like(filter->name, &like, reterr) : 0;

    if (r < 0)
        return r;
    w.like = filter->name ? buf_str(&like) : NULL;
    r = store_read(s, search_body, &w, reterr);
    if (r < 0 || !ret)
        return r;
    *ret = w.rows.data;
    *ret_count = w.rows.count;
    return 0;
}

/* ---- versions ---- */

static const struct query_column version_columns[] = {
    {"assistants.id", QUERY_TEXT, AT(id)},          {"assistants.owner", QUERY_TEXT, AT(owner)},
    {"v.graph_id", QUERY_TEXT, AT(graph_id)},       {"v.name", QUERY_TEXT, AT(name)},
    {"v.description", QUERY_TEXT, AT(description)}, {"v.config", QUERY_TEXT, AT(config)},
    {"v.context", QUERY_TEXT, AT(context)},         {"v.metadata", QUERY_TEXT, AT(metadata)},
    {"v.version", QUERY_INT, AT(version)},          {"v.created_us", QUERY_INT, AT(created_us)},
    {"v.created_us", QUERY_INT, AT(updated_us)},
};

static const struct query_sort version_sorts[] = {{"version", "v.version"}};

static const struct query_shape version_shape = {
    .table = "assistant_versions v JOIN assistants ON assistants.id = v.assistant_id",
    .size = sizeof(struct store_assistant),
    .columns = version_columns,
    .column_count = ARRAY_LEN(version_columns),
    .sorts = version_sorts,
    .sort_count = ARRAY_LEN(version_sorts),
    .tie = "assistants.id",
};

struct versions {
    struct work look;
    const char *metadata;
    const struct store_page *page;
    struct query_rows rows;
};

static int versions_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct versions *w = user;
    struct store_page page = {.limit = w->page->limit, .offset = w->page->offset};
    auto_query struct query q;
    int64_t r = get_body(&w->look, tx, reterr);

    query_init(&q);
    query_select(&q, &version_shape);
    query_bind(&q, " WHERE v.assistant_id = ?", STORE_T(w->look.id));
    query_bind_if(&q, " AND json_contains(v.metadata, ?)", w->metadata);
    if (r == 0)
        r = query_page(&q, &version_shape, &page, reterr);
    if (r == 0)
        r = query_rows(&q, tx, &w->rows, reterr);
    return r < 0 ? (int)r : 0;
}

int store_assistant_versions(struct store *s, const char *owner, const char *id,
                             const char *metadata, const struct store_page *page,
                             struct arena *arena, struct store_assistant **ret, size_t *ret_count,
                             struct error *reterr)
{
    struct store_assistant current;
    struct versions w = {.look = {.owner = owner, .id = id, .arena = arena, .ret = &current},
                         .metadata = metadata,
                         .page = page,
                         .rows = {.shape = &version_shape, .arena = arena}};
    int r = store_read(s, versions_body, &w, reterr);

    if (r < 0)
        return r;
    *ret = w.rows.data;
    *ret_count = w.rows.count;
    return 0;
}

static int set_version_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    struct store_assistant version;
    auto_query struct query q;
    int64_t r = claim(w, tx, reterr);

    query_init(&q);
    query_select(&q, &version_shape);
    query_bind(&q, " WHERE v.assistant_id = ?", STORE_T(w->id));
    query_bind(&q, " AND v.version = ?", STORE_I(w->version));
    if (r < 0)
        return (int)r;
    r = query_one(&q, tx, &version_shape, w->arena, &version, reterr);
    if (r == 0)
        return error_set(reterr, ERR_NOT_FOUND, "the assistant has no version %lld",
                         (long long)w->version);
    if (r > 0)
        r = STORE_RUN(tx,
                      "UPDATE assistants SET graph_id = $1, name = $2, description = $3, "
                      "config = $4, context = $5, metadata = $6, version = $7, updated_us = $8 "
                      "WHERE id = $9",
                      reterr, STORE_T(version.graph_id), STORE_T(version.name),
                      STORE_T(version.description), STORE_T(version.config),
                      STORE_T(version.context), STORE_T(version.metadata), STORE_I(w->version),
                      STORE_I(timestamp_now()), STORE_T(w->id));
    return r < 0 ? (int)r : get_body(user, tx, reterr);
}

int store_assistant_set_version(struct store *s, const char *owner, const char *id, int64_t version,
                                struct arena *arena, struct store_assistant *ret,
                                struct error *reterr)
{
    return store_write(
        s, set_version_body,
        &(struct work){.owner = owner, .id = id, .version = version, .arena = arena, .ret = ret},
        reterr);
}
