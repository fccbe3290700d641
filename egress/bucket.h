/* SPDX-License-Identifier: MIT */
/* A token bucket: `rate` a second, at most `burst` at once. Counted in thousandths of a token. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct bucket {
    int64_t level;
    int64_t at; /* ms */
    int64_t rate;
    int64_t burst;
};

/* A bucket begins full: a burst at the start is what a client that just started does. */
static inline void bucket_init(struct bucket *b, int64_t rate, int64_t burst, int64_t now)
{
    *b = (struct bucket){.level = burst * 1000, .at = now, .rate = rate, .burst = burst};
}

/* Whether there is a token. Refills first; the time is the caller's, one for each turn. */
static inline bool bucket_has(struct bucket *b, int64_t now)
{
    b->level = MIN(b->burst * 1000, b->level + MIN(now - b->at, INT32_MAX) * b->rate);
    b->at = now;
    return b->level >= 1000;
}

static inline void bucket_take(struct bucket *b)
{
    b->level -= 1000;
}
