/* SPDX-License-Identifier: MIT */
/* JPEG in and out. The only file behind this header is the one that sees libjpeg. */
#pragma once

#include "base/buf.h"
#include "shrink/picture.h"

/* Decodes and reduces; a progressive picture needs its coefficients in memory and has a limit. */
int jpeg_codec_read(const void *data, size_t len, uint32_t side, struct picture *ret,
                    struct error *reterr) must_check;

/* Appends the picture on white; ERR_LIMIT when it does not fit into the buffer's maximum. */
int jpeg_codec_write(const struct picture *p, int quality, struct buf *ret,
                     struct error *reterr) must_check;
