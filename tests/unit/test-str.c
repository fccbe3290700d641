/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and words: only what is written in full and fits is accepted. */
#include "base/str.h"

#include "tests/lib/test.h"

static const struct {
    const char *text;
    int64_t want;
} good_numbers[] = {
    {"0", 0},
    {"-0", 0},
    {"00012", 12},
    {"9223372036854775807", INT64_MAX},
    {"-9223372036854775808", INT64_MIN},
};

static const char *const bad_numbers[] = {
    "",
    "-",
    "+1",
    " 1",
    "1 ",
    "0x10",
    "1e3",
    "1.0",
    "--1",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999",
};

static const struct {
    const char *text;
    uint64_t want;
} good_sizes[] = {
    {"0", 0},      {"17", 17},          {"17b", 17},     {"1k", 1024},
    {"1KB", 1024}, {"200m", 200 * MIB}, {"2G", 2 * GIB}, {"1t", 1024 * GIB},
};

static const char *const bad_sizes[] = {
    "", "m", "-1", "1x", "1mm", "1mbb", "1 m", "1.5g", "1bb", "16777216t", "1234567890123456789",
};

TEST(whole_numbers_are_parsed)
{
    for (size_t i = 0; i < ARRAY_LEN(good_numbers); i++) {
        int64_t got = 1;

        assert_int_eq(str_parse_int(good_numbers[i].text, INT64_MIN, INT64_MAX, &got), 0);
        assert_int_eq(got, good_numbers[i].want);
    }
}

TEST(other_numbers_are_refused_and_change_nothing)
{
    for (size_t i = 0; i < ARRAY_LEN(bad_numbers); i++) {
        int64_t got = 77;

        if (str_parse_int(bad_numbers[i], INT64_MIN, INT64_MAX, &got) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was accepted", bad_numbers[i]);
        assert_int_eq(got, 77);
    }
}

TEST(a_range_is_inclusive)
{
    int64_t got;

    assert_int_eq(str_parse_int("1", 1, 5, &got), 0);
    assert_int_eq(str_parse_int("5", 1, 5, &got), 0);
    assert_int_eq(str_parse_int("0", 1, 5, &got), -1);
    assert_int_eq(str_parse_int("6", 1, 5, &got), -1);
}

TEST(sizes_have_units)
{
    for (size_t i = 0; i < ARRAY_LEN(good_sizes); i++) {
        uint64_t got = 1;

        assert_int_eq(str_parse_size(good_sizes[i].text, &got), 0);
        assert_uint_eq(got, good_sizes[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad_sizes); i++) {
        uint64_t got;

        if (str_parse_size(bad_sizes[i], &got) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was accepted", bad_sizes[i]);
    }
}

TEST(booleans_are_words)
{
    bool got = false;

    assert_int_eq(str_parse_bool("TRUE", &got), 0);
    assert_true(got);
    assert_int_eq(str_parse_bool("off", &got), 0);
    assert_false(got);
    assert_int_eq(str_parse_bool("1", &got), 0);
    assert_true(got);
    assert_int_eq(str_parse_bool("", &got), -1);
    assert_int_eq(str_parse_bool("truee", &got), -1);
}

TEST(copies_that_do_not_fit_are_empty)
{
    char text[4] = "zzz";

    assert_int_eq(str_copy(text, sizeof(text), "abc"), 0);
    assert_str_eq(text, "abc");
    assert_int_eq(str_copy(text, sizeof(text), "abcd"), -1);
    assert_str_eq(text, "");
}

TEST(ends_and_sets)
{
    assert_true(str_ends("a.py", ".py"));
    assert_false(str_ends("py", ".py"));
    assert_true(str_ends("x", ""));
    assert_true(str_check_chars("abc", "abc", 3));
    assert_false(str_check_chars("abc", "abc", 2));
    assert_false(str_check_chars("abd", "abc", 9));
    assert_false(str_check_chars("", "abc", 9));
}
