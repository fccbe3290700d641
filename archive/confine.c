/* SPDX-License-Identifier: MIT */
/*
 * What is not in the table kills: nothing here expects to be refused, so whatever asks for more has
 * been taken over. Memory that can be executed is refused, too. A sanitizer's build needs far more
 * than this and has only the limits that it can bear.
 */
#include "archive/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#else
#error "name this architecture here"
#endif

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

enum { FILTER_MAX = 96, FIRST_FOREIGN_FD = 3 };
#define MEMORY_MAX (512 * MIB)

static int limits_set(unsigned cpu_seconds, struct error *reterr)
{
    const struct {
        __rlimit_resource_t what;
        rlim_t value;
    } limits[] = {
        {RLIMIT_AS, MEMORY_MAX}, {RLIMIT_NOFILE, 0}, {RLIMIT_NPROC, 0},
        {RLIMIT_MEMLOCK, 0},     {RLIMIT_CORE, 0},   {RLIMIT_CPU, cpu_seconds},
    };
    const size_t first = is_sanitized ? ARRAY_LEN(limits) - 2 : 0;

    for (size_t i = first; i < ARRAY_LEN(limits); i++) {
        const struct rlimit limit = {limits[i].value, limits[i].value};

        if (setrlimit(limits[i].what, &limit) < 0)
            return error_sys(reterr, errno, "cannot set a limit");
    }
    return 0;
}

/* What reading by position, writing, malloc and the end of a process use. */
static const int calls_allowed[] = {
    SYS_read,         SYS_pread64,         SYS_write,         SYS_lseek,
    SYS_brk,          SYS_munmap,          SYS_mremap,        SYS_madvise,
    SYS_futex,        SYS_getrandom,       SYS_clock_gettime, SYS_gettimeofday,
    SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit,          SYS_exit_group,
};

/* Allowed where the third argument does not ask for memory that can be executed. */
static const int calls_mapping[] = {SYS_mmap, SYS_mprotect};

struct filter {
    unsigned short count;
    struct sock_filter code[FILTER_MAX];
};

static void filter_put(struct filter *f, struct sock_filter code)
{
    if (f->count < FILTER_MAX)
        f->code[f->count++] = code;
}

/* The architecture comes first: numbers mean other calls in another one. */
static void filter_build(struct filter *f)
{
    const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const uint32_t arch = offsetof(struct seccomp_data, arch);
    const uint32_t number = offsetof(struct seccomp_data, nr);
    const uint32_t protection = offsetof(struct seccomp_data, args[2]); /* the low half */

    filter_put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arch));
    filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0));
    filter_put(f, kill);
    filter_put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number));
    for (size_t i = 0; i < ARRAY_LEN(calls_allowed); i++) {
        const uint32_t call = (uint32_t)calls_allowed[i];

        filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
        filter_put(f, allow);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls_mapping); i++) {
        const uint32_t call = (uint32_t)calls_mapping[i];

        filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
        filter_put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, protection));
        filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
        filter_put(f, allow);
        filter_put(f, kill);
    }
    filter_put(f, kill);
}

static int filter_apply(struct error *reterr)
{
    struct filter f = {};
    struct sock_fprog program = {.filter = f.code};

    filter_build(&f);
    if (f.count >= FILTER_MAX)
        return error_set(reterr, ERR_INTERNAL, "the system call filter is too long");
    program.len = f.count;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        return error_sys(reterr, errno, "cannot filter system calls");
    return 0;
}

int confine(unsigned cpu_seconds, struct error *reterr)
{
    int r;

    if (close_range(FIRST_FOREIGN_FD, ~0u, 0) < 0)
        return error_sys(reterr, errno, "cannot close what was inherited");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot give up privileges");
    if ((r = limits_set(cpu_seconds, reterr)) < 0)
        return r;
    return is_sanitized ? 0 : filter_apply(reterr);
}
