/* SPDX-License-Identifier: MIT */
/*
 * Logs of frames and their followers, over real connections: replay and live tail without a gap or
 * a double, whatever the follower had; bounds; going on with other logs; and the logs of threads.
 */
#include "api/log.h"
#include "api/thread_log.h"
#include "base/str.h"
#include "tests/lib/rawhttp.h"

#include <pthread.h>
#include <stdatomic.h>

enum { EPOCH = 7, FRAMES = 400, FOLLOWERS = 6 };

/* What the handler follows; of one test at a time. */
static struct shown {
    struct frame_log *log, *more;
    atomic_int done, gone;
    atomic_bool moves; /* there is another log behind the first */
} shown;

static void log_put(struct frame_log *log, const char *data, uint32_t tags, const char *scope)
{
    frame_log_append(
        log, &(struct log_frame){
                 .event = "e", .data = data, .len = strlen(data), .tags = tags, .scope = scope});
}

static bool wants_deep(void *user, const char *scope)
{
    return str_eq(scope, "deep");
}

static struct frame_log *next_more(void *user)
{
    return atomic_exchange(&shown.moves, false) ? frame_log_ref(shown.more) : NULL;
}

static void on_gone(void *user)
{
    atomic_fetch_add(&shown.gone, 1);
}

static void on_done(void *user)
{
    atomic_fetch_add(&shown.done, 1);
}

static void follow(struct http_request *req)
{
    const char *tags = http_query(req, "tags");
    struct error error;

    if (frame_log_follow(req,
                         &(struct follow_options){
                             .log = shown.log,
                             .tags = tags ? (uint32_t)(tags[0] - '0') : 0xff,
                             .present_tags = 4,
                             .after = http_header(req, "Last-Event-ID"),
                             .wants = http_query(req, "deep") ? wants_deep : NULL,
                             .next = http_query(req, "next") ? next_more : NULL,
                             .on_gone = on_gone,
                             .on_done = on_done,
                         },
                         &error) < 0)
        http_fail(req, 500, &error);
}

static const struct route_entry routes[] = {{"GET", "/log", "", follow, 0, NULL}, {}};
static const struct route_table tables[] = {{.entries = routes}, {}};
static const char *const hosts[] = {"h", NULL};

static void shown_done(struct shown **s)
{
    frame_log_unref((*s)->log);
    frame_log_unref((*s)->more);
    **s = (struct shown){};
}

static struct frame_log *log_make(size_t max_bytes, int64_t epoch)
{
    struct frame_log_options options = {.max_bytes = max_bytes, .epoch_ms = epoch};
    struct frame_log *log = NULL;
    struct error err = {0};

    assert_ok(frame_log_new(&options, &log, &err), err);
    return log;
}

static struct raw *follower_open(const struct served *s, const char *query, const char *after)
{
    struct raw *r = raw_open(s->port, 0);
    char text[300];

    snprintf(text, sizeof(text), "GET /log%s HTTP/1.1\r\nHost: h\r\n%s%s%s\r\n", query,
             after ? "Last-Event-ID: " : "", after ? after : "", after ? "\r\n" : "");
    raw_text(r, text);
    return r;
}

static bool has(const struct raw *r, const char *text)
{
    return memmem(r->data, r->len, text, strlen(text));
}

TEST(a_log_is_replayed_from_where_its_follower_was)
{
    static const struct {
        const char *after;
        const char *first; /* the id of the first frame that comes; NULL: none */
    } cases[] = {{NULL, "7-1"}, {"-", "7-1"},    {"-1", "7-1"},   {"7-0", "7-1"}, {"7-1", "7-2"},
                 {"7-3", NULL}, {"7-4", "7-1"},  {"8-1", "7-1"},  {"x-1", "7-1"}, {"7-", "7-1"},
                 {"7", "7-1"},  {"7--1", "7-1"}, {"7-2x", "7-1"}, {"7-2", "7-3"}};
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});

    mine->log = log_make(MIB, EPOCH);
    log_put(mine->log, "1", 0, NULL);
    log_put(mine->log, "2", 0, NULL);
    log_put(mine->log, "3", 0, NULL);
    frame_log_close(mine->log);
    log_put(mine->log, "4", 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_raw struct raw *r = follower_open(&s, "", cases[i].after);
        char id[32];
        char *at;

        assert_true(raw_wait(r, "0\r\n\r\n", RAW_WAIT_MS));
        at = memmem(r->data, r->len, "\nid: ", 5);
        snprintf(id, sizeof(id), "\nid: %s\n", cases[i].first ? cases[i].first : "");
        if (cases[i].first)
            assert_mem_eq(at, id, strlen(id));
        else
            assert_null(at);
        assert_false(has(r, "7-4"));
    }
}

TEST(followers_choose_by_tags_and_scope)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    auto_raw struct raw *tagged = NULL, *deep = NULL;

    mine->log = log_make(MIB, EPOCH);
    log_put(mine->log, "\"one\"", 1, "deep");
    log_put(mine->log, "\"two\"", 2, NULL);
    log_put(mine->log, "\"all\"", 0, "deep");
    frame_log_close(mine->log);
    tagged = follower_open(&s, "?tags=2", NULL);
    assert_true(raw_wait(tagged, "0\r\n\r\n", RAW_WAIT_MS));
    assert_false(has(tagged, "one"));
    assert_true(has(tagged, "data: \"two\"\nid: 7-2\n\n"));
    assert_true(has(tagged, "data: \"all\"\nid: 7-3\n\n"));
    deep = follower_open(&s, "?deep=1", NULL);
    assert_true(raw_wait(deep, "0\r\n\r\n", RAW_WAIT_MS));
    assert_true(has(deep, "one") && has(deep, "all"));
    assert_false(has(deep, "two"));
}

TEST(what_has_ended_before_a_turn_is_the_past)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    struct log_frame end = {.event = "e", .data = "\"end\"", .len = 5, .tags = 4, .ends = true};
    auto_raw struct raw *early = NULL, *late = NULL, *all = NULL;

    mine->log = log_make(MIB, EPOCH);
    log_put(mine->log, "\"begin\"", 4, NULL);
    log_put(mine->log, "\"said\"", 1, NULL);
    frame_log_append(mine->log, &end);
    log_put(mine->log, "\"begin\"", 4, NULL);
    early = follower_open(&s, "", NULL);
    assert_true(raw_wait(early, "id: 7-4\n", RAW_WAIT_MS));
    /* The second has begun and goes on, so it is present. */
    frame_log_turn(mine->log);
    frame_log_append(mine->log, &end);
    frame_log_close(mine->log);
    late = follower_open(&s, "", NULL);
    assert_true(raw_wait(late, "0\r\n\r\n", RAW_WAIT_MS));
    assert_false(has(late, "id: 7-1\n") || has(late, "id: 7-3\n"));
    assert_true(has(late, "id: 7-2\n") && has(late, "id: 7-4\n") && has(late, "id: 7-5\n"));
    /* Nothing is kept from one that was there before, or that has said where it is. */
    assert_true(raw_wait(early, "0\r\n\r\n", RAW_WAIT_MS));
    assert_true(has(early, "id: 7-1\n") && has(early, "id: 7-3\n") && has(early, "id: 7-5\n"));
    all = follower_open(&s, "", "-1");
    assert_true(raw_wait(all, "0\r\n\r\n", RAW_WAIT_MS));
    assert_true(has(all, "id: 7-1\n") && has(all, "id: 7-3\n"));
}

TEST(the_oldest_frames_make_room_and_the_gap_is_told)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    auto_raw struct raw *r = NULL, *late = NULL;

    mine->log = log_make(4000, EPOCH);
    for (int i = 0; i < 1000; i++)
        log_put(mine->log, "\"0123456789012345678901234567890123456789\"", 0, NULL);
    assert_true(frame_log_bytes(mine->log) <= 4000);
    assert_uint_eq(frame_log_next_seq(mine->log), 1001);
    frame_log_close(mine->log);
    r = follower_open(&s, "", "7-10");
    assert_true(raw_wait(r, "0\r\n\r\n", RAW_WAIT_MS));
    assert_true(has(r, "event: gap\ndata: {\"missed\":"));
    assert_true(has(r, "id: 7-1000\n"));
    assert_false(has(r, "id: 7-11\n"));
    /* Who was told goes on behind it. */
    late = follower_open(&s, "", "7-999");
    assert_true(raw_wait(late, "0\r\n\r\n", RAW_WAIT_MS));
    assert_false(has(late, "gap"));
    assert_true(has(late, "id: 7-1000\n"));
}

static void *append_main(void *arg)
{
    for (int i = 0; i < FRAMES; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", i);
        log_put(arg, text, 0, NULL);
    }
    frame_log_close(arg);
    return NULL;
}

TEST(all_followers_get_all_frames_in_order)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    struct raw *raws[FOLLOWERS] = {NULL};
    pthread_t thread;

    mine->log = log_make(MIB, EPOCH);
    for (size_t i = 0; i < FOLLOWERS; i++)
        raws[i] = follower_open(&s, "", NULL);
    assert_int_eq(pthread_create(&thread, NULL, append_main, mine->log), 0);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        auto_raw struct raw *r = raws[i];
        char *at;

        assert_true(raw_wait(r, "0\r\n\r\n", RAW_WAIT_MS));
        at = r->data;
        for (int n = 1; n <= FRAMES; n++) {
            char id[32];

            at = memmem(at, r->len - (size_t)(at - r->data), "\nid: ", 5);
            snprintf(id, sizeof(id), "\nid: 7-%d\n", n);
            assert_not_null(at);
            assert_mem_eq(at, id, strlen(id));
            at++;
        }
    }
    pthread_join(thread, NULL);
    assert_int_eq(atomic_load(&mine->gone), 0);
}

TEST(a_follower_goes_on_with_the_next_log)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    auto_raw struct raw *r = NULL;

    mine->log = log_make(0, 0);
    mine->more = log_make(MIB, 9);
    frame_log_close(mine->log);
    log_put(mine->more, "\"next\"", 0, NULL);
    r = follower_open(&s, "?next=1", NULL);
    assert_true(raw_wait(r, "\r\n\r\n", RAW_WAIT_MS));
    assert_false(has(r, "next"));
    atomic_store(&mine->moves, true);
    frame_log_wake(mine->log);
    assert_true(raw_wait(r, "\"next\"\nid: 9-1\n", RAW_WAIT_MS));
    assert_uint_eq(frame_log_followers(mine->more), 1);
    frame_log_close(mine->more);
    /* It waits at the first one again. */
    while (frame_log_followers(mine->log) == 0)
        assert_false(raw_more(r, 20) && r->ended);
    frame_log_wake(mine->log);
}

/* Stopped while followers move between logs: each ends, and what they have is freed. */
TEST(a_stop_meets_followers_that_move)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    struct served s = served_start((struct http_options){.tables = tables, .hosts = hosts});
    struct raw *raws[FOLLOWERS] = {NULL};
    struct error err;

    mine->log = log_make(0, 0);
    mine->more = log_make(MIB, 9);
    frame_log_close(mine->log);
    frame_log_close(mine->more);
    for (size_t i = 0; i < FOLLOWERS; i++)
        raws[i] = follower_open(&s, "?next=1", NULL);
    for (size_t i = 0; i < FOLLOWERS; i++)
        assert_true(raw_wait(raws[i], "\r\n\r\n", RAW_WAIT_MS));
    for (int i = 0; i < 200; i++) {
        atomic_store(&mine->moves, true);
        frame_log_wake(mine->log);
    }
    assert_ok(http_server_stop(s.server, 2000, &err), err);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        auto_raw struct raw *r = raws[i];

        assert_true(raw_drain(r, RAW_WAIT_MS));
    }
    assert_int_eq(atomic_load(&mine->done), FOLLOWERS);
    assert_int_eq(atomic_load(&mine->gone), 0);
}

TEST(who_leaves_is_told_once)
{
    auto_cleanup(shown_done) struct shown *mine = &shown;
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    struct raw *r;

    mine->log = log_make(MIB, EPOCH);
    r = follower_open(&s, "", NULL);
    assert_true(raw_wait(r, "\r\n\r\n", RAW_WAIT_MS));
    raw_free(&r);
    for (int i = 0; atomic_load(&mine->done) == 0 && i < 500; i++) {
        log_put(mine->log, "1", 0, NULL);
        (void)!fd_wait(-1, 0, clock_deadline(10));
    }
    assert_int_eq(atomic_load(&mine->gone), 1);
    assert_int_eq(atomic_load(&mine->done), 1);
    assert_uint_eq(frame_log_followers(mine->log), 0);
}

/* ---- logs of threads ---- */

static void logs_free(struct thread_logs **t)
{
    thread_logs_free(*t);
}
#define auto_logs __attribute__((cleanup(logs_free)))

static struct thread_logs *logs_new(void)
{
    struct thread_logs *t = NULL;
    struct error err = {0};

    assert_ok(thread_logs_new(&t, &err), err);
    return t;
}

static struct frame_log *log_get(struct thread_logs *t, int thread, bool create)
{
    char id[16];

    snprintf(id, sizeof(id), "%d", thread);
    return thread_log_get(t, "o", id, create);
}

TEST(a_thread_has_one_log_until_it_is_dropped)
{
    auto_logs struct thread_logs *t = logs_new();
    struct frame_log *a, *b, *other;

    if (test_is_torture())
        test_skip("a log without memory is none");
    assert_null(log_get(t, 1, false));
    a = log_get(t, 1, true);
    b = log_get(t, 1, false);
    other = thread_log_get(t, "p", "1", true);
    assert_ptr_eq(a, b);
    assert_true(other != a);
    thread_log_drop(t, "o", "1");
    assert_true(frame_log_is_closed(a));
    assert_false(frame_log_is_closed(other));
    assert_null(log_get(t, 1, false));
    frame_log_unref(a);
    frame_log_unref(b);
    frame_log_unref(other);
}

/* What nobody uses makes room; what is used does not. */
TEST(too_many_logs_of_threads_make_room)
{
    enum { LOGS = 4096 };
    auto_logs struct thread_logs *t = logs_new();
    struct frame_log *used, *log;

    if (test_is_torture())
        test_skip("a log without memory is none");
    used = log_get(t, 0, true);
    for (int i = 1; i <= LOGS; i++) {
        log = log_get(t, i, true);
        assert_not_null(log);
        frame_log_unref(log);
    }
    assert_false(frame_log_is_closed(used));
    assert_null(log_get(t, 1, false));
    frame_log_unref(used);
}

TEST(logs_of_threads_are_bounded_together)
{
    enum { LOGS = 12, FRAME = 4 << 20 };
    auto_logs struct thread_logs *t = logs_new();
    auto_free char *data = calloc(1, FRAME + 1);
    struct frame_log *used, *log;

    if (test_is_torture())
        test_skip("a log without memory is none");
    assert_not_null(data);
    memset(data, '1', FRAME);
    used = log_get(t, 0, true);
    for (int i = 1; i <= LOGS; i++) {
        log = log_get(t, i, true);
        for (int n = 0; n < 4; n++)
            log_put(log, data, 0, NULL);
        frame_log_unref(log);
    }
    thread_logs_sweep(t);
    assert_false(frame_log_is_closed(used));
    assert_null(log_get(t, 1, false));
    log = log_get(t, LOGS, false);
    assert_not_null(log);
    frame_log_unref(log);
    frame_log_unref(used);
}
