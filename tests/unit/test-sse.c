/* SPDX-License-Identifier: MIT */
/* Event streams: what is written for clients, and what is read of services. */
#include "wire/sse.h"

#include "base/str.h"
#include "tests/lib/test.h"

/* ---- the writer ---- */

TEST(sse_writes_every_field)
{
    auto_buf struct buf b = {.max = 1000};
    struct sse_event e = {
        .event = "values", .id = "7", .data = "a\nb\r\nc\rd", .len = 8, .retry_ms = 500};

    assert_int_eq(sse_format(&e, &b), 0);
    assert_str_eq(buf_str(&b), "event: values\nid: 7\nretry: 500\ndata: a\ndata: b\ndata: c\n"
                               "data: d\n\n");
}

TEST(sse_writes_nothing_that_is_more_than_one_event)
{
    auto_buf struct buf b = {.max = 1000};

    assert_int_eq(sse_format(&(struct sse_event){.event = "a\nb", .data = "", .len = 0}, &b), -1);
    assert_int_eq(sse_format(&(struct sse_event){.id = "a\rb", .data = "", .len = 0}, &b), -1);
    assert_int_eq(sse_comment_format("a\n\ndata: b", &b), -1);
    assert_uint_eq(b.len, 0);
}

TEST(sse_leaves_a_full_buffer_as_it_was)
{
    auto_buf struct buf b = {.max = 20};

    if (test_is_torture())
        test_skip("allocations may fail");
    assert_int_eq(sse_comment_format("x", &b), 0);
    assert_int_eq(sse_format(&(struct sse_event){.data = "longer than it may be", .len = 21}, &b),
                  -1);
    assert_str_eq(buf_str(&b), ": x\n\n");
}

/* ---- the parser ---- */

struct seen {
    struct buf text; /* "event|id|data;" of each */
    struct sse_parser *parser;
    int fail_at;
};

static int seen_add(void *user, const char *event, const char *data, size_t len,
                    struct error *reterr)
{
    struct seen *s = user;

    if (s->fail_at && --s->fail_at == 0)
        return error_set(reterr, ERR_PROTOCOL, "no more");
    assert_uint_eq(data[len], 0);
    return buf_printf(&s->text, "%s|%s|%s;", event, s->parser->id, data);
}

/* Feeds the text in pieces of `size` bytes and compares what was seen. */
static void parse_check(const char *text, size_t size, const char *want)
{
    auto_cleanup(sse_parser_done) struct sse_parser p;
    auto_buf struct buf seen_text = {.max = 4096};
    struct seen seen = {.text.max = 4096, .parser = &p};
    size_t len = strlen(text);
    struct error err;
    int r = 0;

    sse_parser_init(&p, 200);
    for (size_t i = 0; i < len && r == 0; i += size)
        r = sse_parser_feed(&p, text + i, MIN(size, len - i), seen_add, &seen, &err);
    seen_text = seen.text;
    if (test_is_torture() && r < 0)
        test_skip("an allocation has failed");
    assert_int_eq(r, 0);
    assert_str_eq(buf_str(&seen_text), want);
}

TEST(sse_reads_what_the_standard_says)
{
    static const char *const cases[][2] = {
        {"data: a\n\n", "message||a;"},
        {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "message||a;message||b;message||c;"},
        {"data:a\ndata: b\ndata:  c\n\n", "message||a\nb\n c;"},
        {"\xef\xbb\xbf"
         "data: a\n\n",
         "message||a;"},
        {"\n\xef\xbb\xbf"
         "data: a\n\n",
         ""},
        {"event: x\ndata: a\n\ndata: b\n\n", "x||a;message||b;"},
        {"event: x\n\ndata: a\n\n", "message||a;"},
        {"event:\ndata: a\n\n", "message||a;"},
        {"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "message|1|a;message|1|b;message||c;"},
        {": comment\n:\nretry: 5\nother: x\ndatax: y\n Data: z\nDATA: q\n\n", ""},
        {"data\n\n", "message||;"},
        {"data:\ndata:\n\n", "message||\n;"},
        {"data: a: b\n\n", "message||a: b;"},
        {"data: never ended\n", ""},
        {"data: never ended", ""},
        {"\n\n\r\r\r\n\r\n", ""},
        {"data: a\r\n\ndata: b\n\r\n", "message||a;message||b;"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t size = 1; size <= strlen(cases[i][0]); size++)
            parse_check(cases[i][0], size, cases[i][1]);
    }
}

TEST(sse_reads_what_it_writes)
{
    auto_buf struct buf b = {.max = 1000};
    struct sse_event e = {.event = "updates", .id = "12", .data = "{\"a\":\n1}", .len = 8};

    if (sse_comment_format("hello", &b) < 0 || sse_format(&e, &b) < 0)
        test_skip("an allocation has failed");
    parse_check(b.data, 3, "updates|12|{\"a\":\n1};");
}

/* A stream of one field of `len` characters; what the parser says. */
static int large_feed(const char *field, size_t len, size_t piece)
{
    auto_cleanup(sse_parser_done) struct sse_parser p;
    auto_buf struct buf text = {.max = 4096};
    struct seen seen = {.text.max = 4096, .parser = &p};
    int r = buf_printf(&text, "%s: %0*d\n\n", field, (int)len, 0);

    sse_parser_init(&p, 400);
    for (size_t i = 0; i < text.len && r == 0; i += piece)
        r = sse_parser_feed(&p, text.data + i, MIN(piece, text.len - i), seen_add, &seen, NULL);
    buf_done(&seen.text);
    return r;
}

TEST(sse_refuses_what_is_too_large)
{
    static const struct {
        const char *field;
        size_t good, bad;
    } cases[] = {{"data", 400, 401}, {"event", 127, 128}, {"id", 255, 256}, {"", 414, 415}};

    if (test_is_torture())
        test_skip("allocations may fail");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t piece = 1; piece < 1000; piece += 333) {
            assert_int_eq(large_feed(cases[i].field, cases[i].good, piece), 0);
            assert_int_eq(large_feed(cases[i].field, cases[i].bad, piece), -ERR_LIMIT);
        }
    }
}

TEST(sse_bounds_an_event_of_many_lines)
{
    auto_cleanup(sse_parser_done) struct sse_parser p;
    struct seen seen = {.parser = &p};
    struct error err = {0};
    int r = 0;

    sse_parser_init(&p, 100);
    for (unsigned i = 0; i < 1000 && r == 0; i++)
        r = sse_parser_feed(&p, "data: x\n", 8, seen_add, &seen, &err);
    assert_int_eq(r, -ERR_LIMIT);
    if (!test_is_torture())
        assert_str_has(err.text, "100 bytes");
}

TEST(sse_ends_with_the_failure_of_its_user)
{
    auto_cleanup(sse_parser_done) struct sse_parser p;
    struct seen seen = {.text.max = 4096, .parser = &p, .fail_at = 2};
    auto_buf struct buf text = {0};
    struct error err;
    int r;

    sse_parser_init(&p, 100);
    r = sse_parser_feed(&p, "data: a\n\ndata: b\n\ndata: c\n\n", 27, seen_add, &seen, &err);
    text = seen.text;
    assert_true(r < 0);
    if (!test_is_torture()) {
        assert_int_eq(r, -ERR_PROTOCOL);
        assert_str_eq(buf_str(&text), "message||a;");
    }
}

TEST(sse_takes_no_id_with_a_nul)
{
    auto_cleanup(sse_parser_done) struct sse_parser p;
    struct seen seen = {.text.max = 4096, .parser = &p};
    auto_buf struct buf text = {0};
    int r;

    sse_parser_init(&p, 100);
    r = sse_parser_feed(&p, "id: 1\n\nid: a\0b\ndata: x\n\n", 25, seen_add, &seen, NULL);
    text = seen.text;
    if (test_is_torture() && r < 0)
        test_skip("an allocation has failed");
    assert_str_eq(buf_str(&text), "message|1|x;");
}
