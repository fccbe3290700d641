/* SPDX-License-Identifier: MIT */
/*
 * Migrations. The schema files are part of the program (tools/embed-schema makes the table); each
 * is applied in a transaction together with its row in schema_versions, so a migration that was
 * broken off is done again, and of several servers that start at once one does it.
 */
#include "store/migrate.h"

#include "base/failpoint.h"
#include "base/timestamp.h"
#include "store/db.h"

#include <stdio.h>
#include <string.h>

enum { SCRIPT_MAX = 1 << 20 };

static const char create_versions[] =
    "CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT NOT NULL PRIMARY KEY, "
    "name TEXT NOT NULL, applied_us BIGINT NOT NULL, pinged_us BIGINT NOT NULL DEFAULT 0)";

/* Lines "-- ENGINE: SQL" are SQL to that engine, and remarks to the other one. */
static int script_for(const char *engine, const char *sql, struct buf *ret)
{
    char prefix[32];
    int prefix_len = snprintf(prefix, sizeof(prefix), "-- %s:", engine);

    while (*sql) {
        size_t len = strcspn(sql, "\n");
        size_t skip = strncmp(sql, prefix, (size_t)prefix_len) == 0 ? (size_t)prefix_len : 0;

        if (buf_append(ret, sql + skip, len - skip) < 0 || buf_append_byte(ret, '\n') < 0)
            return -1;
        sql += len + (sql[len] == '\n');
    }
    return 0;
}

static int on_version(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    int64_t *version = user;

    *version = row[0].integer;
    return 0;
}

static int version_find(struct store_tx *tx, const struct store_engine *engine, int64_t *ret,
                        struct error *reterr)
{
    int64_t r = 0;

    *ret = 0;
    if (engine->migrate_lock)
        r = store_exec(tx, &(struct store_statement){.sql = engine->migrate_lock}, reterr);
    if (r >= 0)
        r = store_exec(tx, &(struct store_statement){.sql = create_versions}, reterr);
    if (r >= 0)
        r = store_exec(tx,
                       &(struct store_statement){
                           .sql = "SELECT coalesce(max(version), 0) FROM schema_versions",
                           .each = on_version,
                           .user = ret},
                       reterr);
    return r < 0 ? (int)r : 0;
}

static int apply(struct store_tx *tx, const struct store_engine *engine, const struct migration *m,
                 struct error *reterr)
{
    auto_buf struct buf script;
    int64_t r;

    buf_init(&script, SCRIPT_MAX);
    if (script_for(engine->name, m->sql, &script) < 0)
        return error_no_memory(reterr);
    r = store_script(tx, buf_str(&script), reterr);
    if (r >= 0 && failpoint("store-migrate") < 0)
        return error_set(reterr, ERR_UNAVAILABLE, "stopped by a test");
    if (r >= 0)
        r = STORE_RUN(tx,
                      "INSERT INTO schema_versions (version, name, applied_us) VALUES ($1, $2, $3)",
                      reterr, STORE_I(m->version), STORE_T(m->name), STORE_I(timestamp_now()));
    return r < 0 ? (int)r : 0;
}

/* Applies the next one. 1 when there may be more, 0 when all are there. */
static int migrate_body(void *user, struct store_tx *tx, struct error *reterr)
{
    const struct store_engine *engine = user;
    int64_t newest = migrations[migration_count - 1].version, version;
    int r = version_find(tx, engine, &version, reterr);

    if (r < 0)
        return r;
    if (version > newest)
        return error_set(reterr, ERR_UNAVAILABLE,
                         "the database's schema is version %lld and newer than this program, which "
                         "knows up to version %lld: use the newer sandbox-agent",
                         (long long)version, (long long)newest);
    for (size_t i = 0; i < migration_count; i++) {
        const struct migration *m = &migrations[i];

        if (m->version <= version)
            continue;
        r = apply(tx, engine, m, reterr);
        return r < 0 ? error_wrap(reterr, "migration '%s' of the database", m->name) : 1;
    }
    return 0;
}

int store_migrate(struct store *s, struct error *reterr)
{
    int r;

    do
        r = store_write(s, migrate_body, (void *)(uintptr_t)store_engine_of(s), reterr);
    while (r > 0);
    return r;
}
