/* SPDX-License-Identifier: MIT */
/* Starting programs. The daemon has threads, so nothing here forks: posix_spawn only, argv vectors
 * only. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct spawn_fd {
    int parent; /* descriptor here */
    int child;  /* its number there */
};

struct spawn_options {
    size_t size; /* sizeof(struct spawn_options) */
    const char *path;
    char *const *argv;
    char *const *env; /* NULL: our own environment */
    const struct spawn_fd *fds;
    size_t fd_count;
    int new_session; /* setsid() in the child */
};

/*
 * Starts a program with only the listed descriptors (0-2 come from /dev/null unless listed). `ret`
 * is its pid; the caller waits for it. ERR_NOT_FOUND when there is no such program.
 */
int spawn_start(const struct spawn_options *options, pid_t *ret, struct error *reterr) must_check;

/* Waits for the end; the raw wait status. */
int spawn_wait(pid_t pid, int *ret_status, struct error *reterr) must_check;
