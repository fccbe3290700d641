/* SPDX-License-Identifier: MIT */
/* Image builds: `AGENT image build RUNTIME`, in a process group of its own so that all of it ends.
 */
#include "launcher/build.h"

#include "base/fd.h"
#include "base/str.h"
#include "launcher/client.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

struct build {
    struct build *next;
    pid_t pid;
    char id[BUILD_ID];
};

static _Noreturn void build_exec(const struct keeper *k, const char *runtime, int out_fd)
{
    char *const argv[] = {(char *)"sandbox-agent", (char *)"image", (char *)"build",
                          (char *)runtime, NULL};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (null < 0 || setpgid(0, 0) < 0 || sys_fd_place(out_fd, 1) < 0 ||
        sys_fd_place(out_fd, 2) < 0 || sys_fd_place(null, 0) < 0 ||
        close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        _exit(126);
    execve(k->agent, argv, environ);
    _exit(127);
}

int build_start(struct keeper *k, const char *runtime, int out_fd, char ret_id[BUILD_ID],
                struct error *reterr)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    auto_free struct build *build = calloc(1, sizeof(*build));

    if (!build)
        return error_no_memory(reterr);
    if (!k->agent)
        return error_set(reterr, ERR_UNAVAILABLE, "this keeper does not know the build program");
    if (!str_check_chars(runtime, "abcdefghijklmnopqrstuvwxyz0123456789-", 16) || runtime[0] == '-')
        return error_set(reterr, ERR_INVALID, "'%s' is not the name of a runtime", runtime);
    build->pid = sys_clone3(&args);
    if (build->pid == 0)
        build_exec(k, runtime, out_fd);
    if (build->pid < 0)
        return error_sys(reterr, errno, "cannot start the image build");
    snprintf(build->id, sizeof(build->id), "build-%d", (int)build->pid);
    memcpy(ret_id, build->id, BUILD_ID);
    build->next = k->builds;
    k->builds = TAKE_PTR(build);
    return 0;
}

static void build_tell(struct keeper *k, const struct build *build, const siginfo_t *info)
{
    bool ok = info->si_code == CLD_EXITED && info->si_status == 0;
    struct keeper_event event = client_event(ok ? KEEPER_DONE : KEEPER_FAILED, "");
    struct error err;

    if (!ok) {
        error_set(&err, ERR_UNAVAILABLE, "the image build ended with %s %d",
                  info->si_code == CLD_EXITED ? "exit status" : "signal", info->si_status);
        client_event_error(&event, &err);
    }
    clients_answer(k, KEEPER_BUILD, build->id, &event);
}

bool build_reaped(struct keeper *k, pid_t pid, const siginfo_t *info)
{
    for (struct build **at = &k->builds, *build; (build = *at); at = &build->next) {
        if (build->pid != pid)
            continue;
        build_tell(k, build, info);
        *at = build->next;
        free(build);
        return true;
    }
    return false;
}

void builds_stop(struct keeper *k)
{
    for (struct build *build = k->builds; build; build = build->next)
        (void)kill(-build->pid, SIGTERM);
}
