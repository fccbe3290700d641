/* SPDX-License-Identifier: MIT */
/* Base64 as in RFC 4648 section 4, with padding, without line breaks. */
#pragma once

#include "base/buf.h"

int base64_encode(struct buf *ret, const void *data, size_t len) must_check;

/* Decodes strictly: no white space, padding required. 0, or -1 for bad input or a full buffer. */
int base64_decode(struct buf *ret, const char *text, size_t len) must_check;
