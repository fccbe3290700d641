/* SPDX-License-Identifier: MIT */
/*
 * sandbox-init: pid 1 of a sandbox. One thread, one loop: wait, do what is due, send what is ready.
 * It must outlive everything that it starts, so nothing here exits but for the lease, SHUTDOWN and
 * a start that could not be made safe.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "init/config.h"
#include "init/control.h"
#include "init/ids.h"
#include "init/kernel.h"
#include "init/landlock.h"
#include "init/lease.h"
#include "init/loop.h"
#include "init/memory.h"
#include "init/path.h"
#include "init/process.h"
#include "init/proctab.h"
#include "init/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { EXIT_START = 2, REAP_ROUND = 1024 };

/* Whether children may be left that ended: a round of reaping is bounded, and they tell only once.
 */
static bool children_left;

/* Looks before it takes: the end of a kernel or a run is handled while its pid cannot be reused. */
static void children_reap(void)
{
    for (int i = 0; i < REAP_ROUND; i++) {
        siginfo_t info = {};
        int status;

        children_left = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
        if (!children_left)
            return;
        status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
        runs_reaped(info.si_pid, status);
        waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void signal_ready(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo info;

    (void)!read(w->fd, &info, sizeof(info));
    children_left = true;
}

/* All are blocked, so that pid 1 is never interrupted; only children are told of, by descriptor. */
static int signals_open(struct watch *w, struct error *reterr)
{
    sigset_t all, child;
    int fd;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0 || watch_open(w, fd, EPOLLIN, signal_ready) < 0)
        return error_sys(reterr, errno, "cannot wait for signals");
    return 0;
}

static int descriptors_secure(struct error *reterr)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return error_sys(reterr, errno, "cannot open '/dev/null'");
    }
    for (int fd = CONFIG_FD_LISTEN; fd <= CONFIG_FD_SLOT; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (fd_set_nonblock(CONFIG_FD_LISTEN, true) < 0)
        return error_sys(reterr, errno, "cannot use the control socket");
    return 0;
}

/* The order matters: descriptors before anything is opened, files that Landlock would refuse before
 * it, signals blocked before the first child. */
static int init_start(char **argv, struct watch *signals, struct lease *lease, struct error *reterr)
{
    int r = config_parse(&config, (const char *const *)argv + 1, reterr);

    if (r < 0)
        return r;
    config.pid1 = getpid() == 1;
    umask(022);
    if (!config.pid1)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (descriptors_secure(reterr) < 0 ||
        config_read_filter(&config, CONFIG_FD_SECCOMP, reterr) < 0 || ids_secure_self(reterr) < 0 ||
        process_setup(reterr) < 0 || path_setup(reterr) < 0 ||
        landlock_apply(&config, reterr) < 0 || loop_open(reterr) < 0 ||
        signals_open(signals, reterr) < 0)
        return -(int)reterr->code;
    if (config.filter)
        close(CONFIG_FD_SECCOMP);
    lease_init(lease, config.lease_ms, clock_ms());
    return control_open(CONFIG_FD_LISTEN, lease, reterr);
}

/* As pid 1, its end is the end of everything; elsewhere, in tests, what it started is killed. */
static _Noreturn void init_exit(void)
{
    struct proc_scope all = {};

    if (!config.pid1)
        proctab_kill_stopped(&all);
    exit(0);
}

static void init_round(struct lease *lease)
{
    int64_t now = clock_ms(), next;
    bool more;

    if (children_left)
        children_reap();
    next = MIN(runs_tick(now), control_tick(now));
    more = control_pump() || children_left;
    runs_gate();
    runs_tidy();
    lease_tick(lease, clock_ms(), control_is_held());
    if (control_is_shut_down() || lease_is_over(lease))
        init_exit();
    next = MIN(next, lease_next(lease, control_is_held()));
    next = MIN(next, memory_tick(clock_ms()));
    loop_wait(more ? 0 : clock_poll_ms(next));
}

int main(int argc, char **argv)
{
    struct watch signals;
    struct error err = {};
    struct lease lease;

    if (argc < 1 || init_start(argv, &signals, &lease, &err) < 0) {
        fprintf(stderr, "sandbox-init: %s\n", err.text);
        return EXIT_START;
    }
    for (;;)
        init_round(&lease);
}
