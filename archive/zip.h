/* SPDX-License-Identifier: MIT */
/*
 * A strict reader of zip files. The central directory alone decides what is in the archive; each
 * local header has to say the same, and no two entries may share bytes.
 */
#pragma once

#include "archive/output.h"
#include "archive/source.h"

int zip_read(const struct source *source, struct output *out, struct error *reterr) must_check;
