/* SPDX-License-Identifier: MIT */
/*
 * SWEEP. Everything is stopped before anything is killed, so a fork bomb that has filled the limit
 * cannot refill it while we go through the table; the kernel is continued at the end of each round.
 */
#include "init/sweep.h"

#include "init/kernel.h"
#include "init/spawn.h"

#include <errno.h>

enum { SWEEP_PERIOD_MS = 5, SWEEP_ROUNDS = 400 };

static struct {
    int64_t next;
    int rounds;
} sweep;

void sweep_start(struct run *run)
{
    run_begin(run);
    sweep.next = clock_ms();
    sweep.rounds = 0;
    for (struct run *other = run_first(); other; other = other->next) {
        if (other->spawn)
            spawn_kill(other);
    }
}

int64_t sweep_tick(struct run *run, int64_t now)
{
    struct proc_scope scope = {};
    struct outcome o;
    struct error err;

    if (now < sweep.next)
        return sweep.next;
    kernel_spare(&scope);
    sweep.next = now + SWEEP_PERIOD_MS;
    if (proctab_kill_stopped(&scope) > 0 && sweep.rounds++ < SWEEP_ROUNDS)
        return sweep.next;
    if (sweep.rounds > SWEEP_ROUNDS) {
        (void)error_sys(&err, EBUSY, "processes are left");
        run_fail(run, NULL, &err);
        return CLOCK_FOREVER;
    }
    outcome_init(&o, run);
    run_end(run, &o);
    return CLOCK_FOREVER;
}
