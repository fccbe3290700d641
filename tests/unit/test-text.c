/* SPDX-License-Identifier: MIT */
/* Text that keeps its head and tail: where it is cut, what is said of the rest, and that pieces do
 * not matter. */
#include "session/text.h"

#include "tests/lib/test.h"

#include <stdio.h>

enum { OUT_MAX = 1 << 20 };

/* The text as kept with a limit, fed in pieces of so many bytes. */
static bool keep(const char *data, size_t len, size_t limit, size_t piece, struct buf *ret)
{
    struct text_keep t;
    bool cut;

    text_keep_init(&t, limit);
    for (size_t at = 0; at < len; at += piece)
        text_keep_feed(&t, data + at, MIN(piece, len - at));
    buf_clear(ret);
    cut = text_keep_format(&t, ret);
    text_keep_done(&t);
    return cut;
}

static bool keep_text(const char *text, size_t limit, struct buf *ret)
{
    return keep(text, strlen(text), limit, strlen(text) + 1, ret);
}

TEST(what_fits_stays_as_it_is)
{
    auto_buf struct buf out;

    buf_init(&out, OUT_MAX);
    assert_false(keep_text("", 10, &out));
    assert_str_eq(buf_str(&out), "");
    assert_false(keep_text("0123456789", 10, &out));
    assert_str_eq(buf_str(&out), "0123456789");
    assert_false(keep_text("äöü€中🙂äöü€", 10, &out));
    assert_str_eq(buf_str(&out), "äöü€中🙂äöü€");
}

TEST(what_does_not_fit_keeps_both_ends)
{
    auto_buf struct buf out;

    buf_init(&out, OUT_MAX);
    assert_true(keep_text("0123456789X", 10, &out));
    assert_str_eq(buf_str(&out), "01234\n... [1 characters left out] ...\n6789X");
    assert_true(keep_text("ääääöööüüüü", 8, &out));
    assert_str_eq(buf_str(&out), "ääää\n... [3 characters left out] ...\nüüüü");
    assert_true(keep_text("0123456789", 1, &out));
    assert_str_eq(buf_str(&out), "\n... [9 characters left out] ...\n9");
}

TEST(pieces_make_no_difference)
{
    auto_buf struct buf data, whole, pieces;

    buf_init(&data, OUT_MAX);
    buf_init(&whole, OUT_MAX);
    buf_init(&pieces, OUT_MAX);
    for (int i = 0; i < 400; i++)
        assert_int_eq(buf_printf(&data, "row %d ä中🙂\xff\x1b[31m\n", i), 0);
    for (size_t limit = 0; limit < 400; limit += 37) {
        keep(data.data, data.len, limit, data.len, &whole);
        for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
            keep(data.data, data.len, limit, piece, &pieces);
            assert_str_eq(buf_str(&pieces), buf_str(&whole));
        }
    }
}

TEST(the_count_of_what_is_missing_is_right)
{
    auto_buf struct buf data, out;
    unsigned long long missing;
    const char *marker;

    buf_init(&data, OUT_MAX);
    buf_init(&out, OUT_MAX);
    for (int i = 0; i < 20000; i++)
        assert_int_eq(buf_append_str(&data, i % 3 ? "x" : "é"), 0);
    for (size_t limit = 10; limit < 3000; limit += 331) {
        assert_true(keep(data.data, data.len, limit, 100, &out));
        marker = strstr(buf_str(&out), "... [");
        assert_not_null(marker);
        assert_int_eq(sscanf(marker, "... [%llu", &missing), 1);
        assert_uint_eq(missing, 20000 - limit);
        assert_uint_eq(utf8_count(out.data, out.len),
                       limit + utf8_count("\n... [12345 characters left out] ...\n", 37));
    }
}

TEST(no_cut_is_inside_an_escape_sequence)
{
    static const char *const sequences[] = {
        "\x1b[31m",
        "\x1b[38;2;100;200;100m",
        "\x1b]8;;http://example.test/\x1b\\",
        "\x1b]0;title\a",
        "\x1b(B",
        "\x1b[?25l",
    };
    auto_buf struct buf data, out;

    buf_init(&data, OUT_MAX);
    buf_init(&out, OUT_MAX);
    for (size_t s = 0; s < ARRAY_LEN(sequences); s++) {
        for (int before = 0; before < 60; before++) {
            const char *marker, *esc;

            buf_clear(&data);
            for (int i = 0; i < before; i++)
                assert_int_eq(buf_append_byte(&data, 'h'), 0);
            assert_int_eq(buf_append_str(&data, sequences[s]), 0);
            for (int i = 0; i < 200; i++)
                assert_int_eq(buf_append_byte(&data, 'm'), 0);
            assert_int_eq(buf_append_str(&data, sequences[s]), 0);
            for (int i = 0; i < before; i++)
                assert_int_eq(buf_append_byte(&data, 't'), 0);
            assert_true(keep(data.data, data.len, 100, 7, &out));
            marker = strstr(buf_str(&out), "\n... [");
            assert_not_null(marker);
            /* A sequence is there as a whole or not at all. */
            esc = memchr(out.data, 27, out.len);
            if (esc && esc < marker)
                assert_true(strncmp(esc, sequences[s], strlen(sequences[s])) == 0);
            esc = memchr(marker, 27, out.len - (size_t)(marker - out.data));
            if (esc)
                assert_true(strncmp(esc, sequences[s], strlen(sequences[s])) == 0);
            if (!esc && before < 44)
                assert_null(strstr(marker, sequences[s] + 1));
        }
    }
}

TEST(bytes_that_are_no_text_become_replacements)
{
    auto_buf struct buf out;
    struct text_keep t;

    buf_init(&out, OUT_MAX);
    text_keep_init(&t, 100);
    text_keep_feed(&t, "a\0b\xff\xe4", 5);
    assert_false(text_keep_format(&t, &out));
    assert_mem_eq(out.data, "a\0b\xef\xbf\xbd\xef\xbf\xbd", 9);
    assert_uint_eq(t.bytes, 5);
    /* Formatting once more gives the same. */
    buf_clear(&out);
    assert_false(text_keep_format(&t, &out));
    assert_uint_eq(out.len, 9);
    text_keep_done(&t);
}

TEST(memory_is_bounded_whatever_comes)
{
    static char noise[65536];
    struct text_keep t;

    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * 131 % 251);
    text_keep_init(&t, 1000);
    for (int i = 0; i < 500; i++)
        text_keep_feed(&t, noise, sizeof(noise));
    assert_true(t.head.cap + t.tail.cap < 64 * 1024);
    assert_uint_eq(t.bytes, 500 * sizeof(noise));
    assert_false(t.failed);
    text_keep_done(&t);
}

TEST(a_finished_text_is_cut_the_same_way)
{
    auto_buf struct buf out;

    buf_init(&out, OUT_MAX);
    assert_false(text_cut("short", 5, 10, &out));
    assert_true(text_cut("0123456789X", 11, 10, &out));
    assert_str_eq(buf_str(&out), "short01234\n... [1 characters left out] ...\n6789X");
}
