/* SPDX-License-Identifier: MIT */
/*
 * UUIDs. The time field is not the clock alone but the larger of the clock and one more than the
 * last one given out, so a clock that stands still or goes back, and threads that ask at once,
 * still get growing ids. Version 7 uses its 12 bits behind the milliseconds as a fraction (RFC
 * 9562, 6.2, method 3).
 */
#include "base/uuid.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define TICKS_PER_S 10000000ull
#define TICKS_MAX ((1ull << 60) - 1)
/* From the start of the Gregorian calendar to 1970, in seconds. */
#define GREGORIAN_S 12219292800ull

enum { UUID_BYTES = 16 };

static int fill_random(unsigned char ret[UUID_BYTES], struct error *reterr)
{
    if (getrandom(ret, UUID_BYTES, 0) != UUID_BYTES)
        return error_sys(reterr, errno, "cannot get random bytes");
    return 0;
}

static void put_text(unsigned char bytes[UUID_BYTES], unsigned version, char ret[UUID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    char *p = ret;

    bytes[6] = (unsigned char)(version << 4 | (bytes[6] & 15));
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = digits[bytes[i] >> 4];
        *p++ = digits[bytes[i] & 15];
    }
    *p = 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int get_bytes(const char *s, unsigned char ret[UUID_BYTES])
{
    if (strnlen(s, UUID_LEN + 1) != UUID_LEN)
        return -1;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        int high, low;

        if ((i == 4 || i == 6 || i == 8 || i == 10) && *s++ != '-')
            return -1;
        high = hex_digit(*s++);
        low = hex_digit(*s++);
        if (high < 0 || low < 0)
            return -1;
        ret[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

/* The largest of `now`, `least`, and what follows the last one given out. */
static uint64_t next_stamp(_Atomic uint64_t *last, uint64_t now, uint64_t least)
{
    uint64_t seen = atomic_load(last), stamp;

    do
        stamp = MAX(MAX(now, least), seen + 1);
    while (!atomic_compare_exchange_weak(last, &seen, stamp));
    return stamp;
}

int uuid_v4(char ret[UUID_LEN + 1], struct error *reterr)
{
    unsigned char bytes[UUID_BYTES];
    int r;

    r = fill_random(bytes, reterr);
    if (r < 0)
        return r;
    put_text(bytes, 4, ret);
    return 0;
}

/* The 60 bits of time lie as 32, 16, then 12 behind the version. */
static uint64_t v6_ticks(const unsigned char bytes[UUID_BYTES])
{
    uint64_t ticks = 0;

    for (size_t i = 0; i < 6; i++)
        ticks = ticks << 8 | bytes[i];
    return ticks << 12 | (uint64_t)(bytes[6] & 15) << 8 | bytes[7];
}

static int v6_least(const char *after, uint64_t *ret, struct error *reterr)
{
    unsigned char bytes[UUID_BYTES];

    *ret = 0;
    if (!after)
        return 0;
    if (get_bytes(after, bytes) < 0 || bytes[6] >> 4 != 6)
        return error_set(reterr, ERR_INVALID, "not a UUID of version 6");
    *ret = v6_ticks(bytes) + 1;
    if (*ret > TICKS_MAX)
        return error_set(reterr, ERR_INVALID, "no UUID of version 6 follows the given one");
    return 0;
}

/* 60 bits of time into the bytes before the variant. */
static void put_stamp(unsigned char bytes[UUID_BYTES], uint64_t stamp)
{
    for (size_t i = 0; i < 6; i++)
        bytes[i] = (unsigned char)(stamp >> (52 - 8 * i));
    bytes[6] = (unsigned char)(stamp >> 8 & 15);
    bytes[7] = (unsigned char)stamp;
}

int uuid_v6(const char *after, char ret[UUID_LEN + 1], struct error *reterr)
{
    static _Atomic uint64_t last;
    unsigned char bytes[UUID_BYTES];
    struct timespec ts;
    uint64_t least;
    int r;

    r = v6_least(after, &least, reterr);
    if (r < 0)
        return r;
    r = fill_random(bytes, reterr);
    if (r < 0)
        return r;
    clock_gettime(CLOCK_REALTIME, &ts);
    put_stamp(bytes, next_stamp(&last,
                                ((uint64_t)ts.tv_sec + GREGORIAN_S) * TICKS_PER_S +
                                    (uint64_t)ts.tv_nsec / 100,
                                least));
    /* A node that is random has the bit that no network card has. */
    bytes[10] |= 1;
    put_text(bytes, 6, ret);
    return 0;
}

int uuid_v7(char ret[UUID_LEN + 1], struct error *reterr)
{
    static _Atomic uint64_t last;
    unsigned char bytes[UUID_BYTES];
    struct timespec ts;
    uint64_t ms, fraction;
    int r;

    r = fill_random(bytes, reterr);
    if (r < 0)
        return r;
    clock_gettime(CLOCK_REALTIME, &ts);
    ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
    fraction = (uint64_t)ts.tv_nsec % 1000000 * 4096 / 1000000;
    put_stamp(bytes, next_stamp(&last, ms << 12 | fraction, 0));
    put_text(bytes, 7, ret);
    return 0;
}

bool uuid_check(const char *s)
{
    unsigned char bytes[UUID_BYTES];

    return get_bytes(s, bytes) == 0;
}
