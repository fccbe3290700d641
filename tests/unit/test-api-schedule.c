/* SPDX-License-Identifier: MIT */
/* Schedules of crons, and time zones against the C library's. */
#include "api/schedule.h"
#include "base/str.h"
#include "base/timestamp.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t at(const char *text)
{
    int64_t us = 0;

    assert_int_eq(timestamp_parse(text, &us), 0);
    return us / 1000000;
}

static struct zone *zone_need(const char *name)
{
    struct zone *z = NULL;
    struct error err = {0};

    if (zone_load(name, &z, &err) < 0)
        test_skip("%s", err.text);
    return z;
}

static const struct next_case {
    const char *schedule, *zone, *after, *next; /* next NULL: never */
} next_cases[] = {
    {"* * * * *", "UTC", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"},
    {"* * * * *", "UTC", "2026-01-02T03:05:00Z", "2026-01-02T03:06:00Z"},
    {"0 9 * * *", "UTC", "2026-01-02T09:00:00Z", "2026-01-03T09:00:00Z"},
    {"*/15 * * * *", "UTC", "2026-01-02T03:46:00Z", "2026-01-02T04:00:00Z"},
    {"5/20 * * * *", "UTC", "2026-01-02T03:26:00Z", "2026-01-02T03:45:00Z"},
    {"*/2 * * * * *", "UTC", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"},
    {"*/2 * * * * *", "UTC", "2026-01-02T03:04:06Z", "2026-01-02T03:04:08Z"},
    {"30 0 0 1 1 *", "UTC", "2026-01-02T03:04:06Z", "2027-01-01T00:00:30Z"},
    {"0 0 1 * *", "UTC", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"},
    {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
    {"0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", NULL},
    {"0 0 * JAN,jul MON-FRI", "UTC", "2026-01-30T00:00:00Z", "2026-07-01T00:00:00Z"},
    {"0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
    {"0 0 * * 0", "UTC", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
    {"0 0 * * 5-7", "UTC", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"},
    /* Both fields for days: either counts. */
    {"0 0 13 * 5", "UTC", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"},
    {"0 0 13 * 5", "UTC", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
    {"0 0 ? * 5", "UTC", "2026-01-09T00:00:00Z", "2026-01-16T00:00:00Z"},
    {"0 22 * * 1-5", "UTC", "2026-01-02T22:00:00Z", "2026-01-05T22:00:00Z"},
    {"@hourly", "UTC", "2026-01-02T22:00:00Z", "2026-01-02T23:00:00Z"},
    {"@Weekly", "UTC", "2026-01-02T22:00:00Z", "2026-01-04T00:00:00Z"},
    {" 0  9 * * * ", "+02:00", "2026-01-02T09:00:00Z", "2026-01-03T07:00:00Z"},
    {"0 9 * * *", "-03:30", "2026-01-02T09:00:00Z", "2026-01-02T12:30:00Z"},
    {"0 9 * * *", "Europe/Berlin", "2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z"},
    /* 02:30 is not there on that day, and twice on the other. */
    {"30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"},
    {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
    {"30 2 * * *", "Europe/Berlin", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
    {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
    /* What is planned for any hour goes on evenly. */
    {"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"},
    {"*/30 * * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"},
    {"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
    {"0 * 1 1 *", "America/New_York", "2026-06-01T00:00:00Z", "2027-01-01T05:00:00Z"},
    {"0 9 * * *", "America/New_York", "2045-07-01T00:00:00Z", "2045-07-01T13:00:00Z"},
};

TEST(next_times)
{
    for (size_t i = 0; i < ARRAY_LEN(next_cases); i++) {
        const struct next_case *c = &next_cases[i];
        auto_zone struct zone *z = zone_need(c->zone);
        struct schedule s = {};
        struct error err = {0};
        int64_t next;

        assert_ok(schedule_parse(c->schedule, &s, &err), err);
        next = schedule_next(&s, z, at(c->after));
        if (next != (c->next ? at(c->next) : 0))
            test_fail(__FILE__, __LINE__, "%s (%s) after %s: %lld, not %s", c->schedule, c->zone,
                      c->after, (long long)next, c->next ? c->next : "never");
    }
}

TEST(schedules_that_are_none)
{
    static const char *const bad[] = {
        "",
        "*",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "* * * * L",
        "* * * foo *",
        "5-1 * * * *",
        "*/0 * * * *",
        "*/ * * * *",
        "1- * * * *",
        ", * * * *",
        "1,,2 * * * *",
        "1, * * * *",
        "-1 * * * *",
        "+1 * * * *",
        "0x1 * * * *",
        "1.5 * * * *",
        "@reboot",
        "* * * * 5#2",
        "*/99999999999 * * * *",
        "** * * * *",
    };
    char longer[SCHEDULE_MAX + 20];
    struct schedule s;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (schedule_parse(bad[i], &s, &err) != -ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' is taken", bad[i]);
    }
    memset(longer, ' ', sizeof(longer));
    snprintf(longer + SCHEDULE_MAX, 20, "* * * * *");
    assert_int_eq(schedule_parse(longer, &s, &err), -ERR_INVALID);
}

TEST(zones_that_are_none)
{
    static const char *const bad[] = {
        "",         "..",          "../../etc/passwd", "/etc/localtime",
        "Europe",   "Europe/",     "Mars/X",           "utc ",
        "+2",       "+02:60",      "+24:00:00",        "Europe//Berlin",
        "zone.tab", "leapseconds", "Europe/../UTC",    "+02:0",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_zone struct zone *z = NULL;
        struct error err;

        if (zone_load(bad[i], &z, &err) != -ERR_INVALID && err.code != ERR_NO_MEMORY)
            test_fail(__FILE__, __LINE__, "the zone '%s' is taken", bad[i]);
    }
}

/* Every file that says something else than what it may is refused, and none is read past its end.
 */
TEST(files_that_are_cut_or_lie)
{
    static const unsigned char file[] = {'T', 'Z', 'i', 'f', '2', 0,   0,   0,    0,   0,   0,
                                         0,   0,   0,   0,   0,   0,   0,   0,    0, /* counts: */
                                         0,   0,   0,   0,   0,   0,   0,   0,    0,   0,   0,
                                         0,   0,   0,   0,   0,   0,   0,   0,    1,   0,   0,
                                         0,   4, /* one type */
                                         0,   0,   0,   0,   0,   0,   'U', 'T',  'C', 0,   'T',
                                         'Z', 'i', 'f', '2', 0,   0,   0,   0,    0,   0,   0,
                                         0,   0,   0,   0,   0,   0,   0,   0,    0,   0,   0,
                                         0,   0,   0,   0,   0,   0,   0,   0,    0,   0,   0,
                                         1,   0,   0,   0,   1,   0,   0,   0,    4,   0,   0,
                                         0,   0,   0,   0,   0,   100, 0,   0,    0,   0,   14,
                                         16,  0,   0,   'X', 'Y', 'Z', 0,   '\n', 'X', '-', '1',
                                         '\n'};
    unsigned char copy[sizeof(file)];
    auto_zone struct zone *z = NULL;
    struct error err;

    for (size_t len = 0; len < sizeof(file); len++) {
        auto_free unsigned char *cut = malloc(len ? len : 1);

        assert_not_null(cut);
        memcpy(cut, file, len);
        assert_true(zone_parse(cut, len, &z, &err) < 0);
    }
    /* A name of less than three letters. */
    assert_true(zone_parse(file, sizeof(file), &z, &err) < 0);
    for (size_t i = 0; i < sizeof(file); i++) {
        auto_zone struct zone *changed = NULL;

        memcpy(copy, file, sizeof(file));
        copy[i] = 0xff;
        (void)!zone_parse(copy, sizeof(copy), &changed, &err);
    }
}

/* All hours of many years say the same as the C library. */
TEST(offsets_are_the_systems)
{
    static const char *const names[] = {"Europe/Berlin", "America/New_York",  "Australia/Lord_Howe",
                                        "Asia/Kolkata",  "Africa/Casablanca", "America/Sao_Paulo",
                                        "Pacific/Apia",  "Europe/Dublin",     "Asia/Gaza"};

    if (test_is_torture())
        test_skip("the C library's zones do not fail");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        auto_zone struct zone *z = zone_need(names[i]);
        char tz[80];

        snprintf(tz, sizeof(tz), ":%s", names[i]);
        setenv("TZ", tz, 1);
        tzset();
        for (int64_t t = at("1975-01-01T00:00:00Z"); t < at("2060-01-01T00:00:00Z"); t += 7200) {
            time_t now = (time_t)t;
            struct tm tm;

            assert_not_null(localtime_r(&now, &tm));
            if (zone_offset(z, t) != (int32_t)tm.tm_gmtoff)
                test_fail(__FILE__, __LINE__, "%s at %lld: %d, not %ld", names[i], (long long)t,
                          zone_offset(z, t), tm.tm_gmtoff);
        }
    }
}
