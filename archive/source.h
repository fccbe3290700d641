/* SPDX-License-Identifier: MIT */
/*
 * The archive that is read: a seekable descriptor, or memory in tests. Its size is taken once; what
 * is written to it meanwhile can make the archive wrong, but moves no boundary.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct source {
    int fd;           /* -1: memory */
    const void *data; /* memory */
    uint64_t size;
};

int source_init(struct source *s, int fd, struct error *reterr) must_check;

/* All of [pos, pos + len); an error where the archive is shorter. */
int source_read(const struct source *s, uint64_t pos, void *data, size_t len,
                struct error *reterr) must_check;
