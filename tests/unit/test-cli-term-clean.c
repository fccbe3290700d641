/* SPDX-License-Identifier: MIT */
/* What hostile text may do to a terminal, and that none of it is left. */
#include "base/str.h"
#include "cli/term/clean.h"
#include "tests/lib/test.h"

#define ARROW "\xe2\x80\xae" /* U+202E */
#define SEEN(text) "\033[0;7m" text "\033[0m"

static void cleaned(enum clean_mode mode, const char *text, size_t len, struct buf *ret)
{
    struct clean c = {.mode = mode, .color = TERM_COLOR_256};

    buf_init(ret, 64 * 1024);
    if (clean_feed(&c, text, len, ret) < 0 || clean_finish(&c, ret) < 0) {
        buf_done(ret);
        if (test_is_torture())
            test_skip("no memory");
        test_fail(__FILE__, __LINE__, "no memory");
    }
}

struct sample {
    const char *in, *out;
};

static void samples_check(enum clean_mode mode, const struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        auto_buf struct buf b;

        cleaned(mode, samples[i].in, strlen(samples[i].in), &b);
        assert_str_eq(buf_str(&b), samples[i].out);
    }
}

TEST(sequences_are_left_out)
{
    static const struct sample samples[] = {
        {"plain\n\ttext", "plain\n\ttext"},
        {"a\033[31mb\033[0mc", "abc"},
        {"a\033[2J\033[1;1Hb", "ab"},
        {"a\033]0;title\007b", "ab"},
        {"a\033]8;;http://x\033\\link\033]8;;\033\\b", "alinkb"},
        {"a\033Pq#0;1\033\\b", "ab"},
        {"a\033_Gi=1;AAAA\033\\b", "ab"},
        {"a\033^x\033\\b\033Xy\033\\c", "abc"},
        {"a\033(0b\033%Gc\033#8d", "abcd"},
        {"a\033cb\0337c\033=d", "abcd"},
        {"a\xc2\x9b"
         "31mb\xc2\x9dtitle\xc2\x9c"
         "c\xc2\x85"
         "d",
         "abcd"},
        {"a\033[38;2;1;2;3mb", "ab"},
        {"a\033[?1049h\033[6nb\033[>c\033[!pc", "abc"},
        {"a\033", "a"},
        {"a\033[3", "a"},
        {"a\033[3\033[4mb", "ab"},
        {"a\033]0;x\033[2Jb", "ab"},
    };

    samples_check(CLEAN_STRIP, samples, ARRAY_LEN(samples));
}

TEST(a_sequence_without_an_end_swallows_no_further_line)
{
    static const struct sample samples[] = {
        {"a\033]0;never\nb", "a\nb"}, {"a\033Pnever\r\nb", "a\nb"}, {"a\033[12\nb", "a\nb"},
        {"a\033\nb", "a\nb"},         {"a\033]x\030b", "ab"},
    };

    samples_check(CLEAN_STRIP, samples, ARRAY_LEN(samples));
}

TEST(lone_controls_and_hidden_characters)
{
    static const struct sample samples[] = {
        {"a\007\b\177b", "a^G^H^?b"},
        {"a\r\nb\rc\r\r\nd", "a\nb\nc\nd"},
        {"a" ARROW "b", "ab"},
        {"a\xe2\x80\x8b\xe2\x81\xa6\xef\xbb\xbf\xc2\xad"
         "b",
         "ab"},
        {"a\xf3\xa0\x81\x81\xf3\xa0\x81\xbf"
         "b",
         "ab"}, /* tag characters */
        {"a\xef\xb8\x8f\xf3\xa0\x84\x80"
         "b",
         "ab"}, /* variation selectors */
        {"a\xe2\x80\xa8"
         "b",
         "a\nb"},                                                         /* U+2028 */
        {"\xd9\x85\xe2\x80\x8c\xd9\x85", "\xd9\x85\xe2\x80\x8c\xd9\x85"}, /* ZWNJ in Persian */
        {"a\xe2\x80\x8d\xe2\x80\x8d"
         "b",
         "ab"},
        {"\xff\xc3(\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd"},
        {"日本語 é 🎉", "日本語 é 🎉"},
    };

    samples_check(CLEAN_STRIP, samples, ARRAY_LEN(samples));
}

TEST(a_tower_of_marks_is_cut)
{
    auto_buf struct buf in, out;

    buf_init(&in, 4096);
    assert_int_eq(buf_append_str(&in, "e"), 0);
    for (int i = 0; i < 100; i++)
        assert_int_eq(buf_append_str(&in, "\xcc\x81"), 0);
    cleaned(CLEAN_STRIP, buf_str(&in), in.len, &out);
    assert_uint_eq(out.len, 1 + 8 * 2);
    buf_done(&out);
    cleaned(CLEAN_VISIBLE, buf_str(&in), in.len, &out);
    assert_uint_eq(out.len, 1 + 8 * 2 + 92 * strlen(SEEN("<U+0301>")));
}

TEST(colours_are_written_anew)
{
    static const struct sample samples[] = {
        {"a\033[31mb\033[mc", "a\033[0;31mb\033[0mc"},
        {"\033[1;4;32;44mx", "\033[0;1;4;32;44mx\033[0m"},
        {"\033[38;5;200mx\033[39my", "\033[0;38;5;200mx\033[0my"},
        {"\033[38;2;255;0;0mx", "\033[0;38;5;196mx\033[0m"},
        {"\033[91mx\033[22;24mx", "\033[0;91mxx\033[0m"},
        {"\033[31ma\nb", "\033[0;31ma\033[0m\n\033[0;31mb\033[0m"},
        {"\033[31m\033[32m\033[0mx", "x"},
        {"\033[?31mx\033[31 mx\033[3<1mx", "xxx"},
        {"\033[8mhidden\033[30;40mx", "hidden\033[0;30mx\033[0m"},
        {"\033[99999999999mx", "x"},
        {"\033[38mx\033[38;5mx\033[48;2;1mx", "xxx"},
        {"\033[31Kx\033[31Hy", "xy"},
    };

    samples_check(CLEAN_COLORS, samples, ARRAY_LEN(samples));
}

TEST(a_very_long_sequence_sets_nothing)
{
    auto_buf struct buf in, out;

    buf_init(&in, 4096);
    assert_int_eq(buf_append_str(&in, "a\033["), 0);
    for (int i = 0; i < 500; i++)
        assert_int_eq(buf_append_str(&in, "1;"), 0);
    assert_int_eq(buf_append_str(&in, "31mb"), 0);
    cleaned(CLEAN_COLORS, buf_str(&in), in.len, &out);
    assert_str_eq(buf_str(&out), "ab");
}

TEST(everything_can_be_made_visible)
{
    static const struct sample samples[] = {
        {"rm -rf \033[8m/\033[0m\n", "rm -rf " SEEN("\\x1b") "[8m/" SEEN("\\x1b") "[0m\n"},
        {"a" ARROW "b\rc\xc2\x9b", "a" SEEN("<U+202E>") "b" SEEN("\\x0d") "c" SEEN("\\x9b")},
        {"x\xf3\xa0\x81\x81y\tz", "x" SEEN("<U+E0041>") "y\tz"},
        {"// x\xe2\x80\xa8y()", "// x" SEEN("<U+2028>") "\ny()"},
    };

    samples_check(CLEAN_VISIBLE, samples, ARRAY_LEN(samples));
}

TEST(what_is_seen_is_not_taken_for_text)
{
    static const char text[] = "\033[1m\\x1b[1m" ARROW "<U+202E>";
    auto_buf struct buf b, plain;

    cleaned(CLEAN_VISIBLE, text, sizeof(text) - 1, &b);
    assert_str_eq(buf_str(&b), SEEN("\\x1b") "[1m\\x1b[1m" SEEN("<U+202E>") "<U+202E>");
    buf_init(&plain, 1024);
    if (clean_text(text, sizeof(text) - 1, CLEAN_VISIBLE, &plain) < 0)
        test_skip("no memory");
    assert_str_eq(buf_str(&plain), "\\x1b[1m\\x1b[1m<U+202E><U+202E>");
}

TEST(pieces_are_like_the_whole)
{
    static const char text[] = "a\033[1;31mb\xe6\x97\xa5\033]0;t\033\\c\r\nd\xc2\x9b"
                               "2Je\033[0m\xf0\x9f\x8e\x89";

    for (int mode = CLEAN_STRIP; mode <= CLEAN_VISIBLE; mode++) {
        for (size_t cut = 0; cut < sizeof(text); cut++) {
            struct clean c = {.mode = (enum clean_mode)mode, .color = TERM_COLOR_16};
            struct clean d = c;
            auto_buf struct buf whole, parts;

            buf_init(&whole, 4096);
            buf_init(&parts, 4096);
            if (clean_feed(&c, text, sizeof(text) - 1, &whole) < 0 ||
                clean_finish(&c, &whole) < 0 ||
                clean_feed(&d, text, MIN(cut, sizeof(text) - 1), &parts) < 0 ||
                clean_feed(&d, text + MIN(cut, sizeof(text) - 1),
                           sizeof(text) - 1 - MIN(cut, sizeof(text) - 1), &parts) < 0 ||
                clean_finish(&d, &parts) < 0)
                test_skip("no memory");
            assert_str_eq(buf_str(&parts), buf_str(&whole));
        }
    }
}

TEST(a_title_is_one_line)
{
    static const struct {
        const char *in;
        size_t columns;
        const char *out;
    } cases[] = {
        {"name", 10, "name"},
        {"a\nb\tc", 10, "a b c"},
        {"0123456789", 10, "0123456789"},
        {"0123456789x", 10, "012345678…"},
        {"日本語日本語", 7, "日本語…"},
        {"", 5, ""},
        {"abc", 0, ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_buf struct buf b;

        buf_init(&b, 1024);
        if (clean_line(cases[i].in, cases[i].columns, &b) < 0)
            test_skip("no memory");
        assert_str_eq(buf_str(&b), cases[i].out);
    }
}
