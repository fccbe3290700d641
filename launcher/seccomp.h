/* SPDX-License-Identifier: MIT */
/*
 * The seccomp programs. We write the BPF ourselves: "everything else is errno E" for the rest of an
 * argument check, and a 32-bit masked comparison, cannot be said to libseccomp, and a program takes
 * microseconds to make. Decisions on the number alone are what the kernel caches per number.
 */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum seccomp_profile {
    SECCOMP_DEFAULT, /* what init puts on every process it starts, on top of its own */
    SECCOMP_INIT,
};

enum seccomp_flag {
    SECCOMP_ONE_UID = 1u << 0, /* init has the uid of user code, so prlimit64 is for oneself only */
};

enum { SECCOMP_INSNS = 2048 };

struct seccomp_program {
    struct sock_filter insns[SECCOMP_INSNS];
    size_t len;
};

int seccomp_build(enum seccomp_profile profile, uint32_t flags, struct seccomp_program *ret,
                  struct error *reterr) must_check;

/* Puts a program on this process, which has no_new_privs. */
int seccomp_apply(const struct seccomp_program *program);

/* One line per named system call: name, number, action of `default`, action of `init`. */
void seccomp_print(FILE *to);
