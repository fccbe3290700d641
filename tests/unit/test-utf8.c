/* SPDX-License-Identifier: MIT */
/* UTF-8 repair: what is left alone, one replacement per maximal subpart, and characters that come
 * in pieces. */
#include "wire/utf8.h"

#include "tests/lib/test.h"

#define R "\xef\xbf\xbd"

static void repair(const char *data, size_t len, size_t piece, struct buf *ret)
{
    struct utf8_repair u = {};

    buf_clear(ret);
    for (size_t at = 0; at < len; at += piece)
        assert_int_eq(utf8_repair_feed(&u, data + at, MIN(piece, len - at), ret), 0);
    assert_int_eq(utf8_repair_finish(&u, ret), 0);
    assert_uint_eq(u.pending_len, 0);
}

TEST(a_cut_is_never_inside_a_character)
{
    static const char text[] = "a\xc3\xa4\xf0\x9f\x99\x82z";
    static const size_t kept[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};

    for (size_t max = 0; max < ARRAY_LEN(kept); max++)
        assert_uint_eq(utf8_cut(text, strlen(text), max), kept[max]);
    assert_uint_eq(utf8_cut("\x80\x80", 2, 1), 0);
}

TEST(ill_formed_bytes_are_replaced_and_the_rest_is_kept)
{
    /* The answers are those of the Unicode standard, section 3.9, and of browsers. */
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"\xc3\xa4\xe4\xb8\xad\xf0\x9f\x99\x82", "\xc3\xa4\xe4\xb8\xad\xf0\x9f\x99\x82"},
        {"caf\xe9 ok", "caf" R " ok"},
        {"\xff\xfe", R R},
        {"\x80\xbf", R R},
        {"\xc0\xaf", R R},
        {"\xc1\xbf", R R},
        {"\xe0\x80\xaf", R R R},
        {"\xe0\x9f\xbf", R R R},
        {"\xf0\x80\x80\xaf", R R R R},
        {"\xf0\x8f\xbf\xbf", R R R R},
        {"\xed\xa0\x80\xed\xbf\xbf", R R R R R R},
        {"\xed\x9f\xbf", "\xed\x9f\xbf"},
        {"\xee\x80\x80", "\xee\x80\x80"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xf4\x91\x92\x93\xff"
         "A\x80\xbf"
         "B",
         R R R R R "A" R R "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
         "A",
         R R R R "A"},
        {"\xe4\xb8", R},
        {"\xf0\x9f\x99", R},
        {"\xf0\x9f\x99\xf0\x9f\x99\x82", R "\xf0\x9f\x99\x82"},
        {"\xf5\x80\x80\x80", R R R R},
        {"\xef\xbb\xbf"
         "bom",
         "\xef\xbb\xbf"
         "bom"},
    };
    auto_buf struct buf out;

    buf_init(&out, 1000);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t piece = 1; piece <= 5; piece++) {
            repair(cases[i].in, strlen(cases[i].in), piece, &out);
            assert_str_eq(buf_str(&out), cases[i].out);
        }
    }
}

TEST(nul_bytes_are_characters)
{
    auto_buf struct buf out;

    buf_init(&out, 100);
    repair("a\0\xc3\0b", 5, 2, &out);
    assert_uint_eq(out.len, 7);
    assert_mem_eq(out.data, "a\0" R "\0b", 7);
}

TEST(every_character_comes_through)
{
    auto_buf struct buf out;

    buf_init(&out, 16);
    for (unsigned long c = 1; c <= 0x10ffff; c++) {
        char text[5] = "";

        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        if (c < 0x80) {
            text[0] = (char)c;
        } else if (c < 0x800) {
            text[0] = (char)(0xc0 | c >> 6);
            text[1] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            text[0] = (char)(0xe0 | c >> 12);
            text[1] = (char)(0x80 | (c >> 6 & 0x3f));
            text[2] = (char)(0x80 | (c & 0x3f));
        } else {
            text[0] = (char)(0xf0 | c >> 18);
            text[1] = (char)(0x80 | (c >> 12 & 0x3f));
            text[2] = (char)(0x80 | (c >> 6 & 0x3f));
            text[3] = (char)(0x80 | (c & 0x3f));
        }
        repair(text, strlen(text), 2, &out);
        if (strcmp(buf_str(&out), text) != 0 || utf8_count(text, strlen(text)) != 1)
            test_fail(__FILE__, __LINE__, "U+%04lX does not come through", c);
    }
}

TEST(a_full_buffer_is_told)
{
    struct utf8_repair u = {};
    auto_buf struct buf out;

    buf_init(&out, 2);
    assert_int_eq(utf8_repair_feed(&u, "abc", 3, &out), -1);
    u = (struct utf8_repair){};
    buf_clear(&out);
    assert_int_eq(utf8_repair_feed(&u, "\xff", 1, &out), -1);
    u = (struct utf8_repair){};
    assert_int_eq(utf8_repair_feed(&u, "\xe4", 1, &out), 0);
    assert_int_eq(utf8_repair_finish(&u, &out), -1);
}
