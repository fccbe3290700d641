/* SPDX-License-Identifier: MIT */
/*
 * PostgreSQL by libpq, without blocking: each wait for the server has a deadline of ours, so one
 * that is stopped or cannot be reached any more costs seconds, not for ever. Values travel in
 * binary form, so texts are neither escaped nor copied. No statement is prepared, so connection
 * poolers between us and the server are fine.
 *
 * A connection that is lost before COMMIT was sent has changed nothing: that is ERR_BUSY, and the
 * transaction is done again on another connection. Once COMMIT was sent nobody knows.
 */
#include "store/db.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/settings.h"

#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <string.h>

enum { CONNECT_MS = 5000, ANSWER_MS = 10000, COLUMNS_MAX = 32, PARAMS_MAX = 32000 };

/* The server ends a statement before we give up the connection, so that its message arrives. */
static const char session_settings[] =
    "SET statement_timeout = 9000; SET lock_timeout = 5000; "
    "SET idle_in_transaction_session_timeout = 60000; SET client_min_messages = error;";

struct postgres {
    PGconn *pg;
    bool dead;
};

/* ---- errors ---- */

struct state_entry {
    const char *prefix; /* of an SQLSTATE */
    enum error_code code;
    bool dead; /* this connection will not do it, another one may */
};

static const struct state_entry state_table[] = {
    {"40", ERR_BUSY, false},           /* serialization, deadlock */
    {"55P03", ERR_BUSY, false},        /* a lock was not to be had in time */
    {"23505", ERR_EXISTS, false},      /* unique constraint */
    {"23503", ERR_NOT_FOUND, false},   /* what it belongs to is gone */
    {"22021", ERR_INVALID, false},     /* a NUL character, or no UTF-8 */
    {"53100", ERR_DISK, false},        /* disk full */
    {"57P0", ERR_BUSY, true},          /* the server or somebody ends the connection */
    {"08", ERR_BUSY, true},            /* the connection */
    {"25006", ERR_UNAVAILABLE, true},  /* read-only: a standby, perhaps not for ever */
    {"25P03", ERR_BUSY, true},         /* idle for too long in a transaction */
    {"57014", ERR_UNAVAILABLE, false}, /* statement time-out */
    {"42501", ERR_UNAVAILABLE, false}, /* no privilege */
    {"42P01", ERR_UNAVAILABLE, false}, /* a table is gone */
    {"53", ERR_UNAVAILABLE, false},    /* memory, connections, limits */
    {"54", ERR_LIMIT, false},          /* too large */
    {"58", ERR_UNAVAILABLE, true},     /* the server's own files */
    {"XX", ERR_UNAVAILABLE, true},     /* a defect or damage there */
};

/* The first line of libpq's message. */
static int connection_error(struct postgres *c, enum error_code code, const char *what,
                            struct error *reterr)
{
    const char *text = PQerrorMessage(c->pg);

    c->dead = true;
    return error_set(reterr, code, "PostgreSQL: %s: %.*s", what, (int)strcspn(text, "\n"), text);
}

static int result_error(struct postgres *c, const PGresult *result, struct error *reterr)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (!state)
        return connection_error(c, ERR_BUSY, "the connection was lost", reterr);
    for (size_t i = 0; i < ARRAY_LEN(state_table); i++) {
        const struct state_entry *e = &state_table[i];

        if (strncmp(state, e->prefix, strlen(e->prefix)) != 0)
            continue;
        c->dead |= e->dead;
        return error_set(reterr, e->code, "PostgreSQL: %s (%s)", text ? text : "?", state);
    }
    return error_set(reterr, ERR_INTERNAL, "PostgreSQL: %s (%s)", text ? text : "?", state);
}

/* ---- waiting ---- */

static int wait_socket(struct postgres *c, short events, int64_t deadline, struct error *reterr)
{
    int r = fd_wait(PQsocket(c->pg), events, deadline);

    if (r > 0)
        return 0;
    c->dead = true;
    if (r == 0)
        return error_set(reterr, ERR_UNAVAILABLE, "PostgreSQL does not answer");
    return connection_error(c, ERR_BUSY, "the connection was lost", reterr);
}

/* Sends what is waiting; reads too, because the server may not read before it could write. */
static int flush(struct postgres *c, int64_t deadline, struct error *reterr)
{
    int left;

    while ((left = PQflush(c->pg)) > 0) {
        int r = wait_socket(c, POLLIN | POLLOUT, deadline, reterr);

        if (r < 0)
            return r;
        if (!PQconsumeInput(c->pg))
            return connection_error(c, ERR_BUSY, "the connection was lost", reterr);
    }
    if (left < 0)
        return connection_error(c, ERR_BUSY, "the connection was lost", reterr);
    return 0;
}

/* The next result of what was sent, NULL behind the last one. */
static int next_result(struct postgres *c, int64_t deadline, PGresult **ret, struct error *reterr)
{
    while (PQisBusy(c->pg)) {
        int r = wait_socket(c, POLLIN, deadline, reterr);

        if (r < 0)
            return r;
        if (!PQconsumeInput(c->pg))
            return connection_error(c, ERR_BUSY, "the connection was lost", reterr);
    }
    *ret = PQgetResult(c->pg);
    return 0;
}

DEFINE_CLEANUP(PGresult *, PQclear)
#define auto_result __attribute__((cleanup(PQclear_cleanup)))

static bool result_is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

/* Reads until all is answered; the last good result is given, the first failure is returned. */
static int finish(struct postgres *c, PGresult **ret, struct error *reterr)
{
    int64_t deadline = clock_deadline(ANSWER_MS);
    int failure = 0, r = flush(c, deadline, reterr);

    while (r == 0) {
        auto_result PGresult *result = NULL;

        r = next_result(c, deadline, &result, reterr);
        if (r < 0 || !result)
            break;
        if (failure)
            continue;
        if (!result_is_good(result)) {
            failure = result_error(c, result, reterr);
            continue;
        }
        PQclear(*ret);
        *ret = TAKE_PTR(result);
    }
    return r < 0 ? r : failure;
}

static int postgres_script(void *conn, const char *sql, struct error *reterr)
{
    struct postgres *c = conn;
    auto_result PGresult *result = NULL;

    if (!PQsendQuery(c->pg, sql))
        return connection_error(c, ERR_BUSY, "cannot send", reterr);
    return finish(c, &result, reterr);
}

/* ---- opening ---- */

struct need {
    const char *setting, *keyword, *value;
};

static int connect_start(const struct settings *s, PGconn **ret, struct error *reterr)
{
    const struct need needs[] = {
        {"POSTGRES_HOST", "host", s->postgres_host},
        {"POSTGRES_PORT", "port", s->postgres_port},
        {"POSTGRES_USER", "user", s->postgres_user},
        {"POSTGRES_PASSWORD", "password", s->postgres_password},
        {"POSTGRES_DB", "dbname", s->postgres_db},
    };
    const char *keywords[ARRAY_LEN(needs) + 3] = {0}, *values[ARRAY_LEN(needs) + 3] = {0};
    size_t count = ARRAY_LEN(needs);

    for (size_t i = 0; i < count; i++) {
        if (!needs[i].value || !*needs[i].value)
            return error_set(reterr, ERR_UNAVAILABLE, "POSTGRES_HOST is set, but %s is not",
                             needs[i].setting);
        keywords[i] = needs[i].keyword;
        values[i] = needs[i].value;
    }
    keywords[count] = "application_name";
    values[count] = "sandbox-agent";
    keywords[count + 1] = "client_encoding";
    values[count + 1] = "UTF8";
    *ret = PQconnectStartParams(keywords, values, 0);
    return *ret ? 0 : error_no_memory(reterr);
}

static int connect_wait(struct postgres *c, struct error *reterr)
{
    int64_t deadline = clock_deadline(CONNECT_MS);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    while (state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        int r = wait_socket(c, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline, reterr);

        if (r < 0)
            return r;
        state = PQconnectPoll(c->pg);
    }
    if (state == PGRES_POLLING_FAILED)
        return connection_error(c, ERR_UNAVAILABLE, "cannot connect", reterr);
    return 0;
}

static void on_notice(void *user, const char *text)
{
}

static int connect_whole(struct postgres *c, struct error *reterr)
{
    int r = 0;

    if (PQstatus(c->pg) == CONNECTION_BAD)
        r = connection_error(c, ERR_UNAVAILABLE, "cannot connect", reterr);
    if (r == 0)
        r = connect_wait(c, reterr);
    if (r < 0)
        return r;
    PQsetNoticeProcessor(c->pg, on_notice, NULL);
    PQsetnonblocking(c->pg, 1);
    return postgres_script(c, session_settings, reterr);
}

static void postgres_close(void *conn)
{
    struct postgres *c = conn;

    PQfinish(c->pg);
    free(c);
}

static int postgres_open(const struct settings *settings, void **ret, struct error *reterr)
{
    struct postgres *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return error_no_memory(reterr);
    r = connect_start(settings, &c->pg, reterr);
    if (r == 0)
        r = connect_whole(c, reterr);
    if (r < 0) {
        postgres_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

/* An idle connection says nothing: what can be read is its end. */
static bool postgres_is_alive(void *conn)
{
    struct postgres *c = conn;

    if (c->dead || PQtransactionStatus(c->pg) != PQTRANS_IDLE)
        return false;
    return fd_wait(PQsocket(c->pg), POLLIN, 0) == 0 ||
           (PQconsumeInput(c->pg) && PQstatus(c->pg) == CONNECTION_OK);
}

/* ---- statements ---- */

enum type_oid {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_UNKNOWN = 705,
    OID_VARCHAR = 1043,
    OID_VOID = 2278,
};

/* Indexed by enum store_type; NULL has whatever type its place asks for. */
static const Oid param_types[] = {
    [STORE_NULL] = 0,
    [STORE_INT] = OID_INT8,
    [STORE_TEXT] = OID_TEXT,
    [STORE_BYTES] = OID_BYTEA,
};

struct params {
    Oid *types;
    const char **values;
    int *lengths, *formats;
    uint64_t *integers;
    void *memory;
};

static void params_done(struct params *p)
{
    free(p->memory);
}

/* One block of memory, the widest members first. */
static int params_new(struct params *p, size_t count, struct error *reterr)
{
    const size_t each = sizeof(*p->integers) + sizeof(*p->values) + sizeof(*p->lengths) +
                        sizeof(*p->formats) + sizeof(*p->types);

    if (count > PARAMS_MAX)
        return error_set(reterr, ERR_LIMIT, "a statement with %zu parameters", count);
    p->memory = calloc(count + 1, each);
    if (!p->memory)
        return error_no_memory(reterr);
    p->integers = p->memory;
    p->values = (const char **)(p->integers + count);
    p->lengths = (int *)(p->values + count);
    p->formats = p->lengths + count;
    p->types = (Oid *)(p->formats + count);
    return 0;
}

static int params_fill(struct params *p, const struct store_statement *st, struct error *reterr)
{
    for (size_t i = 0; i < st->param_count; i++) {
        const struct store_value *v = &st->params[i];

        p->types[i] = param_types[v->type];
        p->formats[i] = 1;
        if (v->type == STORE_NULL)
            continue;
        if (v->type == STORE_INT) {
            p->integers[i] = htobe64((uint64_t)v->integer);
            p->values[i] = (const char *)&p->integers[i];
            p->lengths[i] = sizeof(p->integers[i]);
            continue;
        }
        if (v->len > INT32_MAX / 2)
            return error_set(reterr, ERR_LIMIT, "a value of %zu bytes", v->len);
        p->values[i] = v->data ? v->data : "";
        p->lengths[i] = (int)v->len;
    }
    return 0;
}

static int64_t integer_read(const unsigned char *data, int len)
{
    uint64_t value = 0;

    for (int i = 0; i < len; i++)
        value = value << 8 | data[i];
    if (len == 4)
        return (int32_t)value;
    return len == 2 ? (int16_t)value : (int64_t)value;
}

static int cell_read(const PGresult *result, int row, int column, struct store_value *ret,
                     struct error *reterr)
{
    const char *data = PQgetvalue(result, row, column);
    int len = PQgetlength(result, row, column);

    *ret = STORE_N;
    if (PQgetisnull(result, row, column))
        return 0;
    switch (PQftype(result, column)) {
    case OID_BOOL:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        *ret = STORE_I(integer_read((const unsigned char *)data, len));
        return 0;
    case OID_BYTEA:
        *ret = STORE_B(data, (size_t)len);
        return 0;
    case OID_NAME:
    case OID_TEXT:
    case OID_UNKNOWN:
    case OID_VARCHAR:
        *ret = (struct store_value){.type = STORE_TEXT, .data = data, .len = (size_t)len};
        return 0;
    case OID_VOID:
        return 0;
    default:
        return error_set(reterr, ERR_INTERNAL, "column %s has type %u", PQfname(result, column),
                         PQftype(result, column));
    }
}

static int rows_give(const PGresult *result, const struct store_statement *st, struct error *reterr)
{
    int columns = PQnfields(result), r = 0;
    struct store_value row[COLUMNS_MAX];

    if (columns > COLUMNS_MAX)
        return error_set(reterr, ERR_INTERNAL, "a row of %d columns", columns);
    for (int i = 0; r >= 0 && i < PQntuples(result); i++) {
        for (int k = 0; r >= 0 && k < columns; k++)
            r = cell_read(result, i, k, &row[k], reterr);
        if (r >= 0)
            r = st->each(st->user, row, (size_t)columns, reterr);
    }
    return r < 0 ? r : 0;
}

static int64_t rows_count(PGresult *result)
{
    int64_t count = 0;

    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        return PQntuples(result);
    for (const char *digit = PQcmdTuples(result); *digit >= '0' && *digit <= '9'; digit++)
        count = count * 10 + (*digit - '0');
    return count;
}

static int64_t postgres_exec(void *conn, const struct store_statement *st, struct error *reterr)
{
    struct postgres *c = conn;
    auto_cleanup(params_done) struct params p = {0};
    auto_result PGresult *result = NULL;
    int r = params_new(&p, st->param_count, reterr);

    if (r == 0)
        r = params_fill(&p, st, reterr);
    if (r < 0)
        return r;
    if (!PQsendQueryParams(c->pg, st->sql, (int)st->param_count, p.types, p.values, p.lengths,
                           p.formats, 1))
        return connection_error(c, ERR_BUSY, "cannot send", reterr);
    r = finish(c, &result, reterr);
    if (r == 0 && st->each && result)
        r = rows_give(result, st, reterr);
    if (r < 0)
        return r;
    return result ? rows_count(result) : 0;
}

/* ---- transactions ---- */

static int postgres_begin(void *conn, bool write, struct error *reterr)
{
    return postgres_script(conn,
                           write ? "BEGIN ISOLATION LEVEL READ COMMITTED"
                                 : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                           reterr);
}

/* COMMIT of a transaction that has failed answers ROLLBACK, as if all were well. */
static int postgres_commit(void *conn, struct error *reterr)
{
    struct postgres *c = conn;
    auto_result PGresult *result = NULL;
    int r = 0;

    if (!PQsendQuery(c->pg, "COMMIT"))
        r = connection_error(c, ERR_BUSY, "cannot send", reterr);
    if (r == 0)
        r = finish(c, &result, reterr);
    if (r == 0 && result && strcmp(PQcmdStatus(result), "COMMIT") != 0)
        return error_set(reterr, ERR_INTERNAL, "PostgreSQL rolled a transaction back");
    if (r == -ERR_BUSY && c->dead)
        return error_set(reterr, ERR_UNAVAILABLE,
                         "PostgreSQL: the connection was lost while it committed");
    return r;
}

static void postgres_rollback(void *conn)
{
    struct postgres *c = conn;

    if (!c->dead && PQtransactionStatus(c->pg) != PQTRANS_IDLE &&
        postgres_script(c, "ROLLBACK", NULL) < 0)
        c->dead = true;
}

const struct store_engine store_postgres = {
    .name = "postgres",
    .open = postgres_open,
    .close = postgres_close,
    .is_alive = postgres_is_alive,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .exec = postgres_exec,
    .script = postgres_script,
    .migrate_lock = "SELECT pg_advisory_xact_lock(7310311932)",
    .connections = 16,
};
