/* SPDX-License-Identifier: MIT */
/*
 * Runs as workers see them. A claim looks for candidates without a lock, then tries them one by
 * one, each in a transaction of its own that locks its thread and looks again: so a worker holds
 * one lock at a time, and of several workers one gets the run. Leases are compared with the
 * database's clock, because servers' clocks differ.
 */
#include "store/runs.h"

#include "base/json.h"
#include "base/str.h"
#include "base/timestamp.h"
#include "store/runs-internal.h"
#include "store/threads.h"

enum { CANDIDATES_MAX = 8, ROUNDS_MAX = 3 };

static const char abandoned[] =
    "{\"error\":\"RunAbandoned\",\"message\":\"its server was lost, several times\"}";

/* ---- the end of a run ---- */

int run_fenced(struct store_tx *tx, const struct store_fence *fence, struct arena *arena,
               struct store_run *ret, struct error *reterr)
{
    int64_t r = run_lock_thread(tx, NULL, NULL, fence->run_id, reterr);

    if (r > 0)
        r = run_find(tx, fence->run_id, arena, ret, reterr);
    if (r < 0)
        return (int)r;
    if (r == 0 || ret->attempt != fence->attempt || !str_eq(ret->status, "running"))
        return error_set(reterr, ERR_CANCELLED, "the run is not this server's any more");
    return 0;
}

int thread_count_active(struct store_tx *tx, const char *thread_id, int64_t *ret,
                        struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_bind(&q, "SELECT count(*) FROM runs WHERE thread_id = ? AND " RUN_IS_ACTIVE,
               STORE_T(thread_id));
    return query_number(&q, tx, ret, reterr);
}

/* What a thread is now: busy, or what the expression says. */
#define STATUS_OR(rest) \
    "status = CASE WHEN EXISTS (SELECT 1 FROM runs r WHERE r.thread_id = threads.id " \
    "AND r.status IN ('pending', 'running')) THEN 'busy' ELSE " rest " END, "

/* 1 when a temporary thread was removed. */
static int temporary_remove(struct store_tx *tx, const struct store_run *run, struct error *reterr)
{
    int64_t active = 0;
    int r = run->temporary ? thread_count_active(tx, run->thread_id, &active, reterr) : 0;

    if (r < 0 || !run->temporary || active)
        return r;
    return store_thread_remove(tx, run->thread_id, reterr);
}

int thread_settle(struct store_tx *tx, const struct store_run *run, struct error *reterr)
{
    int64_t r = temporary_remove(tx, run, reterr);

    if (r == 0)
        r = STORE_RUN(tx, "UPDATE threads SET " STATUS_OR("rest") "updated_us = $2 WHERE id = $1",
                      reterr, STORE_T(run->thread_id), STORE_I(timestamp_now()));
    return r < 0 ? (int)r : 0;
}

/* The thread is then what it was before the run. */
static int run_remove(struct store_tx *tx, const struct store_run *run, struct error *reterr)
{
    static const char *const statements[] = {
        "DELETE FROM checkpoints WHERE thread_id = $1 AND run_id = $2",
        "DELETE FROM messages WHERE thread_id = $1 AND run_id = $2",
        "DELETE FROM runs WHERE thread_id = $1 AND id = $2",
    };
    int64_t r = 0;

    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(statements); i++)
        r = STORE_RUN(tx, statements[i], reterr, STORE_T(run->thread_id), STORE_T(run->id));
    if (r >= 0)
        r = STORE_RUN(tx,
                      "UPDATE threads SET head = (SELECT max(id) FROM checkpoints "
                      "WHERE thread_id = $1) WHERE id = $1",
                      reterr, STORE_T(run->thread_id));
    return r < 0 ? (int)r : 0;
}

/* "Type: message" of a run's error, for the thread. */
static int error_text(const char *error, struct arena *arena, const char **ret,
                      struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *root;

    *ret = NULL;
    if (!error)
        return 0;
    if (json_parse(error, strlen(error), &doc, NULL) < 0) {
        *ret = error;
        return 0;
    }
    root = yyjson_doc_get_root(doc);
    *ret = arena_printf(arena, "%s: %s", json_get_str(root, "error", "Error"),
                        json_get_str(root, "message", ""));
    return *ret ? 0 : error_no_memory(reterr);
}

static int64_t row_finish(struct store_tx *tx, const struct store_run *run,
                          const struct store_run_end *end, struct error *reterr)
{
    return STORE_RUN(tx,
                     "UPDATE runs SET status = $2, error = $3, worker = NULL, lease_us = 0, "
                     "updated_us = $4 WHERE id = $1",
                     reterr, STORE_T(run->id), STORE_T(end->status), STORE_T(end->error),
                     STORE_I(timestamp_now()));
}

int run_finish(struct store_tx *tx, const struct store_run *run, const struct store_run_end *end,
               struct error *reterr)
{
    auto_arena struct arena arena = {.max = 16 * MIB};
    const char *text;
    int64_t r;

    if (end->rollback) {
        r = run_remove(tx, run, reterr);
        return r < 0 ? (int)r : thread_settle(tx, run, reterr);
    }
    r = error_text(end->error, &arena, &text, reterr);
    if (r == 0)
        r = row_finish(tx, run, end, reterr);
    if (r >= 0)
        r = STORE_RUN(tx, "UPDATE threads SET rest = $2, interrupts = $3, error = $4 WHERE id = $1",
                      reterr, STORE_T(run->thread_id),
                      STORE_T(end->thread_status ? end->thread_status : "idle"),
                      STORE_T(end->interrupts ? end->interrupts : "{}"), STORE_T(text));
    return r < 0 ? (int)r : thread_settle(tx, run, reterr);
}

/* One that wrote nothing leaves the thread as it was; else the thread rests where it stopped. */
int run_finish_cancelled(struct store_tx *tx, const struct store_run *run, const char *action,
                         struct error *reterr)
{
    const struct store_run_end end = {.status = "interrupted"};
    int64_t r;

    if (str_eq(action, "rollback"))
        return run_finish(tx, run, &(struct store_run_end){.rollback = true}, reterr);
    r = row_finish(tx, run, &end, reterr);
    if (r >= 0 && run->checkpoint)
        r = STORE_RUN(tx,
                      "UPDATE threads SET interrupts = '{}', error = NULL, rest = "
                      "coalesce((SELECT CASE WHEN next = '[]' THEN 'idle' ELSE 'interrupted' END "
                      "FROM checkpoints c WHERE c.thread_id = threads.id AND c.id = threads.head), "
                      "'idle') WHERE id = $1",
                      reterr, STORE_T(run->thread_id));
    return r < 0 ? (int)r : thread_settle(tx, run, reterr);
}

struct fenced {
    const struct store_fence *fence;
    const struct store_run_end *end;
};

/* A cancellation that was asked for before the end has won: nobody was promised the run. */
static int end_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct fenced *f = user;
    struct store_run_end end = *f->end;
    auto_arena struct arena arena = {.max = 64 * MIB};
    struct store_run run = {0};
    bool cancelled = false;
    int r = run_fenced(tx, f->fence, &arena, &run, reterr);

    /* Said again, because the answer to the first time was lost. */
    if (r == -ERR_CANCELLED && run.id && run.attempt == f->fence->attempt &&
        str_eq(run.status, end.status))
        return 0;
    if (r < 0)
        return r;
    if (run.cancel && str_eq(run.cancel, "rollback")) {
        cancelled = !end.rollback;
        end.rollback = true;
    } else if (run.cancel && str_eq(end.status, "success")) {
        cancelled = !end.rollback;
        end.status = "interrupted";
    }
    run.temporary = false; /* its server removes the thread, with the files that are not here */
    r = run_finish(tx, &run, &end, reterr);
    return r < 0 ? r : cancelled;
}

int store_run_end(struct store *s, const struct store_fence *fence, const struct store_run_end *end,
                  struct error *reterr)
{
    return store_write(s, end_body, &(struct fenced){.fence = fence, .end = end}, reterr);
}

/* What was cancelled meanwhile does not run again. */
static int release_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct fenced *f = user;
    auto_arena struct arena arena = {.max = 64 * MIB};
    struct store_run run;
    int64_t r = run_fenced(tx, f->fence, &arena, &run, reterr);

    if (r < 0)
        return (int)r;
    if (run.cancel)
        return run_finish_cancelled(tx, &run, run.cancel, reterr);
    r = STORE_RUN(tx,
                  "UPDATE runs SET status = 'pending', worker = NULL, lease_us = 0, "
                  "tries = tries - 1, updated_us = $2 WHERE id = $1",
                  reterr, STORE_T(run.id), STORE_I(timestamp_now()));
    return r < 0 ? (int)r : 0;
}

int store_run_release(struct store *s, const struct store_fence *fence, struct error *reterr)
{
    return store_write(s, release_body, &(struct fenced){.fence = fence}, reterr);
}

/* ---- claiming ---- */

struct claim {
    const struct store_worker *worker;
    const char *id; /* NULL: any */
    struct arena *arena;
    struct store_run *ret;
    const char *candidates[2 * CANDIDATES_MAX];
    size_t count;
};

static int on_candidate(void *user, const struct store_value *row, size_t count,
                        struct error *reterr)
{
    struct claim *c = user;
    bool failed = false;

    if (c->count < ARRAY_LEN(c->candidates))
        c->candidates[c->count++] = store_column(c->arena, &row[0], &failed);
    return failed ? error_no_memory(reterr) : 0;
}

/* What a server left behind comes first: its thread waits the longest. */
static int candidates_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct claim *c = user;
    int64_t r;

    c->count = 0;
    r = store_exec(
        tx,
        &(struct store_statement){.sql = "SELECT id FROM runs WHERE status = 'running' "
                                         "AND lease_us < now_us() ORDER BY lease_us LIMIT 8",
                                  .each = on_candidate,
                                  .user = c},
        reterr);
    if (r < 0)
        return (int)r;
    r = store_exec(tx,
                   &(struct store_statement){
                       .sql =
                           "SELECT id FROM runs r WHERE status = 'pending' AND start_us <= $1 "
                           "AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.thread_id = r.thread_id "
                           "AND o.status = 'running') "
                           "AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.thread_id = r.thread_id "
                           "AND o.status = 'pending' AND o.seq < r.seq AND o.start_us <= $1) "
                           "ORDER BY created_us, id LIMIT 8",
                       STORE_PARAMS(STORE_I(timestamp_now())),
                       .each = on_candidate,
                       .user = c},
                   reterr);
    return r < 0 ? (int)r : 0;
}

static int on_tries(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    *(int64_t *)user = row[0].integer;
    return 0;
}

/* 1 when the run's turn has come: its lease is over, or it is the first of its thread. */
static int64_t may_run(struct store_tx *tx, const struct store_run *run, int64_t *ret_tries,
                       struct error *reterr)
{
    static const char taken[] = "SELECT tries FROM runs WHERE id = $1 AND lease_us < now_us()";
    static const char waiting[] =
        "SELECT tries FROM runs r WHERE id = $1 AND start_us <= $2 AND NOT EXISTS (SELECT 1 "
        "FROM runs o WHERE o.thread_id = r.thread_id AND o.status = 'running') AND seq = "
        "(SELECT min(o.seq) FROM runs o WHERE o.thread_id = r.thread_id AND o.status = 'pending' "
        "AND o.start_us <= $2)";
    const struct store_value params[] = {STORE_T(run->id), STORE_I(timestamp_now())};
    bool is_taken = str_eq(run->status, "running");

    if (!is_taken && !str_eq(run->status, "pending"))
        return 0;
    return store_exec(tx,
                      &(struct store_statement){.sql = is_taken ? taken : waiting,
                                                .params = params,
                                                .param_count = is_taken ? 1 : 2,
                                                .each = on_tries,
                                                .user = ret_tries},
                      reterr);
}

static int row_claim(struct store_tx *tx, const struct claim *c, const char *id,
                     struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_add(&q, "UPDATE runs SET status = 'running', attempt = attempt + 1, tries = tries + 1, ");
    query_bind(&q, "worker = ?, ", STORE_T(c->worker->id));
    query_bind(&q, "lease_us = now_us() + ?, ", STORE_I(c->worker->lease_us));
    query_bind(&q, "updated_us = ?", STORE_I(timestamp_now()));
    query_bind(&q, " WHERE id = ?", STORE_T(id));
    query_returning(&q, &run_shape);
    return query_one(&q, tx, &run_shape, c->arena, c->ret, reterr);
}

/* Tries the run whose id comes first among the candidates. 1: it is the worker's now. */
static int claim_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct claim *c = user;
    const char *id = c->candidates[0];
    struct store_run run;
    int64_t tries = 0, r = run_lock_thread(tx, NULL, NULL, id, reterr);

    if (r > 0)
        r = run_find(tx, id, c->arena, &run, reterr);
    if (r > 0)
        r = may_run(tx, &run, &tries, reterr);
    if (r <= 0)
        return (int)r;
    if (run.cancel)
        return run_finish_cancelled(tx, &run, run.cancel, reterr);
    if (tries >= c->worker->attempts_max)
        return run_finish(tx, &run,
                          &(struct store_run_end){
                              .status = "error", .error = abandoned, .thread_status = "error"},
                          reterr);
    return row_claim(tx, c, run.id, reterr);
}

static int claim_round(struct store *s, struct claim *c, struct error *reterr)
{
    int r = 0;

    if (c->id) {
        c->candidates[0] = c->id;
        return store_write(s, claim_body, c, reterr);
    }
    r = store_read(s, candidates_body, c, reterr);
    for (size_t i = 0; r == 0 && i < c->count; i++) {
        c->candidates[0] = c->candidates[i];
        r = store_write(s, claim_body, c, reterr);
    }
    return r;
}

/* Another round where others were faster for all that was found, or where runs were only ended. */
int store_run_claim(struct store *s, const struct store_worker *w, const char *id,
                    struct arena *arena, struct store_run *ret, struct error *reterr)
{
    struct claim c = {.worker = w, .id = id, .arena = arena, .ret = ret};
    int r = 0;

    for (int round = 0; r == 0 && round < ROUNDS_MAX; round++) {
        r = claim_round(s, &c, reterr);
        if (id || c.count == 0)
            break;
    }
    return r;
}

struct renewal {
    const struct store_worker *worker;
    struct query_rows rows;
};

static int renew_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct renewal *n = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_bind(&q, "UPDATE runs SET lease_us = now_us() + ?", STORE_I(n->worker->lease_us));
    query_bind(&q, " WHERE worker = ? AND status = 'running'", STORE_T(n->worker->id));
    query_returning(&q, &run_brief_shape);
    r = query_rows(&q, tx, &n->rows, reterr);
    return r < 0 ? (int)r : 0;
}

int store_run_renew(struct store *s, const struct store_worker *w, struct arena *arena,
                    struct store_run **ret, size_t *ret_count, struct error *reterr)
{
    struct renewal n = {.worker = w, .rows = {.shape = &run_brief_shape, .arena = arena}};
    int r = store_write(s, renew_body, &n, reterr);

    *ret = n.rows.data;
    *ret_count = r < 0 ? 0 : n.rows.count;
    return r;
}
