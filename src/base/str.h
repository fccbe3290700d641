/* SPDX-License-Identifier: MIT */
/* Strings: comparisons, strict number and size parsing. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool str_eq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static inline bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix);

/* The whole string is a decimal number in [min, max]; nothing else is accepted. 0 or -1. */
int str_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret) must_check;

/* A size as Docker writes it: digits and an optional b, k, m, g (either case, optional trailing
 * "b"). 0 or -1. */
int str_parse_size(const char *s, uint64_t *ret) must_check;

/* true/false/1/0/yes/no/on/off, any case. 0 or -1. */
int str_parse_bool(const char *s, bool *ret) must_check;

/* Copies with a terminating NUL; -1 when it does not fit (the result is then empty). */
int str_copy(char *ret, size_t size, const char *s) must_check;

/* Whether every character is of the set and the length is in [1, max]. */
bool str_check_chars(const char *s, const char *set, size_t max);

/* Length of the well-formed UTF-8 character at `s`, which ends with NUL; 0 when there is none. */
size_t str_character(const unsigned char *s);
