/* SPDX-License-Identifier: MIT */
/* From a kernel's MIME map to what clients get: the richest kind, limits on plain text only, and no
 * trust in the shape of anything. */
#include "session/session-internal.h"

#include "base/json.h"
#include "tests/lib/test.h"

static int item(const char *json, size_t limit, struct buf *ret)
{
    buf_clear(ret);
    return display_item(json, strlen(json), limit, ret, NULL);
}

TEST(the_richest_kind_of_a_display_is_taken)
{
    static const char *const cases[][2] = {
        {"{\"data\":{\"text/plain\":\"x\",\"image/png\":\"AA==\"},\"metadata\":{}}",
         "{\"type\":\"image/png\",\"data\":\"AA==\",\"text\":\"x\"}"},
        {"{\"data\":{\"text/plain\":[1],\"text/html\":\"<b>\"}}",
         "{\"type\":\"text/html\",\"data\":\"<b>\"}"},
        {"{\"data\":{\"text/plain\":\"x\",\"text/markdown\":\"*x*\"}}",
         "{\"type\":\"text/markdown\",\"data\":\"*x*\"}"},
        {"{\"data\":{\"image/png\":\"AA==\",\"text/html\":\"<b>\"}}",
         "{\"type\":\"text/html\",\"data\":\"<b>\"}"},
        {"{\"data\":{\"text/plain\":\"x\"},\"metadata\":{\"width\":3}}",
         "{\"type\":\"text/plain\",\"data\":\"x\",\"metadata\":{\"width\":3}}"},
        {"{\"data\":{\"application/vnd.plotly.v1+json\":{\"data\":[]},\"text/html\":\"x\"}}",
         "{\"type\":\"application/vnd.plotly.v1+json\",\"data\":{\"data\":[]}}"},
        {"{\"data\":{\"application/x-own\":[1,2]}}",
         "{\"type\":\"application/x-own\",\"data\":[1,2]}"},
        {"{\"data\":{\"no kind\":1,\"a/b\":2}}", "{\"type\":\"a/b\",\"data\":2}"},
    };
    auto_buf struct buf out;

    buf_init(&out, MIB);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_eq(item(cases[i][0], 100, &out), 0);
        assert_str_eq(buf_str(&out), cases[i][1]);
    }
}

TEST(what_has_no_shape_is_refused)
{
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"data\":null}",
        "{\"data\":\"image/png\"}",
        "{\"data\":{}}",
        "{\"data\":{\"nokind\":1}}",
        "{\"data\":{\"/x\":1,\"x/\":1,\"a b/<script>\":1}}",
        "{\"data\":{\"text/plain\":\"\xff\"}}",
        "{\"data\":{\"text/plain\":\"x\"}} trailing",
    };
    auto_buf struct buf out;

    buf_init(&out, MIB);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(item(bad[i], 100, &out) < 0);
}

TEST(only_plain_text_is_cut)
{
    auto_buf struct buf out;

    buf_init(&out, MIB);
    assert_int_eq(item("{\"data\":{\"text/plain\":\"0123456789X\"}}", 10, &out), 0);
    assert_str_has(buf_str(&out), "1 characters left out");
    assert_int_eq(
        item("{\"data\":{\"text/plain\":\"0123456789X\",\"text/html\":\"<b>\"}}", 10, &out), 0);
    assert_str_has(buf_str(&out), "\"text\":\"");
    assert_str_has(buf_str(&out), "1 characters left out");
    assert_int_eq(item("{\"data\":{\"text/html\":\"0123456789X\"}}", 10, &out), 0);
    assert_str_has(buf_str(&out), "0123456789X");
    assert_int_eq(item("{\"data\":{\"image/png\":\"0123456789X\"}}", 10, &out), 0);
    assert_str_has(buf_str(&out), "0123456789X");
}

TEST(a_result_keeps_every_kind)
{
    const char *json = "{\"data\":{\"text/plain\":\"0123456789X\",\"text/html\":\"<i>\","
                       "\"bad\":1},\"metadata\":{\"x\":1}}";
    auto_buf struct buf out;
    struct error err;
    bool cut = false;

    buf_init(&out, MIB);
    assert_ok(display_result(json, strlen(json), 100, &out, &cut, &err), err);
    assert_str_eq(buf_str(&out), "{\"text/plain\":\"0123456789X\",\"text/html\":\"<i>\"}");
    assert_false(cut);
    buf_clear(&out);
    assert_ok(display_result(json, strlen(json), 10, &out, &cut, &err), err);
    assert_true(cut);
    assert_int_eq(display_result("{}", 2, 10, &out, &cut, &err), -ERR_PROTOCOL);
}

TEST(what_has_no_room_is_an_error)
{
    const char *json = "{\"data\":{\"text/html\":\"something of twenty or more bytes\"}}";
    auto_buf struct buf out;
    bool cut;

    buf_init(&out, 20);
    assert_true(item(json, 100, &out) < 0);
    assert_true(display_result(json, strlen(json), 100, &out, &cut, NULL) < 0);
}
