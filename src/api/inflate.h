/* SPDX-License-Identifier: MIT */
/* Files of the page are kept compressed; for a client that does not take them so they are unpacked
 * while they are sent. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct inflate;

/* `data` is used until inflate_free(). */
int inflate_new(const void *data, size_t len, struct inflate **ret,
                struct error *reterr) must_check;
void inflate_free(struct inflate *z);

/* Up to `len` bytes; 0 at the end; -1 when the data is damaged. */
ssize_t inflate_read(struct inflate *z, char *ret, size_t len) must_check;
