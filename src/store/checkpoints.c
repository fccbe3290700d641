/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints and messages. A message is stored once in its thread and never changed; a checkpoint
 * holds the numbers of its messages as a JSON array, so a step costs what is new in it.
 */
#include "base/json.h"
#include "base/timestamp.h"
#include "store/runs-internal.h"

#include <inttypes.h>

enum { REFS_MAX = 16 << 20 };

/* A row as it is read; its refs are still text. */
struct row {
    struct store_checkpoint c;
    const char *refs;
};

#define TEXT(member) {#member, QUERY_TEXT, offsetof(struct row, c.member)}
#define INT(member) {#member, QUERY_INT, offsetof(struct row, c.member)}

static const struct query_column checkpoint_columns[] = {
    TEXT(thread_id), TEXT(id),        TEXT(parent),
    INT(step),       TEXT(source),    TEXT(next),
    TEXT(tasks),     TEXT(metadata),  TEXT(pending),
    TEXT(run_id),    INT(created_us), {"refs", QUERY_TEXT, offsetof(struct row, refs)},
};

const struct query_shape checkpoint_shape = {
    .table = "checkpoints",
    .size = sizeof(struct row),
    .columns = checkpoint_columns,
    .column_count = ARRAY_LEN(checkpoint_columns),
};

/* ---- writing ---- */

struct put {
    const struct store_fence *fence;
    const struct store_checkpoint *c;
    struct store_message *messages;
    size_t count, new_count;
    int64_t base; /* the number before the first new message's */
};

static int on_base(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    struct put *p = user;

    p->base = row[0].integer - (int64_t)p->new_count;
    return 0;
}

/* The lock of the thread, with all that changes in it. */
static int64_t head_move(struct store_tx *tx, struct put *p, struct error *reterr)
{
    return store_exec(
        tx,
        &(struct store_statement){
            .sql = "UPDATE threads SET message_ref = message_ref + $2, "
                   "head = CASE WHEN head > $3 THEN head ELSE $3 END, "
                   "state_updated_us = $4, updated_us = $4 WHERE id = $1 RETURNING message_ref",
            STORE_PARAMS(STORE_T(p->c->thread_id), STORE_I((int64_t)p->new_count),
                         STORE_T(p->c->id), STORE_I(timestamp_now())),
            .each = on_base,
            .user = p},
        reterr);
}

/* 0 when the writer may write in the locked thread. */
static int may_write(struct store_tx *tx, const struct store_fence *fence, const char *thread_id,
                     const char *checkpoint, struct error *reterr)
{
    int64_t r, active;

    if (fence) {
        r = STORE_RUN(tx,
                      "UPDATE runs SET checkpoint = coalesce(CAST($4 AS TEXT), checkpoint), "
                      "updated_us = $5 WHERE id = $1 AND attempt = $2 AND thread_id = $3 "
                      "AND status = 'running'",
                      reterr, STORE_T(fence->run_id), STORE_I(fence->attempt), STORE_T(thread_id),
                      STORE_T(checkpoint), STORE_I(timestamp_now()));
        if (r == 0)
            return error_set(reterr, ERR_CANCELLED, "the run is not this server's any more");
        return r < 0 ? (int)r : 0;
    }
    r = thread_count_active(tx, thread_id, &active, reterr);
    if (r < 0)
        return (int)r;
    return active ? error_set(reterr, ERR_BUSY, "the thread has an active run") : 0;
}

/* New messages get the numbers behind `base`, in order. */
static int refs_write(const struct put *p, struct buf *ret)
{
    int64_t next = p->base;

    if (buf_append_byte(ret, '[') < 0)
        return -1;
    for (size_t i = 0; i < p->count; i++) {
        int64_t ref = p->messages[i].ref;

        if (buf_printf(ret, "%s%" PRId64, i ? "," : "", ref ? ref : ++next) < 0)
            return -1;
    }
    return buf_append_byte(ret, ']');
}

static int messages_insert(struct store_tx *tx, const struct put *p, struct error *reterr)
{
    int64_t next = p->base, r = 0;

    for (size_t i = 0; r >= 0 && i < p->count; i++) {
        const struct store_message *m = &p->messages[i];

        if (m->ref)
            continue;
        r = STORE_RUN(tx,
                      "INSERT INTO messages (thread_id, ref, json, run_id) VALUES ($1, $2, $3, $4)",
                      reterr, STORE_T(p->c->thread_id), STORE_I(++next),
                      ((struct store_value){STORE_TEXT, .data = m->json, .len = m->len}),
                      STORE_T(p->c->run_id));
    }
    return r < 0 ? (int)r : 0;
}

static int put_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct put *p = user;
    struct row row = {.c = *p->c};
    auto_buf struct buf refs;
    auto_query struct query q;
    int64_t r;

    buf_init(&refs, REFS_MAX);
    query_init(&q);
    r = head_move(tx, p, reterr);
    if (r == 0)
        return error_set(reterr, p->fence ? ERR_CANCELLED : ERR_NOT_FOUND, "no such thread");
    if (r > 0)
        r = may_write(tx, p->fence, p->c->thread_id, p->c->id, reterr);
    if (r == 0)
        r = messages_insert(tx, p, reterr);
    if (r < 0)
        return (int)r;
    if (refs_write(p, &refs) < 0)
        return error_set(reterr, ERR_LIMIT, "a checkpoint with %zu messages", p->count);
    row.refs = buf_str(&refs);
    query_insert(&q, &checkpoint_shape, &row);
    r = query_run(&q, tx, NULL, NULL, reterr);
    return r < 0 ? (int)r : 0;
}

int store_checkpoint_put(struct store *s, const struct store_fence *fence,
                         const struct store_checkpoint *c, struct store_message *messages,
                         size_t count, struct error *reterr)
{
    struct put p = {.fence = fence, .c = c, .messages = messages, .count = count};
    int r;

    for (size_t i = 0; i < count; i++)
        p.new_count += messages[i].ref == 0;
    r = store_write(s, put_body, &p, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (messages[i].ref == 0)
            messages[i].ref = ++p.base;
    return r;
}

struct outcome {
    const struct store_fence *fence;
    const char *thread_id, *id, *tasks, *pending;
};

static int set_tasks_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct outcome *o = user;
    int64_t r =
        STORE_RUN(tx, "UPDATE threads SET state_updated_us = $2, updated_us = $2 WHERE id = $1",
                  reterr, STORE_T(o->thread_id), STORE_I(timestamp_now()));

    if (r > 0 || (r == 0 && o->fence))
        r = may_write(tx, o->fence, o->thread_id, NULL, reterr);
    if (r == 0)
        r = STORE_RUN(tx,
                      "UPDATE checkpoints SET tasks = $3, pending = $4 "
                      "WHERE thread_id = $1 AND id = $2",
                      reterr, STORE_T(o->thread_id), STORE_T(o->id), STORE_T(o->tasks),
                      STORE_T(o->pending));
    if (r == 0)
        return error_set(reterr, ERR_NOT_FOUND, "no such checkpoint");
    return r < 0 ? (int)r : 0;
}

int store_checkpoint_set_tasks(struct store *s, const struct store_fence *fence,
                               const char *thread_id, const char *id, const char *tasks,
                               const char *pending, struct error *reterr)
{
    struct outcome o = {fence, thread_id, id, tasks, pending};

    return store_write(s, set_tasks_body, &o, reterr);
}

/* ---- reading ---- */

/* Numbers as this file wrote them: "[1,2,3]". */
static int refs_read(const char *text, struct arena *arena, struct store_checkpoint *ret,
                     struct error *reterr)
{
    size_t most = strlen(text) / 2 + 1, count = 0;
    int64_t *refs = arena_alloc(arena, most * sizeof(*refs));

    if (!refs)
        return error_no_memory(reterr);
    while (*text) {
        int64_t ref = 0;

        if (*text < '0' || *text > '9') {
            text++;
            continue;
        }
        for (; *text >= '0' && *text <= '9'; text++)
            ref = ref * 10 + (*text - '0');
        refs[count++] = ref;
    }
    ret->refs = refs;
    ret->ref_count = count;
    return 0;
}

struct look {
    const char *thread_id, *id, *before, *metadata;
    int64_t limit;
    struct arena *arena;
    struct query_rows rows;
};

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct look *look = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_select(&q, &checkpoint_shape);
    query_bind(&q, " WHERE thread_id = ?", STORE_T(look->thread_id));
    if (look->id)
        query_bind(&q, " AND id = ?", STORE_T(look->id));
    else
        query_bind(&q, " AND id = (SELECT head FROM threads WHERE id = ?)",
                   STORE_T(look->thread_id));
    look->rows = (struct query_rows){.shape = &checkpoint_shape, .arena = look->arena};
    r = query_rows(&q, tx, &look->rows, reterr);
    return r < 0 ? (int)r : 0;
}

static int list_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct look *look = user;
    auto_query struct query q;
    int64_t r;

    query_init(&q);
    query_select(&q, &checkpoint_shape);
    query_bind(&q, " WHERE thread_id = ?", STORE_T(look->thread_id));
    query_bind_if(&q, " AND id < ?", look->before);
    query_bind_if(&q, " AND json_contains(metadata, ?)", look->metadata);
    query_bind(&q, " ORDER BY id DESC LIMIT ?", STORE_I(MAX(look->limit, 0)));
    look->rows = (struct query_rows){.shape = &checkpoint_shape, .arena = look->arena};
    r = query_rows(&q, tx, &look->rows, reterr);
    return r < 0 ? (int)r : 0;
}

/* The list of checkpoints that were read; their numbers are read outside of the transaction. */
static int take_rows(struct look *look, struct store_checkpoint **ret, struct error *reterr)
{
    const struct row *rows = look->rows.data;
    struct store_checkpoint *list =
        arena_alloc(look->arena, (look->rows.count + 1) * sizeof(*list));
    int r = list ? 0 : error_no_memory(reterr);

    for (size_t i = 0; r == 0 && i < look->rows.count; i++) {
        list[i] = rows[i].c;
        r = refs_read(rows[i].refs, look->arena, &list[i], reterr);
    }
    *ret = list;
    return r;
}

int store_checkpoint_get(struct store *s, const char *thread_id, const char *id,
                         struct arena *arena, struct store_checkpoint *ret, struct error *reterr)
{
    struct look look = {.thread_id = thread_id, .id = id, .arena = arena};
    struct store_checkpoint *list;
    int r = store_read(s, get_body, &look, reterr);

    if (r < 0)
        return r;
    if (look.rows.count == 0)
        return error_set(reterr, ERR_NOT_FOUND, "no such checkpoint");
    r = take_rows(&look, &list, reterr);
    if (r == 0)
        *ret = list[0];
    return r;
}

int store_checkpoint_list(struct store *s, const char *thread_id, const char *before,
                          const char *metadata, int64_t limit, struct arena *arena,
                          struct store_checkpoint **ret, size_t *ret_count, struct error *reterr)
{
    struct look look = {.thread_id = thread_id,
                        .before = before,
                        .metadata = metadata,
                        .limit = limit,
                        .arena = arena};
    int r = store_read(s, list_body, &look, reterr);

    *ret_count = 0;
    if (r == 0)
        r = take_rows(&look, ret, reterr);
    if (r == 0)
        *ret_count = look.rows.count;
    return r;
}

/* ---- messages ---- */

/* A number that is wanted, and where. */
struct want {
    int64_t ref;
    size_t at;
};

static int want_compare(const void *a, const void *b)
{
    const struct want *x = a, *y = b;

    return (x->ref > y->ref) - (x->ref < y->ref);
}

struct fetch {
    const char *thread_id;
    const struct want *wants; /* sorted */
    size_t count, next;
    struct arena *arena;
    struct store_message *ret;
};

/* Rows come in order of their numbers, so both lists are walked once. */
static int on_message(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    struct fetch *f = user;
    const char *json = NULL;
    bool failed = false;

    while (f->next < f->count && f->wants[f->next].ref < row[0].integer)
        f->next++;
    for (; f->next < f->count && f->wants[f->next].ref == row[0].integer; f->next++) {
        if (!json)
            json = store_column(f->arena, &row[1], &failed);
        if (failed)
            return error_no_memory(reterr);
        f->ret[f->wants[f->next].at] =
            (struct store_message){.ref = row[0].integer, .json = json, .len = row[1].len};
    }
    return 0;
}

static int fetch_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct fetch *f = user;
    int64_t r;

    f->next = 0;
    r = store_exec(
        tx,
        &(struct store_statement){.sql = "SELECT ref, json FROM messages WHERE thread_id = $1 "
                                         "AND ref >= $2 AND ref <= $3 ORDER BY ref",
                                  STORE_PARAMS(STORE_T(f->thread_id), STORE_I(f->wants[0].ref),
                                               STORE_I(f->wants[f->count - 1].ref)),
                                  .each = on_message,
                                  .user = f},
        reterr);
    return r < 0 ? (int)r : 0;
}

int store_messages_get(struct store *s, const char *thread_id, const int64_t *refs, size_t count,
                       struct arena *arena, struct store_message *ret, struct error *reterr)
{
    auto_free struct want *wants = calloc(count + 1, sizeof(*wants));
    struct fetch f = {
        .thread_id = thread_id, .wants = wants, .count = count, .arena = arena, .ret = ret};
    int r;

    if (!wants)
        return error_no_memory(reterr);
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        wants[i] = (struct want){.ref = refs[i], .at = i};
        ret[i] = (struct store_message){0};
    }
    qsort(wants, count, sizeof(*wants), want_compare);
    r = store_read(s, fetch_body, &f, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (!ret[i].json)
            return error_set(reterr, ERR_NOT_FOUND, "message %" PRId64 " is gone", refs[i]);
    return r;
}

/* ---- pruning ---- */

struct prune {
    const char *owner, *id;
};

static int ref_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Removes what is between the numbers that stay. */
static int64_t gaps_delete(struct store_tx *tx, const char *thread_id, const int64_t *keep,
                           size_t count, struct error *reterr)
{
    int64_t from = 0, r = 0;

    for (size_t i = 0; r >= 0 && i <= count; i++) {
        int64_t to = i < count ? keep[i] : INT64_MAX;

        if (to > from + 1)
            r = STORE_RUN(tx, "DELETE FROM messages WHERE thread_id = $1 AND ref > $2 AND ref < $3",
                          reterr, STORE_T(thread_id), STORE_I(from), STORE_I(to));
        from = to;
    }
    return r;
}

static int rest_delete(struct store_tx *tx, const struct prune *p, struct error *reterr)
{
    auto_arena struct arena arena = {.max = 64 * MIB};
    struct look look = {.thread_id = p->id, .arena = &arena};
    struct store_checkpoint *head;
    auto_free int64_t *keep = NULL;
    int64_t r = get_body(&look, tx, reterr);

    if (r == 0)
        r = take_rows(&look, &head, reterr);
    if (r < 0 || look.rows.count == 0)
        return (int)r;
    keep = calloc(head->ref_count + 1, sizeof(*keep));
    if (!keep)
        return error_no_memory(reterr);
    for (size_t i = 0; i < head->ref_count; i++)
        keep[i] = head->refs[i];
    qsort(keep, head->ref_count, sizeof(*keep), ref_compare);
    r = gaps_delete(tx, p->id, keep, head->ref_count, reterr);
    if (r >= 0)
        r = STORE_RUN(tx, "DELETE FROM checkpoints WHERE thread_id = $1 AND id <> $2", reterr,
                      STORE_T(p->id), STORE_T(head->id));
    if (r >= 0)
        r = STORE_RUN(tx, "UPDATE checkpoints SET parent = NULL WHERE thread_id = $1 AND id = $2",
                      reterr, STORE_T(p->id), STORE_T(head->id));
    return r < 0 ? (int)r : 0;
}

static int prune_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct prune *p = user;
    int64_t r = STORE_RUN(tx, "UPDATE threads SET updated_us = $3 WHERE id = $1 AND owner = $2",
                          reterr, STORE_T(p->id), STORE_T(p->owner), STORE_I(timestamp_now()));

    if (r == 0)
        return error_set(reterr, ERR_NOT_FOUND, "no such thread");
    if (r > 0)
        r = may_write(tx, NULL, p->id, NULL, reterr);
    return r < 0 ? (int)r : rest_delete(tx, p, reterr);
}

int store_thread_prune(struct store *s, const char *owner, const char *id, struct error *reterr)
{
    return store_write(s, prune_body, &(struct prune){owner, id}, reterr);
}
