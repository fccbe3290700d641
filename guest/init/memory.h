/* SPDX-License-Identifier: MIT */
/*
 * The memory limit where the host has no memory cgroup for us: what the sandbox holds is added up a
 * few times a second. A poor substitute, and told as degraded: a burst between two looks is not
 * seen.
 */
#pragma once

#include <stdint.h>

/* Status with which init ends when the limit is passed; the keeper calls it `oom`. */
enum { MEMORY_EXIT = 117 };

/*
 * Looks when it is time to; ends init, and so the sandbox, above config.memory_mib. The next time
 * as a deadline: CLOCK_FOREVER without a limit.
 */
int64_t memory_tick(int64_t now);
