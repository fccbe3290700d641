/* SPDX-License-Identifier: MIT */
/*
 * A stream of events, cut at every point: what comes out is the same as of the whole. The bound of
 * an event is small, so it is met as well.
 */
#include "base/str.h"
#include "wire/sse.h"

enum { DATA_MAX = 48, CUT_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct events {
    struct buf text;
    struct sse_parser parser;
};

static int events_add(void *user, const char *event, const char *data, size_t len,
                      struct error *reterr)
{
    struct events *e = user;

    if (len > DATA_MAX || data[len] != 0 || !event[0])
        __builtin_trap();
    return buf_printf(&e->text, "<%s><%s>%zu<", event, e->parser.id, len) < 0 ||
                   buf_append(&e->text, data, len) < 0
               ? -1
               : 0;
}

/* In two pieces, or byte by byte. */
static int events_read(struct events *e, const char *data, size_t size, size_t cut)
{
    size_t step = cut ? cut : 1;
    int r = 0;

    buf_init(&e->text, 4 << 20);
    sse_parser_init(&e->parser, DATA_MAX);
    for (size_t at = 0; at < size && r == 0;) {
        size_t n = MIN(step, size - at);

        r = sse_parser_feed(&e->parser, data + at, n, events_add, e, NULL);
        at += n;
        step = cut ? size : 1;
    }
    sse_parser_done(&e->parser);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct events whole, cut;
    int r;

    if (size > 4096)
        return 0;
    r = events_read(&whole, text, size, size ? size : 1);
    for (size_t at = 0; at < MIN(size, (size_t)CUT_MAX); at++) {
        if (events_read(&cut, text, size, at) != r || cut.text.len != whole.text.len ||
            memcmp(buf_str(&cut.text), buf_str(&whole.text), whole.text.len) != 0)
            __builtin_trap();
        buf_done(&cut.text);
    }
    buf_done(&whole.text);
    return 0;
}
