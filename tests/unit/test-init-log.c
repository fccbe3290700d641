/* SPDX-License-Identifier: MIT */
/* The log of a run: offsets, replay, bounds, and readers that fall behind. */
#include "init/log.h"
#include "lib/test.h"
#include "wire/fields.h"

enum { STREAM = 7 };

struct total {
    size_t frames, dropped_frames;
    uint64_t payload[2]; /* stdout, stderr */
    uint64_t dropped[2];
    uint64_t offset;
    uint8_t last_type;
};

static void log_cleanup(struct log *log)
{
    log_done(log);
}

static void piece_count(struct total *t, const struct log_piece *piece)
{
    struct frame frame;
    struct error err;
    int64_t value;

    assert_int_eq(frame_next(piece->data, piece->len, FRAME_FROM_INIT, &frame, &err),
                  (long long)piece->len);
    assert_uint_eq(frame.stream, STREAM);
    t->frames++;
    t->last_type = frame.type;
    if (frame.type == FRAME_DROPPED) {
        struct fields f = {.data = frame.payload, .len = frame.len};

        t->dropped_frames++;
        assert_ok(fields_get_int(&f, "offset", -1, &value, &err), err);
        t->offset = (uint64_t)value;
        assert_ok(fields_get_int(&f, "stdout_bytes", -1, &value, &err), err);
        t->dropped[0] += (uint64_t)value;
        assert_ok(fields_get_int(&f, "stderr_bytes", -1, &value, &err), err);
        t->dropped[1] += (uint64_t)value;
        return;
    }
    t->offset += piece->len;
    if (frame.type == FRAME_STDOUT || frame.type == FRAME_STDERR)
        t->payload[frame.type == FRAME_STDERR] += frame.len;
}

/* Reads to the end with a cursor, and checks that the offsets of reader and log agree. */
static void drain(struct log_cursor *c, struct total *t)
{
    struct log_piece piece;

    while (log_next(c, &piece)) {
        piece_count(t, &piece);
        assert_uint_eq(t->offset, c->offset);
    }
}

static struct total read_from(struct log *log, uint64_t offset)
{
    struct total t = {.offset = offset};
    struct log_cursor c;

    assert_int_eq(log_attach(log, &c, offset), 0);
    drain(&c, &t);
    log_detach(&c);
    return t;
}

/* A run with failing calls is made thousands of times, and needs no volume. */
static void write_pieces(struct log *log, uint8_t type, size_t size, size_t count)
{
    static char data[FRAME_BULK_MAX * 3];

    if (test_is_torture())
        count = MIN(count, (size_t)10);
    for (size_t i = 0; i < count; i++)
        log_output(log, type, data, size);
}

TEST(log_joins_output_that_nobody_has_seen)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, 1, 100000);
    t = read_from(&log, 0);
    if (test_is_torture())
        return;
    assert_uint_eq(t.payload[0], 100000);
    assert_true(t.frames < 10);
}

TEST(log_does_not_change_what_a_reader_has)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t = {};
    struct log_cursor c;

    log_init(&log, STREAM);
    assert_int_eq(log_attach(&log, &c, 0), 0);
    for (int i = 0; i < 100; i++) {
        write_pieces(&log, i % 3 ? FRAME_STDOUT : FRAME_STDERR, 10, 1);
        drain(&c, &t);
    }
    if (test_is_torture())
        return;
    assert_uint_eq(t.frames, 100);
    assert_uint_eq(read_from(&log, 0).frames, 100);
}

TEST(log_splits_large_output)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, FRAME_BULK_MAX * 3, 1);
    t = read_from(&log, 0);
    if (test_is_torture())
        return;
    assert_uint_eq(t.frames, 3);
    assert_uint_eq(t.payload[0], FRAME_BULK_MAX * 3);
}

TEST(log_keeps_head_and_tail_of_output)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, 1000, 100000);
    t = read_from(&log, 0);
    if (test_is_torture())
        return;
    assert_uint_eq(t.dropped_frames, 1);
    assert_uint_eq(t.payload[0] + t.dropped[0], 100000000);
    assert_true(t.payload[0] >= LOG_HEAD + LOG_TAIL - 2 * LOG_BLOCK);
    assert_true(t.payload[0] <= LOG_HEAD + LOG_TAIL + 2 * LOG_BLOCK);
    assert_uint_eq(t.offset, log.end);
}

TEST(log_keeps_events_between_gaps)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t;

    log_init(&log, STREAM);
    for (int i = 0; i < 40; i++) {
        write_pieces(&log, i % 2 ? FRAME_STDERR : FRAME_STDOUT, 1000, 1000);
        if (log_event(&log, FRAME_DISPLAY, "{}", 2) < 0)
            return;
    }
    t = read_from(&log, 0);
    if (test_is_torture())
        return;
    assert_uint_eq(t.payload[0] + t.dropped[0], 20000000);
    assert_uint_eq(t.payload[1] + t.dropped[1], 20000000);
    assert_true(t.dropped_frames > 1 && t.dropped_frames <= 40);
    assert_int_eq(t.last_type, FRAME_DISPLAY);
}

TEST(log_tells_a_late_reader_of_the_gap)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t = {}, rest;
    struct log_cursor c;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, FRAME_BULK_MAX, 20);
    assert_int_eq(log_attach(&log, &c, 0), 0);
    drain(&c, &t);
    assert_true(log_backlog(&log) == 0);
    write_pieces(&log, FRAME_STDOUT, FRAME_BULK_MAX, 500);
    if (!test_is_torture())
        assert_uint_eq(log_backlog(&log), 500ull * LOG_BLOCK);
    drain(&c, &t);
    if (!test_is_torture()) {
        assert_uint_eq(t.payload[0] + t.dropped[0], 520ull * FRAME_BULK_MAX);
        assert_uint_eq(t.dropped_frames, 1);
    }
    log_detach(&c);
    if (test_is_torture())
        return;
    /* An offset that was a frame's beginning once is good for ever. */
    rest = read_from(&log, 30ull * LOG_BLOCK);
    assert_uint_eq(rest.payload[0] + rest.dropped[0], 490ull * FRAME_BULK_MAX);
}

TEST(log_refuses_offsets_within_frames)
{
    auto_cleanup(log_cleanup) struct log log;
    struct log_cursor c;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, 10, 1);
    write_pieces(&log, FRAME_STDERR, 20, 1);
    if (log_event(&log, FRAME_RESULT, "{}", 2) < 0 || test_is_torture())
        return;
    for (uint64_t offset = 0; offset <= log.end + 1; offset++) {
        bool good = offset == 0 || offset == 19 || offset == 48 || offset == 59;

        assert_int_eq(log_attach(&log, &c, offset), good ? 0 : -1);
        if (good)
            log_detach(&c);
    }
}

TEST(log_joins_nothing_behind_a_reader_that_waits)
{
    auto_cleanup(log_cleanup) struct log log;
    struct total t = {};
    struct log_cursor c;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, 10, 1);
    t.offset = log.end;
    assert_int_eq(log_attach(&log, &c, log.end), 0);
    write_pieces(&log, FRAME_STDOUT, 10, 1);
    drain(&c, &t);
    assert_uint_eq(t.payload[0], log.end > 19 ? 10 : 0);
    log_detach(&c);
}

TEST(log_leaves_readers_behind_when_it_ends)
{
    struct log log;
    struct log_cursor c;
    struct log_piece piece;

    log_init(&log, STREAM);
    write_pieces(&log, FRAME_STDOUT, 10, 1);
    assert_int_eq(log_attach(&log, &c, 0), 0);
    log_done(&log);
    assert_null(c.log);
    assert_int_eq(log_next(&c, &piece), 0);
    log_detach(&c);
}

TEST(log_block_outlives_its_log)
{
    struct log log;
    struct log_cursor c;
    struct log_piece piece;
    static char data[100000];

    log_init(&log, STREAM);
    if (log_event(&log, FRAME_DISPLAY, data, sizeof(data)) < 0)
        return;
    assert_int_eq(log_attach(&log, &c, 0), 0);
    assert_int_eq(log_next(&c, &piece), 1);
    log_block_ref(piece.block);
    log_done(&log);
    assert_uint_eq(piece.block->size, sizeof(data) + FRAME_HEADER);
    assert_mem_eq(piece.data + FRAME_HEADER, data, sizeof(data));
    log_block_unref(piece.block);
}

TEST(log_has_a_limit_for_events)
{
    auto_cleanup(log_cleanup) struct log log;
    size_t count = 0;

    log_init(&log, STREAM);
    if (test_is_torture())
        return;
    while (log_has_room(&log, MIB) && count < 100) {
        struct log_block *b = log_block_new(0, MIB);

        if (!b)
            return;
        log_event_block(&log, FRAME_DISPLAY, b);
        count++;
    }
    assert_uint_eq(count, 63);
}
