/* SPDX-License-Identifier: MIT */
/*
 * Starting a process: own session, ids of the sandbox, no capabilities, seccomp, only the
 * descriptors that are meant for it. Whether it came to exec is told later through a descriptor,
 * because the child runs under the user's uid by then and anybody inside may stop it half way.
 */
#pragma once

#include "base/error.h"
#include "init/ids.h"
#include "wire/fields.h"

#include <stdbool.h>
#include <sys/types.h>

enum { PROCESS_FDS = 4, PROCESS_ARGS_MAX = 2 * 1024 * 1024 };

struct process_spec {
    char **argv;
    char **env;
    char *const *env_fallback; /* borrowed: in place of an empty `env`; NULL */
    char *cwd;
    enum ids_user user;
    int fds[PROCESS_FDS]; /* become 0, 1, 2, 3; -1: none (only the last) */
};

/* argv*, env*, cwd and user of a request. process_spec_done() also after a failure. */
int process_spec_parse(struct process_spec *spec, const struct fields *f,
                       struct error *reterr) must_check;
void process_spec_done(struct process_spec *spec);

/* Opens what processes are started with; before Landlock. */
int process_setup(struct error *reterr) must_check;

/* A descriptor of /dev/null, kept open. */
int process_null_fd(void);

/*
 * A pipe or socketpair that belongs to the process's user, so that /dev/stdout can be opened there.
 * ret[0] is ours and does not block; the child reads or writes ret[1].
 */
int process_pipe_in(const struct process_spec *spec, int ret[2]) must_check;
int process_pipe_out(const struct process_spec *spec, int ret[2]) must_check;
int process_socketpair(const struct process_spec *spec, int ret[2]) must_check;

/* Forks; *ret_status is a descriptor for process_status(). */
int process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_status,
                  struct error *reterr) must_check;

/* How the start went: 1 it runs, 0 not known yet, <0 it failed. */
int process_status(const struct process_spec *spec, int status_fd, struct error *reterr) must_check;

/* Signals a process group, or the process alone while it has not made its group yet. */
void process_signal_group(pid_t pid, int sig);
