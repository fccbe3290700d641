/* SPDX-License-Identifier: MIT */
/* Time. Deadlines are monotonic milliseconds; wall time is only for records that people read. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_FOREVER INT64_MAX

static inline int64_t clock_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

static inline int64_t clock_wall_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A deadline `ms` from now; a negative `ms` is for ever. */
static inline int64_t clock_deadline(int64_t ms)
{
    return ms < 0 ? CLOCK_FOREVER : clock_ms() + ms;
}

/* The time-out for poll() until a deadline: -1 for ever, 0 when it is past. */
static inline int clock_poll_ms(int64_t deadline)
{
    int64_t left;

    if (deadline == CLOCK_FOREVER)
        return -1;
    left = deadline - clock_ms();
    if (left <= 0)
        return 0;
    return left > INT32_MAX ? INT32_MAX : (int)left;
}
