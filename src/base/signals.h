/* SPDX-License-Identifier: MIT */
/* Signal dispositions for a program that is about to be replaced by another. */
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Every signal to its default and none blocked. By the raw call: glibc's refuses the two that it
 * keeps for itself (32 and 33), and a parent that ignores one of them would hand that on over every
 * exec.
 */
static inline int signals_default(void)
{
    const unsigned long action[8] = {0}; /* SIG_DFL is 0 in every kernel's struct sigaction */
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        (void)syscall(SYS_rt_sigaction, sig, action, NULL, sizeof(unsigned long));
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}
