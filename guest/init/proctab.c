/* SPDX-License-Identifier: MIT */
/*
 * The process table by /proc. Signals go to what was read a moment ago; a number cannot have been
 * taken by somebody else meanwhile unless the whole number space was used up, and even then it is
 * another process of the same sandbox user.
 *
 * kill(-1) is used only where init is pid 1 of a namespace of its own: elsewhere, in a test, it
 * would reach every process of the host.
 */
#include "init/proctab.h"

#include "base/macro.h"
#include "init/config.h"
#include "init/ids.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_MAX = 1024, STAT_START_FIELD = 22 };

void proctab_done(struct proctab *t)
{
    free(t->list);
    *t = (struct proctab){};
}

int proctab_parse(const char *line, struct proc *ret)
{
    /* The name may hold anything, so everything is counted from its last closing bracket. */
    const char *p = strrchr(line, ')');
    unsigned long long start = 0;
    int pid, ppid, pgrp, sid;
    char state;

    if (!p || sscanf(line, "%d", &pid) != 1 ||
        sscanf(p + 1, " %c %d %d %d", &state, &ppid, &pgrp, &sid) != 4)
        return -1;
    p++;
    for (int field = 3; field < STAT_START_FIELD && p; field++)
        p = strchr(p + 1, ' ');
    if (!p || sscanf(p, " %llu", &start) != 1)
        return -1;
    *ret = (struct proc){
        .pid = pid, .ppid = ppid, .pgrp = pgrp, .sid = sid, .start = start, .state = state};
    return 0;
}

static int proc_read(int dirfd, const char *name, struct proc *ret)
{
    char path[64], text[STAT_MAX];
    auto_fd int fd = -1;
    ssize_t n;

    if (snprintf(path, sizeof(path), "%s/stat", name) >= (int)sizeof(path))
        return -1;
    fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -1;
    text[n] = 0;
    return proctab_parse(text, ret);
}

static int proctab_add(struct proctab *t, const struct proc *proc)
{
    if (t->count == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        struct proc *list = cap <= PROCTAB_MAX ? realloc(t->list, cap * sizeof(*list)) : NULL;

        if (!list) {
            errno = ENOMEM;
            return -1;
        }
        t->list = list;
        t->cap = cap;
    }
    t->list[t->count++] = *proc;
    return 0;
}

static int proctab_list(struct proctab *t)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    pid_t self = getpid();
    struct dirent *entry;

    t->count = 0;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    while (r == 0 && (entry = readdir(dir))) {
        struct proc proc;

        if (isdigit((unsigned char)entry->d_name[0]) && proc_read(fd, entry->d_name, &proc) == 0 &&
            proc.pid != self)
            r = proctab_add(t, &proc);
    }
    closedir(dir);
    return r;
}

/* A /proc that hides other users' processes and does not name our group shows us none; then those
 * of the sandbox user are still to be seen as that user. */
int proctab_read(struct proctab *t)
{
    int r = proctab_list(t);

    if (r < 0 || t->count > 0 || !ids_enter(IDS_SANDBOX))
        return r;
    r = proctab_list(t);
    ids_leave();
    return r;
}

static int pid_compare(const void *key, const void *item)
{
    return *(const pid_t *)key - ((const struct proc *)item)->pid;
}

/* The kernel lists /proc in the order of pids. */
static struct proc *proctab_find(struct proctab *t, pid_t pid)
{
    return bsearch(&pid, t->list, t->count, sizeof(*t->list), pid_compare);
}

static bool scope_spares(const struct proc_scope *scope, const struct proc *p)
{
    for (size_t i = 0; i < scope->spared_count; i++) {
        if (p->pid == scope->spared[i] || (scope->leader && p->sid == scope->spared[i]))
            return true;
    }
    return false;
}

/* Orphans are told by their time, as the one thing that they cannot change about themselves. */
static bool scope_has(const struct proc_scope *scope, const struct proc *p, pid_t init)
{
    if (!scope->leader)
        return config.pid1 || p->ppid == init;
    if (p->pid == scope->leader || p->pgrp == scope->leader || p->sid == scope->leader)
        return true;
    return scope->start && p->ppid == init && p->start >= scope->start;
}

/* Children mostly follow their parents in the list, so that one or two rounds are enough. */
static bool mark_children(struct proctab *t, const struct proc_scope *scope)
{
    bool more = false;

    for (size_t i = 0; i < t->count; i++) {
        struct proc *p = &t->list[i], *parent;

        if (p->marked || scope_spares(scope, p))
            continue;
        parent = proctab_find(t, p->ppid);
        if (parent && parent->marked)
            p->marked = more = true;
    }
    return more;
}

void proctab_mark(struct proctab *t, const struct proc_scope *scope, pid_t init)
{
    for (size_t i = 0; i < t->count; i++)
        t->list[i].marked =
            !scope_spares(scope, &t->list[i]) && scope_has(scope, &t->list[i], init);
    while (mark_children(t, scope))
        continue;
}

uint64_t proctab_start_time(pid_t pid)
{
    char name[16];
    struct proc proc;
    auto_fd int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    snprintf(name, sizeof(name), "%d", (int)pid);
    return fd >= 0 && proc_read(fd, name, &proc) == 0 ? proc.start : 0;
}

static bool proc_is_dead(const struct proc *p)
{
    return p->state == 'Z' || p->state == 'X';
}

static size_t signal_marked(const struct proctab *t, int sig)
{
    size_t alive = 0;

    for (size_t i = 0; i < t->count; i++) {
        if (t->list[i].marked && !proc_is_dead(&t->list[i]) && kill(t->list[i].pid, sig) == 0)
            alive++;
    }
    return alive;
}

/* Without a table (no memory, no descriptors) only the leader's group is known, and never that all
 * are dead. */
static size_t kill_blind(const struct proc_scope *scope)
{
    if (scope->leader)
        kill(-scope->leader, SIGKILL);
    return 1;
}

size_t proctab_kill(const struct proc_scope *scope)
{
    struct proctab t = {};
    size_t alive;

    if (proctab_read(&t) < 0) {
        proctab_done(&t);
        return kill_blind(scope);
    }
    proctab_mark(&t, scope, getpid());
    alive = signal_marked(&t, SIGKILL);
    proctab_done(&t);
    return alive;
}

static void stop_all(const struct proc_scope *scope)
{
    struct proctab t = {};

    if (config.pid1) {
        kill(-1, SIGSTOP);
        return;
    }
    if (proctab_read(&t) == 0) {
        proctab_mark(&t, scope, getpid());
        signal_marked(&t, SIGSTOP);
    }
    proctab_done(&t);
}

/* The kernel among them; a signal that it never notices. */
static void continue_rest(const struct proctab *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (!t->list[i].marked && (config.pid1 || t->list[i].ppid == getpid()))
            kill(t->list[i].pid, SIGCONT);
    }
}

size_t proctab_kill_stopped(const struct proc_scope *scope)
{
    struct proctab t = {};
    size_t alive;

    stop_all(scope);
    if (proctab_read(&t) < 0) {
        proctab_done(&t);
        if (config.pid1)
            kill(-1, SIGCONT);
        return kill_blind(scope);
    }
    proctab_mark(&t, scope, getpid());
    alive = signal_marked(&t, SIGKILL);
    continue_rest(&t);
    proctab_done(&t);
    return alive;
}

size_t proctab_count(void)
{
    struct proctab t = {};
    size_t count = proctab_read(&t) == 0 ? t.count : 0;

    proctab_done(&t);
    return count;
}
