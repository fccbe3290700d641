/* SPDX-License-Identifier: MIT */
/*
 * Only the 64-bit part of a file is read: a list of changes, and behind it the rule for all later
 * years. A file of the host is trusted no more than any other input: everything is bounded.
 */
#include "api/zone.h"

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#define DATABASE "/usr/share/zoneinfo"

enum {
    FILE_MAX = 256 << 10,
    CHANGES_MAX = 2048,
    TYPES_MAX = 256,
    HEADER = 44,
    TYPE_BYTES = 6,
    OFFSET_MAX = 26 * 3600,
    DAY = 86400,
    RULE_TIME_MAX = 167 * 3600, /* RFC 8536, 3.3.1 */
};

/* When a rule's change happens in each year. */
struct rule_day {
    char kind; /* 'M' month, week, day; 'J' 1..365 without leap days; '0' 0..365 with them */
    int month, week, day;
    int32_t time; /* seconds after midnight, by the clock before the change */
};

struct rule {
    bool given, has_dst;
    int32_t std, dst; /* offsets */
    struct rule_day start, end;
};

struct zone {
    int32_t first; /* before the first change */
    size_t count;
    int64_t times[CHANGES_MAX];
    int32_t offsets[CHANGES_MAX];
    struct rule rule;
};

/* ---- the rule's text, as in TZ ---- */

struct cursor {
    const char *p;
    bool bad;
};

static int number_read(struct cursor *c, int max)
{
    int n = 0, digits = 0;

    for (; isdigit((unsigned char)*c->p) && digits < 4; digits++)
        n = n * 10 + *c->p++ - '0';
    c->bad |= digits == 0 || n > max;
    return n;
}

static bool take(struct cursor *c, char wanted)
{
    bool is = *c->p == wanted;

    c->p += is;
    return is;
}

static void name_skip(struct cursor *c)
{
    size_t len;

    if (take(c, '<')) {
        len = strcspn(c->p, ">");
        c->bad |= !c->p[len];
        c->p += len + (c->p[len] != 0);
        return;
    }
    for (len = 0; isalpha((unsigned char)c->p[len]); len++)
        ;
    c->bad |= len < 3;
    c->p += len;
}

/* [+-]hh[:mm[:ss]] */
static int32_t time_read(struct cursor *c)
{
    int sign = take(c, '-') ? -1 : 1, seconds;

    if (sign > 0)
        take(c, '+');
    seconds = number_read(c, RULE_TIME_MAX / 3600) * 3600;
    if (take(c, ':')) {
        seconds += number_read(c, 59) * 60;
        if (take(c, ':'))
            seconds += number_read(c, 59);
    }
    return sign * seconds;
}

static void day_read(struct cursor *c, struct rule_day *ret)
{
    *ret = (struct rule_day){.kind = '0', .time = 2 * 3600};
    c->bad |= !take(c, ',');
    if (take(c, 'M')) {
        ret->kind = 'M';
        ret->month = number_read(c, 12);
        c->bad |= !take(c, '.') || ret->month == 0;
        ret->week = number_read(c, 5);
        c->bad |= !take(c, '.') || ret->week == 0;
        ret->day = number_read(c, 6);
    } else {
        ret->kind = take(c, 'J') ? 'J' : '0';
        ret->day = number_read(c, 365);
        c->bad |= ret->kind == 'J' && ret->day == 0;
    }
    if (take(c, '/'))
        ret->time = time_read(c);
}

static int rule_parse(const char *text, struct rule *ret, struct error *reterr)
{
    struct cursor c = {.p = text};

    *ret = (struct rule){.given = *text != 0};
    if (!ret->given)
        return 0;
    name_skip(&c);
    ret->std = -time_read(&c);
    ret->has_dst = *c.p != 0;
    if (ret->has_dst) {
        name_skip(&c);
        ret->dst = *c.p == ',' ? ret->std + 3600 : -time_read(&c);
        day_read(&c, &ret->start);
        day_read(&c, &ret->end);
    }
    return c.bad || *c.p ? error_set(reterr, ERR_INVALID, "a time zone's rule is malformed") : 0;
}

/* ---- the rule's days ---- */

static int64_t year_start(int year)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mday = 1};

    return timegm(&tm);
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Local midnight of the rule's day in that year, plus its time. */
static int64_t day_of_year(const struct rule_day *d, int year)
{
    struct tm first = {.tm_year = year - 1900, .tm_mon = d->month - 1, .tm_mday = 1};
    int64_t start;
    int day;

    if (d->kind != 'M') {
        day = d->kind == 'J' ? d->day - 1 + (is_leap(year) && d->day > 59) : d->day;
        return year_start(year) + (int64_t)day * DAY + d->time;
    }
    start = timegm(&first);
    day = (d->day - first.tm_wday + 7) % 7 + 7 * (d->week - 1);
    for (; day >= 28; day -= 7) {
        time_t at = start + (int64_t)day * DAY;
        struct tm tm;

        if (gmtime_r(&at, &tm) && tm.tm_mon == d->month - 1)
            break;
    }
    return start + (int64_t)day * DAY + d->time;
}

static int32_t rule_offset(const struct rule *r, int64_t utc)
{
    time_t local = utc + r->std;
    int64_t start, end;
    struct tm tm;

    if (!r->has_dst || !gmtime_r(&local, &tm))
        return r->std;
    start = day_of_year(&r->start, tm.tm_year + 1900) - r->std;
    end = day_of_year(&r->end, tm.tm_year + 1900) - r->dst;
    if (start < end)
        return utc >= start && utc < end ? r->dst : r->std;
    return utc >= start || utc < end ? r->dst : r->std;
}

/* ---- the file ---- */

struct bytes {
    const unsigned char *p;
    size_t len;
};

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be64(const unsigned char *p)
{
    return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

struct counts {
    uint32_t utc, std, leap, time, type, chars;
};

static int file_refuse(struct error *reterr)
{
    return error_set(reterr, ERR_INVALID, "a time zone's file is malformed");
}

static int header_read(struct bytes *b, struct counts *ret, struct error *reterr)
{
    const unsigned char *p = b->p + 20;

    if (b->len < HEADER || memcmp(b->p, "TZif", 4) != 0 || b->p[4] < '2')
        return file_refuse(reterr);
    *ret = (struct counts){be32(p),      be32(p + 4),  be32(p + 8),
                           be32(p + 12), be32(p + 16), be32(p + 20)};
    b->p += HEADER;
    b->len -= HEADER;
    if (ret->time > CHANGES_MAX || ret->type == 0 || ret->type > TYPES_MAX || ret->leap > 1000 ||
        ret->chars > FILE_MAX || ret->utc > TYPES_MAX || ret->std > TYPES_MAX)
        return file_refuse(reterr);
    return 0;
}

/* Bytes of a block whose times have `size` bytes. */
static size_t block_len(const struct counts *n, size_t size)
{
    return n->time * (size + 1) + (size_t)n->type * TYPE_BYTES + n->chars + n->leap * (size + 4) +
           n->std + n->utc;
}

static int block_skip(struct bytes *b, size_t len, struct error *reterr)
{
    if (b->len < len)
        return file_refuse(reterr);
    b->p += len;
    b->len -= len;
    return 0;
}

static int changes_read(const unsigned char *p, const struct counts *n, struct zone *z,
                        struct error *reterr)
{
    const unsigned char *index = p + (size_t)n->time * 8, *types = index + n->time;

    z->first = (int32_t)be32(types);
    z->count = n->time;
    for (size_t i = 0; i < z->count; i++) {
        if (index[i] >= n->type)
            return file_refuse(reterr);
        z->times[i] = be64(p + i * 8);
        z->offsets[i] = (int32_t)be32(types + (size_t)index[i] * TYPE_BYTES);
        if ((i > 0 && z->times[i] <= z->times[i - 1]) || z->offsets[i] > OFFSET_MAX ||
            z->offsets[i] < -OFFSET_MAX)
            return file_refuse(reterr);
    }
    return 0;
}

static int footer_read(const struct bytes *b, struct rule *ret, struct error *reterr)
{
    char text[128];
    const unsigned char *end;

    if (b->len < 2 || b->p[0] != '\n')
        return file_refuse(reterr);
    end = memchr(b->p + 1, '\n', b->len - 1);
    if (!end || (size_t)(end - b->p) > sizeof(text))
        return file_refuse(reterr);
    memcpy(text, b->p + 1, (size_t)(end - b->p) - 1);
    text[end - b->p - 1] = 0;
    return rule_parse(text, ret, reterr);
}

static int zone_fill(struct zone *z, struct bytes b, struct error *reterr)
{
    const unsigned char *block;
    struct counts n;
    int r = header_read(&b, &n, reterr);

    if (r == 0)
        r = block_skip(&b, block_len(&n, 4), reterr);
    if (r == 0)
        r = header_read(&b, &n, reterr);
    block = b.p;
    if (r == 0)
        r = block_skip(&b, block_len(&n, 8), reterr);
    if (r == 0 && n.leap > 0)
        r = error_set(reterr, ERR_INVALID, "a time zone that counts leap seconds is not served");
    if (r == 0)
        r = changes_read(block, &n, z, reterr);
    return r < 0 ? r : footer_read(&b, &z->rule, reterr);
}

int zone_parse(const void *data, size_t len, struct zone **ret, struct error *reterr)
{
    auto_zone struct zone *z = calloc(1, sizeof(*z));
    int r;

    if (!z)
        return error_no_memory(reterr);
    r = zone_fill(z, (struct bytes){data, len}, reterr);
    if (r == 0)
        *ret = TAKE_PTR(z);
    return r;
}

void zone_free(struct zone *z)
{
    free(z);
}

/* ---- by name ---- */

static bool name_check(const char *name)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";

    return str_check_chars(name, set, ZONE_NAME_MAX) && isupper((unsigned char)name[0]) &&
           !strstr(name, "//") && !str_ends(name, "/");
}

/* "+02:00" */
static bool fixed_parse(const char *name, int32_t *ret)
{
    struct cursor c = {.p = name + 1};
    int hours, minutes = 0;

    if (*name != '+' && *name != '-')
        return false;
    hours = number_read(&c, 15);
    c.bad |= c.p != name + 3;
    if (take(&c, ':'))
        minutes = number_read(&c, 59);
    *ret = (*name == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return !c.bad && !*c.p && (c.p == name + 3 || c.p == name + 6);
}

static int file_load(const char *name, struct zone **ret, struct error *reterr)
{
    auto_fd int dir = open(DATABASE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_fd int file = dir >= 0 && name_check(name)
                           ? path_open_beneath(dir, name, O_RDONLY | O_NONBLOCK, 0, NULL)
                           : -1;
    auto_free char *data = file >= 0 ? malloc(FILE_MAX) : NULL;
    ssize_t len = -1;

    if (file >= 0 && !data)
        return error_no_memory(reterr);
    if (file >= 0)
        len = fd_read_full(file, data, FILE_MAX, NULL);
    if (len < 0)
        return error_set(reterr, ERR_INVALID,
                         dir < 0 ? "time zones but UTC need the package tzdata on this host"
                                 : "there is no time zone '%.64s'",
                         name);
    return zone_parse(data, (size_t)len, ret, reterr);
}

int zone_load(const char *name, struct zone **ret, struct error *reterr)
{
    static const char *const utc[] = {"UTC", "Etc/UTC", "GMT", "Z", "Zulu"};
    struct zone *z;
    int32_t fixed = 0;
    bool known = fixed_parse(name, &fixed);

    for (size_t i = 0; i < ARRAY_LEN(utc); i++)
        known |= str_eq(utc[i], name);
    if (!known)
        return file_load(name, ret, reterr);
    z = calloc(1, sizeof(*z));
    if (!z)
        return error_no_memory(reterr);
    z->first = fixed;
    *ret = z;
    return 0;
}

/* ---- asked ---- */

int32_t zone_offset(const struct zone *z, int64_t utc)
{
    size_t low = 0, high = z->count;

    if (z->count == 0 || utc >= z->times[z->count - 1]) {
        if (z->rule.given)
            return rule_offset(&z->rule, utc);
        return z->count ? z->offsets[z->count - 1] : z->first;
    }
    /* The changes up to `low` are not later. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (z->times[middle] <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? z->offsets[low - 1] : z->first;
}

int64_t zone_next_change(const struct zone *z, int64_t utc, int64_t until)
{
    int32_t now = zone_offset(z, utc);
    int64_t same = utc, other;

    /* No zone changes twice within a day. */
    while (same < until && zone_offset(z, MIN(same + DAY, until)) == now)
        same += DAY;
    if (same >= until)
        return until;
    for (other = MIN(same + DAY, until); other - same > 1;) {
        int64_t middle = same + (other - same) / 2;

        if (zone_offset(z, middle) == now)
            same = middle;
        else
            other = middle;
    }
    return other;
}

int64_t zone_to_utc(const struct zone *z, int64_t local)
{
    int32_t before = zone_offset(z, local - DAY), after = zone_offset(z, local + DAY);

    if (zone_offset(z, local - before) == before)
        return local - before;
    if (zone_offset(z, local - after) == after)
        return local - after;
    return zone_next_change(z, local - DAY, local + DAY);
}
