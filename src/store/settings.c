/* SPDX-License-Identifier: MIT */
/* An owner's settings: one sealed text, which this room neither opens nor looks at. */
#include "store/query.h"

#include "base/timestamp.h"

struct work {
    const char *owner, *sealed;
    struct arena *arena;
    const char **ret;
};

static int keep_row(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    const struct work *w = user;
    bool failed = false;

    *w->ret = store_column(w->arena, &row[0], &failed);
    return failed ? error_no_memory(reterr) : 0;
}

static int get_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct work *w = user;
    int64_t r;

    *w->ret = NULL;
    r = store_exec(tx,
                   &(struct store_statement){.sql = "SELECT sealed FROM sealed_settings "
                                                    "WHERE owner = $1",
                                             STORE_PARAMS(STORE_T(w->owner)),
                                             .each = keep_row,
                                             .user = w},
                   reterr);
    return r < 0 ? (int)r : 0;
}

int store_settings_get(struct store *s, const char *owner, struct arena *arena, const char **ret,
                       struct error *reterr)
{
    return store_read(s, get_body, &(struct work){.owner = owner, .arena = arena, .ret = ret},
                      reterr);
}

static int put_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct work *w = user;
    int64_t r = STORE_RUN(tx,
                          "INSERT INTO sealed_settings (owner, sealed, updated_us) "
                          "VALUES ($1, $2, $3) ON CONFLICT (owner) DO UPDATE "
                          "SET sealed = excluded.sealed, updated_us = excluded.updated_us",
                          reterr, STORE_T(w->owner), STORE_T(w->sealed), STORE_I(timestamp_now()));

    return r < 0 ? (int)r : 0;
}

int store_settings_put(struct store *s, const char *owner, const char *sealed, struct error *reterr)
{
    return store_write(s, put_body, &(struct work){.owner = owner, .sealed = sealed}, reterr);
}
