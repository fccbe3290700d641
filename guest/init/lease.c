/* SPDX-License-Identifier: MIT */
/* The lease of a sandbox without a client. */
#include "init/lease.h"

#include "base/clock.h"

void lease_tick(struct lease *lease, int64_t now, bool held)
{
    int64_t passed = now - lease->last_ms;

    lease->last_ms = now;
    if (held) {
        lease->used_ms = 0;
        return;
    }
    if (passed > LEASE_TICK_MS)
        passed = LEASE_TICK_MS;
    if (passed > 0)
        lease->used_ms += passed;
}

int64_t lease_next(const struct lease *lease, bool held)
{
    int64_t left = lease->limit_ms - lease->used_ms;

    if (held)
        return CLOCK_FOREVER;
    return lease->last_ms + (left < LEASE_TICK_MS ? left : LEASE_TICK_MS);
}
