/* SPDX-License-Identifier: MIT */
/* What can be done with a run of any kind, and with all runs. */
#pragma once

#include "init/run.h"

/* Begins a run that was opened; failures are told by its END. */
void runs_start(struct run *run, const struct fields *f);

/* Each does nothing with a run that is done. */
void runs_input(struct run *run, const char *data, size_t len);
void runs_interrupt(struct run *run);
void runs_kill(struct run *run);

/* Does what is due, and returns the next deadline. */
int64_t runs_tick(int64_t now);

/* Reads pipes or leaves them, as the clients keep up. */
void runs_gate(void);

/* A child ended; it is still a zombie. */
void runs_reaped(pid_t pid, int wait_status);
