/* SPDX-License-Identifier: MIT */
/*
 * The pool of connections, and transactions. A transaction that met another one is done again as a
 * whole, so what fails at last is only what really cannot be done. Every wait is bounded.
 */
#include "store/db.h"

#include "base/clock.h"
#include "base/settings.h"
#include "base/timestamp.h"
#include "store/store.h"

#include <pthread.h>
#include <string.h>

enum {
    CONNECTIONS_MAX = 16,
    POOL_WAIT_MS = 10000,
    PING_WAIT_MS = 3000,
    TRIES = 4, /* the first one, and three more */
};

struct store {
    const struct store_engine *engine;
    const struct settings *settings;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    void *idle[CONNECTIONS_MAX]; /* last in, first out: its statements are prepared */
    unsigned idle_count, open_count;
    bool writing;
};

struct store_tx {
    const struct store_engine *engine;
    void *conn;
    bool again; /* the database said that it may succeed when it is done again */
};

struct store_value store_text(const char *s)
{
    if (!s)
        return STORE_N;
    return (struct store_value){.type = STORE_TEXT, .data = s, .len = strlen(s)};
}

const char *store_column(struct arena *arena, const struct store_value *v, bool *failed)
{
    const char *copy;

    if (v->type == STORE_NULL)
        return NULL;
    copy = arena_memdup(arena, v->data ? v->data : "", v->len);
    if (!copy)
        *failed = true;
    return copy;
}

/* ---- the pool ---- */

static bool pool_is_full(const struct store *s, bool write)
{
    if (write && s->engine->serial_writes && s->writing)
        return true;
    return s->idle_count == 0 && s->open_count >= MIN(s->engine->connections, CONNECTIONS_MAX);
}

static int pool_wait(struct store *s, bool write, int64_t wait_ms, struct error *reterr)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    while (pool_is_full(s, write)) {
        if (pthread_cond_timedwait(&s->freed, &s->lock, &until) != 0 && pool_is_full(s, write))
            return error_set(reterr, ERR_UNAVAILABLE,
                             "the database is overloaded: no connection was free for %d s",
                             (int)(wait_ms / 1000));
    }
    return 0;
}

/* Takes a place, and an idle connection where there is one. */
static int pool_take(struct store *s, bool write, int64_t wait_ms, void **ret, struct error *reterr)
{
    int r;

    *ret = NULL;
    pthread_mutex_lock(&s->lock);
    r = pool_wait(s, write, wait_ms, reterr);
    if (r == 0) {
        if (s->idle_count)
            *ret = s->idle[--s->idle_count];
        else
            s->open_count++;
        if (write)
            s->writing = true;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

static void pool_give(struct store *s, bool write, void *conn)
{
    pthread_mutex_lock(&s->lock);
    if (conn)
        s->idle[s->idle_count++] = conn;
    else
        s->open_count--;
    if (write)
        s->writing = false;
    pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

/* Opens the connection where there is none, or a dead one. */
static int conn_ready(struct store *s, void **conn, struct error *reterr)
{
    if (*conn && s->engine->is_alive(*conn))
        return 0;
    if (*conn)
        s->engine->close(TAKE_PTR(*conn));
    return s->engine->open(s->settings, conn, reterr);
}

/* ---- transactions ---- */

struct work {
    store_body_fn *body;
    void *user;
    bool write;
    int64_t wait_ms;
};

static int tx_body(struct store_tx *tx, const struct work *work, struct error *reterr)
{
    int result, r = tx->engine->begin(tx->conn, work->write, reterr);

    if (r < 0) {
        tx->again = r == -ERR_BUSY;
        return r;
    }
    result = work->body(work->user, tx, reterr);
    if (result < 0) {
        tx->engine->rollback(tx->conn);
        return result;
    }
    r = tx->engine->commit(tx->conn, reterr);
    if (r < 0) {
        tx->again = r == -ERR_BUSY;
        tx->engine->rollback(tx->conn);
        return r;
    }
    return result;
}

/* Others that wait for the same rows should not meet again: each waits for another time. */
static void back_off(int attempt)
{
    int64_t us = ((int64_t)1000 << attempt) + clock_us() % 4096;

    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int work_try(struct store *s, void **conn, const struct work *work, struct error *reterr)
{
    int r = -1;

    for (int attempt = 0; attempt < TRIES; attempt++) {
        struct store_tx tx = {.engine = s->engine};

        if (attempt > 0)
            back_off(attempt);
        r = conn_ready(s, conn, reterr);
        if (r < 0)
            return r;
        tx.conn = *conn;
        r = tx_body(&tx, work, reterr);
        if (r >= 0 || !tx.again)
            return r;
    }
    (void)error_wrap(reterr, "the database is overloaded, %d tries failed", TRIES);
    if (reterr)
        reterr->code = ERR_UNAVAILABLE;
    return -ERR_UNAVAILABLE;
}

static int work_do(struct store *s, const struct work *work, struct error *reterr)
{
    void *conn;
    int r = pool_take(s, work->write, work->wait_ms, &conn, reterr);

    if (r < 0)
        return r;
    r = work_try(s, &conn, work, reterr);
    pool_give(s, work->write, conn);
    return r;
}

int store_write(struct store *s, store_body_fn *body, void *user, struct error *reterr)
{
    return work_do(
        s, &(struct work){.body = body, .user = user, .write = true, .wait_ms = POOL_WAIT_MS},
        reterr);
}

int store_read(struct store *s, store_body_fn *body, void *user, struct error *reterr)
{
    return work_do(s, &(struct work){.body = body, .user = user, .wait_ms = POOL_WAIT_MS}, reterr);
}

int64_t store_exec(struct store_tx *tx, const struct store_statement *st, struct error *reterr)
{
    int64_t r = tx->engine->exec(tx->conn, st, reterr);

    if (r == -ERR_BUSY)
        tx->again = true;
    return r;
}

int store_script(struct store_tx *tx, const char *sql, struct error *reterr)
{
    int r = tx->engine->script(tx->conn, sql, reterr);

    if (r == -ERR_BUSY)
        tx->again = true;
    return r;
}

/* ---- the store ---- */

const struct store_engine *store_engine_of(const struct store *s)
{
    return s->engine;
}

const char *store_kind(const struct store *s)
{
    return s->engine->name;
}

static int ping_body(void *user, struct store_tx *tx, struct error *reterr)
{
    int64_t r = STORE_RUN(tx, "UPDATE schema_versions SET pinged_us = $1 WHERE version = 1", reterr,
                          STORE_I(timestamp_now()));

    if (r == 0)
        return error_set(reterr, ERR_UNAVAILABLE, "the database has lost its tables");
    return r < 0 ? (int)r : 0;
}

/* A write, because a database that is full or read-only answers all the same. */
int store_ping(struct store *s, struct error *reterr)
{
    return work_do(s, &(struct work){.body = ping_body, .write = true, .wait_ms = PING_WAIT_MS},
                   reterr);
}

static int store_new(const struct settings *settings, struct store **ret, struct error *reterr)
{
    struct store *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;

    if (!s)
        return error_no_memory(reterr);
    s->settings = settings;
    s->engine = *settings->postgres_host ? &store_postgres : &store_sqlite;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, &attr);
    pthread_condattr_destroy(&attr);
    *ret = s;
    return 0;
}

int store_open(const struct settings *settings, struct store **ret, struct error *reterr)
{
    struct store *s = NULL;
    int r = store_new(settings, &s, reterr);

    if (r < 0)
        return r;
    r = store_migrate(s, reterr);
    if (r < 0) {
        store_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->idle_count; i++)
        s->engine->close(s->idle[i]);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
