/* SPDX-License-Identifier: MIT */
/*
 * The two databases behind one table of functions. All SQL of this room is the part that SQLite and
 * PostgreSQL share: parameters $1, $2 ... (each used in order of its number), RETURNING, ON
 * CONFLICT, and two functions that the engines define: `json_contains(text, text)` (JSON
 * containment: every member of the second is in the first; arrays as sets) and `now_us()` (the
 * database's clock, one for all servers). Times are microseconds in BIGINT, JSON is TEXT that comes
 * back byte for byte, bytes are BLOB on SQLite and BYTEA on PostgreSQL (the schema files say BYTEA,
 * and the SQLite engine takes it as an affinity of its own). A parameter that may be NULL and that
 * nothing gives a type, as in `$1 IS NULL`, is written CAST($1 AS TEXT).
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct settings;
struct store;
struct store_tx;

enum store_type { STORE_NULL, STORE_INT, STORE_TEXT, STORE_BYTES };

struct store_value {
    enum store_type type;
    int64_t integer;
    const char *data; /* text is NUL-terminated when it comes from the database */
    size_t len;
};

#define STORE_I(i) ((struct store_value){.type = STORE_INT, .integer = (i)})
#define STORE_T(s) store_text(s)
#define STORE_B(d, n) ((struct store_value){.type = STORE_BYTES, .data = (d), .len = (n)})
#define STORE_N ((struct store_value){.type = STORE_NULL})

struct store_value store_text(const char *s); /* NULL gives NULL */

/* Called per row; the values live until it returns. <0 ends the statement with that failure. */
typedef int store_row_fn(void *user, const struct store_value *row, size_t count,
                         struct error *reterr);

struct store_statement {
    const char *sql;
    const struct store_value *params;
    size_t param_count;
    store_row_fn *each; /* NULL: rows are not wanted */
    void *user;
};

/* One connection. An engine's functions are called by one thread at a time per connection. */
struct store_engine {
    const char *name; /* "sqlite", "postgres" */
    int (*open)(const struct settings *settings, void **ret, struct error *reterr);
    void (*close)(void *conn);
    bool (*is_alive)(void *conn); /* false: it is closed and opened anew */
    /* For writing: takes the right to write at once, and each statement sees what others have
     * committed. For reading: one snapshot. */
    int (*begin)(void *conn, bool write, struct error *reterr);
    int (*commit)(void *conn, struct error *reterr);
    void (*rollback)(void *conn);
    /* The count of changed rows, or <0. ERR_BUSY is for what may succeed when the transaction is
     * done again (serialization, deadlock, locked); ERR_EXISTS for a broken unique constraint;
     * ERR_DISK, ERR_UNAVAILABLE (no connection, read-only). */
    int64_t (*exec)(void *conn, const struct store_statement *st, struct error *reterr);
    /* Many statements without parameters, as of a schema file. */
    int (*script)(void *conn, const char *sql, struct error *reterr);
    const char *migrate_lock; /* a statement that makes other migrations wait, or NULL */
    unsigned connections;     /* at most so many; 1 writer at a time where `serial_writes` */
    bool serial_writes;
};

extern const struct store_engine store_sqlite, store_postgres;

/* In a transaction. The count of changed (or returned) rows, or <0. */
int64_t store_exec(struct store_tx *tx, const struct store_statement *st, struct error *reterr);

/* Many statements without parameters. */
int store_script(struct store_tx *tx, const char *sql, struct error *reterr) must_check;

/* Shorthands: `params` is a compound literal array. */
#define STORE_PARAMS(...) \
    .params = (const struct store_value[]){__VA_ARGS__}, \
    .param_count = ARRAY_LEN(((const struct store_value[]){__VA_ARGS__}))
#define STORE_RUN(tx, sql_text, reterr, ...) \
    store_exec(tx, &(struct store_statement){.sql = (sql_text), STORE_PARAMS(__VA_ARGS__)}, reterr)

/*
 * Runs `body` in a transaction that is committed when it returns 0 or more, and rolled back
 * otherwise. It is done again, up to three times, when the database says that it met another one,
 * so `body` starts from nothing each time. Its result is returned.
 */
typedef int store_body_fn(void *user, struct store_tx *tx, struct error *reterr);
int store_write(struct store *s, store_body_fn *body, void *user, struct error *reterr) must_check;

/* The same for reading only: a snapshot, without waiting for writers. */
int store_read(struct store *s, store_body_fn *body, void *user, struct error *reterr) must_check;

const struct store_engine *store_engine_of(const struct store *s);

/* Applies schema/NNNN-*.sql that were not applied yet, each in a transaction. A database of a newer
 * program is refused by name. */
int store_migrate(struct store *s, struct error *reterr) must_check;

/* Copies a value's text into the arena; NULL for NULL; `*failed` is set without memory. */
const char *store_column(struct arena *arena, const struct store_value *v, bool *failed);
