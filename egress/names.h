/* SPDX-License-Identifier: MIT */
/*
 * The names that a sandbox has asked for, each with its fixed address of 198.18.0.0/15. The table
 * begins at a random place of that range, so that an address which a client kept from before a
 * restart of egress means nothing instead of another name.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    NAMES_MAX = 4096,
    NAMES_TEXT_MAX = 256 * 1024, /* bytes of all names of a sandbox */
    NAMES_PER_SECOND = 20,
    NAMES_SLOTS = 2 * NAMES_MAX,
    NAMES_RANGE = 1 << 17, /* addresses in a /15 */
};

struct name {
    uint32_t index;
    char text[]; /* canonical */
};

struct names {
    uint32_t seed;
    uint32_t start;
    size_t count;
    size_t text_bytes;
    struct name **by_index; /* grows up to NAMES_MAX */
    size_t room;
    uint16_t *slots; /* hash table: index + 1, 0 is free; made with the first name */
    int64_t recent[NAMES_PER_SECOND]; /* ms at which the last names were added */
    size_t recent_at;
};

void names_init(struct names *n, uint32_t seed, uint32_t start);
void names_done(struct names *n);

struct name *names_find(const struct names *n, const char *text);

/* Adds a name that is not there; NULL where one of the limits is reached or memory is short. */
struct name *names_add(struct names *n, const char *text, int64_t now) must_check;

/* The name behind an IPv4 address; NULL when none has it. */
struct name *names_by_addr(const struct names *n, const uint8_t a[4]);
void names_addr(const struct names *n, const struct name *name, uint8_t ret[4]);
