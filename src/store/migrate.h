/* SPDX-License-Identifier: MIT */
/* The schema files as the build embeds them, in order of their versions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct migration {
    int64_t version;
    const char *name; /* "0001-server" */
    const char *sql;
};

extern const struct migration migrations[];
extern const size_t migration_count;
