/* SPDX-License-Identifier: MIT */
/* Landlock: the second layer under the mounts. Applied once, before anything is started. */
#pragma once

#include "base/error.h"
#include "init/config.h"

/* The ABI that is in force, 0 for none. */
int landlock_abi(void);

/* Everything may be read and executed, only the writable directories and /dev may be written;
 * abstract sockets and signals end at the sandbox. Does nothing where the kernel has no Landlock.
 */
int landlock_apply(const struct config *c, struct error *reterr) must_check;
