/* SPDX-License-Identifier: MIT */
/*
 * SQLite: one file `server.db` of the state directory. Its write-ahead log lets readers go on while
 * one connection writes; the pool lets one thread of this process write at a time, and the busy
 * time-out waits for other processes. The file is never opened beside SQLite, because closing any
 * descriptor of it would drop SQLite's locks.
 */
#include "store/contains.h"
#include "store/db.h"

#include "base/path.h"
#include "base/settings.h"
#include "base/timestamp.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

enum { BUSY_WAIT_MS = 2500, CACHE_SLOTS = 128, COLUMNS_MAX = 32 };

struct sqlite {
    sqlite3 *db;
    bool broken; /* the file failed us: a new connection may do better */
    sqlite3_stmt *cache[CACHE_SLOTS];
};

/* ---- errors ---- */

struct code_entry {
    int sqlite;
    enum error_code code;
};

/* Extended codes first, then what their low byte says. */
static const struct code_entry code_table[] = {
    {SQLITE_CONSTRAINT_UNIQUE, ERR_EXISTS},
    {SQLITE_CONSTRAINT_PRIMARYKEY, ERR_EXISTS},
    {SQLITE_CONSTRAINT_FOREIGNKEY, ERR_NOT_FOUND},
    {SQLITE_BUSY, ERR_BUSY},
    {SQLITE_LOCKED, ERR_BUSY},
    {SQLITE_FULL, ERR_DISK},
    {SQLITE_NOMEM, ERR_NO_MEMORY},
    {SQLITE_TOOBIG, ERR_LIMIT},
    {SQLITE_READONLY, ERR_UNAVAILABLE},
    {SQLITE_IOERR, ERR_UNAVAILABLE},
    {SQLITE_CANTOPEN, ERR_UNAVAILABLE},
    {SQLITE_CORRUPT, ERR_UNAVAILABLE},
    {SQLITE_NOTADB, ERR_UNAVAILABLE},
    {SQLITE_PERM, ERR_UNAVAILABLE},
};

static enum error_code code_of(int extended)
{
    for (size_t i = 0; i < ARRAY_LEN(code_table); i++) {
        if (code_table[i].sqlite == extended || code_table[i].sqlite == (extended & 0xff))
            return code_table[i].code;
    }
    return ERR_INTERNAL;
}

static int sqlite_error(struct sqlite *c, struct error *reterr)
{
    int extended = sqlite3_extended_errcode(c->db);
    enum error_code code = code_of(extended);

    if ((extended & 0xff) == SQLITE_IOERR && sqlite3_system_errno(c->db) == ENOSPC)
        code = ERR_DISK;
    if (code == ERR_UNAVAILABLE || code == ERR_DISK)
        c->broken = true;
    return error_set(reterr, code, "SQLite: %s", sqlite3_errmsg(c->db));
}

/* ---- functions of ours ---- */

static void part_free(void *doc)
{
    yyjson_doc_free(doc);
}

static yyjson_doc *argument_parse(sqlite3_value *v)
{
    const char *text = (const char *)sqlite3_value_text(v);
    yyjson_doc *doc = NULL;

    if (!text || json_parse(text, (size_t)sqlite3_value_bytes(v), &doc, NULL) < 0)
        return NULL;
    return doc;
}

/* What is searched for is the same in all rows, so it is parsed once. */
static void fn_json_contains(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    auto_json yyjson_doc *whole = argument_parse(argv[0]);
    yyjson_doc *part = sqlite3_get_auxdata(context, 1);
    bool contained, parsed = part == NULL;

    if (parsed)
        part = argument_parse(argv[1]);
    contained =
        whole && part && contains_json(yyjson_doc_get_root(whole), yyjson_doc_get_root(part));
    sqlite3_result_int(context, contained);
    if (parsed && part)
        sqlite3_set_auxdata(context, 1, part, part_free);
}

static void fn_now_us(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    sqlite3_result_int64(context, timestamp_now());
}

/* ---- opening ---- */

/* Makes the file with its mode before SQLite makes it with another one; the log files get the
 * mode of the database. */
static int file_prepare(const char *path, struct error *reterr)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd >= 0)
        return 0;
    if (errno != EEXIST)
        return error_sys(reterr, errno, "cannot make '%s'", path);
    if (lstat(path, &st) < 0)
        return error_sys(reterr, errno, "cannot look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return error_set(reterr, ERR_UNAVAILABLE, "'%s' is not a regular file", path);
    if ((st.st_mode & 077) && chmod(path, 0600) < 0)
        return error_sys(reterr, errno, "cannot make '%s' private", path);
    return 0;
}

static int db_prepare(struct sqlite *c, struct error *reterr)
{
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    sqlite3 *db = c->db;

    sqlite3_busy_timeout(db, BUSY_WAIT_MS);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    if (sqlite3_exec(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                     "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; "
                     "PRAGMA journal_size_limit = 67108864;",
                     NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_error(c, reterr);
    if (sqlite3_create_function_v2(db, "json_contains", 2, flags | SQLITE_DETERMINISTIC, NULL,
                                   fn_json_contains, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function_v2(db, "now_us", 0, flags, NULL, fn_now_us, NULL, NULL, NULL) !=
            SQLITE_OK)
        return sqlite_error(c, reterr);
    return 0;
}

static void sqlite_close(void *conn)
{
    struct sqlite *c = conn;

    for (size_t i = 0; i < CACHE_SLOTS; i++)
        sqlite3_finalize(c->cache[i]);
    sqlite3_close(c->db);
    free(c);
}

static int db_open(struct sqlite *c, const char *path, struct error *reterr)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                      SQLITE_OPEN_EXRESCODE;

    if (sqlite3_open_v2(path, &c->db, flags, NULL) != SQLITE_OK) {
        int r = c->db ? sqlite_error(c, reterr) : error_no_memory(reterr);

        return error_wrap(reterr, "cannot open '%s'", path), r;
    }
    return db_prepare(c, reterr);
}

static int sqlite_open(const struct settings *settings, void **ret, struct error *reterr)
{
    struct sqlite *c;
    char path[PATH_LEN];
    int r = path_make_dirs(settings->state_dir, 0700, reterr);

    if (r == 0)
        r = path_join(path, sizeof(path), settings->state_dir, "server.db", reterr);
    if (r == 0)
        r = file_prepare(path, reterr);
    if (r < 0)
        return r;
    c = calloc(1, sizeof(*c));
    if (!c)
        return error_no_memory(reterr);
    r = db_open(c, path, reterr);
    if (r < 0) {
        sqlite_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

static bool sqlite_is_alive(void *conn)
{
    const struct sqlite *c = conn;

    return !c->broken;
}

/* ---- statements ---- */

static unsigned slot_of(const char *sql)
{
    unsigned hash = 2166136261u;

    for (; *sql; sql++)
        hash = (hash ^ (unsigned char)*sql) * 16777619u;
    return hash % CACHE_SLOTS;
}

/* A statement that is in use is not in the cache. */
static int stmt_take(struct sqlite *c, const char *sql, sqlite3_stmt **ret, struct error *reterr)
{
    sqlite3_stmt **slot = &c->cache[slot_of(sql)];

    if (*slot && strcmp(sqlite3_sql(*slot), sql) == 0) {
        *ret = TAKE_PTR(*slot);
        return 0;
    }
    if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
        return sqlite_error(c, reterr);
    if (!*ret)
        return error_set(reterr, ERR_INTERNAL, "an empty statement");
    return 0;
}

static void stmt_give(struct sqlite *c, const char *sql, sqlite3_stmt *stmt)
{
    sqlite3_stmt **slot = &c->cache[slot_of(sql)];

    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    sqlite3_finalize(*slot);
    *slot = stmt;
}

static int bind_value(sqlite3_stmt *stmt, int at, const struct store_value *v)
{
    const char *data = v->data ? v->data : "";

    switch (v->type) {
    case STORE_INT:
        return sqlite3_bind_int64(stmt, at, v->integer);
    case STORE_TEXT:
        return sqlite3_bind_text64(stmt, at, data, v->len, SQLITE_STATIC, SQLITE_UTF8);
    case STORE_BYTES:
        return sqlite3_bind_blob64(stmt, at, data, v->len, SQLITE_STATIC);
    case STORE_NULL:
        break;
    }
    return sqlite3_bind_null(stmt, at);
}

/* SQLite takes $1 for a name and numbers names as they come, so each is asked for its own number.
 */
static int bind_all(struct sqlite *c, sqlite3_stmt *stmt, const struct store_statement *st,
                    struct error *reterr)
{
    for (int at = 1; at <= sqlite3_bind_parameter_count(stmt); at++) {
        const char *name = sqlite3_bind_parameter_name(stmt, at);
        size_t number = 0;

        for (const char *digit = name ? name + 1 : ""; *digit >= '0' && *digit <= '9'; digit++)
            number = number * 10 + (size_t)(*digit - '0');
        if (number < 1 || number > st->param_count)
            return error_set(reterr, ERR_INTERNAL, "a statement without its parameter %d", at);
        if (bind_value(stmt, at, &st->params[number - 1]) != SQLITE_OK)
            return sqlite_error(c, reterr);
    }
    return 0;
}

static void column_read(sqlite3_stmt *stmt, int at, struct store_value *ret)
{
    *ret = STORE_N;
    switch (sqlite3_column_type(stmt, at)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        *ret = STORE_I(sqlite3_column_int64(stmt, at));
        break;
    case SQLITE_TEXT:
        ret->type = STORE_TEXT;
        ret->data = (const char *)sqlite3_column_text(stmt, at);
        ret->len = (size_t)sqlite3_column_bytes(stmt, at);
        break;
    case SQLITE_BLOB:
        ret->type = STORE_BYTES;
        ret->data = sqlite3_column_blob(stmt, at);
        ret->len = (size_t)sqlite3_column_bytes(stmt, at);
        break;
    default:
        break;
    }
}

static int row_give(sqlite3_stmt *stmt, const struct store_statement *st, struct error *reterr)
{
    struct store_value row[COLUMNS_MAX];
    int count = sqlite3_column_count(stmt);

    if (!st->each)
        return 0;
    if (count > COLUMNS_MAX)
        return error_set(reterr, ERR_INTERNAL, "a row of %d columns", count);
    for (int i = 0; i < count; i++)
        column_read(stmt, i, &row[i]);
    return st->each(st->user, row, (size_t)count, reterr);
}

static int64_t stmt_run(struct sqlite *c, sqlite3_stmt *stmt, const struct store_statement *st,
                        struct error *reterr)
{
    int64_t rows = 0;
    int step;

    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        int r = row_give(stmt, st, reterr);

        if (r < 0)
            return r;
        rows++;
    }
    if (step != SQLITE_DONE)
        return sqlite_error(c, reterr);
    return sqlite3_column_count(stmt) ? rows : sqlite3_changes64(c->db);
}

static int64_t sqlite_exec(void *conn, const struct store_statement *st, struct error *reterr)
{
    struct sqlite *c = conn;
    sqlite3_stmt *stmt;
    int64_t r = stmt_take(c, st->sql, &stmt, reterr);

    if (r < 0)
        return r;
    r = bind_all(c, stmt, st, reterr);
    if (r == 0)
        r = stmt_run(c, stmt, st, reterr);
    stmt_give(c, st->sql, stmt);
    return r;
}

static int sqlite_script(void *conn, const char *sql, struct error *reterr)
{
    struct sqlite *c = conn;

    if (sqlite3_exec(c->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_error(c, reterr);
    return 0;
}

/* ---- transactions ---- */

static int command(struct sqlite *c, const char *sql, struct error *reterr)
{
    int64_t r = sqlite_exec(c, &(struct store_statement){.sql = sql}, reterr);

    return r < 0 ? (int)r : 0;
}

static int sqlite_begin(void *conn, bool write, struct error *reterr)
{
    return command(conn, write ? "BEGIN IMMEDIATE" : "BEGIN", reterr);
}

static int sqlite_commit(void *conn, struct error *reterr)
{
    return command(conn, "COMMIT", reterr);
}

static void sqlite_rollback(void *conn)
{
    struct sqlite *c = conn;

    if (!sqlite3_get_autocommit(c->db) && command(c, "ROLLBACK", NULL) < 0)
        c->broken = true;
}

const struct store_engine store_sqlite = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .is_alive = sqlite_is_alive,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .exec = sqlite_exec,
    .script = sqlite_script,
    .connections = 8,
    .serial_writes = true,
};
