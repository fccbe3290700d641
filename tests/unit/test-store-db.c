/* SPDX-License-Identifier: MIT */
/* The engines, transactions and migrations. */
#include "store/db.h"
#include "tests/lib/storetest.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int count_row(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    *(int64_t *)user = row[0].integer;
    return 0;
}

static int settings_count(void *user, struct store_tx *tx, struct error *reterr)
{
    int64_t r = store_exec(tx,
                           &(struct store_statement){.sql = "SELECT count(*) FROM sealed_settings",
                                                     .each = count_row,
                                                     .user = user},
                           reterr);

    return r < 0 ? (int)r : 0;
}

static int settings_add(void *user, struct store_tx *tx, struct error *reterr)
{
    int64_t r = STORE_RUN(tx,
                          "INSERT INTO sealed_settings (owner, sealed, updated_us) "
                          "VALUES ($2, $1, $3)",
                          reterr, STORE_T("x"), STORE_T(user), STORE_I(-5));

    return r < 0 ? (int)r : 0;
}

TEST(a_database_is_made_and_opened_again)
{
    auto_storetest struct storetest t = {0};
    struct error err = {0};

    storetest_open(&t);
    assert_ok(store_ping(t.store, &err), err);
    assert_ok(store_migrate(t.store, &err), err);
    storetest_reopen(&t);
    assert_ok(store_ping(t.store, &err), err);
}

TEST(a_broken_constraint_is_named_and_leaves_nothing)
{
    auto_storetest struct storetest t = {0};
    struct error err = {0};
    int64_t count = 0;

    storetest_open(&t);
    assert_ok(store_write(t.store, settings_add, (void *)(uintptr_t)"a", &err), err);
    assert_int_eq(store_write(t.store, settings_add, (void *)(uintptr_t)"a", &err), -ERR_EXISTS);
    assert_ok(store_read(t.store, settings_count, &count, &err), err);
    assert_int_eq(count, 1);
}
