/* SPDX-License-Identifier: MIT */
/* The event log: order, waiting, bounds, and readers that are too slow. */
#include "session/log.h"

#include "base/clock.h"
#include "tests/lib/test.h"

static void event_done(struct run_event *e)
{
    buf_done(&e->data);
}

#define auto_event __attribute__((cleanup(event_done)))

static void log_open(struct run_log *log, size_t max)
{
    struct error err;

    assert_ok(run_log_init(log, max, &err), err);
}

#define auto_log __attribute__((cleanup(run_log_done)))

TEST(events_come_in_order_and_then_the_end)
{
    auto_log struct run_log log = {};
    auto_event struct run_event e = {};
    struct run_cursor cursor = {};
    struct error err;

    log_open(&log, 1000);
    buf_init(&e.data, 100);
    run_log_append(&log, RUN_EVENT_STDOUT, "one", 3);
    run_log_append(&log, RUN_EVENT_STDERR, "", 0);
    assert_false(run_log_is_closed(&log));
    run_log_close(&log);
    run_log_close(&log);
    run_log_append(&log, RUN_EVENT_STDOUT, "too late", 8);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_STDOUT);
    assert_str_eq(buf_str(&e.data), "one");
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_STDERR);
    assert_uint_eq(e.data.len, 0);
    assert_uint_eq(e.seq, 1);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_END);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 0);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 0);
    assert_true(run_log_is_closed(&log));
    assert_true(run_log_wait_closed(&log, 0));
}

TEST(waiting_ends_at_the_deadline)
{
    auto_log struct run_log log = {};
    auto_event struct run_event e = {};
    struct run_cursor cursor = {};
    struct error err;

    log_open(&log, 1000);
    buf_init(&e.data, 100);
    assert_int_eq(run_log_next(&log, &cursor, clock_deadline(20), &e, &err), -ERR_TIMEOUT);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), -ERR_TIMEOUT);
    assert_false(run_log_wait_closed(&log, clock_deadline(20)));
}

TEST(a_slow_reader_is_told_how_much_is_gone)
{
    auto_log struct run_log log = {};
    auto_event struct run_event e = {};
    struct run_cursor slow = {}, fast = {};
    struct error err;

    log_open(&log, 10);
    buf_init(&e.data, 100);
    run_log_append(&log, RUN_EVENT_STDOUT, "12345", 5);
    assert_int_eq(run_log_next(&log, &fast, 0, &e, &err), 1);
    for (int i = 0; i < 4; i++)
        run_log_append(&log, RUN_EVENT_STDOUT, "abcde", 5);
    assert_int_eq(run_log_next(&log, &slow, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_GAP);
    assert_str_eq(buf_str(&e.data), "15");
    assert_int_eq(run_log_next(&log, &slow, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_STDOUT);
    assert_uint_eq(e.seq, 3);
    /* What it has read is not missing. */
    assert_int_eq(run_log_next(&log, &fast, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_GAP);
    assert_str_eq(buf_str(&e.data), "10");
    run_log_append(&log, RUN_EVENT_STDOUT, "fghij", 5);
    run_log_append(&log, RUN_EVENT_STDOUT, "klmno", 5);
    assert_int_eq(run_log_next(&log, &slow, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_GAP);
    assert_str_eq(buf_str(&e.data), "5");
}

TEST(an_event_above_the_bound_is_kept_alone)
{
    auto_log struct run_log log = {};
    auto_event struct run_event e = {};
    struct run_cursor cursor = {};
    struct error err;

    log_open(&log, 10);
    buf_init(&e.data, 100);
    run_log_append(&log, RUN_EVENT_STDOUT, "x", 1);
    run_log_append(&log, RUN_EVENT_DISPLAY, "a display of 30 bytes or so ...", 31);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_GAP);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_DISPLAY);
    run_log_close(&log);
    assert_int_eq(run_log_next(&log, &cursor, 0, &e, &err), 1);
    assert_int_eq(e.type, RUN_EVENT_END);
}

struct writer {
    struct run_log *log;
    pthread_t thread;
    bool started;
};

static void writer_done(struct writer *w)
{
    if (w->started)
        pthread_join(w->thread, NULL);
}

enum { EVENTS = 20000 };

static void *writer_main(void *arg)
{
    struct writer *w = arg;

    for (int i = 0; i < EVENTS; i++)
        run_log_append(w->log, RUN_EVENT_STDOUT, &i, sizeof(i));
    run_log_close(w->log);
    return NULL;
}

/* Every event is either read, in order, or counted as missed. */
static void log_follow(struct run_log *log)
{
    auto_event struct run_event e = {};
    struct run_cursor cursor = {};
    size_t read = 0, missed = 0, gap;
    int last = -1, value, r;
    struct error err;

    buf_init(&e.data, 100);
    while ((r = run_log_next(log, &cursor, clock_deadline(10000), &e, &err)) > 0) {
        if (e.type == RUN_EVENT_GAP) {
            gap = strtoul(buf_str(&e.data), NULL, 10) / sizeof(int);
            missed += gap;
            last += (int)gap;
        } else if (e.type == RUN_EVENT_STDOUT) {
            memcpy(&value, e.data.data, sizeof(value));
            assert_int_eq(value, ++last);
            read++;
        }
    }
    assert_int_eq(r, 0);
    assert_uint_eq(read + missed, EVENTS);
}

TEST(a_reader_follows_a_writer)
{
    for (size_t max = 64; max <= 1 << 20; max <<= 7) {
        auto_log struct run_log log = {};
        auto_cleanup(writer_done) struct writer w = {.log = &log};

        log_open(&log, max);
        w.started = pthread_create(&w.thread, NULL, writer_main, &w) == 0;
        assert_true(w.started);
        log_follow(&log);
        assert_true(run_log_wait_closed(&log, clock_deadline(10000)));
    }
}
