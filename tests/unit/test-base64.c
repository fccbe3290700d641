/* SPDX-License-Identifier: MIT */
/* Base64: the vectors of RFC 4648 and what a strict decoder refuses. */
#include "base/base64.h"

#include "tests/lib/test.h"

static const struct {
    const char *plain;
    const char *coded;
} vectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xfe\xfd", "//79"},
};

static const char *const bad[] = {
    "Z",      "Zg",   "Zg=",  "Zg===", "Zm9v ", " Zm9v",
    "Zm\n9v", "Zm9-", "=Zm9", "Zg=A",  "====",  "Zm9vYg==Zg==",
};

TEST(vectors_in_both_directions)
{
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        auto_buf struct buf coded, plain;

        buf_init(&coded, 100);
        buf_init(&plain, 100);
        assert_int_eq(base64_encode(&coded, vectors[i].plain, strlen(vectors[i].plain)), 0);
        assert_str_eq(buf_str(&coded), vectors[i].coded);
        assert_int_eq(base64_decode(&plain, vectors[i].coded, strlen(vectors[i].coded)), 0);
        assert_str_eq(buf_str(&plain), vectors[i].plain);
    }
}

TEST(bad_text_is_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_buf struct buf plain;

        buf_init(&plain, 100);
        if (base64_decode(&plain, bad[i], strlen(bad[i])) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was accepted", bad[i]);
    }
}

TEST(a_full_buffer_is_an_error)
{
    auto_buf struct buf b;

    buf_init(&b, 3);
    assert_int_eq(base64_encode(&b, "foo", 3), -1);
    assert_int_eq(base64_decode(&b, "Zm9vYg==", 8), -1);
}
