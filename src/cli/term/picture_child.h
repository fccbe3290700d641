/* SPDX-License-Identifier: MIT */
/* A picture through sandbox-picture, which decodes it in our place. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/*
 * `mode` is "sixel" or "png", `side` the longest side of the result. What comes back is the word of
 * a process that a hostile picture may have taken over: the caller checks it. A child that takes
 * longer than ten seconds is killed.
 */
int picture_child_run(const char *mode, unsigned side, const void *data, size_t len,
                      struct buf *ret, struct error *reterr) must_check;
