/* SPDX-License-Identifier: MIT */
/* Bounded buffers: what fits, what does not, and that a refused append changes nothing. */
#include "base/buf.h"

#include "tests/lib/test.h"

#include <stdint.h>

TEST(appends_are_one_string)
{
    auto_buf struct buf b;

    buf_init(&b, 100);
    assert_str_eq(buf_str(&b), "");
    assert_int_eq(buf_append(&b, "ab", 2), 0);
    assert_int_eq(buf_append_str(&b, "cd"), 0);
    assert_int_eq(buf_append_byte(&b, 'e'), 0);
    assert_int_eq(buf_printf(&b, "%d-%s", 7, "x"), 0);
    assert_str_eq(buf_str(&b), "abcde7-x");
    assert_uint_eq(b.len, 8);
}

TEST(the_maximum_is_exact)
{
    auto_buf struct buf b;

    buf_init(&b, 4);
    assert_int_eq(buf_append(&b, "1234", 4), 0);
    assert_int_eq(buf_append(&b, "5", 1), -1);
    assert_int_eq(buf_append_byte(&b, '5'), -1);
    assert_int_eq(buf_printf(&b, "5"), -1);
    assert_int_eq(buf_append(&b, "", 0), 0);
    assert_str_eq(buf_str(&b), "1234");
}

TEST(a_length_that_would_wrap_is_refused)
{
    auto_buf struct buf b;

    buf_init(&b, SIZE_MAX / 2);
    assert_int_eq(buf_append(&b, "x", 1), 0);
    assert_int_eq(buf_reserve(&b, SIZE_MAX), -1);
    assert_int_eq(buf_reserve(&b, SIZE_MAX - 1), -1);
    assert_str_eq(buf_str(&b), "x");
}

TEST(it_grows_over_many_appends)
{
    auto_buf struct buf b;

    buf_init(&b, 100000);
    for (int i = 0; i < 100000; i++)
        assert_int_eq(buf_append_byte(&b, (unsigned char)('a' + i % 26)), 0);
    assert_uint_eq(b.len, 100000);
    assert_int_eq(b.data[99999], 'a' + 99999 % 26);
    assert_int_eq(b.data[100000], 0);
}

TEST(consume_takes_from_the_front)
{
    auto_buf struct buf b;

    buf_init(&b, 10);
    assert_int_eq(buf_append_str(&b, "abcdef"), 0);
    buf_consume(&b, 2);
    assert_str_eq(buf_str(&b), "cdef");
    buf_consume(&b, 4);
    assert_str_eq(buf_str(&b), "");
}

TEST(take_hands_the_memory_over)
{
    auto_buf struct buf b;
    auto_free char *text = NULL;

    buf_init(&b, 10);
    assert_null(buf_take(&b));
    assert_int_eq(buf_append_str(&b, "abc"), 0);
    text = buf_take(&b);
    assert_str_eq(text, "abc");
    assert_uint_eq(b.len, 0);
    assert_int_eq(buf_append_str(&b, "new"), 0);
    assert_str_eq(buf_str(&b), "new");
}
