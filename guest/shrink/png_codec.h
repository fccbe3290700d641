/* SPDX-License-Identifier: MIT */
/* PNG in and out. The only file behind this header is the one that sees libpng. */
#pragma once

#include "base/buf.h"
#include "shrink/picture.h"

/* Decodes and reduces; an interlaced picture needs its whole size in memory and has a limit. */
int png_codec_read(const void *data, size_t len, uint32_t side, struct picture *ret,
                   struct error *reterr) must_check;

/* Appends; ERR_LIMIT when it does not fit into the buffer's maximum. */
int png_codec_write(const struct picture *p, struct buf *ret, struct error *reterr) must_check;
