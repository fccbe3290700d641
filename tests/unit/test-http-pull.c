/* SPDX-License-Identifier: MIT */
/*
 * Streams that are pulled: nothing of them is held for a client that does not read, a wake is
 * never lost, the cadence of comments is steady, and a thousand of them are cheap.
 */
#include "base/str.h"
#include "tests/lib/rawhttp.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { MANY = 1000, MANY_KIB_MAX = 60 * 1024 };

/* What one stream gives: a line for each ticket; the test adds tickets and wakes. */
struct source {
    atomic_int tickets, given, calls, gone, done, stops;
    atomic_bool ends, cuts;               /* once the tickets are used up */
    size_t line;                          /* bytes of each */
    _Atomic(struct http_stream *) stream; /* a reference of the test */
};

static struct source shared;

static ssize_t source_pull(void *user, char *ret, size_t len)
{
    struct source *s = user;
    int given = atomic_load(&s->given);
    int n;

    atomic_fetch_add(&s->calls, 1);
    if (given == atomic_load(&s->tickets))
        return atomic_load(&s->ends) ? -1 : atomic_load(&s->cuts) ? -2 : 0;
    atomic_store(&s->given, given + 1);
    if (s->line) {
        memset(ret, 'x', MIN(len, s->line));
        return (ssize_t)MIN(len, s->line);
    }
    n = snprintf(ret, len, "data: %d.\n\n", given + 1);
    return n;
}

static void source_gone(void *user, enum http_gone why)
{
    struct source *s = user;

    atomic_store(&s->gone, 1 + (int)why);
}

static void source_stop(void *user)
{
    struct source *s = user;

    atomic_fetch_add(&s->stops, 1);
    atomic_fetch_add(&s->tickets, 1);
    atomic_store(&s->ends, true);
    http_stream_wake(atomic_load(&s->stream));
}

static void source_done(void *user)
{
    struct source *s = user;

    atomic_fetch_add(&s->done, 1);
}

static void events(struct http_request *req)
{
    const char *type = http_query(req, "type");
    struct http_stream_options o = {
        .status = 200,
        .content_type = type ? type : "text/event-stream",
        .on_gone = source_gone,
        .on_stop = source_stop,
        .on_done = source_done,
        .user = &shared,
        .pull = source_pull,
        .keep_alive_ms = http_query(req, "quick") ? 150 : 0,
        .keep_alive_text = http_query(req, "text"),
    };
    struct http_stream *s;

    if (http_stream_open(req, &o, &s, NULL) == 0)
        atomic_store(&shared.stream, s);
}

static ssize_t silent_pull(void *user, char *ret, size_t len)
{
    return 0;
}

/* Nobody keeps a reference of these. */
static void silence(struct http_request *req)
{
    struct http_stream *s;

    if (http_stream_open(req,
                         &(struct http_stream_options){
                             .status = 200,
                             .content_type = "text/event-stream",
                             .pull = silent_pull,
                         },
                         &s, NULL) == 0)
        http_stream_unref(s);
}

static const struct route_entry routes[] = {
    {"GET", "/events", "", events, 0, NULL},
    {"GET", "/silence", "", silence, 0, NULL},
    {.path = NULL},
};
static const struct route_table tables[] = {{.entries = routes}, {.entries = NULL}};
static const char *const hosts[] = {"h", NULL};

static struct served start(struct http_options o)
{
    http_stream_unref(atomic_load(&shared.stream));
    memset(&shared, 0, sizeof(shared));
    o.tables = tables;
    o.hosts = hosts;
    o.tick_ms = 50;
    return served_start(o);
}

static struct raw *stream_open(uint16_t port, const char *path, int window)
{
    struct raw *r = raw_open(port, window);
    char text[256];

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    raw_text(r, text);
    if (!raw_wait(r, "\r\n\r\n", RAW_WAIT_MS))
        test_fail(__FILE__, __LINE__, "the headers do not come: %s", r->data);
    return r;
}

static void ticket_add(int count)
{
    atomic_fetch_add(&shared.tickets, count);
    http_stream_wake(atomic_load(&shared.stream));
}

/* Until it is so; whether it is. */
static bool wait_for(atomic_int *value, int want, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);

    while (atomic_load(value) != want && clock_ms() < deadline)
        usleep(2000);
    return atomic_load(value) == want;
}

TEST(each_wake_brings_what_is_there)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/events", 0);

    assert_str_has(r->data, "Content-Type: text/event-stream\r\n");
    assert_str_has(r->data, "Cache-Control: no-store\r\n");
    for (int i = 1; i <= 300; i++) {
        char text[32];

        snprintf(text, sizeof(text), "data: %d.\n\n", i);
        ticket_add(1);
        assert_true(raw_wait(r, text, RAW_WAIT_MS));
    }
    atomic_store(&shared.ends, true);
    http_stream_wake(atomic_load(&shared.stream));
    assert_true(raw_wait(r, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    assert_false(r->ended);
    assert_true(wait_for(&shared.done, 1, RAW_WAIT_MS));
    assert_int_eq(atomic_load(&shared.gone), 0);
    raw_text(r, "GET /none HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_true(raw_wait(r, "HTTP/1.1 404", RAW_WAIT_MS));
}

static void *waker_main(void *arg)
{
    for (int i = 0; i < 5000; i++)
        ticket_add(1);
    return NULL;
}

TEST(wakes_of_many_threads_are_not_lost)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/events", 0);
    pthread_t wakers[3];

    for (size_t i = 0; i < ARRAY_LEN(wakers); i++)
        assert_int_eq(pthread_create(&wakers[i], NULL, waker_main, NULL), 0);
    assert_true(raw_wait(r, "data: 15000.\n\n", 20000));
    for (size_t i = 0; i < ARRAY_LEN(wakers); i++)
        pthread_join(wakers[i], NULL);
    assert_int_eq(atomic_load(&shared.given), 15000);
}

TEST(a_cut_is_no_whole_answer_and_nobody_is_told)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/events", 0);

    ticket_add(1);
    assert_true(raw_wait(r, "data: 1.\n\n", RAW_WAIT_MS));
    atomic_store(&shared.cuts, true);
    http_stream_wake(atomic_load(&shared.stream));
    assert_true(raw_drain(r, RAW_WAIT_MS));
    assert_null(strstr(r->data, "\r\n0\r\n"));
    assert_true(wait_for(&shared.done, 1, RAW_WAIT_MS));
    assert_int_eq(atomic_load(&shared.gone), 0);
}

TEST(a_client_that_leaves_is_noticed_while_there_is_nothing)
{
    auto_served struct served s = start((struct http_options){});
    struct raw *r = stream_open(s.port, "/events", 0);
    int64_t began = clock_ms();

    raw_free(&r);
    assert_true(wait_for(&shared.done, 1, RAW_WAIT_MS));
    assert_true(clock_ms() - began < 1500);
    assert_int_eq(atomic_load(&shared.gone), 1 + HTTP_GONE_CLIENT);
}

TEST(nothing_is_pulled_for_a_client_that_does_not_read)
{
    auto_served struct served s =
        start((struct http_options){.send_timeout_ms = 500, .min_rate = 1 << 20});
    auto_raw struct raw *r = NULL;

    shared.line = 64 << 10;
    r = stream_open(s.port, "/events?type=application/octet-stream", 4096);
    ticket_add(1 << 20);
    assert_true(wait_for(&shared.gone, 1 + HTTP_GONE_SLOW, RAW_WAIT_MS));
    assert_true(wait_for(&shared.done, 1, RAW_WAIT_MS));
    /* What the kernel took, and no more: 64 GiB were there. */
    assert_true(atomic_load(&shared.calls) < 1000);
}

/* When each of the next `count` comes, from now on. */
static void cadence_check(struct raw *r, const char *text, int count, int64_t each)
{
    int64_t began = clock_ms();

    for (int i = 1; i <= count; i++) {
        int64_t ms;

        assert_true(raw_wait(r, text, 3000));
        r->len = 0;
        r->data[0] = 0;
        ms = clock_ms() - began;
        if (ms < i * each - 60 || ms > i * each + 500)
            test_fail(__FILE__, __LINE__, "comment %d comes after %lld ms", i, (long long)ms);
    }
}

TEST(comments_come_steadily_from_the_opening_on)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/events?quick=1", 0);

    cadence_check(r, ": keep-alive\n\n", 6, 150);
}

static void *idle_waker_main(void *arg)
{
    const atomic_bool *stop = arg;

    while (!atomic_load(stop)) {
        http_stream_wake(atomic_load(&shared.stream));
        usleep(10000);
    }
    return NULL;
}

TEST(wakes_for_nothing_do_not_hold_comments_back)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/events?quick=1", 0);
    atomic_bool stop = false;
    pthread_t waker;
    bool came;

    assert_int_eq(pthread_create(&waker, NULL, idle_waker_main, &stop), 0);
    came = raw_wait(r, ": keep-alive\n\n", 1000);
    atomic_store(&stop, true);
    pthread_join(waker, NULL);
    assert_true(came);
}

TEST(an_answer_of_json_is_kept_alive_by_white_space)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r =
        stream_open(s.port, "/events?quick=1&type=application/json&text=%0A", 0);

    assert_str_has(r->data, "Content-Type: application/json\r\n");
    r->len = 0;
    cadence_check(r, "1\r\n\n\r\n", 3, 150);
    /* And it may close its half, as some clients do once they have asked. */
    shutdown(r->fd, SHUT_WR);
    usleep(700000);
    ticket_add(1);
    assert_true(raw_wait(r, "data: 1.\n\n", RAW_WAIT_MS));
}

TEST(other_types_get_no_comments)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = stream_open(s.port, "/events?quick=1&type=application/json", 0);

    assert_false(raw_wait(r, "keep-alive", 400));
}

TEST(a_stop_lets_a_stream_give_its_last)
{
    struct served s = start((struct http_options){});
    auto_raw struct raw *told = stream_open(s.port, "/events", 0);
    auto_raw struct raw *silent = stream_open(s.port, "/silence", 0);
    struct error err;

    assert_ok(http_server_stop(s.server, 1000, &err), err);
    assert_true(raw_drain(told, 1000) && raw_drain(silent, 1000));
    assert_str_has(told->data, "data: 1.\n\n");
    assert_str_has(told->data, "\r\n0\r\n\r\n");
    assert_null(strstr(silent->data, "\r\n0\r\n\r\n"));
    assert_int_eq(atomic_load(&shared.stops), 1);
    assert_int_eq(atomic_load(&shared.done), 1);
}

TEST(an_old_client_gets_all_of_it_too)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = raw_open(s.port, 0);

    shared.line = 10000;
    atomic_store(&shared.tickets, 20);
    atomic_store(&shared.ends, true);
    raw_text(r, "GET /events?type=text/plain HTTP/1.0\r\nHost: h\r\n\r\n");
    assert_true(raw_drain(r, RAW_WAIT_MS));
    assert_null(strstr(r->data, "chunked"));
    assert_true(str_ends(r->data, "xxxxxxxxxx"));
    assert_int_eq(atomic_load(&shared.given), 20);
    assert_true(wait_for(&shared.done, 1, RAW_WAIT_MS));
    assert_int_eq(atomic_load(&shared.gone), 0);
}

TEST(the_head_of_a_stream_has_no_body)
{
    auto_served struct served s = start((struct http_options){});
    auto_raw struct raw *r = raw_open(s.port, 0);

    raw_text(r, "HEAD /events HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(raw_wait(r, "\r\n\r\n", RAW_WAIT_MS));
    assert_true(wait_for(&shared.done, 1, RAW_WAIT_MS));
    assert_int_eq(atomic_load(&shared.calls), 0);
}

/* ---- many ---- */

static long resident_kib(void)
{
    char text[256] = "";
    auto_fd int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char *resident;

    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    resident = strchr(text, ' ');
    assert_not_null(resident);
    return strtol(resident, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

struct crowd {
    int fds[MANY];
};

static void crowd_free(struct crowd **c)
{
    for (size_t i = 0; *c && i < MANY; i++) {
        if ((*c)->fds[i] >= 0)
            close((*c)->fds[i]);
    }
    free(*c);
}

/* Opens a stream and waits until its head has come. */
static int crowd_join(uint16_t port)
{
    static const char text[] = "GET /silence HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n"
                               "User-Agent: a client of the usual kind\r\n\r\n";
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char head[1024];
    ssize_t n;

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) < 0 ||
        fd_wait(fd, POLLIN, clock_deadline(RAW_WAIT_MS)) <= 0)
        return -1;
    n = recv(fd, head, sizeof(head), 0);
    return n > 12 && memcmp(head, "HTTP/1.1 200", 12) == 0 ? TAKE_FD(fd) : -1;
}

TEST(a_thousand_streams_are_cheap)
{
    __attribute__((cleanup(crowd_free))) struct crowd *c = calloc(1, sizeof(*c));
    auto_served struct served s = start((struct http_options){.keep_alive_ms = 1000});
    struct rlimit limit;
    long before, after;

    assert_not_null(c);
    memset(c->fds, -1, sizeof(c->fds));
    /* The server has raised it; a stream has two descriptors, and its client one. */
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 3 * MANY + 300)
        test_skip("only %llu descriptors", (unsigned long long)limit.rlim_cur);
    before = resident_kib();
    for (size_t i = 0; i < MANY; i++) {
        c->fds[i] = crowd_join(s.port);
        if (c->fds[i] < 0)
            test_fail(__FILE__, __LINE__, "stream %zu is not opened", i);
    }
    /* Each has sent a comment. */
    for (size_t i = 0; i < MANY; i++)
        assert_true(fd_wait(c->fds[i], POLLIN, clock_deadline(RAW_WAIT_MS)) > 0);
    after = resident_kib();
    test_note("%d streams: %ld KiB more, %ld KiB in all", MANY, after - before, after);
    if (!SANITIZED)
        assert_true(after < MANY_KIB_MAX);
}
