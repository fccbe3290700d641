/* SPDX-License-Identifier: MIT */
/*
 * The processes of the sandbox, and killing sets of them: those of one run, wherever they went, or
 * all but the kernel. A set is found again until nothing of it lives, because it may fork
 * meanwhile; when it outruns that, everything is stopped first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t pid, ppid, pgrp, sid;
    uint64_t start; /* clock ticks since boot */
    char state;
    bool marked;
};

struct proctab {
    struct proc *list;
    size_t count, cap;
};

enum { PROCTAB_SPARED = 64, PROCTAB_MAX = 1 << 17 };

/* What is to be killed. */
struct proc_scope {
    pid_t leader;   /* everything of its session and group, and all descendants; 0: everything */
    uint64_t start; /* orphans that began at or after this belong to it too; 0: none do */
    /* sessions that are left alone, whatever else holds; with leader 0 only these processes */
    pid_t spared[PROCTAB_SPARED];
    size_t spared_count;
};

void proctab_done(struct proctab *t);

/* Reads all processes but init. 0 or -1 with errno. */
int proctab_read(struct proctab *t);

/* One line of /proc/PID/stat. 0, or -1 when it is malformed. */
int proctab_parse(const char *line, struct proc *ret);

/* Marks what belongs to a scope; `init` is our own pid. */
void proctab_mark(struct proctab *t, const struct proc_scope *scope, pid_t init);

/* Start time of one process, 0 when it is not to be had. */
uint64_t proctab_start_time(pid_t pid);

/* Kills a scope as far as it can be found now; the number of processes that were still alive. */
size_t proctab_kill(const struct proc_scope *scope);

/* The same after everything was stopped, so that nothing can fork away; goes on with the rest. */
size_t proctab_kill_stopped(const struct proc_scope *scope);

/* The number of processes beside init. */
size_t proctab_count(void);
