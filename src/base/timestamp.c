/* SPDX-License-Identifier: MIT */
/*
 * Timestamps. The parser counts days itself: the C library's would take its time zone and locale
 * from the environment, and repairs dates that do not exist instead of refusing them.
 */
#include "base/timestamp.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define US_PER_S 1000000

int64_t timestamp_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

void timestamp_format(int64_t us, char ret[TIMESTAMP_TEXT])
{
    int64_t fraction = us % US_PER_S;
    time_t s = us / US_PER_S;
    struct tm tm;
    size_t len;

    if (fraction < 0) {
        fraction += US_PER_S;
        s--;
    }
    *ret = 0;
    if (!gmtime_r(&s, &tm))
        return;
    len = strftime(ret, TIMESTAMP_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret + len, TIMESTAMP_TEXT - len, ".%06d+00:00", (int)fraction);
}

/* Exactly `count` digits, at most `max`. */
static int take_digits(const char **s, int count, int max, int *ret)
{
    *ret = 0;
    for (int i = 0; i < count; i++) {
        if (**s < '0' || **s > '9')
            return -1;
        *ret = *ret * 10 + (*(*s)++ - '0');
    }
    return *ret <= max ? 0 : -1;
}

static int take_char(const char **s, const char *set)
{
    if (!**s || !strchr(set, **s))
        return -1;
    (*s)++;
    return 0;
}

/* Days since 1970 of a day of the Gregorian calendar; years begin in March, so the leap day is
 * their last one. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;

    return y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int take_date(const char **s, int64_t *ret)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    bool leap;

    if (take_digits(s, 4, 9999, &year) < 0 || take_char(s, "-") < 0 ||
        take_digits(s, 2, 12, &month) < 0 || take_char(s, "-") < 0 ||
        take_digits(s, 2, 31, &day) < 0 || year < 1 || month < 1 || day < 1)
        return -1;
    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > month_days[month - 1] + (month == 2 && leap))
        return -1;
    *ret = days_of(year, month, day);
    return 0;
}

/* What is finer than a microsecond is dropped. */
static int take_fraction(const char **s, int64_t *ret)
{
    int64_t unit = US_PER_S / 10;

    *ret = 0;
    if (take_char(s, ".,") < 0)
        return 0;
    if (**s < '0' || **s > '9')
        return -1;
    for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
        *ret += unit * (**s - '0');
    return 0;
}

/* "Z", "+01:00", "+0100", "+01" or nothing; in seconds. */
static int take_offset(const char **s, int64_t *ret)
{
    int hours, minutes = 0;
    bool west = **s == '-';

    *ret = 0;
    if (!**s || take_char(s, "Zz") == 0)
        return 0;
    if (take_char(s, "+-") < 0 || take_digits(s, 2, 23, &hours) < 0)
        return -1;
    if (**s) {
        *s += **s == ':';
        if (take_digits(s, 2, 59, &minutes) < 0)
            return -1;
    }
    *ret = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return 0;
}

int timestamp_parse(const char *s, int64_t *ret)
{
    int64_t days, fraction, offset;
    int hours, minutes, seconds;

    /* A leap second is the first of the next minute. */
    if (take_date(&s, &days) < 0 || take_char(&s, "Tt ") < 0 ||
        take_digits(&s, 2, 23, &hours) < 0 || take_char(&s, ":") < 0 ||
        take_digits(&s, 2, 59, &minutes) < 0 || take_char(&s, ":") < 0 ||
        take_digits(&s, 2, 60, &seconds) < 0 || take_fraction(&s, &fraction) < 0 ||
        take_offset(&s, &offset) < 0 || *s)
        return -1;
    *ret = (days * 86400 + hours * 3600 + minutes * 60 + seconds - offset) * US_PER_S + fraction;
    return 0;
}
