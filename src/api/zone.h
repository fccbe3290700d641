/* SPDX-License-Identifier: MIT */
/*
 * Time zones: by the names of the IANA database, read from the host's compiled files (TZif, RFC
 * 8536), because the C library knows one zone per process only.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { ZONE_NAME_MAX = 64 };

struct zone;

/* "UTC", "+02:00", "Europe/Berlin"; ERR_INVALID for one that this host does not know. */
int zone_load(const char *name, struct zone **ret, struct error *reterr) must_check;
/* From the bytes of a TZif file. */
int zone_parse(const void *data, size_t len, struct zone **ret, struct error *reterr) must_check;
void zone_free(struct zone *z);

/* Seconds east of UTC at a time, in seconds since 1970. */
int32_t zone_offset(const struct zone *z, int64_t utc);

/*
 * When clocks show a local time: for the first time if they do twice, and where they never do, the
 * moment at which they jump over it.
 */
int64_t zone_to_utc(const struct zone *z, int64_t local);

/* The first change of the offset behind `utc` and up to `until`, or `until`. */
int64_t zone_next_change(const struct zone *z, int64_t utc, int64_t until);

DEFINE_CLEANUP(struct zone *, zone_free)
#define auto_zone __attribute__((cleanup(zone_free_cleanup)))
