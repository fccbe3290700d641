/* SPDX-License-Identifier: MIT */
/*
 * Schedules as cron knows them: minute, hour, day of month, month, day of week, with a field of
 * seconds before them in the form of six fields.
 */
#pragma once

#include "api/zone.h"

enum { SCHEDULE_MAX = 256 };

struct schedule {
    uint64_t seconds, minutes, hours, days, months, weekdays; /* a bit for each number */
    bool any_day, any_weekday;                                /* their fields exclude nothing */
};

/*
 * Fields hold "*", "?", numbers, names of months and days, ranges, steps and lists; or the whole
 * text is "@hourly", "@daily" and the like. ERR_INVALID says which field is wrong.
 */
int schedule_parse(const char *text, struct schedule *ret, struct error *reterr) must_check;

/*
 * The first time behind `after` at which the zone's clocks show what the schedule says, in seconds
 * since 1970; 0 when there is none in the next years. A day counts when either of the fields for
 * days says so, if both exclude something. What is planned at certain hours happens once, also on
 * days on which an hour comes twice or never; what is not follows the passing of time.
 */
int64_t schedule_next(const struct schedule *s, const struct zone *z, int64_t after);
