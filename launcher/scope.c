/* SPDX-License-Identifier: MIT */
/*
 * The scope is tried with a program that does nothing first: systemd-run that fails after the exec
 * would leave the instance without a keeper.
 */
#include "launcher/scope.h"

#include "base/str.h"
#include "launcher/cgroup.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define SCOPE_MARK "SANDBOX_LAUNCH_SCOPE=1"

enum { SCOPE_WORDS = 24, SCOPE_ENV = 512 };

extern char **environ;

#ifdef SBX_FAILPOINTS
/* A test has another program in its place. */
static const char *systemd_run(void)
{
    const char *path = getenv("SBX_SYSTEMD_RUN");

    return path ? path : "/usr/bin/systemd-run";
}
#else
static const char *systemd_run(void)
{
    return "/usr/bin/systemd-run";
}
#endif

/* Whether this process may not make groups where it is, and a scope could help. */
static bool scope_is_wanted(void)
{
    static struct cgroup_layout layout;

    if (geteuid() == 0 || getenv("SANDBOX_LAUNCH_SCOPE") || access(systemd_run(), X_OK) < 0 ||
        !getenv("XDG_RUNTIME_DIR"))
        return false;
#ifdef SBX_FAILPOINTS
    if (getenv("SBX_SYSTEMD_RUN"))
        return true;
#endif
    if (cgroup_layout_read(&layout, NULL) < 0 || !layout.v2.path[0] ||
        layout.v1[CGROUP_MEMORY].path[0] || layout.v1[CGROUP_PIDS].path[0])
        return false;
    return !cgroup_is_delegated(&layout.v2);
}

static size_t words_make(const char *words[SCOPE_WORDS], char *const argv[])
{
    static const char *const scope[] = {"systemd-run", "--user", "--scope",      "--quiet",
                                        "--collect",   "-p",     "Delegate=yes", "--"};
    size_t count = 0;

    for (; count < ARRAY_LEN(scope); count++)
        words[count] = scope[count];
    for (; *argv && count < SCOPE_WORDS - 1; argv++)
        words[count++] = *argv;
    words[count] = NULL;
    return count;
}

static bool scope_works(void)
{
    const char *words[SCOPE_WORDS];
    char *const nothing[] = {(char *)"/bin/true", NULL};
    struct clone_args args = {.exit_signal = SIGCHLD};
    int status = 0;
    pid_t pid;

    words_make(words, nothing);
    pid = sys_clone3(&args);
    if (pid == 0) {
        (void)close_range(3, ~0u, 0);
        execv(systemd_run(), (char *const *)words);
        _exit(127);
    }
    if (pid < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void scope_enter(char *const argv[])
{
    const char *words[SCOPE_WORDS], *env[SCOPE_ENV];
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    size_t count = 0;

    if (n <= 0 || !scope_is_wanted() || !scope_works())
        return;
    self[n] = 0;
    words_make(words, argv);
    for (size_t i = 0; words[i]; i++) {
        if (words[i] == argv[0])
            words[i] = self;
    }
    env[count++] = SCOPE_MARK;
    for (char **e = environ; *e && count < SCOPE_ENV - 1; e++)
        env[count++] = *e;
    env[count] = NULL;
    execve(systemd_run(), (char *const *)words, (char *const *)env);
}
