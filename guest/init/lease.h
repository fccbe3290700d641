/* SPDX-License-Identifier: MIT */
/*
 * The lease: how long a sandbox lives while no client is connected. It is counted in ticks of at
 * most a second of the monotonic clock, so a freeze of any length counts as one tick.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LEASE_TICK_MS = 1000 };

struct lease {
    int64_t limit_ms;
    int64_t used_ms;
    int64_t last_ms; /* clock at the last tick */
};

static inline void lease_init(struct lease *lease, int64_t limit_ms, int64_t now)
{
    *lease = (struct lease){.limit_ms = limit_ms, .last_ms = now};
}

/* Counts the time since the last tick; `held` while a client is connected. */
void lease_tick(struct lease *lease, int64_t now, bool held);

static inline bool lease_is_over(const struct lease *lease)
{
    return lease->used_ms >= lease->limit_ms;
}

/* The next tick that has to be taken, as a deadline. */
int64_t lease_next(const struct lease *lease, bool held);
