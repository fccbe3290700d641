/* SPDX-License-Identifier: MIT */
/*
 * Statements from parts. Parameters are numbered as they are bound, so one text serves both
 * databases; a failure for want of memory is kept until the statement is run.
 */
#include "store/query.h"

#include "base/str.h"

#include <stdio.h>

enum { SQL_MAX = 64 << 10, PARAMS_MAX = 4096, LIKE_MAX = 8192 };

void query_init(struct query *q)
{
    *q = (struct query){0};
    buf_init(&q->sql, SQL_MAX);
    buf_init(&q->params, PARAMS_MAX * sizeof(struct store_value));
}

void query_done(struct query *q)
{
    buf_done(&q->sql);
    buf_done(&q->params);
}

void query_add(struct query *q, const char *sql)
{
    if (buf_append_str(&q->sql, sql) < 0)
        q->failed = true;
}

static void add_param(struct query *q, struct store_value v)
{
    if (buf_append(&q->params, &v, sizeof(v)) < 0 || buf_printf(&q->sql, "$%zu", ++q->count) < 0)
        q->failed = true;
}

void query_bind(struct query *q, const char *sql, struct store_value v)
{
    size_t head = strcspn(sql, "?");

    if (buf_append(&q->sql, sql, head) < 0)
        q->failed = true;
    add_param(q, v);
    if (sql[head])
        query_add(q, sql + head + 1);
}

void query_bind_if(struct query *q, const char *sql, const char *text)
{
    if (text)
        query_bind(q, sql, STORE_T(text));
}

void query_bind_list(struct query *q, const char *sql, const char *const *texts, size_t count)
{
    query_add(q, sql);
    query_add(q, " IN (");
    for (size_t i = 0; i < count; i++)
        query_bind(q, i ? ", ?" : "?", STORE_T(texts[i]));
    query_add(q, ")");
}

static void add_columns(struct query *q, const struct query_shape *shape)
{
    for (size_t i = 0; i < shape->column_count; i++) {
        query_add(q, i ? ", " : "");
        query_add(q, shape->columns[i].name);
    }
}

void query_select(struct query *q, const struct query_shape *shape)
{
    query_add(q, "SELECT ");
    add_columns(q, shape);
    query_add(q, " FROM ");
    query_add(q, shape->table);
}

void query_returning(struct query *q, const struct query_shape *shape)
{
    query_add(q, " RETURNING ");
    add_columns(q, shape);
}

static struct store_value member_get(const struct query_column *column, const void *object)
{
    const char *at = (const char *)object + column->offset;

    switch (column->type) {
    case QUERY_INT:
        return STORE_I(*(const int64_t *)(const void *)at);
    case QUERY_BOOL:
        return STORE_I(*(const bool *)(const void *)at);
    case QUERY_TEXT:
        break;
    }
    return STORE_T(*(const char *const *)(const void *)at);
}

void query_insert(struct query *q, const struct query_shape *shape, const void *object)
{
    query_add(q, "INSERT INTO ");
    query_add(q, shape->table);
    query_add(q, " (");
    add_columns(q, shape);
    query_add(q, ") VALUES (");
    for (size_t i = 0; i < shape->column_count; i++)
        query_bind(q, i ? ", ?" : "?", member_get(&shape->columns[i], object));
    query_add(q, ")");
}

static const struct query_sort *sort_find(const struct query_shape *shape, const char *name)
{
    if (!name)
        return &shape->sorts[0];
    for (size_t i = 0; i < shape->sort_count; i++)
        if (str_eq(shape->sorts[i].name, name))
            return &shape->sorts[i];
    return NULL;
}

static int sort_refuse(const struct query_shape *shape, const char *name, struct error *reterr)
{
    char names[200] = "";
    size_t used = 0;

    for (size_t i = 0; i < shape->sort_count && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 shape->sorts[i].name);
    return error_set(reterr, ERR_INVALID, "cannot sort by '%.40s'; there are: %s", name, names);
}

int query_page(struct query *q, const struct query_shape *shape, const struct store_page *page,
               struct error *reterr)
{
    const struct query_sort *sort = sort_find(shape, page->sort_by);

    if (!sort)
        return sort_refuse(shape, page->sort_by, reterr);
    query_add(q, " ORDER BY ");
    query_add(q, sort->column);
    query_add(q, page->ascending ? " ASC, " : " DESC, ");
    query_add(q, shape->tie);
    query_bind(q, " LIMIT ?", STORE_I(MAX(page->limit, 0)));
    query_bind(q, " OFFSET ?", STORE_I(MAX(page->offset, 0)));
    return 0;
}

int query_like(const char *text, struct buf *ret, struct error *reterr)
{
    /* SQLite refuses longer patterns, with an error that says less. */
    if (strlen(text) > LIKE_MAX)
        return error_set(reterr, ERR_INVALID, "a text to search for has at most %d bytes",
                         LIKE_MAX);
    buf_init(ret, 2 * LIKE_MAX + 2);
    if (buf_append_byte(ret, '%') < 0)
        return error_no_memory(reterr);
    for (; *text; text++)
        if ((strchr("%_!", *text) && buf_append_byte(ret, '!') < 0) ||
            buf_append_byte(ret, (unsigned char)*text) < 0)
            return error_no_memory(reterr);
    return buf_append_byte(ret, '%') < 0 ? error_no_memory(reterr) : 0;
}

int64_t query_run(struct query *q, struct store_tx *tx, store_row_fn *each, void *user,
                  struct error *reterr)
{
    if (q->failed)
        return error_no_memory(reterr);
    return store_exec(tx,
                      &(struct store_statement){.sql = buf_str(&q->sql),
                                                .params = (const void *)q->params.data,
                                                .param_count = q->count,
                                                .each = each,
                                                .user = user},
                      reterr);
}

/* ---- rows ---- */

static void member_set(const struct query_column *column, const struct store_value *v,
                       struct arena *arena, void *object, bool *failed)
{
    void *at = (char *)object + column->offset;

    switch (column->type) {
    case QUERY_INT:
        *(int64_t *)at = v->integer;
        return;
    case QUERY_BOOL:
        *(bool *)at = v->integer != 0;
        return;
    case QUERY_TEXT:
        break;
    }
    *(const char **)at = store_column(arena, v, failed);
}

static int row_read(const struct query_shape *shape, const struct store_value *row, size_t count,
                    struct arena *arena, void *ret)
{
    bool failed = false;

    for (size_t i = 0; i < MIN(count, shape->column_count); i++)
        member_set(&shape->columns[i], &row[i], arena, ret, &failed);
    return failed ? -1 : 0;
}

static int rows_grow(struct query_rows *rows)
{
    size_t cap = rows->cap ? 2 * rows->cap : 16;
    char *data = arena_alloc(rows->arena, cap * rows->shape->size);

    if (!data)
        return -1;
    if (rows->count)
        memcpy(data, rows->data, rows->count * rows->shape->size);
    rows->data = data;
    rows->cap = cap;
    return 0;
}

static int row_keep(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    struct query_rows *rows = user;

    if ((rows->count == rows->cap && rows_grow(rows) < 0) ||
        row_read(rows->shape, row, count, rows->arena,
                 (char *)rows->data + rows->count * rows->shape->size) < 0)
        return error_no_memory(reterr);
    rows->count++;
    return 0;
}

int64_t query_rows(struct query *q, struct store_tx *tx, struct query_rows *ret,
                   struct error *reterr)
{
    ret->data = NULL;
    ret->count = ret->cap = 0;
    return query_run(q, tx, row_keep, ret, reterr);
}

struct one {
    const struct query_shape *shape;
    struct arena *arena;
    void *ret;
};

static int one_keep(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    struct one *one = user;

    if (row_read(one->shape, row, count, one->arena, one->ret) < 0)
        return error_no_memory(reterr);
    return 0;
}

int query_one(struct query *q, struct store_tx *tx, const struct query_shape *shape,
              struct arena *arena, void *ret, struct error *reterr)
{
    struct one one = {.shape = shape, .arena = arena, .ret = ret};
    int64_t r = query_run(q, tx, one_keep, &one, reterr);

    return r < 0 ? (int)r : r > 0;
}

static int number_keep(void *user, const struct store_value *row, size_t count,
                       struct error *reterr)
{
    *(int64_t *)user = row[0].integer;
    return 0;
}

int query_number(struct query *q, struct store_tx *tx, int64_t *ret, struct error *reterr)
{
    int64_t r;

    *ret = 0;
    r = query_run(q, tx, number_keep, ret, reterr);
    return r < 0 ? (int)r : 0;
}

static int search_total(const struct query_search *search, struct store_tx *tx,
                        struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_add(&q, "SELECT COUNT(*) FROM ");
    query_add(&q, search->shape->table);
    search->filter(&q, search->user);
    return query_number(&q, tx, search->ret_total, reterr);
}

int query_search(const struct query_search *search, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;
    int64_t r = 0;

    query_init(&q);
    if (search->ret_total)
        r = search_total(search, tx, reterr);
    if (r < 0 || !search->rows)
        return (int)r;
    query_select(&q, search->shape);
    search->filter(&q, search->user);
    r = query_page(&q, search->shape, search->page, reterr);
    if (r == 0)
        r = query_rows(&q, tx, search->rows, reterr);
    return r < 0 ? (int)r : 0;
}
