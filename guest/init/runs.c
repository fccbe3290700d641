/* SPDX-License-Identifier: MIT */
/* The kinds of runs, as a table. */
#include "init/runs.h"

#include "init/cell.h"
#include "init/kernel.h"
#include "init/spawn.h"
#include "init/sweep.h"

static void kernel_run_kill(struct run *run)
{
    if (run->stop == RUN_GOES_ON)
        run->stop = RUN_STOPPED;
    kernel_kill();
}

static void sweep_run_start(struct run *run, const struct fields *f)
{
    sweep_start(run);
}

static int64_t kernel_run_tick(struct run *run, int64_t now)
{
    return CLOCK_FOREVER;
}

static const struct run_ops {
    void (*start)(struct run *run, const struct fields *f);
    void (*input)(struct run *run, const char *data, size_t len);
    void (*interrupt)(struct run *run);
    void (*kill)(struct run *run);
    int64_t (*tick)(struct run *run, int64_t now);
} ops[] = {
    [RUN_EXEC] = {cell_start, cell_input, cell_interrupt, cell_kill, cell_tick},
    [RUN_SPAWN] = {spawn_start, spawn_input, spawn_interrupt, spawn_kill, spawn_tick},
    [RUN_KERNEL] = {kernel_request, NULL, kernel_run_kill, kernel_run_kill, kernel_run_tick},
    [RUN_SWEEP] = {sweep_run_start, NULL, NULL, NULL, sweep_tick},
};

void runs_start(struct run *run, const struct fields *f)
{
    ops[run->kind].start(run, f);
}

void runs_input(struct run *run, const char *data, size_t len)
{
    if (run->state != RUN_DONE && ops[run->kind].input)
        ops[run->kind].input(run, data, len);
}

void runs_interrupt(struct run *run)
{
    if (run->state != RUN_DONE && ops[run->kind].interrupt)
        ops[run->kind].interrupt(run);
}

void runs_kill(struct run *run)
{
    if (run->state != RUN_DONE && ops[run->kind].kill)
        ops[run->kind].kill(run);
}

int64_t runs_tick(int64_t now)
{
    int64_t next = kernel_tick(now);

    for (struct run *run = run_first(); run; run = run->next) {
        int64_t due = run->state == RUN_DONE ? CLOCK_FOREVER : ops[run->kind].tick(run, now);

        next = MIN(next, due);
    }
    return next;
}

void runs_gate(void)
{
    kernel_gate();
    for (struct run *run = run_first(); run; run = run->next) {
        if (run->spawn)
            spawn_gate(run);
    }
}

void runs_reaped(pid_t pid, int wait_status)
{
    if (kernel_reaped(pid, wait_status))
        return;
    for (struct run *run = run_first(); run; run = run->next) {
        if (run->spawn && spawn_reaped(run, pid, wait_status))
            return;
    }
}
