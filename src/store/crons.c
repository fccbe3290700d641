/* SPDX-License-Identifier: MIT */
/*
 * Crons. One that is due is taken by moving it from the time at which it was due: of several
 * servers the row lets one do that.
 */
#include "store/query.h"

#include "base/timestamp.h"

#define AT(member) offsetof(struct store_cron, member)

static const struct query_column columns[] = {
    {"id", QUERY_TEXT, AT(id)},
    {"owner", QUERY_TEXT, AT(owner)},
    {"assistant_id", QUERY_TEXT, AT(assistant_id)},
    {"thread_id", QUERY_TEXT, AT(thread_id)},
    {"schedule", QUERY_TEXT, AT(schedule)},
    {"timezone", QUERY_TEXT, AT(timezone)},
    {"payload", QUERY_TEXT, AT(payload)},
    {"metadata", QUERY_TEXT, AT(metadata)},
    {"on_run_completed", QUERY_TEXT, AT(on_run_completed)},
    {"enabled", QUERY_BOOL, AT(enabled)},
    {"next_us", QUERY_INT, AT(next_us)},
    {"end_us", QUERY_INT, AT(end_us)},
    {"created_us", QUERY_INT, AT(created_us)},
    {"updated_us", QUERY_INT, AT(updated_us)},
};

static const struct query_sort sorts[] = {
    {"created_at", "created_us"},     {"updated_at", "updated_us"}, {"cron_id", "id"},
    {"assistant_id", "assistant_id"}, {"thread_id", "thread_id"},   {"next_run_date", "next_us"},
    {"end_time", "end_us"},
};

static const struct query_shape shape = {
    .table = "crons",
    .size = sizeof(struct store_cron),
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
    .sorts = sorts,
    .sort_count = ARRAY_LEN(sorts),
    .tie = "id",
};

struct work {
    const char *owner, *id;
    const struct store_cron *cron;
    int64_t now_us;
    store_cron_next_fn *next;
    struct arena *arena;
    struct store_cron *ret;
};

static int refuse_missing(const char *id, struct error *reterr)
{
    return error_set(reterr, ERR_NOT_FOUND, "there is no cron '%.60s'", id);
}

/* A cron's thread is one of its owner. */
static int check_thread(const struct store_cron *c, struct store_tx *tx, struct error *reterr)
{
    int64_t r;

    if (!c->thread_id)
        return 0;
    r = STORE_RUN(tx, "SELECT 1 FROM threads WHERE id = $1 AND owner = $2", reterr,
                  STORE_T(c->thread_id), STORE_T(c->owner));
    if (r == 0)
        return error_set(reterr, ERR_NOT_FOUND, "there is no thread '%.60s'", c->thread_id);
    return r < 0 ? (int)r : 0;
}

static int put_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    auto_query struct query q;
    int64_t r = check_thread(w->cron, tx, reterr);

    query_init(&q);
    if (r < 0)
        return (int)r;
    query_insert(&q, &shape, w->cron);
    query_add(&q, " ON CONFLICT (id) DO UPDATE SET assistant_id = excluded.assistant_id, "
                  "thread_id = excluded.thread_id, schedule = excluded.schedule, "
                  "timezone = excluded.timezone, payload = excluded.payload, "
                  "metadata = excluded.metadata, on_run_completed = excluded.on_run_completed, "
                  "enabled = excluded.enabled, next_us = excluded.next_us, "
                  "end_us = excluded.end_us, updated_us = excluded.updated_us "
                  "WHERE crons.owner = excluded.owner");
    r = query_run(&q, tx, NULL, NULL, reterr);
    if (r == 0)
        return error_set(reterr, ERR_EXISTS, "a cron '%.60s' exists", w->cron->id);
    return r < 0 ? (int)r : 0;
}

int store_cron_put(struct store *s, const struct store_cron *c, struct error *reterr)
{
    struct store_cron new = *c;

    new.payload = c->payload ? c->payload : "{}";
    new.metadata = c->metadata ? c->metadata : "{}";
    new.created_us = new.updated_us = timestamp_now();
    return store_write(s, put_body, &(struct work){.cron = &new}, reterr);
}

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    auto_query struct query q;
    int r;

    query_init(&q);
    query_select(&q, &shape);
    query_bind(&q, " WHERE id = ?", STORE_T(w->id));
    query_bind(&q, " AND owner = ?", STORE_T(w->owner));
    r = query_one(&q, tx, &shape, w->arena, w->ret, reterr);
    return r == 0 ? refuse_missing(w->id, reterr) : MIN(r, 0);
}

int store_cron_get(struct store *s, const char *owner, const char *id, struct arena *arena,
                   struct store_cron *ret, struct error *reterr)
{
    return store_read(s, get_body,
                      &(struct work){.owner = owner, .id = id, .arena = arena, .ret = ret}, reterr);
}

static int delete_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int64_t r = STORE_RUN(tx, "DELETE FROM crons WHERE id = $1 AND owner = $2", reterr,
                          STORE_T(w->id), STORE_T(w->owner));

    if (r == 0)
        return refuse_missing(w->id, reterr);
    return r < 0 ? (int)r : 0;
}

int store_cron_delete(struct store *s, const char *owner, const char *id, struct error *reterr)
{
    return store_write(s, delete_body, &(struct work){.owner = owner, .id = id}, reterr);
}

/* ---- many ---- */

struct search {
    const char *owner;
    const struct store_cron_filter *filter;
    const struct store_page *page;
    struct query_rows rows;
    bool wanted;
    int64_t *ret_total;
};

static void add_filter(struct query *q, const void *user)
{
    const struct search *w = user;

    query_bind(q, " WHERE owner = ?", STORE_T(w->owner));
    query_bind_if(q, " AND assistant_id = ?", w->filter->assistant_id);
    query_bind_if(q, " AND thread_id = ?", w->filter->thread_id);
    if (w->filter->enabled >= 0)
        query_bind(q, " AND enabled = ?", STORE_I(w->filter->enabled != 0));
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

int store_cron_search(struct store *s, const char *owner, const struct store_cron_filter *filter,
                      const struct store_page *page, struct arena *arena, struct store_cron **ret,
                      size_t *ret_count, int64_t *ret_total, struct error *reterr)
{
    struct search w = {.owner = owner,
                       .filter = filter,
                       .page = page,
                       .rows = {.shape = &shape, .arena = arena},
                       .wanted = ret != NULL,
                       .ret_total = ret_total};
    int r = store_read(s, search_body, &w, reterr);

    if (r < 0 || !ret)
        return r;
    *ret = w.rows.data;
    *ret_count = w.rows.count;
    return 0;
}

/* ---- what is due ---- */

static int find_due(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    auto_query struct query q;

    query_init(&q);
    query_select(&q, &shape);
    query_bind(&q, " WHERE enabled = 1 AND next_us <= ?", STORE_I(w->now_us));
    query_add(&q, " AND (end_us = 0 OR next_us <= end_us) ORDER BY next_us, id LIMIT 1");
    return query_one(&q, tx, &shape, w->arena, w->ret, reterr);
}

/* 1, or 0 when another server was faster. */
static int move(const struct work *w, struct store_tx *tx, struct error *reterr)
{
    const struct store_cron *c = w->ret;
    int64_t r, next = w->next(c, w->now_us);
    bool again = next > w->now_us && (c->end_us == 0 || next <= c->end_us);

    r = STORE_RUN(tx,
                  "UPDATE crons SET enabled = $1, next_us = $2 "
                  "WHERE id = $3 AND next_us = $4 AND enabled = 1",
                  reterr, STORE_I(again), STORE_I(again ? next : c->next_us), STORE_T(c->id),
                  STORE_I(c->next_us));
    return r < 0 ? (int)r : r > 0;
}

static int take_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int r;

    while ((r = find_due(w, tx, reterr)) > 0) {
        r = move(w, tx, reterr);
        if (r != 0)
            return r;
    }
    return r;
}

int store_cron_take(struct store *s, int64_t now_us, store_cron_next_fn *next, struct arena *arena,
                    struct store_cron *ret, struct error *reterr)
{
    return store_write(s, take_body,
                       &(struct work){.now_us = now_us, .next = next, .arena = arena, .ret = ret},
                       reterr);
}
