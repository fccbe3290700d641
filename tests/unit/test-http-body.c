/* SPDX-License-Identifier: MIT */
/*
 * Bodies that are passed on as they come: all of them in order, none of them held, and a word to
 * whoever takes them when the end does not come.
 */
#include "base/str.h"
#include "tests/lib/rawhttp.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UPLOAD_MAX = 64 << 20 };

static struct {
    atomic_int pieces, ends, released, handled;
    atomic_size_t bytes, largest;
} seen;

/* What one upload keeps: a sum over its bytes, and where it says no. */
struct upload {
    uint64_t sum;
    size_t len;
};

static void upload_release(void *context)
{
    atomic_fetch_add(&seen.released, 1);
    free(context);
}

static int on_body(struct http_request *req, const char *data, size_t len, struct error *reterr)
{
    struct upload *u = http_context(req);
    const char *refuse = http_query(req, "refuse");
    int64_t at = INT64_MAX;

    if (!data) {
        atomic_fetch_add(&seen.ends, 1);
        return 0;
    }
    if (!u) {
        u = calloc(1, sizeof(*u));
        if (!u)
            return error_no_memory(reterr);
        http_set_context(req, u, upload_release);
    }
    (void)!str_parse_int(refuse ? refuse : "", 0, INT64_MAX, &at);
    atomic_fetch_add(&seen.pieces, 1);
    atomic_fetch_add(&seen.bytes, len);
    if (len > atomic_load(&seen.largest))
        atomic_store(&seen.largest, len);
    for (size_t i = 0; i < len; i++)
        u->sum = u->sum * 31 + (unsigned char)data[i];
    u->len += len;
    if (u->len > (size_t)at)
        return error_set(reterr, ERR_DISK, "the disk is \"full\"");
    return 0;
}

static void uploaded(struct http_request *req)
{
    const struct upload *u = http_context(req);
    char *text = arena_printf(http_arena(req), "%zu %llx %zu.", u ? u->len : 0,
                              u ? (unsigned long long)u->sum : 0, http_body(req)->len);

    atomic_fetch_add(&seen.handled, 1);
    http_respond(req, 200, "text/plain", text, strlen(text));
}

static const struct route_entry routes[] = {
    {"POST", "/upload", "", uploaded, UPLOAD_MAX, on_body},
    {"POST", "/small", "", uploaded, 5, on_body},
    {.path = NULL},
};
static const struct route_table tables[] = {{.entries = routes}, {.entries = NULL}};
static const char *const hosts[] = {"h", NULL};
static const char *const origins[] = {"https://app.example", NULL};

/* All bodies that are held may have 1 MiB together. */
static struct served start(void)
{
    atomic_store(&seen.pieces, 0);
    atomic_store(&seen.ends, 0);
    atomic_store(&seen.released, 0);
    atomic_store(&seen.handled, 0);
    atomic_store(&seen.bytes, 0);
    atomic_store(&seen.largest, 0);
    return served_start((struct http_options){.tables = tables,
                                              .hosts = hosts,
                                              .origins = origins,
                                              .body_total = 1 << 20,
                                              .tick_ms = 50,
                                              .body_timeout_ms = 2000});
}

static bool wait_for(atomic_int *value, int want)
{
    int64_t deadline = clock_deadline(RAW_WAIT_MS);

    while (atomic_load(value) != want && clock_ms() < deadline)
        usleep(2000);
    return atomic_load(value) == want;
}

TEST(a_large_body_comes_in_pieces)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);
    char piece[65536], want[64];
    size_t left = 20 << 20;
    uint64_t sum = 0;
    unsigned char next = 0;

    raw_text(r, "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 20971520\r\n\r\n");
    for (; left > 0; left -= sizeof(piece)) {
        for (size_t i = 0; i < sizeof(piece); i++) {
            piece[i] = (char)next;
            sum = sum * 31 + next;
            next = (unsigned char)(next * 7 + 13);
        }
        raw_send(r, piece, sizeof(piece));
    }
    snprintf(want, sizeof(want), "\r\n\r\n%d %llx 0.", 20 << 20, (unsigned long long)sum);
    assert_true(raw_wait(r, want, RAW_WAIT_MS));
    assert_true(atomic_load(&seen.largest) <= 64 << 10);
    assert_int_eq(atomic_load(&seen.ends), 0);
    assert_true(wait_for(&seen.released, 1));
    /* The connection goes on. */
    raw_text(r, "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na");
    assert_true(raw_wait(r, "\r\n\r\n1 61 0.", RAW_WAIT_MS));
}

/* `pieces`: whether on_body was called with any; `ends`: with NULL. */
static const struct {
    const char *head, *body;
    int status;
    const char *has;
    int handled, ends;
} rows[] = {
    {"/upload", "Content-Length: 3\r\n\r\nabc", 200, "\r\n\r\n3 17862 0.", 1, 0},
    {"/upload", "Content-Length: 0\r\n\r\n", 200, "\r\n\r\n0 0 0.", 1, 0},
    {"/upload", "\r\n", 200, "\r\n\r\n0 0 0.", 1, 0},
    {"/upload", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", 200,
     "3 17862 0.", 1, 0},
    {"/upload", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "0 0 0.", 1, 0},
    {"/upload", "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415, "", 0, 0},
    {"/upload", "Content-Length: 67108865\r\n\r\n", 413, "too large", 0, 0},
    {"/small", "Content-Length: 6\r\n\r\n", 413, "too large", 0, 0},
    {"/small", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\nabc\r\n", 413, "too large", 0,
     1},
    {"/upload?refuse=2", "Content-Length: 3\r\n\r\nabc", 507, "\"message\":\"the disk is \\\"full",
     0, 1},
    {"/upload?refuse=2", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n", 507, "full", 0,
     1},
    {"/upload?refuse=2", "Origin: https://app.example\r\nContent-Length: 3\r\n\r\nabc", 507,
     "\r\nAccess-Control-Allow-Origin: https://app.example\r\n", 0, 1},
    /* Ends that are none. */
    {"/upload", "Content-Length: 4\r\n\r\nabc", -1, "", 0, 1},
    {"/upload", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", -1, "", 0, 1},
    {"/upload", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n", 400, "malformed", 0, 1},
    {"/none", "Content-Length: 3\r\n\r\nabc", 404, "", 0, 0},
};

TEST(each_body_ends_or_its_end_is_told)
{
    auto_served struct served s = start();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        int released = atomic_load(&seen.released), handled = atomic_load(&seen.handled);
        int ends = atomic_load(&seen.ends), pieces = atomic_load(&seen.pieces);
        char text[1024];

        snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: h\r\n%s", rows[i].head,
                 rows[i].body);
        if (raw_request(r, text) != rows[i].status)
            test_fail(__FILE__, __LINE__, "'%s' gives %s", text, r->data);
        assert_str_has(r->data, rows[i].has);
        if (atomic_load(&seen.pieces) > pieces)
            assert_true(wait_for(&seen.released, released + 1));
        assert_int_eq(atomic_load(&seen.handled) - handled, rows[i].handled);
        if (atomic_load(&seen.ends) - ends != rows[i].ends)
            test_fail(__FILE__, __LINE__, "'%s' has %d ends", text, atomic_load(&seen.ends) - ends);
    }
}

TEST(a_body_that_stalls_is_cut_and_told)
{
    auto_served struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);

    raw_text(r, "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc");
    assert_true(wait_for(&seen.ends, 1));
    assert_true(wait_for(&seen.released, 1));
    assert_true(raw_drain(r, RAW_WAIT_MS));
    assert_int_eq(atomic_load(&seen.handled), 0);
}

TEST(a_stop_cuts_a_body_and_tells)
{
    struct served s = start();
    auto_raw struct raw *r = raw_open(s.port, 0);
    struct error err;

    raw_text(r, "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc");
    assert_true(wait_for(&seen.pieces, 1));
    assert_ok(http_server_stop(s.server, 100, &err), err);
    assert_int_eq(atomic_load(&seen.ends), 1);
    assert_int_eq(atomic_load(&seen.released), 1);
    assert_int_eq(atomic_load(&seen.handled), 0);
}
