/* SPDX-License-Identifier: MIT */
/*
 * Statements that are put together: filters that are there or not, pages, and rows that become
 * structs by a table of their columns. What a client gave becomes a parameter, never SQL.
 */
#pragma once

#include "store/db.h"
#include "store/store.h"

enum query_type { QUERY_TEXT, QUERY_INT, QUERY_BOOL };

/* A member of the struct, and the column of the same meaning. */
struct query_column {
    const char *name;
    enum query_type type;
    size_t offset;
};

struct query_sort {
    const char *name; /* as a client says it */
    const char *column;
};

/* A table and the struct of its rows. */
struct query_shape {
    const char *table;
    size_t size;
    const struct query_column *columns;
    size_t column_count;
    const struct query_sort *sorts; /* the first is the default */
    size_t sort_count;
    const char *tie; /* columns that order what is equal otherwise */
};

struct query {
    struct buf sql, params;
    size_t count;
    bool failed; /* without memory; query_run() tells */
};

void query_init(struct query *q);
void query_done(struct query *q);
#define auto_query __attribute__((cleanup(query_done)))

void query_add(struct query *q, const char *sql);
/* The "?" of `sql` becomes the parameter's number. */
void query_bind(struct query *q, const char *sql, struct store_value v);
/* query_bind(), unless `text` is NULL. */
void query_bind_if(struct query *q, const char *sql, const char *text);
/* "... column IN (...)"; `count` is at least 1. */
void query_bind_list(struct query *q, const char *sql, const char *const *texts, size_t count);

/* "SELECT columns FROM table", " RETURNING columns", and an INSERT of the members of `object`. */
void query_select(struct query *q, const struct query_shape *shape);
void query_returning(struct query *q, const struct query_shape *shape);
void query_insert(struct query *q, const struct query_shape *shape, const void *object);

/* ORDER BY, LIMIT and OFFSET. ERR_INVALID for a name that is none of the shape's. */
int query_page(struct query *q, const struct query_shape *shape, const struct store_page *page,
               struct error *reterr) must_check;

/* A pattern for "LIKE ? ESCAPE '!'" that finds the text itself. ERR_INVALID for one too long. */
int query_like(const char *text, struct buf *ret, struct error *reterr) must_check;

int64_t query_run(struct query *q, struct store_tx *tx, store_row_fn *each, void *user,
                  struct error *reterr) must_check;

/* Where rows go: structs of a shape, side by side in the arena. */
struct query_rows {
    const struct query_shape *shape;
    struct arena *arena;
    void *data;
    size_t count, cap;
};
/* The count, or <0. */
int64_t query_rows(struct query *q, struct store_tx *tx, struct query_rows *ret,
                   struct error *reterr) must_check;
/* 1, or 0 without a row; `ret` is a struct of the shape. */
int query_one(struct query *q, struct store_tx *tx, const struct query_shape *shape,
              struct arena *arena, void *ret, struct error *reterr) must_check;
/* The integer of the only row, as of COUNT(*). */
int query_number(struct query *q, struct store_tx *tx, int64_t *ret,
                 struct error *reterr) must_check;

/* A page of rows and the count of all, by one filter. */
struct query_search {
    const struct query_shape *shape;
    void (*filter)(struct query *q, const void *user); /* adds the WHERE */
    const void *user;
    const struct store_page *page;
    struct query_rows *rows; /* NULL: only the count is wanted */
    int64_t *ret_total;      /* NULL: it is not wanted */
};
int query_search(const struct query_search *search, struct store_tx *tx,
                 struct error *reterr) must_check;
