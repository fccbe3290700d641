/* SPDX-License-Identifier: MIT */
/*
 * UUIDs (RFC 9562) as 36 lower-case characters. Versions 6 and 7 begin with the time, so ids of one
 * process grow as strings, too: each is larger than all that were made before it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum { UUID_LEN = 36 };

int uuid_v4(char ret[UUID_LEN + 1], struct error *reterr) must_check;

/* `after`: a UUID of version 6 that the result is larger than, perhaps made elsewhere; or NULL. */
int uuid_v6(const char *after, char ret[UUID_LEN + 1], struct error *reterr) must_check;
int uuid_v7(char ret[UUID_LEN + 1], struct error *reterr) must_check;

/* Any version, in lower or upper case. */
bool uuid_check(const char *s);
