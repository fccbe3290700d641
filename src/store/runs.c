/* SPDX-License-Identifier: MIT */
/*
 * Runs as clients see them: made, looked at, cancelled, deleted. Who works on them is in queue.c.
 */
#include "store/runs.h"

#include "base/str.h"
#include "base/timestamp.h"
#include "store/merge.h"
#include "store/runs-internal.h"

#define TEXT(member) {#member, QUERY_TEXT, offsetof(struct store_run, member)}
#define INT(member) {#member, QUERY_INT, offsetof(struct store_run, member)}

static const struct query_column run_columns[] = {
    TEXT(id),
    TEXT(thread_id),
    TEXT(owner),
    TEXT(assistant_id),
    TEXT(status),
    TEXT(metadata),
    TEXT(kwargs),
    TEXT(multitask),
    TEXT(error),
    TEXT(checkpoint),
    TEXT(worker),
    TEXT(cancel),
    {"temporary", QUERY_BOOL, offsetof(struct store_run, temporary)},
    INT(attempt),
    INT(created_us),
    INT(updated_us),
    INT(start_us),
    INT(lease_us),
};

static const struct query_sort run_sorts[] = {{"created_at", "created_us"}};

const struct query_shape run_shape = {
    .table = "runs",
    .size = sizeof(struct store_run),
    .columns = run_columns,
    .column_count = ARRAY_LEN(run_columns),
    .sorts = run_sorts,
    .sort_count = ARRAY_LEN(run_sorts),
    .tie = "seq DESC",
};

static const struct query_column brief_columns[] = {
    TEXT(id),         TEXT(thread_id),
    TEXT(owner),      TEXT(status),
    TEXT(checkpoint), TEXT(worker),
    TEXT(cancel),     {"temporary", QUERY_BOOL, offsetof(struct store_run, temporary)},
    INT(attempt),
};

const struct query_shape run_brief_shape = {
    .table = "runs",
    .size = sizeof(struct store_run),
    .columns = brief_columns,
    .column_count = ARRAY_LEN(brief_columns),
    .sorts = run_sorts,
    .sort_count = ARRAY_LEN(run_sorts),
    .tie = "seq DESC",
};

/* ---- looking ---- */

int64_t run_lock_thread(struct store_tx *tx, const char *owner, const char *thread_id,
                        const char *run_id, struct error *reterr)
{
    return STORE_RUN(tx,
                     "UPDATE threads SET run_seq = run_seq WHERE id = (SELECT thread_id FROM runs "
                     "WHERE id = $1 AND owner = coalesce(CAST($2 AS TEXT), owner) "
                     "AND thread_id = coalesce(CAST($3 AS TEXT), thread_id))",
                     reterr, STORE_T(run_id), STORE_T(owner), STORE_T(thread_id));
}

int run_find(struct store_tx *tx, const char *id, struct arena *arena, struct store_run *ret,
             struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_select(&q, &run_shape);
    query_bind(&q, " WHERE id = ?", STORE_T(id));
    return query_one(&q, tx, &run_shape, arena, ret, reterr);
}

static int no_such_run(struct error *reterr)
{
    return error_set(reterr, ERR_NOT_FOUND, "no such run");
}

/* Locks the thread of a run that is the owner's, and finds the run. */
static int run_lock(struct store_tx *tx, const char *const id[3], struct arena *arena,
                    struct store_run *ret, struct error *reterr)
{
    int64_t r = run_lock_thread(tx, id[0], id[1], id[2], reterr);

    if (r > 0)
        r = run_find(tx, id[2], arena, ret, reterr);
    if (r == 0)
        return no_such_run(reterr);
    return r < 0 ? (int)r : 0;
}

struct look {
    const char *owner, *thread_id, *id, *status;
    const struct store_page *page;
    const struct query_shape *shape; /* of a list */
    struct arena *arena;
    struct store_run *ret;
    struct query_rows rows;
};

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct look *look = user;
    auto_query struct query q;
    int r;

    query_init(&q);
    query_select(&q, &run_shape);
    query_bind(&q, " WHERE id = ?", STORE_T(look->id));
    query_bind(&q, " AND owner = ?", STORE_T(look->owner));
    query_bind_if(&q, " AND thread_id = ?", look->thread_id);
    r = query_one(&q, tx, &run_shape, look->arena, look->ret, reterr);
    return r == 0 ? no_such_run(reterr) : r;
}

int store_run_get(struct store *s, const char *owner, const char *thread_id, const char *id,
                  struct arena *arena, struct store_run *ret, struct error *reterr)
{
    struct look look = {
        .owner = owner, .thread_id = thread_id, .id = id, .arena = arena, .ret = ret};
    int r = store_read(s, get_body, &look, reterr);

    return r < 0 ? r : 0;
}

static int list_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct look *look = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_select(&q, look->shape);
    query_bind(&q, " WHERE owner = ?", STORE_T(look->owner));
    query_bind_if(&q, " AND thread_id = ?", look->thread_id);
    query_bind_if(&q, " AND status = ?", look->status);
    r = query_page(&q, look->shape, look->page, reterr);
    look->rows = (struct query_rows){.shape = look->shape, .arena = look->arena};
    if (r == 0)
        r = query_rows(&q, tx, &look->rows, reterr);
    return r < 0 ? (int)r : 0;
}

static int runs_list(struct store *s, struct look *look, struct store_run **ret, size_t *ret_count,
                     struct error *reterr)
{
    int r = store_read(s, list_body, look, reterr);

    *ret = look->rows.data;
    *ret_count = r < 0 ? 0 : look->rows.count;
    return r;
}

int store_run_list(struct store *s, const char *owner, const char *thread_id, const char *status,
                   const struct store_page *page, struct arena *arena, struct store_run **ret,
                   size_t *ret_count, struct error *reterr)
{
    struct look look = {.owner = owner,
                        .thread_id = thread_id,
                        .status = status,
                        .page = page,
                        .shape = &run_shape,
                        .arena = arena};

    return runs_list(s, &look, ret, ret_count, reterr);
}

int store_run_list_brief(struct store *s, const char *owner, const char *thread_id,
                         const char *status, const struct store_page *page, struct arena *arena,
                         struct store_run **ret, size_t *ret_count, struct error *reterr)
{
    struct look look = {.owner = owner,
                        .thread_id = thread_id,
                        .status = status,
                        .page = page,
                        .shape = &run_brief_shape,
                        .arena = arena};

    return runs_list(s, &look, ret, ret_count, reterr);
}

/* ---- making ---- */

struct create {
    const struct store_run_new *new;
    struct arena *arena;
    struct store_run *ret;
    struct query_rows running;
    int64_t now_us;
};

/* What the lock of a thread tells about it. */
struct locked {
    struct arena *arena;
    int64_t seq;
    const char *metadata, *rest;
    bool failed;
};

static int on_locked(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    struct locked *l = user;

    l->seq = row[0].integer;
    l->metadata = store_column(l->arena, &row[1], &l->failed);
    l->rest = store_column(l->arena, &row[2], &l->failed);
    return l->failed ? error_no_memory(reterr) : 0;
}

static int64_t thread_lock(struct store_tx *tx, const struct create *c, struct locked *ret,
                           struct error *reterr)
{
    const struct store_run *run = &c->new->run;

    *ret = (struct locked){.arena = c->arena};
    return store_exec(
        tx,
        &(struct store_statement){
            .sql = "UPDATE threads SET run_seq = run_seq + 1 WHERE id = $1 AND owner = $2 "
                   "RETURNING run_seq, metadata, "
                   "CASE WHEN status = 'busy' THEN rest ELSE status END",
            STORE_PARAMS(STORE_T(run->thread_id), STORE_T(run->owner)),
            .each = on_locked,
            .user = ret},
        reterr);
}

/* Of several that make the same thread at once, one does, and the others wait for it. */
static int thread_ensure(struct store_tx *tx, const struct create *c, struct locked *ret,
                         struct error *reterr)
{
    const struct store_run *run = &c->new->run;
    int64_t r = thread_lock(tx, c, ret, reterr);

    if (r == 0 && c->new->create_thread) {
        r = STORE_RUN(tx,
                      "INSERT INTO threads (id, owner, created_us, updated_us, state_updated_us) "
                      "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
                      reterr, STORE_T(run->thread_id), STORE_T(run->owner), STORE_I(c->now_us),
                      STORE_I(c->now_us), STORE_I(c->now_us));
        if (r >= 0)
            r = thread_lock(tx, c, ret, reterr);
    }
    if (r == 0)
        return error_set(reterr, ERR_NOT_FOUND, "no such thread");
    return r < 0 ? (int)r : 0;
}

static int active_find(struct store_tx *tx, struct create *c, struct query_rows *ret,
                       struct error *reterr)
{
    auto_query struct query q;
    int64_t r;

    *ret = (struct query_rows){.shape = &run_brief_shape, .arena = c->arena};
    query_init(&q);
    query_select(&q, &run_brief_shape);
    query_bind(&q, " WHERE thread_id = ? AND " RUN_IS_ACTIVE " ORDER BY seq",
               STORE_T(c->new->run.thread_id));
    r = query_rows(&q, tx, ret, reterr);
    return r < 0 ? (int)r : 0;
}

/* A rollback stays one when an interruption is asked for, too. */
static int running_cancel(struct store_tx *tx, const char *id, const char *action,
                          struct error *reterr)
{
    int64_t r = STORE_RUN(tx,
                          "UPDATE runs SET cancel = CASE WHEN cancel = 'rollback' THEN cancel "
                          "ELSE $2 END, updated_us = $3 WHERE id = $1",
                          reterr, STORE_T(id), STORE_T(action), STORE_I(timestamp_now()));

    return r < 0 ? (int)r : 0;
}

/* Ends what waits, and asks what runs; those that run go to the front of the list. */
static int active_cancel(struct store_tx *tx, struct query_rows *active, const char *action,
                         struct error *reterr)
{
    struct store_run *runs = active->data;
    size_t running = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < active->count; i++) {
        if (str_eq(runs[i].status, "pending")) {
            runs[i].temporary = false; /* its thread is wanted again */
            r = run_finish_cancelled(tx, &runs[i], action, reterr);
            continue;
        }
        r = running_cancel(tx, runs[i].id, action, reterr);
        runs[running++] = runs[i];
    }
    active->count = running;
    return r;
}

static int rule_apply(struct store_tx *tx, struct create *c, const struct locked *thread,
                      struct error *reterr)
{
    const char *rule = c->new->run.multitask;
    struct query_rows active;
    int r = active_find(tx, c, &active, reterr);

    c->running = (struct query_rows){0};
    if (r < 0)
        return r;
    if (c->new->resume && (active.count || !str_eq(thread->rest, "interrupted")))
        return error_set(reterr, ERR_INVALID, "the thread does not wait for an answer");
    if (active.count == 0 || str_eq(rule, "enqueue"))
        return 0;
    if (str_eq(rule, "reject"))
        return error_set(reterr, ERR_BUSY, "the thread has an active run");
    r = active_cancel(tx, &active, rule, reterr);
    c->running = active;
    return r;
}

static int row_insert(struct store_tx *tx, struct create *c, const struct locked *thread,
                      struct error *reterr)
{
    const struct store_run *run = &c->new->run;
    auto_query struct query q;
    int r;

    query_init(&q);
    query_add(&q, "INSERT INTO runs (id, thread_id, owner, seq, assistant_id, status, metadata, "
                  "kwargs, multitask, temporary, created_us, updated_us, start_us) VALUES (");
    query_bind(&q, "?", STORE_T(run->id));
    query_bind(&q, ", ?", STORE_T(run->thread_id));
    query_bind(&q, ", ?", STORE_T(run->owner));
    query_bind(&q, ", ?", STORE_I(thread->seq));
    query_bind(&q, ", ?, 'pending'", STORE_T(run->assistant_id));
    query_bind(&q, ", ?", STORE_T(run->metadata));
    query_bind(&q, ", ?", STORE_T(run->kwargs));
    query_bind(&q, ", ?", STORE_T(run->multitask));
    query_bind(&q, ", ?", STORE_I(run->temporary));
    query_bind(&q, ", ?", STORE_I(c->now_us));
    query_bind(&q, ", ?", STORE_I(c->now_us));
    query_bind(&q, ", ?)", STORE_I(run->start_us));
    query_returning(&q, &run_shape);
    r = query_one(&q, tx, &run_shape, c->arena, c->ret, reterr);
    return r < 0 ? r : 0;
}

static int create_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct create *c = user;
    struct locked thread;
    const char *metadata;
    int64_t changed;
    int r;

    c->now_us = timestamp_now();
    r = thread_ensure(tx, c, &thread, reterr);
    if (r == 0)
        r = rule_apply(tx, c, &thread, reterr);
    if (r == 0)
        r = row_insert(tx, c, &thread, reterr);
    if (r == 0)
        r = merge_json(thread.metadata, c->new->thread_metadata, c->arena, &metadata, reterr);
    if (r < 0)
        return r;
    changed =
        STORE_RUN(tx,
                  "UPDATE threads SET status = 'busy', metadata = $2, updated_us = $3 "
                  "WHERE id = $1",
                  reterr, STORE_T(c->new->run.thread_id), STORE_T(metadata), STORE_I(c->now_us));
    return changed < 0 ? (int)changed : 0;
}

int store_run_create(struct store *s, const struct store_run_new *n, struct arena *arena,
                     struct store_run *ret, struct store_run **ret_active, size_t *ret_active_count,
                     struct error *reterr)
{
    struct create c = {.new = n, .arena = arena, .ret = ret};
    int r = store_write(s, create_body, &c, reterr);

    *ret_active = c.running.data;
    *ret_active_count = r < 0 ? 0 : c.running.count;
    return r;
}

/* ---- cancelling and deleting ---- */

struct change {
    const char *id[3]; /* owner, thread, run */
    const char *action;
    struct arena *arena;
    struct store_run *ret;
};

/* What was removed by a rollback is given back as it would have ended. */
static int cancel_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct change *c = user;
    struct store_run *run = c->ret;
    int r = run_lock(tx, c->id, c->arena, run, reterr);

    if (r < 0)
        return r;
    if (str_eq(run->status, "pending")) {
        r = run_finish_cancelled(tx, run, c->action, reterr);
        run->status = "interrupted";
        run->cancel = c->action;
        return r;
    }
    if (!str_eq(run->status, "running"))
        return 0;
    r = running_cancel(tx, run->id, c->action, reterr);
    if (r == 0)
        r = run_find(tx, run->id, c->arena, run, reterr);
    return r < 0 ? r : 0;
}

int store_run_cancel(struct store *s, const char *owner, const char *thread_id, const char *id,
                     const char *action, struct arena *arena, struct store_run *ret,
                     struct error *reterr)
{
    struct change c = {.id = {owner, thread_id, id}, .action = action, .arena = arena, .ret = ret};

    return store_write(s, cancel_body, &c, reterr);
}

static int delete_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct change *c = user;
    auto_arena struct arena arena = {.max = 64 * MIB};
    struct store_run run;
    int64_t r = run_lock(tx, c->id, &arena, &run, reterr);

    if (r < 0)
        return (int)r;
    if (str_eq(run.status, "pending") || str_eq(run.status, "running"))
        return error_set(reterr, ERR_BUSY, "the run is active");
    r = STORE_RUN(tx, "DELETE FROM runs WHERE id = $1", reterr, STORE_T(run.id));
    return r < 0 ? (int)r : 0;
}

int store_run_delete(struct store *s, const char *owner, const char *thread_id, const char *id,
                     struct error *reterr)
{
    struct change c = {.id = {owner, thread_id, id}};

    return store_write(s, delete_body, &c, reterr);
}
