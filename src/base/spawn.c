/* SPDX-License-Identifier: MIT */
/*
 * posix_spawn with an explicit list of descriptors. All of ours are close-on-exec, so the child
 * sees what is listed. A descriptor that already has its target number must be moved first, else it
 * would be lost: dup2 onto itself keeps the flag.
 */
#include "base/spawn.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

enum { SPAWN_FD_MAX = 16, SPAWN_FD_HIGH = 64 };

static int actions_add_std(posix_spawn_file_actions_t *actions, const struct spawn_options *o)
{
    for (int fd = 0; fd < 3; fd++) {
        int listed = 0, r = 0;

        for (size_t i = 0; i < o->fd_count; i++)
            listed |= o->fds[i].child == fd;
        if (!listed)
            r = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
        if (r)
            return r;
    }
    return 0;
}

static int attributes_init(posix_spawnattr_t *attr, const struct spawn_options *o)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attr);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    if (o->new_session)
        flags |= POSIX_SPAWN_SETSID;
    return posix_spawnattr_setflags(attr, flags);
}

int spawn_start(const struct spawn_options *o, pid_t *ret, struct error *reterr)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int high[SPAWN_FD_MAX], r;
    size_t moved = 0;

    if (o->fd_count > SPAWN_FD_MAX)
        return error_set(reterr, ERR_INVALID, "too many descriptors for '%s'", o->path);
    posix_spawn_file_actions_init(&actions);
    r = actions_add_std(&actions, o);
    for (; !r && moved < o->fd_count; moved++) {
        high[moved] = fcntl(o->fds[moved].parent, F_DUPFD_CLOEXEC, SPAWN_FD_HIGH);
        if (high[moved] < 0) {
            r = errno;
            break;
        }
        r = posix_spawn_file_actions_adddup2(&actions, high[moved], o->fds[moved].child);
    }
    if (!r)
        r = attributes_init(&attr, o);
    if (!r) {
        r = posix_spawn(ret, o->path, &actions, &attr, o->argv, o->env ? o->env : environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    fd_close_all(high, moved);
    if (r == ENOENT)
        return error_set(reterr, ERR_NOT_FOUND, "program '%s' is not there", o->path);
    return r ? error_sys(reterr, r, "cannot start '%s'", o->path) : 0;
}

int spawn_wait(pid_t pid, int *ret_status, struct error *reterr)
{
    pid_t r;

    do
        r = waitpid(pid, ret_status, 0);
    while (r < 0 && errno == EINTR);
    return r < 0 ? error_sys(reterr, errno, "cannot wait for process %d", (int)pid) : 0;
}
