/* SPDX-License-Identifier: MIT */
/*
 * The session's kernel: one process that is started, watched, and started again when it ends. There
 * is one, so it has no handle. Cells are in cell.c; this file knows whether one runs only to send
 * output where it belongs.
 */
#pragma once

#include "init/kframe.h"
#include "init/proctab.h"
#include "init/run.h"

enum kernel_state { KERNEL_NONE, KERNEL_STARTING, KERNEL_IDLE, KERNEL_BUSY, KERNEL_DEAD };

/* KERNEL: remembers how to start it and starts it; the run ends when the kernel is ready or has
 * failed. */
void kernel_request(struct run *run, const struct fields *f);

enum kernel_state kernel_state(void);
const char *kernel_state_name(void);
pid_t kernel_pid(void); /* 0: none */

/* The environment of the KERNEL request, valid until the next one; NULL before. */
char *const *kernel_env(void);
uint64_t kernel_generation(void);
int64_t kernel_sigint_delay(void);

/* Makes sure that a kernel is there or coming. <0 when none was ever asked for, or it cannot start.
 */
int kernel_need(struct error *reterr) must_check;

/* Lends the idle kernel to a cell: output goes to `run`, frames to cell_frame(). Late output that
 * has been waiting is put into its log. */
void kernel_take(struct run *run);

/* The cell is over. The kernel is idle, unless it is about to end. */
void kernel_release(void);

/* Why the kernel is another one than at the last cell, once; NULL when it is the same. */
const char *kernel_restarted(char buf[24]);

/* Queues a frame for the kernel. */
int kernel_send(uint8_t type, uint32_t stream, const void *payload, size_t len) must_check;

/* Reads what is in both pipes now. */
void kernel_drain(void);

/* The kernel broke the protocol: it is killed, and its cell ends `died`. */
void kernel_fault(const struct error *why);

/* Kills its process group; what follows happens when it is reaped. */
void kernel_kill(void);

/* The last frame as a block for a log. */
struct log_block *kernel_take_frame(const struct kframe *frame);

int64_t kernel_tick(int64_t now);
bool kernel_reaped(pid_t pid, int wait_status);
void kernel_gate(void);
void kernel_spare(struct proc_scope *scope);
