/* SPDX-License-Identifier: MIT */
/* Where our helper programs and the kernels are. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/*
 * The real path of a file below the helper directory: $SANDBOX_AGENT_LIBEXEC, else `libexec/`
 * beside the running program (the build tree), else the installed directory.
 */
int libexec_find(const char *name, char *ret, size_t size, struct error *reterr) must_check;

/*
 * Starts the helper `argv[0]` in a session of its own, with `in` and `out` as its standard streams
 * and no other descriptor; the caller waits for it.
 */
int libexec_start(char *const *argv, char *const *env, int in, int out, pid_t *ret,
                  struct error *reterr) must_check;
