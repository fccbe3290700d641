/* SPDX-License-Identifier: MIT */
/*
 * The log of a run under any order of output, events and readers. Whatever happens, a reader sees
 * whole frames, its offset agrees with the log's, and what it got and what was dropped add up.
 */
#include "init/log.h"

#include "wire/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { READERS = 3 };

struct reader {
    struct log_cursor cursor;
    uint64_t offset;
    bool attached;
};

static void check(bool condition)
{
    if (!condition)
        abort();
}

static void reader_next(struct reader *r)
{
    struct log_piece piece;
    struct frame frame;
    int64_t offset;

    if (!r->attached || !log_next(&r->cursor, &piece))
        return;
    check(frame_next(piece.data, piece.len, FRAME_FROM_INIT, &frame, NULL) == (ssize_t)piece.len);
    if (frame.type == FRAME_DROPPED) {
        struct fields f = {.data = frame.payload, .len = frame.len};

        check(fields_get_int(&f, "offset", -1, &offset, NULL) == 0 && offset > 0);
        check((uint64_t)offset > r->offset);
        r->offset = (uint64_t)offset;
    } else {
        r->offset += piece.len;
    }
    check(r->offset == r->cursor.offset);
}

static void reader_toggle(struct log *log, struct reader *r, uint64_t offset)
{
    if (r->attached)
        log_detach(&r->cursor);
    r->offset = r->attached ? offset : 0;
    r->attached = log_attach(log, &r->cursor, r->offset) == 0;
}

static void step(struct log *log, struct reader *readers, const uint8_t *data)
{
    static const uint8_t types[] = {FRAME_STDOUT, FRAME_STDERR, FRAME_LATE_STDOUT,
                                    FRAME_LATE_STDERR};
    static char bytes[FRAME_BULK_MAX * 2];
    struct reader *r = &readers[data[1] % READERS];
    size_t len = (size_t)data[2] << (data[1] & 15);

    if (data[0] < 120)
        log_output(log, types[data[0] % 4], bytes, MIN(len, sizeof(bytes)));
    else if (data[0] < 150)
        (void)!log_event(log, FRAME_DISPLAY, bytes, MIN(len, sizeof(bytes)));
    else if (data[0] < 170)
        reader_toggle(log, r, log->end * data[2] / 255);
    else
        reader_next(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader readers[READERS] = {};
    struct log log;

    log_init(&log, 1);
    for (; size >= 3; data += 3, size -= 3)
        step(&log, readers, data);
    for (int i = 0; i < READERS; i++) {
        while (readers[i].attached && readers[i].offset < log.end)
            reader_next(&readers[i]);
        log_detach(&readers[i].cursor);
    }
    log_done(&log);
    return 0;
}
