/* SPDX-License-Identifier: MIT */
/*
 * A strict reader of tar files: ustar, GNU and PAX. Where two readers could see two different
 * trees (a size told twice, a name told twice, bytes behind the end), the archive is refused.
 */
#pragma once

#include "archive/output.h"
#include "archive/stream.h"

enum { TAR_BLOCK = 512 };

/* Whether a block can be the first of a tar file. */
bool tar_detect(const void *block);

/* The whole stream. */
int tar_read(struct stream *in, struct output *out, struct error *reterr) must_check;
