/* SPDX-License-Identifier: MIT */
/*
 * A store for a test: SQLite in the test's directory; or PostgreSQL where the environment names one
 * (POSTGRES_HOST and so on), emptied first. tests/integration/test_store.py starts one and runs the
 * programs again, so each test says the same about both.
 */
#pragma once

#include "base/settings.h"
#include "store/db.h"
#include "store/store.h"
#include "tests/lib/test.h"

#include <stdlib.h>

struct storetest {
    struct settings settings;
    struct store *store;
};

static inline void storetest_close(struct storetest *t)
{
    store_close(TAKE_PTR(t->store));
    settings_done(&t->settings);
}
#define auto_storetest __attribute__((cleanup(storetest_close)))

static inline bool storetest_is_postgres(void)
{
    const char *host = getenv("POSTGRES_HOST");

    return host && *host;
}

static inline int storetest_empty_body(void *user, struct store_tx *tx, struct error *reterr)
{
    static const char script[] =
        "DELETE FROM threads; DELETE FROM assistants; DELETE FROM blobs; DELETE FROM items; "
        "DELETE FROM crons; DELETE FROM exports; DELETE FROM sealed_settings;";

    (void)user;
    return store_script(tx, script, reterr);
}

static inline void storetest_reopen(struct storetest *t)
{
    struct error err = {0};

    store_close(TAKE_PTR(t->store));
    if (store_open(&t->settings, &t->store, &err) < 0) {
        if (test_is_torture())
            test_skip("the store does not open: %s", err.text);
        test_fail(__FILE__, __LINE__, "the store does not open: %s", err.text);
    }
}

static inline void storetest_open(struct storetest *t)
{
    char *const none[] = {NULL};
    struct settings_source source = {.env = storetest_is_postgres() ? environ : none};
    struct error err = {0};

    if (settings_load(&t->settings, &source, &err) < 0)
        test_skip("no settings: %s", err.text);
    t->settings.state_dir = test_dir();
    storetest_reopen(t);
    if (store_write(t->store, storetest_empty_body, NULL, &err) < 0)
        test_fail(__FILE__, __LINE__, "the store cannot be emptied: %s", err.text);
}
