/* SPDX-License-Identifier: MIT */
/*
 * A picture small enough for a model: PNG or JPEG in, PNG or JPEG out. It runs inside the sandbox,
 * because the bytes come from there and decoders have defects.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

enum { SHRINK_IN_MAX = 64 * 1024 * 1024, SHRINK_SIDE_MAX = 8192, SHRINK_SIDE_MIN = 16 };

/* `ret` has the wanted size as its maximum, and its longest side will be at most `side`. */
int shrink_picture(const void *data, size_t len, uint32_t side, struct buf *ret,
                   struct error *reterr) must_check;
