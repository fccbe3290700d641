/* SPDX-License-Identifier: MIT */
/* String helpers. Numbers are parsed by hand: strtol accepts spaces, signs and rests that we
 * refuse. */
#include "base/str.h"

#include <strings.h>

bool str_ends(const char *s, const char *suffix)
{
    size_t len = strlen(s), tail = strlen(suffix);

    return len >= tail && memcmp(s + len - tail, suffix, tail) == 0;
}

int str_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = *s == '-';
    int64_t value = 0;

    if (negative)
        s++;
    if (!*s)
        return -1;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return -1;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *s - '0', &value))
            return -1;
    }
    /* Counted downwards, because the negative range is the larger one. */
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value))
        return -1;
    if (value < min || value > max)
        return -1;
    *ret = value;
    return 0;
}

static int size_shift(char c)
{
    static const char units[] = "bkmgt";
    const char *p = c ? strchr(units, c | 0x20) : NULL;

    return p ? (int)(p - units) * 10 : -1;
}

int str_parse_size(const char *s, uint64_t *ret)
{
    size_t digits = strspn(s, "0123456789");
    uint64_t value = 0;
    const char *unit = s + digits;
    int shift = 0;

    if (digits == 0 || digits > 18)
        return -1;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (uint64_t)(s[i] - '0');
    if (*unit) {
        shift = size_shift(*unit++);
        if (shift > 0 && (*unit == 'b' || *unit == 'B'))
            unit++;
    }
    if (shift < 0 || *unit || value > UINT64_MAX >> shift)
        return -1;
    *ret = value << shift;
    return 0;
}

int str_parse_bool(const char *s, bool *ret)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(s, words[i]) == 0) {
            *ret = i % 2;
            return 0;
        }
    }
    return -1;
}

int str_copy(char *ret, size_t size, const char *s)
{
    size_t len = strlen(s);

    if (len >= size) {
        if (size)
            *ret = 0;
        return -1;
    }
    memcpy(ret, s, len + 1);
    return 0;
}

bool str_check_chars(const char *s, const char *set, size_t max)
{
    size_t len = strlen(s);

    return len >= 1 && len <= max && strspn(s, set) == len;
}

size_t str_character(const unsigned char *s)
{
    size_t len = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    unsigned char low = *s == 0xe0 ? 0xa0 : *s == 0xf0 ? 0x90 : 0x80;
    unsigned char high = *s == 0xed ? 0x9f : *s == 0xf4 ? 0x8f : 0xbf;

    for (size_t i = 1; i < len; i++) {
        if (s[i] < low || s[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return len;
}
