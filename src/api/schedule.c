/* SPDX-License-Identifier: MIT */
/* Each field is a set of numbers; the next time is found by skipping whole months, days, hours and
 * minutes that are not in their sets. */
#include "api/schedule.h"

#include "base/str.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

enum { FIELDS = 6, YEARS = 9, HOUR = 3600, DAY = 24 * HOUR };

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct field {
    const char *name;
    int min, max;
    const char *const *names; /* of `min` and what follows */
    int name_count;
} fields[FIELDS] = {
    {"seconds", 0, 59, NULL, 0},        {"minutes", 0, 59, NULL, 0},
    {"hours", 0, 23, NULL, 0},          {"days of the month", 1, 31, NULL, 0},
    {"months", 1, 12, month_names, 12}, {"days of the week", 0, 7, weekday_names, 7},
};

static const struct nickname {
    const char *name, *schedule;
} nicknames[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

/* ---- fields ---- */

/* A number or a name; -1 for neither. */
static int value_parse(const struct field *f, const char *text, size_t len)
{
    char copy[8];
    int64_t n;

    if (len == 0 || len >= sizeof(copy))
        return -1;
    memcpy(copy, text, len);
    copy[len] = 0;
    for (int i = 0; i < f->name_count; i++) {
        if (strcasecmp(f->names[i], copy) == 0)
            return f->min + i;
    }
    return str_parse_int(copy, f->min, f->max, &n) < 0 ? -1 : (int)n;
}

/* "*", "a", "a-b", each with "/step" or without; "a/step" goes to the end. */
static int range_parse(const struct field *f, const char *text, size_t len, uint64_t *set)
{
    const char *slash = memchr(text, '/', len);
    size_t body = slash ? (size_t)(slash - text) : len;
    const char *dash = memchr(text, '-', body);
    int first = f->min, last = f->max, step = 1;

    if (slash) {
        char copy[8];
        int64_t n;
        size_t step_len = len - body - 1;

        if (step_len == 0 || step_len >= sizeof(copy))
            return -1;
        memcpy(copy, slash + 1, step_len);
        copy[step_len] = 0;
        if (str_parse_int(copy, 1, f->max, &n) < 0)
            return -1;
        step = (int)n;
    }
    if (body != 1 || (*text != '*' && *text != '?')) {
        first = value_parse(f, text, dash ? (size_t)(dash - text) : body);
        if (dash)
            last = value_parse(f, dash + 1, body - (size_t)(dash - text) - 1);
        else if (!slash)
            last = first;
    }
    if (first < 0 || last < first)
        return -1;
    for (int i = first; i <= last; i += step)
        *set |= 1ull << i;
    return 0;
}

static int field_parse(const struct field *f, const char *text, size_t len, uint64_t *ret)
{
    *ret = 0;
    for (const char *p = text, *end = text + len; p <= end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t part = comma ? (size_t)(comma - p) : (size_t)(end - p);

        if (range_parse(f, p, part, ret) < 0)
            return -1;
        p += part + 1;
    }
    return 0;
}

static uint64_t full_set(const struct field *f)
{
    return ((1ull << f->max) - 1) * 2 + 1 - ((1ull << f->min) - 1);
}

static size_t words_split(const char *text, const char **ret, size_t *ret_len)
{
    size_t n = 0;

    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        size_t len = strcspn(text, " \t");

        if (n < FIELDS) {
            ret[n] = text;
            ret_len[n] = len;
        }
        n++;
        text += len;
    }
    return n;
}

int schedule_parse(const char *text, struct schedule *ret, struct error *reterr)
{
    uint64_t sets[FIELDS] = {1};
    const char *words[FIELDS];
    size_t lens[FIELDS], n;

    if (strlen(text) > SCHEDULE_MAX)
        return error_set(reterr, ERR_INVALID, "a schedule has at most %d characters", SCHEDULE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(nicknames); i++) {
        if (strcasecmp(nicknames[i].name, text) == 0)
            text = nicknames[i].schedule;
    }
    n = words_split(text, words, lens);
    if (n != FIELDS && n != FIELDS - 1)
        return error_set(reterr, ERR_INVALID,
                         "a schedule has five fields, or six with the seconds first");
    for (size_t i = 0; i < n; i++) {
        size_t at = FIELDS - n + i;

        if (field_parse(&fields[at], words[i], lens[i], &sets[at]) < 0)
            return error_set(reterr, ERR_INVALID, "'%.*s' is not known for the %s of a schedule",
                             (int)MIN(lens[i], 40), words[i], fields[at].name);
    }
    /* Sunday has two numbers. */
    if (sets[5] & 1 << 7)
        sets[5] |= 1;
    sets[5] &= 0x7f;
    *ret = (struct schedule){sets[0],
                             sets[1],
                             sets[2],
                             sets[3],
                             sets[4],
                             sets[5],
                             .any_day = sets[3] == full_set(&fields[3]),
                             .any_weekday = sets[5] == 0x7f};
    return 0;
}

/* ---- times ---- */

static bool day_matches(const struct schedule *s, const struct tm *tm)
{
    bool day = s->days >> tm->tm_mday & 1, weekday = s->weekdays >> tm->tm_wday & 1;

    if (s->any_day || s->any_weekday)
        return day && weekday;
    return day || weekday;
}

/* The first local time behind `local`; 0 when there is none. */
static int64_t local_next(const struct schedule *s, int64_t local)
{
    int64_t until = local + YEARS * 366 * (int64_t)DAY;
    time_t t = local + 1;
    struct tm tm;

    while (t < until && gmtime_r(&t, &tm)) {
        if (!(s->months >> (tm.tm_mon + 1) & 1)) {
            struct tm next = {.tm_year = tm.tm_year, .tm_mon = tm.tm_mon + 1, .tm_mday = 1};

            t = timegm(&next);
        } else if (!day_matches(s, &tm)) {
            t += DAY - (tm.tm_hour * HOUR + tm.tm_min * 60 + tm.tm_sec);
        } else if (!(s->hours >> tm.tm_hour & 1)) {
            t += HOUR - (tm.tm_min * 60 + tm.tm_sec);
        } else if (!(s->minutes >> tm.tm_min & 1)) {
            t += 60 - tm.tm_sec;
        } else if (!(s->seconds >> tm.tm_sec & 1)) {
            t++;
        } else {
            return t;
        }
    }
    return 0;
}

/* At certain hours: what clocks show counts. */
static int64_t clock_next(const struct schedule *s, const struct zone *z, int64_t after)
{
    int64_t local = after + zone_offset(z, after), utc = 0;

    /* An hour that comes twice was served the first time. */
    while (utc <= after) {
        local = local_next(s, local);
        if (local == 0)
            return 0;
        utc = zone_to_utc(z, local);
    }
    return utc;
}

/* At any hour: time passes evenly, whatever clocks do. */
static int64_t steady_next(const struct schedule *s, const struct zone *z, int64_t after)
{
    int64_t from = after + 1, until = after + YEARS * 366 * (int64_t)DAY;

    while (from < until) {
        int32_t offset = zone_offset(z, from);
        int64_t local = local_next(s, from + offset - 1), utc = local - offset, change;

        if (local == 0)
            return 0;
        change = zone_next_change(z, from, utc);
        if (change == utc && zone_offset(z, utc) == offset)
            return utc;
        from = change;
    }
    return 0;
}

int64_t schedule_next(const struct schedule *s, const struct zone *z, int64_t after)
{
    return s->hours == full_set(&fields[2]) ? steady_next(s, z, after) : clock_next(s, z, after);
}
