/* SPDX-License-Identifier: MIT */
/*
 * Blobs: bytes are stored once, however many threads refer to them; a thread gets only what it has
 * put itself. They go with the last thread (threads.c).
 */
#include "store/query.h"

#include "base/timestamp.h"

struct work {
    const char *thread_id, *sha256;
    const struct store_blob *blob;
    struct arena *arena;
    struct store_blob *ret;
};

/* A row that is there is changed, so that who removes unused ones waits, and then sees its use. */
static int put_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    const struct store_blob *b = w->blob;
    int64_t r = STORE_RUN(tx,
                          "INSERT INTO blobs (sha256, mime, data, created_us) "
                          "VALUES ($1, $2, $3, $4) ON CONFLICT (sha256) "
                          "DO UPDATE SET created_us = blobs.created_us",
                          reterr, STORE_T(b->sha256), STORE_T(b->mime), STORE_B(b->data, b->len),
                          STORE_I(timestamp_now()));

    if (r >= 0)
        r = STORE_RUN(tx,
                      "INSERT INTO thread_blobs (thread_id, sha256) VALUES ($1, $2) "
                      "ON CONFLICT (thread_id, sha256) DO NOTHING",
                      reterr, STORE_T(w->thread_id), STORE_T(b->sha256));
    return r < 0 ? (int)r : 0;
}

int store_blob_put(struct store *s, const char *thread_id, const struct store_blob *b,
                   struct error *reterr)
{
    return store_write(s, put_body, &(struct work){.thread_id = thread_id, .blob = b}, reterr);
}

static int keep_row(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    struct work *w = user;
    bool failed = false;

    w->ret->sha256 = store_column(w->arena, &row[0], &failed);
    w->ret->mime = store_column(w->arena, &row[1], &failed);
    w->ret->data = store_column(w->arena, &row[2], &failed);
    w->ret->len = row[2].len;
    return failed ? error_no_memory(reterr) : 0;
}

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct work *w = user;
    int64_t r = store_exec(
        tx,
        &(struct store_statement){.sql = "SELECT b.sha256, b.mime, b.data FROM blobs b "
                                         "JOIN thread_blobs t ON t.sha256 = b.sha256 "
                                         "WHERE t.thread_id = $1 AND t.sha256 = $2",
                                  STORE_PARAMS(STORE_T(w->thread_id), STORE_T(w->sha256)),
                                  .each = keep_row,
                                  .user = w},
        reterr);

    if (r == 0)
        return error_set(reterr, ERR_NOT_FOUND, "the thread has no blob '%.64s'", w->sha256);
    return r < 0 ? (int)r : 0;
}

int store_blob_get(struct store *s, const char *thread_id, const char *sha256, struct arena *arena,
                   struct store_blob *ret, struct error *reterr)
{
    return store_read(
        s, get_body,
        &(struct work){.thread_id = thread_id, .sha256 = sha256, .arena = arena, .ret = ret},
        reterr);
}
