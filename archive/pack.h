/* SPDX-License-Identifier: MIT */
/* The other way: records in, an archive out. */
#pragma once

#include "wire/record.h"

enum pack_format { PACK_TAR_GZ, PACK_ZIP };

struct pack;

/* Has to happen before the process is confined: it loads a locale. */
int pack_new(enum pack_format format, int fd, struct pack **ret, struct error *reterr) must_check;
void pack_free(struct pack *p);

/* One record after the other; 1 when the archive is whole, with RECORD_END. */
int pack_take(struct pack *p, const struct record *r, struct error *reterr) must_check;

DEFINE_CLEANUP(struct pack *, pack_free)
#define auto_pack __attribute__((cleanup(pack_free_cleanup)))
