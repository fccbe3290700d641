/* SPDX-License-Identifier: MIT */
/* SWEEP: kill every process but init and the kernel. */
#pragma once

#include "init/run.h"

/* The run ends when nothing else lives any more. */
void sweep_start(struct run *run);
int64_t sweep_tick(struct run *run, int64_t now);
