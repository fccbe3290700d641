/* SPDX-License-Identifier: MIT */
/* One JSON object over another. */
#include "store/merge.h"

#include "base/buf.h"
#include "tests/lib/test.h"

TEST(members_are_replaced_and_added)
{
    static const struct {
        const char *base, *patch, *want;
    } cases[] = {
        {NULL, NULL, "{}"},
        {"{\"a\":1}", NULL, "{\"a\":1}"},
        {NULL, "{\"a\":1}", "{\"a\":1}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":3,\"c\":4}", "{\"a\":3,\"b\":2,\"c\":4}"},
        {"{\"a\":{\"x\":1}}", "{\"a\":{\"y\":2}}", "{\"a\":{\"y\":2}}"},
        {"{\"a\":1}", "{\"a\":null}", "{\"a\":null}"},
        {"{\"\":1}", "{\"\":[2]}", "{\"\":[2]}"},
        {"{\"a\":1}", "{\"a\":2,\"a\":3}", "{\"a\":3}"},
        {"{\"a\\u0000b\":1}", "{\"a\":2}", "{\"a\\u0000b\":1,\"a\":2}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_arena struct arena arena;
        const char *got;
        struct error err;

        arena_init(&arena, MIB);
        assert_ok(merge_json(cases[i].base, cases[i].patch, &arena, &got, &err), err);
        assert_str_eq(got, cases[i].want);
    }
}

TEST(what_is_no_object_is_refused)
{
    static const char *const bad[] = {"[]", "1", "null", "\"x\"", "", "{", "{}x"};
    auto_arena struct arena arena;

    arena_init(&arena, MIB);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *got;
        struct error err;

        assert_true(merge_json("{}", bad[i], &arena, &got, &err) < 0);
        assert_true(merge_json(bad[i], "{}", &arena, &got, &err) < 0);
    }
}

TEST(objects_of_too_many_members_are_refused)
{
    auto_arena struct arena arena;
    auto_buf struct buf text;
    const char *got;
    struct error err;

    arena_init(&arena, MIB);
    buf_init(&text, MIB);
    for (int i = 0; i <= 10000; i++)
        assert_int_eq(buf_printf(&text, "%c\"%d\":0", i ? ',' : '{', i), 0);
    assert_int_eq(buf_append_byte(&text, '}'), 0);
    assert_int_eq(merge_json(NULL, buf_str(&text), &arena, &got, &err), -ERR_LIMIT);
}
