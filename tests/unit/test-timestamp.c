/* SPDX-License-Identifier: MIT */
/* Timestamps: the text of times, what is understood, and what is refused. */
#include "base/timestamp.h"

#include "tests/lib/test.h"

#include <time.h>

TEST(times_are_written_with_microseconds_in_utc)
{
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000+00:00"},
        {1767323045678901, "2026-01-02T03:04:05.678901+00:00"},
        {951782400000000, "2000-02-29T00:00:00.000000+00:00"},
        {-1, "1969-12-31T23:59:59.999999+00:00"},
        {253402300799999999, "9999-12-31T23:59:59.999999+00:00"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[TIMESTAMP_TEXT];
        int64_t back;

        timestamp_format(cases[i].us, text);
        assert_str_eq(text, cases[i].text);
        assert_int_eq(timestamp_parse(text, &back), 0);
        assert_int_eq(back, cases[i].us);
    }
}

TEST(the_largest_numbers_have_a_text_that_fits)
{
    char text[TIMESTAMP_TEXT];

    timestamp_format(INT64_MAX, text);
    assert_str_eq(text, "294247-01-10T04:00:54.775807+00:00");
    timestamp_format(INT64_MIN, text);
    assert_true(strlen(text) < sizeof(text));
}

TEST(forms_of_one_moment_are_equal)
{
    static const char *const forms[] = {
        "2026-01-02T03:04:05Z",      "2026-01-02t03:04:05z",
        "2026-01-02 03:04:05",       "2026-01-02T03:04:05",
        "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.0Z",
        "2026-01-02T05:34:05+02:30", "2026-01-01T23:04:05-0400",
        "2026-01-01T23:04:05-04",    "2026-01-02T03:04:05.000000999Z",
    };
    int64_t us;

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        assert_int_eq(timestamp_parse(forms[i], &us), 0);
        assert_int_eq(us, 1767323045000000);
    }
}

TEST(fractions_and_leap_seconds_count)
{
    int64_t us;

    assert_int_eq(timestamp_parse("1970-01-01T00:00:00.5", &us), 0);
    assert_int_eq(us, 500000);
    assert_int_eq(timestamp_parse("1970-01-01T00:00:00.123456789Z", &us), 0);
    assert_int_eq(us, 123456);
    assert_int_eq(timestamp_parse("2016-12-31T23:59:60Z", &us), 0);
    assert_int_eq(us, 1483228800000000);
}

TEST(what_is_no_time_is_refused)
{
    static const char *const bad[] = {
        "",
        "now",
        "2026",
        "2026-01-02",
        "2026-01-02T",
        "2026-01-02T03:04",
        "2026-1-2T03:04:05",
        "2026-13-02T03:04:05",
        "2026-00-02T03:04:05",
        "2026-02-29T03:04:05",
        "1900-02-29T03:04:05",
        "2026-04-31T03:04:05",
        "0000-01-01T00:00:00",
        "2026-01-02T24:00:00",
        "2026-01-02T03:60:00",
        "2026-01-02T03:04:61",
        "2026-01-02T03:04:05.",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05+",
        "2026-01-02T03:04:05+1",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+01:",
        "2026-01-02T03:04:05+01:60",
        "2026-01-02T03:04:05Zx",
        "2026-01-02T03:04:05 ",
        " 2026-01-02T03:04:05",
        "+026-01-02T03:04:05",
    };
    int64_t us;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (timestamp_parse(bad[i], &us) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
}

TEST(now_is_the_wall_clock)
{
    int64_t before = (int64_t)time(NULL), now = timestamp_now() / 1000000;

    assert_true(now >= before && now <= before + 5);
}
