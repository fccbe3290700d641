/* SPDX-License-Identifier: MIT */
/* Which files sessions have exported for which thread; each path of a session once. */
#include "store/query.h"

#include "base/timestamp.h"

static const struct query_column columns[] = {
    {"thread_id", QUERY_TEXT, offsetof(struct store_export, thread_id)},
    {"session_id", QUERY_TEXT, offsetof(struct store_export, session_id)},
    {"path", QUERY_TEXT, offsetof(struct store_export, path)},
};

static const struct query_shape shape = {
    .table = "exports",
    .size = sizeof(struct store_export),
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
};

static int put_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct store_export *e = user;
    int64_t r = STORE_RUN(tx,
                          "INSERT INTO exports (session_id, path, thread_id, created_us) "
                          "VALUES ($1, $2, $3, $4) ON CONFLICT (session_id, path) "
                          "DO UPDATE SET thread_id = excluded.thread_id",
                          reterr, STORE_T(e->session_id), STORE_T(e->path), STORE_T(e->thread_id),
                          STORE_I(timestamp_now()));

    return r < 0 ? (int)r : 0;
}

int store_export_put(struct store *s, const struct store_export *e, struct error *reterr)
{
    struct store_export copy = *e;

    return store_write(s, put_body, &copy, reterr);
}

struct list {
    const char *session_id;
    struct query_rows rows;
};

static int list_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct list *w = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_select(&q, &shape);
    query_bind_if(&q, " WHERE session_id = ?", w->session_id);
    query_add(&q, " ORDER BY created_us, session_id, path");
    r = query_rows(&q, tx, &w->rows, reterr);
    return r < 0 ? (int)r : 0;
}

int store_export_list(struct store *s, const char *session_id, struct arena *arena,
                      struct store_export **ret, size_t *ret_count, struct error *reterr)
{
    struct list w = {.session_id = session_id, .rows = {.shape = &shape, .arena = arena}};
    int r = store_read(s, list_body, &w, reterr);

    if (r < 0)
        return r;
    *ret = w.rows.data;
    *ret_count = w.rows.count;
    return 0;
}

static int delete_body(void *user, struct store_tx *tx, struct error *reterr)
{
    int64_t r = STORE_RUN(tx, "DELETE FROM exports WHERE session_id = $1", reterr,
                          STORE_T(*(const char **)user));

    return r < 0 ? (int)r : 0;
}

int store_export_delete(struct store *s, const char *session_id, struct error *reterr)
{
    return store_write(s, delete_body, &session_id, reterr);
}
