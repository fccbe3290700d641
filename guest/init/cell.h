/* SPDX-License-Identifier: MIT */
/* Runs of a cell: EXEC. One runs at a time, the others wait in the order in which they came. */
#pragma once

#include "init/kframe.h"
#include "init/run.h"

/* Begins a cell, or queues it; a failure is told by the run's END. */
void cell_start(struct run *run, const struct fields *f);

void cell_input(struct run *run, const char *data, size_t len);
void cell_interrupt(struct run *run);
void cell_kill(struct run *run);
int64_t cell_tick(struct run *run, int64_t now);

/* ---- called by the kernel ---- */

/* It is idle: the next cell that waits is sent. */
void cell_next(void);

/* A frame within a cell. <0: the kernel broke the protocol. */
int cell_frame(struct run *run, const struct kframe *frame, struct error *reterr) must_check;

/* The kernel is gone in the middle of the cell; `fault` is what it did wrong, or NULL. */
void cell_lost(struct run *run, int wait_status, const struct error *fault);

/* The kernel cannot be started: every cell that waits fails. */
void cell_fail_waiting(const struct error *why);
