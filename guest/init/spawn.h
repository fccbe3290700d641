/* SPDX-License-Identifier: MIT */
/* Runs of a process: SPAWN. All of them work on a run of kind RUN_SPAWN that is not done. */
#pragma once

#include "init/proctab.h"
#include "init/run.h"

/* Starts the process; a failure is told by the run's END. */
void spawn_start(struct run *run, const struct fields *f);

void spawn_input(struct run *run, const char *data, size_t len); /* empty: end of file */
void spawn_interrupt(struct run *run);
void spawn_kill(struct run *run);

/* Time: time-outs, the ladder, the end of what was killed. Returns the next deadline. */
int64_t spawn_tick(struct run *run, int64_t now);

/* Whether the child was this run's process. It is still a zombie at this moment. */
bool spawn_reaped(struct run *run, pid_t pid, int wait_status);

/* Reads or leaves the pipes, as the clients keep up. */
void spawn_gate(struct run *run);

/* Adds the sessions of running processes to what is spared. */
void spawn_spare(struct proc_scope *scope, const struct run *except);
