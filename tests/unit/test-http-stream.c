/* SPDX-License-Identifier: MIT */
/*
 * Answers that other threads write, and bodies that are pulled: order, back pressure, slow and gone
 * clients (API-06, API-33), keep-alive, failures that no client takes for an end, and stopping.
 */
#include "base/str.h"
#include "tests/lib/rawhttp.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

/* What the test and the handlers share; reset by start(). */
static struct {
    pthread_mutex_t lock;
    struct http_stream *stream; /* of the newest "/stream"; a reference of the test */
    atomic_int gone;            /* 1 + why */
    atomic_int gone_count, stop_count, done_count, closed;
    atomic_bool released; /* lets "/block" return */
    pthread_t writer;     /* for whom on_stop_join() waits */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_gone(void *user, enum http_gone why)
{
    atomic_store(&shared.gone, 1 + (int)why);
    atomic_fetch_add(&shared.gone_count, 1);
}

static void on_done(void *user)
{
    atomic_fetch_add(&shared.done_count, 1);
}

static void on_stop(void *user)
{
    atomic_fetch_add(&shared.stop_count, 1);
    (void)!http_stream_write(shared.stream, "data: bye\n\n", 11, NULL);
    http_stream_close(shared.stream);
}

static void on_stop_join(void *user)
{
    void *result;

    pthread_join(shared.writer, &result);
    atomic_fetch_add(&shared.stop_count, 1);
}

static void stream(struct http_request *req)
{
    const char *type = http_query(req, "type");
    struct http_stream_options o = {
        .status = 200,
        .content_type = type ? type : "text/event-stream",
        .on_gone = on_gone,
        .on_done = on_done,
        .on_stop = http_query(req, "stop")   ? on_stop
                   : http_query(req, "join") ? on_stop_join
                                             : NULL,
    };
    struct http_stream *s;

    if (http_stream_open(req, &o, &s, NULL) < 0)
        return;
    if (http_query(req, "early")) {
        char text[3 << 10];

        memset(text, 'e', sizeof(text));
        for (int i = 0; i < 100; i++)
            (void)!http_stream_write(s, text, sizeof(text), NULL);
        http_stream_close(s);
    }
    pthread_mutex_lock(&shared.lock);
    if (shared.stream)
        http_stream_unref(shared.stream);
    shared.stream = s;
    pthread_mutex_unlock(&shared.lock);
}

/* A body of 26 letters over and over; "fail" ends it by a failure, "short" before its size. */
struct letters {
    size_t left, at;
    bool fails;
};

static ssize_t letters_read(void *user, char *ret, size_t len)
{
    struct letters *l = user;
    size_t n = MIN(len, MIN(l->left, (size_t)1000));

    if (n == 0 && l->fails)
        return -1;
    for (size_t i = 0; i < n; i++)
        ret[i] = (char)('a' + l->at++ % 26);
    l->left -= n;
    return (ssize_t)n;
}

static void letters_close(void *user)
{
    atomic_fetch_add(&shared.closed, 1);
    free(user);
}

static void pull(struct http_request *req)
{
    struct letters *l = calloc(1, sizeof(*l));
    struct http_reader reader = {letters_read, letters_close, l};
    int64_t size = -1, len = 5000;
    const char *text = http_query(req, "size");

    if (!l)
        return;
    (void)!str_parse_int(text ? text : "", 0, INT64_MAX, &size);
    text = http_query(req, "len");
    (void)!str_parse_int(text ? text : "", 0, INT64_MAX, &len);
    l->left = (size_t)len;
    l->fails = http_query(req, "fail") != NULL;
    http_respond_reader(req, 200, "text/plain", size, &reader);
}

static void block(struct http_request *req)
{
    while (!atomic_load(&shared.released) && !http_is_gone(req))
        usleep(5000);
    http_respond(req, 200, "text/plain", "done", 4);
}

static void deaf(struct http_request *req)
{
    while (!atomic_load(&shared.released))
        usleep(5000);
    http_respond(req, 200, "text/plain", "done", 4);
}

static const struct route_entry routes[] = {
    {"GET", "/stream", "", stream, 0, NULL},
    {"GET", "/pull", "", pull, 0, NULL},
    {"GET", "/block", "", block, 0, NULL},
    {"GET", "/deaf", "", deaf, 0, NULL},
    {.path = NULL},
};
static const struct route_table tables[] = {{.entries = routes}, {.entries = NULL}};
static const char *const hosts[] = {"h", NULL};

static struct served start(struct http_options o)
{
    if (shared.stream)
        http_stream_unref(shared.stream);
    shared.stream = NULL;
    atomic_store(&shared.gone, 0);
    atomic_store(&shared.gone_count, 0);
    atomic_store(&shared.stop_count, 0);
    atomic_store(&shared.done_count, 0);
    atomic_store(&shared.closed, 0);
    atomic_store(&shared.released, false);
    o.tables = tables;
    o.hosts = hosts;
    o.tick_ms = 50;
    return served_start(o);
}

static struct raw *request(uint16_t port, const char *path, int window)
{
    struct raw *r = raw_open(port, window);
    char text[256];

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    raw_text(r, text);
    return r;
}

/* A stream whose headers have come, before anything was written to it. */
static struct raw *stream_open(uint16_t port, const char *path)
{
    struct raw *r = request(port, path, 0);

    if (!raw_wait(r, "\r\n\r\n", RAW_WAIT_MS))
        test_fail(__FILE__, __LINE__, "the headers do not come: %s", r->data);
    return r;
}

static int64_t gone_wait(int64_t ms)
{
    int64_t began = clock_ms();

    while (!atomic_load(&shared.gone) && clock_ms() - began < ms)
        usleep(2000);
    return clock_ms() - began;
}

/* ---- streams ---- */

TEST(a_stream_is_written_after_its_handler)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/stream");
    struct error err;
    int64_t began = clock_ms();

    assert_str_has(r->data, "Content-Type: text/event-stream\r\n");
    assert_str_has(r->data, "Cache-Control: no-store\r\n");
    assert_str_has(r->data, "X-Accel-Buffering: no\r\n");
    for (int i = 0; i < 20; i++) {
        char text[32];
        int len = snprintf(text, sizeof(text), "data: %d.\n\n", i);

        assert_ok(http_stream_write(shared.stream, text, (size_t)len, &err), err);
        assert_true(raw_wait(r, text, RAW_WAIT_MS));
    }
    assert_true(clock_ms() - began < 1000);
    http_stream_close(shared.stream);
    assert_true(raw_wait(r, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    assert_false(r->ended);
    assert_int_eq(http_stream_write(shared.stream, "x", 1, &err), -ERR_CANCELLED);
    raw_text(r, "GET /pull HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(raw_wait(r, "abcdefghijklmnopqrstuvwxyz", RAW_WAIT_MS));
    assert_int_eq(atomic_load(&shared.gone_count), 0);
}

TEST(a_client_that_leaves_is_noticed_while_nothing_is_written)
{
    auto_served struct served s = start((struct http_options){});

    for (int i = 0; i < 3; i++) {
        auto_raw struct raw *r =
            stream_open(s.port, i == 1 ? "/stream?type=application/json" : "/stream");
        struct linger reset = {.l_onoff = 1};
        int64_t ms;

        atomic_store(&shared.gone, 0);
        if (i == 2)
            setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(r->fd);
        r->fd = -1;
        ms = gone_wait(3000);
        assert_int_eq(atomic_load(&shared.gone), 1 + HTTP_GONE_CLIENT);
        assert_true(ms < 1000);
        assert_int_eq(http_stream_write(shared.stream, "x", 1, NULL), -ERR_CANCELLED);
        assert_true(http_stream_is_gone(shared.stream));
        http_stream_close(shared.stream);
    }
    assert_int_eq(atomic_load(&shared.gone_count), 3);
}

TEST(a_client_that_closes_its_half_still_gets_its_events)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/stream");
    struct error err;

    shutdown(r->fd, SHUT_WR);
    usleep(700000);
    assert_int_eq(atomic_load(&shared.gone_count), 0);
    assert_ok(http_stream_write(shared.stream, "data: x\n\n", 9, &err), err);
    assert_true(raw_wait(r, "data: x\n\n", RAW_WAIT_MS));
    close(r->fd);
    r->fd = -1;
    assert_true(gone_wait(3000) < 2000);
}

TEST(an_event_stream_is_kept_alive)
{
    auto_served struct served s = start((struct http_options){.keep_alive_ms = 100});
    auto_raw struct raw *events = stream_open(s.port, "/stream"), *other = NULL;

    assert_true(raw_wait(events, ": keep-alive\n\n", 2000));
    events->len = 0;
    events->data[0] = 0;
    assert_true(raw_wait(events, ": keep-alive\n\n", 2000));
    other = stream_open(s.port, "/stream?type=application/x-ndjson");
    assert_false(raw_wait(other, "keep-alive", 300));
}

TEST(a_handler_writes_more_than_the_buffer_holds)
{
    auto_served struct served s = start((struct http_options){.stream_buffer = 16 << 10});
    auto_raw struct raw *r = request(s.port, "/stream?early=1", 0);
    int64_t began = clock_ms();

    assert_true(raw_wait(r, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    assert_true(r->len > 300 << 10);
    assert_true(clock_ms() - began < 1000);
}

static void *writer_main(void *arg)
{
    struct error err = {0};
    char *data = calloc(1, 4 << 20);
    int r = http_stream_write(arg, data, 4 << 20, &err);

    free(data);
    return (void *)(intptr_t)r;
}

TEST(a_slow_client_holds_its_writer_and_gets_everything)
{
    auto_served struct served s = start((struct http_options){.stream_buffer = 64 << 10});
    auto_raw struct raw *r = stream_open(s.port, "/stream?type=application/octet-stream");
    pthread_t writer;
    size_t got = 0;
    void *result;

    assert_int_eq(pthread_create(&writer, NULL, writer_main, shared.stream), 0);
    while (got < 4 << 20) {
        r->len = 0;
        if (!raw_more(r, RAW_WAIT_MS))
            break;
        got += r->len;
        usleep(100);
    }
    pthread_join(writer, &result);
    assert_int_eq((intptr_t)result, 0);
    assert_true(got >= 4 << 20);
}

TEST(a_client_that_never_reads_is_dropped)
{
    auto_served struct served s = start((struct http_options){
        .stream_buffer = 64 << 10, .send_timeout_ms = 300, .min_rate = 64 << 20});
    auto_raw struct raw *r = request(s.port, "/stream?type=application/octet-stream", 4096);
    int64_t began = clock_ms();
    pthread_t writer;
    void *result;

    assert_true(raw_wait(r, "\r\n\r\n", RAW_WAIT_MS));
    assert_int_eq(pthread_create(&writer, NULL, writer_main, shared.stream), 0);
    pthread_join(writer, &result);
    assert_true((intptr_t)result == -ERR_TIMEOUT || (intptr_t)result == -ERR_CANCELLED);
    assert_true(clock_ms() - began < 2500);
    gone_wait(2000);
    assert_int_eq(atomic_load(&shared.gone), 1 + HTTP_GONE_SLOW);
    assert_int_eq(atomic_load(&shared.gone_count), 1);
}

TEST(what_is_left_of_a_closed_stream_does_not_wait_for_ever)
{
    auto_served struct served s = start((struct http_options){
        .stream_buffer = 8 << 20, .send_timeout_ms = 300, .min_rate = 1 << 20});
    auto_raw struct raw *r = request(s.port, "/stream?type=application/octet-stream", 4096);
    int64_t began;

    assert_true(raw_wait(r, "\r\n\r\n", RAW_WAIT_MS));
    assert_int_eq((intptr_t)writer_main(shared.stream), 0);
    http_stream_close(shared.stream);
    began = clock_ms();
    usleep(1000000);
    while (raw_more(r, 2000))
        r->len = 0;
    assert_true(r->ended);
    assert_true(clock_ms() - began < 3000);
    assert_int_eq(atomic_load(&shared.gone_count), 0);
}

TEST(an_aborted_stream_is_no_whole_answer)
{
    auto_served struct served s = start((struct http_options){});

    for (int i = 0; i < 2; i++) {
        auto_raw struct raw *r = stream_open(s.port, "/stream");

        assert_int_eq(http_stream_write(shared.stream, "data: x\n\n", 9, NULL), 0);
        assert_true(raw_wait(r, "data: x\n\n", RAW_WAIT_MS));
        if (i == 0) {
            http_stream_abort(shared.stream);
        } else {
            http_stream_unref(shared.stream);
            shared.stream = NULL;
        }
        assert_true(raw_drain(r, RAW_WAIT_MS));
        assert_null(strstr(r->data, "\r\n0\r\n"));
    }
    assert_int_eq(atomic_load(&shared.gone_count), 0);
}

TEST(streams_do_not_make_room)
{
    auto_served struct served s = start((struct http_options){.connections = 3});
    struct raw *r[3];
    auto_raw struct raw *one_more = NULL;
    struct http_stream *kept[3];

    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        r[i] = stream_open(s.port, "/stream");
        kept[i] = http_stream_ref(shared.stream);
    }
    one_more = request(s.port, "/stream", 0);
    assert_true(raw_drain(one_more, RAW_WAIT_MS));
    assert_uint_eq(one_more->len, 0);
    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        assert_int_eq(http_stream_write(kept[i], "data: x\n\n", 9, NULL), 0);
        assert_true(raw_wait(r[i], "data: x\n\n", RAW_WAIT_MS));
        http_stream_unref(kept[i]);
        raw_free(&r[i]);
    }
}

static size_t fd_count(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    assert_not_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

TEST(clients_that_come_and_go_leave_no_descriptors)
{
    auto_served struct served s = start((struct http_options){});
    size_t before = fd_count();
    int64_t deadline = clock_deadline(5000);

    for (int i = 0; i < 100; i++) {
        struct raw *r = stream_open(s.port, "/stream");

        raw_free(&r);
    }
    /* One stream is the test's own, with its descriptor. */
    while ((fd_count() > before + 1 || atomic_load(&shared.done_count) < 100) &&
           clock_ms() < deadline)
        usleep(20000);
    assert_true(fd_count() <= before + 1);
    assert_int_eq(atomic_load(&shared.done_count), 100);
}

/* ---- bodies that are pulled ---- */

static const struct {
    const char *path, *version;
    bool whole;
} pull_rows[] = {
    {"/pull?size=5000", "HTTP/1.1", true},
    {"/pull", "HTTP/1.1", true},
    {"/pull", "HTTP/1.0", true},
    {"/pull?size=0&len=0", "HTTP/1.1", true},
    {"/pull?len=0", "HTTP/1.1", true},
    {"/pull?size=5000&fail=1&len=3000", "HTTP/1.1", false},
    {"/pull?size=5000&len=3000", "HTTP/1.1", false},
    {"/pull?fail=1", "HTTP/1.1", false},
    {"/pull?fail=1&len=0", "HTTP/1.1", false},
    {"/pull?fail=1", "HTTP/1.0", false},
    {"/pull?size=5000&fail=1&len=3000", "HTTP/1.0", false},
};

/* Whether a careful client takes what came for a whole answer. */
static bool is_whole(const struct raw *r, int error)
{
    const char *body = strstr(r->data, "\r\n\r\n"), *length = strstr(r->data, "Content-Length: ");
    size_t len = body ? r->len - (size_t)(body + 4 - r->data) : 0;

    if (!body || error)
        return false;
    if (length)
        return len == (size_t)atol(length + 16);
    if (strstr(r->data, "Transfer-Encoding: chunked"))
        return len >= 5 && str_eq(r->data + r->len - 5, "0\r\n\r\n");
    return true;
}

TEST(a_pulled_body_is_whole_or_seen_to_be_cut)
{
    auto_served struct served s = start((struct http_options){});

    for (size_t i = 0; i < ARRAY_LEN(pull_rows); i++) {
        auto_raw struct raw *r = raw_open(s.port, 0);
        char text[256];
        int error;

        snprintf(text, sizeof(text), "GET %s %s\r\nHost: h\r\nConnection: close\r\n\r\n",
                 pull_rows[i].path, pull_rows[i].version);
        raw_text(r, text);
        errno = 0;
        assert_true(raw_drain(r, RAW_WAIT_MS));
        error = errno == ECONNRESET;
        if (is_whole(r, error) != pull_rows[i].whole)
            test_fail(__FILE__, __LINE__, "%s %s: %zu bytes, error %d, %.300s", pull_rows[i].path,
                      pull_rows[i].version, r->len, error, r->data);
    }
    assert_int_eq(atomic_load(&shared.closed), ARRAY_LEN(pull_rows));
}

TEST(a_reader_is_closed_when_its_client_leaves)
{
    auto_served struct served s = start((struct http_options){});
    struct raw *r = request(s.port, "/pull?len=100000000", 4096);
    int64_t deadline = clock_deadline(3000);

    assert_true(raw_wait(r, "abc", RAW_WAIT_MS));
    raw_free(&r);
    r = request(s.port, "/pull", 0);
    raw_text(r, "HEAD /pull HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    raw_drain(r, RAW_WAIT_MS);
    raw_free(&r);
    while (atomic_load(&shared.closed) < 3 && clock_ms() < deadline)
        usleep(10000);
    assert_int_eq(atomic_load(&shared.closed), 3);
}

TEST(a_slow_reader_of_a_large_body_is_cut)
{
    auto_served struct served s =
        start((struct http_options){.send_timeout_ms = 300, .min_rate = 1 << 20});
    auto_raw struct raw *r = request(s.port, "/pull?len=1000000000", 4096);
    int64_t began = clock_ms();

    while (atomic_load(&shared.closed) == 0 && clock_ms() - began < 5000)
        usleep(10000);
    assert_int_eq(atomic_load(&shared.closed), 1);
    assert_true(clock_ms() - began < 2000);
}

/* ---- stopping ---- */

TEST(a_stop_tells_streams_and_ends_the_rest)
{
    struct served s = start((struct http_options){});
    auto_raw struct raw *other = stream_open(s.port, "/stream");
    struct http_stream *first = http_stream_ref(shared.stream);
    auto_raw struct raw *told = stream_open(s.port, "/stream?stop=1");
    auto_raw struct raw *idle = raw_open(s.port, 0), *waits = request(s.port, "/block", 0);
    int64_t began = clock_ms();
    struct error err;

    usleep(50000);
    assert_ok(http_server_stop(s.server, 200, &err), err);
    assert_true(clock_ms() - began < 2000);
    assert_int_eq(atomic_load(&shared.stop_count), 1);
    assert_int_eq(atomic_load(&shared.gone), 1 + HTTP_GONE_STOP);
    assert_int_eq(atomic_load(&shared.gone_count), 1);
    assert_true(raw_drain(told, 1000) && raw_drain(other, 1000) && raw_drain(idle, 1000));
    assert_str_has(told->data, "data: bye\n\n");
    assert_str_has(told->data, "\r\n0\r\n\r\n");
    assert_null(strstr(other->data, "\r\n0\r\n\r\n"));
    assert_true(raw_drain(waits, 1000));
    assert_str_has(waits->data, "done");
    assert_int_eq(http_stream_write(first, "x", 1, NULL), -ERR_CANCELLED);
    http_stream_unref(first);
}

/* Where what is told at the stop waits for a writer, and the client takes a little now and then. */
TEST(a_stop_does_not_wait_for_a_slow_reader)
{
    struct served s = start((struct http_options){.stream_buffer = 64 << 10});
    auto_raw struct raw *r = request(s.port, "/stream?type=application/octet-stream&join=1", 4096);
    struct error err;
    int64_t began;

    assert_true(raw_wait(r, "\r\n\r\n", RAW_WAIT_MS));
    assert_int_eq(pthread_create(&shared.writer, NULL, writer_main, shared.stream), 0);
    usleep(100000);
    began = clock_ms();
    assert_ok(http_server_stop(s.server, 400, &err), err);
    assert_true(clock_ms() - began < 2000);
    assert_int_eq(atomic_load(&shared.stop_count), 1);
}

TEST(a_stop_does_not_wait_for_ever_for_a_handler)
{
    struct served s = start((struct http_options){});
    auto_raw struct raw *r = request(s.port, "/deaf", 0);
    struct error err;
    int64_t began = clock_ms();

    usleep(50000);
    assert_int_eq(http_server_stop(s.server, 100, &err), -ERR_BUSY);
    assert_true(clock_ms() - began < 3000);
    /* Lets the thread end; a second stop then finds nothing in its way. */
    atomic_store(&shared.released, true);
    assert_ok(http_server_stop(s.server, 1000, &err), err);
    raw_drain(r, 1000);
}
