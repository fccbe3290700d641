/* SPDX-License-Identifier: MIT */
/*
 * Egress is another program with another uid: slot 0's first id as root, the caller's rootless
 * (degraded). It gets nothing but its control socket, its configuration and an empty environment.
 */
#include "launcher/egress-child.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/slot.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { RESPAWN_MS = 1000, CHILD_HIGH = 64 };

static int egress_identity(const struct keeper *k)
{
    if (!k->ids.root)
        return 0;
    return setgroups(0, NULL) < 0 || setresgid(SLOT_BASE, SLOT_BASE, SLOT_BASE) < 0 ||
                   setresuid(SLOT_BASE, SLOT_BASE, SLOT_BASE) < 0
               ? -1
               : 0;
}

static _Noreturn void egress_exec(const struct keeper *k, int sock)
{
    char *const argv[] = {(char *)"sandbox-egress", NULL};
    char *const envp[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    int exe = fcntl(k->egress_exe_fd, F_DUPFD_CLOEXEC, CHILD_HIGH);
    int control = fcntl(sock, F_DUPFD_CLOEXEC, CHILD_HIGH);
    int config = fcntl(k->egress_config_fd, F_DUPFD_CLOEXEC, CHILD_HIGH);
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (exe < 0 || sys_fd_place(control, EGRESS_FD_CONTROL) < 0 ||
        sys_fd_place(config, EGRESS_FD_CONFIG) < 0 || egress_identity(k) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
        close_range(EGRESS_FD_CONFIG + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        _exit(126);
    execveat(exe, "", argv, envp, AT_EMPTY_PATH);
    _exit(127);
}

static int egress_spawn(struct keeper *k, struct error *reterr)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    int pair[2];
    pid_t pid;

    if (k->egress_exe_fd < 0)
        return error_set(reterr, ERR_UNAVAILABLE, "this installation has no sandbox-egress");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(reterr, errno, "cannot make the socket of egress");
    pid = sys_clone3(&args);
    if (pid == 0)
        egress_exec(k, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_sys(reterr, errno, "cannot start egress");
    }
    k->egress = (struct egress){.pid = pid, .sock = pair[0], .started_ms = clock_ms()};
    return 0;
}

static void message_init(struct egress_msg *msg, enum egress_op op, const struct sandbox *s)
{
    *msg = (struct egress_msg){.magic = EGRESS_MAGIC, .op = op};
    memcpy(msg->id, s->id, sizeof(msg->id));
}

/* An install network reaches what `public` does, for as long as it is there. */
static int listeners_send(struct keeper *k, struct sandbox *s)
{
    struct egress_msg msg;

    message_init(&msg, EGRESS_ADD, s);
    msg.network = s->job->network == JOB_NETWORK_NONE ? JOB_NETWORK_PUBLIC : s->job->network;
    msg.port_count = s->job->port_count;
    memcpy(msg.ports, s->job->ports, sizeof(msg.ports));
    return fd_send(k->egress.sock, &msg, sizeof(msg), s->listeners, s->listener_count);
}

int egress_add(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    int r;

    if (!k->egress.pid && clock_ms() >= k->egress.respawn_ms && (r = egress_spawn(k, reterr)) < 0)
        return r;
    s->egress = EGRESS_ADDED;
    /* While it is between two lives, the next one gets all listeners. */
    if (k->egress.pid && listeners_send(k, s) < 0 && errno != EPIPE && errno != ECONNRESET)
        return error_sys(reterr, errno, "cannot hand the listeners to egress");
    return 0;
}

void egress_remove(struct keeper *k, struct sandbox *s)
{
    struct egress_msg msg;

    message_init(&msg, EGRESS_REMOVE, s);
    s->egress = EGRESS_REMOVING;
    if (!k->egress.pid || fd_send(k->egress.sock, &msg, sizeof(msg), NULL, 0) < 0)
        s->egress = EGRESS_NONE;
}

static void egress_gone(struct keeper *k, struct sandbox *s)
{
    if (s->egress != EGRESS_REMOVING)
        return;
    s->egress = EGRESS_NONE;
    sandbox_sealed(k, s);
}

static void egress_ready(struct keeper *k, void *object, short revents)
{
    struct egress_msg msg;
    ssize_t n;

    (void)object;
    (void)revents;
    if (k->egress.sock < 0)
        return;
    n = fd_recv(k->egress.sock, &msg, sizeof(msg), NULL, NULL);
    if (n > 0 && egress_msg_check(&msg, (size_t)n, NULL) == 0 && msg.op == EGRESS_GONE) {
        struct sandbox *s = sandbox_find(k, msg.id);

        if (s)
            egress_gone(k, s);
    } else if (n < 0 && errno == EAGAIN) {
        return;
    } else if (k->egress.pid) {
        /* It ends or does not keep the protocol: it is started afresh when it is reaped. */
        (void)kill(k->egress.pid, SIGKILL);
        close(TAKE_FD(k->egress.sock));
    }
}

/* Its copies of the listeners are gone with it; those that still want them get the next one. */
bool egress_reaped(struct keeper *k, pid_t pid)
{
    if (!k->egress.pid || k->egress.pid != pid)
        return false;
    if (k->egress.sock >= 0)
        close(k->egress.sock);
    k->egress = (struct egress){.sock = -1,
                                .respawn_ms = clock_ms() - k->egress.started_ms < RESPAWN_MS
                                                  ? clock_deadline(RESPAWN_MS)
                                                  : 0};
    for (struct sandbox *s = k->sandboxes; s; s = s->next)
        egress_gone(k, s);
    return true;
}

static void egress_revive(struct keeper *k)
{
    bool wanted = false;

    for (struct sandbox *s = k->sandboxes; s; s = s->next)
        wanted |= s->egress == EGRESS_ADDED;
    if (!wanted)
        return;
    if (clock_ms() < k->egress.respawn_ms) {
        keeper_wake_at(k, k->egress.respawn_ms);
        return;
    }
    if (egress_spawn(k, NULL) < 0) {
        k->egress.respawn_ms = clock_deadline(RESPAWN_MS);
        keeper_wake_at(k, k->egress.respawn_ms);
        return;
    }
    for (struct sandbox *s = k->sandboxes; s; s = s->next) {
        if (s->egress == EGRESS_ADDED)
            (void)!listeners_send(k, s);
    }
}

void egress_watch(struct keeper *k)
{
    if (!k->egress.pid)
        egress_revive(k);
    if (k->egress.pid && k->egress.sock >= 0)
        keeper_watch(k, k->egress.sock, POLLIN, egress_ready, NULL);
}

void egress_close(struct keeper *k)
{
    if (k->egress.sock >= 0)
        close(TAKE_FD(k->egress.sock));
    if (!k->egress.pid)
        return;
    (void)kill(k->egress.pid, SIGKILL);
    while (waitpid(k->egress.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
