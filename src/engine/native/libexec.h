/* SPDX-License-Identifier: MIT */
/* Where our helper programs and the kernels are. */
#pragma once

#include "base/error.h"

/*
 * The real path of a file below the helper directory: $SANDBOX_AGENT_LIBEXEC, else `libexec/`
 * beside the running program (the build tree), else the installed directory.
 */
int libexec_find(const char *name, char *ret, size_t size, struct error *reterr) must_check;
