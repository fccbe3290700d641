/* SPDX-License-Identifier: MIT */
/*
 * Runs of which this process has no log: they ended in a former life, or another server runs them.
 * A mirror of such a run has the frames that the store can tell, so whoever joins it follows it
 * like any other, and ends with it.
 */
#include "api/live-internal.h"
#include "base/clock.h"
#include "base/str.h"

#include <stdio.h>

enum { MIRROR_ARENA_MAX = 256 << 20 };

static void put(struct live_run *r, const char *event, const char *data, uint32_t tags)
{
    frame_log_append(r->log, &(struct log_frame){
                                 .event = event, .data = data, .len = strlen(data), .tags = tags});
}

/* The state's values as they are now; {} for none. */
static void values_load(struct live_run *r, const struct store_run *row, struct buf *ret)
{
    if (api_values_append(r->live->api, r->thread_id, row->checkpoint, ret) < 0 &&
        buf_append_str(ret, "{}") < 0)
        buf_clear(ret);
}

/* Whether the run's frames are the caller's to write now: not those of one that is run here, and
 * not while somebody else does. */
static bool telling_begin(struct live_run *r)
{
    bool mine;

    pthread_mutex_lock(&r->live->lock);
    mine = !r->done && !r->active && !r->creating && !r->telling;
    r->telling |= mine;
    pthread_mutex_unlock(&r->live->lock);
    return mine;
}

static void telling_end(struct live_run *r)
{
    pthread_mutex_lock(&r->live->lock);
    r->telling = false;
    pthread_mutex_unlock(&r->live->lock);
}

/* What has changed since the last look. */
static void mirror_tell(struct live_run *r, const struct store_run *row)
{
    char text[80];
    struct buf values;

    if (row->checkpoint && !str_eq(r->mirrored, row->checkpoint)) {
        snprintf(r->mirrored, sizeof(r->mirrored), "%s", row->checkpoint);
        buf_init(&values, API_ANSWER_MAX);
        values_load(r, row, &values);
        put(r, "values", buf_str(&values), MODE_VALUES);
        buf_done(&values);
    }
    if (!run_row_has_ended(row))
        return;
    buf_init(&values, API_ANSWER_MAX);
    if (row->error) {
        put(r, "error", row->error, 0);
        if (buf_printf(&values, "{\"__error__\":%s}", row->error) < 0)
            buf_clear(&values);
    } else {
        values_load(r, row, &values);
    }
    snprintf(text, sizeof(text), "{\"status\":\"%s\"}", row->status);
    put(r, "end", text, 0);
    pthread_mutex_lock(&r->live->lock);
    if (!r->done)
        live_run_finish(r, &values);
    pthread_mutex_unlock(&r->live->lock);
    buf_done(&values);
}

/* The row was read before: what ended since then was told by its worker. */
static void mirror_update(struct live_run *r, const struct store_run *row)
{
    if (!telling_begin(r))
        return;
    mirror_tell(r, row);
    telling_end(r);
}

/* Waiting in the queue, or about to be run here: its frames come from its worker. */
static bool is_ours(const struct live *l, const struct store_run *row)
{
    if (str_eq(row->status, "pending"))
        return true;
    return str_eq(row->status, "running") && row->worker && str_eq(row->worker, l->worker_id);
}

static void mirror_look(struct live_run *r)
{
    auto_arena struct arena arena;
    struct store_run row = {};
    struct error error;
    int n;

    arena_init(&arena, MIRROR_ARENA_MAX);
    n = store_run_get(r->live->api->store, r->owner, r->thread_id, r->id, &arena, &row, &error);
    if (n == -ERR_NOT_FOUND)
        row = (struct store_run){.status = "interrupted", .id = r->id};
    else if (n < 0 || is_ours(r->live, &row))
        return;
    mirror_update(r, &row);
}

/* Some at a time, and each in its turn: many may wait in the queue for long. */
void mirrors_look(struct live *l)
{
    struct live_run *todo[64];
    size_t count = 0;

    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LIVE_BUCKETS && count < ARRAY_LEN(todo); i++) {
        for (struct live_run *r = l->buckets[l->looked]; r && count < ARRAY_LEN(todo);
             r = r->next) {
            if (!r->done && !r->active && !r->creating)
                todo[count++] = live_run_ref(r);
        }
        l->looked = (l->looked + 1) % LIVE_BUCKETS;
    }
    pthread_mutex_unlock(&l->lock);
    while (count > 0) {
        mirror_look(todo[--count]);
        live_run_unref(todo[count]);
    }
}

int live_run_attach(struct live *l, const struct store_run *row, struct live_run **ret,
                    struct error *reterr)
{
    struct live_run *run = live_run_find(l, row->id);
    int r;

    if (!run) {
        r = live_run_mirror(l, row, true, &run, reterr);
        if (r < 0)
            return r;
        mirror_update(run, row);
    }
    *ret = run;
    return 0;
}
