/* SPDX-License-Identifier: MIT */
/* Frames from a kernel: whole, in pieces, large, and wrong. */
#include "init/kframe.h"
#include "lib/test.h"

static const char token[KERNEL_TOKEN + 1] = "0123456789abcdef";

static void reader_feed(struct kreader *r, const char *data, size_t len)
{
    char *room;
    size_t n;

    if (kreader_room(r, &room, &n) < 0)
        test_skip("no memory");
    assert_true(n >= len);
    memcpy(room, data, len);
    kreader_filled(r, len);
}

static size_t frame_write(char *to, uint8_t type, uint32_t stream, const char *json, size_t len)
{
    frame_header_format(to, type, stream, KERNEL_TOKEN + len);
    memcpy(to + FRAME_HEADER, token, KERNEL_TOKEN);
    memcpy(to + FRAME_HEADER + KERNEL_TOKEN, json, len);
    return FRAME_HEADER + KERNEL_TOKEN + len;
}

TEST(kframe_small_frames_in_single_bytes)
{
    auto_cleanup(kreader_done) struct kreader r = {};
    char data[400];
    size_t len = frame_write(data, FRAME_K_DISPLAY, 3, "{\"a\":1}", 7);
    struct kframe f;
    struct error err = {};
    int found = 0;

    len += frame_write(data + len, FRAME_K_DONE, 4, "{}", 2);
    for (size_t i = 0; i < len; i++) {
        reader_feed(&r, data + i, 1);
        while (kreader_next(&r, &f, &err) > 0) {
            found++;
            assert_int_eq(f.stream, 2 + found);
            assert_mem_eq(f.token, token, KERNEL_TOKEN);
            assert_uint_eq(f.len, found == 1 ? 7 : 2);
        }
    }
    assert_int_eq(found, 2);
}

TEST(kframe_large_frame_becomes_a_block)
{
    enum { SIZE = 300 * 1024 };
    auto_cleanup(kreader_done) struct kreader r = {};
    auto_free char *json = malloc(SIZE), *data = malloc(SIZE + 100);
    struct log_block *block;
    struct error err = {};
    struct kframe f;
    size_t len;
    int e = 0;

    if (!json || !data)
        return;
    for (size_t i = 0; i < SIZE; i++)
        json[i] = (char)('a' + i % 26);
    len = frame_write(data, FRAME_K_RESULT, 9, json, SIZE);
    for (size_t at = 0; at < len && e == 0;) {
        char *room;
        size_t n;

        if (kreader_room(&r, &room, &n) < 0)
            return;
        n = MIN(MIN(n, (size_t)5000), len - at);
        memcpy(room, data + at, n);
        kreader_filled(&r, n);
        at += n;
        e = kreader_next(&r, &f, &err);
    }
    if (e < 0 && test_is_torture())
        return;
    assert_int_eq(e, 1);
    assert_uint_eq(f.len, SIZE);
    assert_mem_eq(f.json, json, SIZE);
    block = kreader_take(&r, &f);
    assert_uint_eq(block->size, FRAME_HEADER + SIZE);
    assert_mem_eq(block->data + FRAME_HEADER, json, SIZE);
    log_block_unref(block);
    /* The reader goes on with small ones. */
    reader_feed(&r, data, 5);
    assert_int_eq(kreader_next(&r, &f, &err), 0);
}

static int first_result(uint8_t type, size_t payload)
{
    auto_cleanup(kreader_done) struct kreader r = {};
    char header[FRAME_HEADER];
    struct error err = {};
    struct kframe f;

    frame_header_format(header, type, 1, payload);
    reader_feed(&r, header, sizeof(header));
    return kreader_next(&r, &f, &err);
}

TEST(kframe_wrong_frames_are_refused_by_their_header)
{
    assert_int_eq(first_result(FRAME_K_DONE, 10), -ERR_PROTOCOL);
    assert_int_eq(first_result(FRAME_K_EXEC, 100), -ERR_PROTOCOL);
    assert_int_eq(first_result(FRAME_END, 100), -ERR_PROTOCOL);
    assert_int_eq(first_result(0, 100), -ERR_PROTOCOL);
    assert_int_eq(first_result(0xff, 100), -ERR_PROTOCOL);
    assert_int_eq(first_result(FRAME_K_DISPLAY, KFRAME_MAX + 1), -ERR_PROTOCOL);
    assert_int_eq(first_result(FRAME_K_DISPLAY, 0xffffffff), -ERR_PROTOCOL);
    assert_int_eq(first_result(FRAME_K_DISPLAY, 100), 0);
}

static const char *status_of(const char *json)
{
    struct kframe f = {.json = json, .len = strlen(json)};

    return kframe_status(&f);
}

TEST(kframe_status_is_one_of_three)
{
    assert_str_eq(status_of("{\"status\":\"ok\"}"), "ok");
    assert_str_eq(status_of(" { \"status\" : \"error\" }\n"), "error");
    assert_str_eq(status_of("{\"status\":\"interrupted\"}"), "interrupted");
    for (const char *const *json =
             (const char *const[]){"", "{", "{}", "null", "{\"status\":\"ok\"", "{\"status\":\"ok",
                                   "{\"status\":ok}", "{\"status\":\"okay\"}", "{\"status\":\"\"}",
                                   "{\"state\":\"ok\"}", "{\"status\":\"ok\",\"x\":1}", NULL};
         *json; json++)
        assert_null(status_of(*json));
}
