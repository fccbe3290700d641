/* SPDX-License-Identifier: MIT */
/* Wall time in microseconds since 1970 and its text: 2026-01-02T03:04:05.678901+00:00. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

enum { TIMESTAMP_TEXT = 40 };

int64_t timestamp_now(void);

void timestamp_format(int64_t us, char ret[TIMESTAMP_TEXT]);

/* ISO 8601 (RFC 3339) with a fraction or none, and "Z" or an offset or none (then UTC). 0 or -1. */
int timestamp_parse(const char *s, int64_t *ret) must_check;
