/* SPDX-License-Identifier: MIT */
/*
 * Memory that lives as long as one request, run or settings set. Everything is released at once by
 * arena_done(); nothing is released before. Not thread-safe.
 */
#pragma once

#include "base/macro.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* in the newest block */
    size_t total;
    size_t max;
};

static inline void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){.max = max};
}
void arena_done(struct arena *a);

/* Zeroed memory aligned for any type, or NULL when `max` is passed or memory is short. */
void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *s);
/* Copies `len` bytes and adds a NUL byte. */
char *arena_memdup(struct arena *a, const void *data, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) printf_like(2, 3);

#define auto_arena __attribute__((cleanup(arena_done)))
