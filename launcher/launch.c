/* SPDX-License-Identifier: MIT */
/*
 * The start of a sandbox, the parent's half. Order matters for a killed keeper: what is made is in
 * the record before the process that uses it goes on.
 */
#include "launcher/sandbox.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/client.h"
#include "launcher/confine.h"
#include "launcher/disk.h"
#include "launcher/egress-child.h"
#include "launcher/record.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { START_MS = 20000, CONTROL_BACKLOG = 64 };

static int step_directory(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    if (mkdirat(k->sb_fd, s->id, 0700) < 0)
        return error_sys(reterr, errno, "cannot make the run directory of the sandbox");
    s->dir_fd = openat(k->sb_fd, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (s->dir_fd < 0)
        return error_sys(reterr, errno, "cannot open the run directory of the sandbox");
    return 0;
}

static int step_slot(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    int r = slot_open(k->slot_fd, k->ids.slots, &s->slot, reterr);

    if (r < 0)
        return r;
    id_plan_make(&k->ids, s->slot.number, s->job->flags & JOB_AS_ROOT, k->features.userns, &s->ids);
    if (s->ids.one_uid)
        s->degraded |= DEGRADED_ONE_UID;
    return 0;
}

static int step_groups(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    const struct {
        enum cgroup_controller controller;
        uint32_t bit;
        bool wanted;
    } controllers[] = {
        {CGROUP_MEMORY, DEGRADED_NO_MEMORY_CGROUP, true},
        {CGROUP_PIDS, DEGRADED_NO_PIDS_CGROUP, true},
        {CGROUP_CPU, DEGRADED_NO_CPU_CGROUP, s->job->cpu_quota_us != 0},
    };
    int r;

    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        if (controllers[i].wanted && !cgroup_find(&k->groups, controllers[i].controller))
            s->degraded |= controllers[i].bit;
    }
    if ((r = cgroup_create(&k->groups, s->id, &s->groups, reterr)) < 0)
        return r;
    if ((r = cgroup_limit(&s->groups, s->job, reterr)) < 0)
        return r;
    s->oom_fd = cgroup_oom_open(&s->groups, &s->oom_events);
    return 0;
}

/* By way of /proc, because a socket's path has room for 107 bytes only. */
static int step_socket(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)k;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", s->dir_fd);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        fchmodat(s->dir_fd, "control", 0600, 0) < 0 || listen(fd, CONTROL_BACKLOG) < 0)
        return error_sys(reterr, errno, "cannot make the control socket");
    s->control_fd = TAKE_FD(fd);
    return 0;
}

static int record_now(struct sandbox *s, struct error *reterr)
{
    const struct record record = {.pid = s->pid,
                                  .start_time = s->pid ? sys_start_time(s->pid) : 0,
                                  .slot = s->slot.number,
                                  .loop = s->loop,
                                  .groups = s->groups};

    return record_write(s->dir_fd, &record, s->job, reterr);
}

static int step_record(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    (void)k;
    return record_now(s, reterr);
}

static int step_disk(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    char path[JOB_PATH + JOB_ID + 8];
    uint32_t owner = s->ids.ranges[0].uid;
    int r;

    if (!s->job->disk_bytes)
        return 0;
    if (!k->ids.root || !k->features.loop) {
        s->degraded |= DEGRADED_NO_QUOTA;
        return 0;
    }
    snprintf(path, sizeof(path), "%s/sb/%s", k->dir_path, s->id);
    s->disk_fd = disk_open(s->dir_fd, path, s->job->disk_bytes, owner, &s->loop, reterr);
    if ((r = record_now(s, NULL)) < 0 && s->disk_fd >= 0)
        return error_set(reterr, ERR_DISK, "cannot write the record of the sandbox");
    return s->disk_fd < 0 ? s->disk_fd : r;
}

/* A descriptor of its own: init reads from where the offset is, which a copy would share. */
static int filter_open(const struct keeper *k)
{
    char path[64];

    if (!k->features.seccomp)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", k->filter_fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static _Noreturn void child_run(struct keeper *k, struct sandbox *s, int sock, int filter)
{
    struct confine confine = {.job = s->job,
                              .features = &k->features,
                              .ids = &s->ids,
                              .filter = &k->init_filter,
                              .sock = sock,
                              .control_fd = s->control_fd,
                              .filter_fd = filter,
                              .slot_fd = s->slot.fd,
                              .init_fd = k->init_fd,
                              .anchor_fd = -1,
                              .stage_fd = -1,
                              .root_fd = -1};

    confine_run(&confine);
}

static int step_clone(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    auto_fd int group = cgroup_clone_fd(&s->groups), filter = filter_open(k);
    int pair[2], r = failpoint("clone");
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                 (s->ids.userns ? CLONE_NEWUSER : 0) | (k->features.netns ? CLONE_NEWNET : 0) |
                 (group >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)&s->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = group >= 0 ? (uint64_t)group : 0,
    };
    pid_t pid;

    if (r < 0)
        return error_sys(reterr, -r, "cannot start a process in new namespaces");
    if (k->features.seccomp && filter < 0)
        return error_sys(reterr, errno, "cannot open the seccomp program");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(reterr, errno, "cannot make the launch socket");
    pid = sys_clone3(&args);
    if (pid == 0) {
        /* Our copy of the parent's end would keep its death from us. */
        close(pair[0]);
        child_run(k, s, pair[1], filter);
    }
    r = errno;
    close(pair[1]);
    s->launch_fd = pair[0];
    if (pid < 0)
        return error_sys(reterr, r, "cannot start a process in new namespaces");
    s->pid = pid;
    s->control_fd = (close(s->control_fd), -1);
    return record_now(s, reterr);
}

static int proc_open(pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int step_maps(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    char path[64];
    int r;

    (void)k;
    /* A host in need takes sandboxes first, and of them user code, which init raises to 1000. */
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)s->pid);
    if (sys_write_text(AT_FDCWD, path, "900") < 0)
        return error_sys(reterr, errno, "cannot set the OOM score of the sandbox");
    if (s->ids.userns && (r = id_plan_apply(&s->ids, s->pid, reterr)) < 0)
        return r;
    /* Now, because init is not dumpable and its /proc files are closed to a rootless keeper. */
    s->userns_fd = s->ids.userns ? proc_open(s->pid, "ns/user") : -1;
    s->netns_fd = k->features.netns ? proc_open(s->pid, "ns/net") : -1;
    if ((s->ids.userns && s->userns_fd < 0) || (k->features.netns && s->netns_fd < 0))
        return error_sys(reterr, errno, "cannot open the namespaces of the sandbox");
    return 0;
}

/* Where owners cannot be shifted, the image's files belong to nobody inside, and can be read. */
static int image_open(struct keeper *k, struct sandbox *s)
{
    bool shift = s->ids.userns && k->features.idmap &&
                 (k->features.overlay_idmap || !confine_overlays(&k->features, &s->ids, s->job));
    int fd = shift ? confine_image_open(s->job->rootfs, s->userns_fd) : -1;

    if (fd >= 0 || (shift && errno != EINVAL && errno != EOPNOTSUPP))
        return fd;
    s->degraded |= DEGRADED_NO_IDMAP;
    return confine_image_open(s->job->rootfs, -1);
}

/* A privileged keeper makes the mounts, as only it may see their sources. */
static int mounts_open(struct keeper *k, struct sandbox *s, int *fds, size_t *ret_count,
                       struct error *reterr)
{
    fds[0] = image_open(k, s);
    if (fds[0] < 0)
        return error_sys(reterr, errno, "cannot mount the image '%s'", s->job->rootfs);
    *ret_count = 1;
    if (s->disk_fd >= 0)
        fds[(*ret_count)++] = TAKE_FD(s->disk_fd);
    for (uint32_t i = 0; i < s->job->mount_count; i++) {
        int fd = confine_mount_open(&s->job->mounts[i]);

        if (fd < 0)
            return error_sys(reterr, errno, "cannot mount '%s'", s->job->mounts[i].source);
        fds[(*ret_count)++] = fd;
    }
    return 0;
}

static int step_go(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    struct launch_go go = {.order = LAUNCH_MAPPED, .has_disk = s->disk_fd >= 0};
    int fds[JOB_MOUNTS + 2];
    size_t count = 0;
    int r = 0;

    if (k->ids.root) {
        go.has_root = 1;
        go.mount_count = s->job->mount_count;
        r = mounts_open(k, s, fds, &count, reterr);
    }
    go.degraded = s->degraded;
    if (r == 0 && fd_send(s->launch_fd, &go, sizeof(go), fds, count) < 0)
        r = error_sys(reterr, errno, "cannot talk to the launched process");
    fd_close_all(fds, count);
    return r;
}

/* Entering version 1 groups waits for the kernel, so a child does it while the mounts are made. */
static int step_attach(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    bool needed = false;
    pid_t pid;

    (void)k;
    for (size_t i = 0; i < s->groups.count; i++)
        needed |= s->groups.dirs[i].version == 1;
    s->attached = !needed;
    if (!needed)
        return 0;
    pid = sys_clone3(&args);
    if (pid == 0)
        _exit(cgroup_attach(&s->groups, s->pid, NULL) < 0 ? 1 : 0);
    if (pid < 0)
        return error_sys(reterr, errno, "cannot start a helper");
    s->attacher = pid;
    return 0;
}

/* The second order, when the first is out and the groups are entered. */
static int attached_send(struct sandbox *s, struct error *reterr)
{
    const struct launch_go go = {.order = LAUNCH_ATTACHED};

    if (!s->mapped || !s->attached)
        return 0;
    /* One that has ended already has said why; launch_ready() will read it. */
    if (fd_send(s->launch_fd, &go, sizeof(go), NULL, 0) < 0 && errno != EPIPE)
        return error_sys(reterr, errno, "cannot talk to the launched process");
    return 0;
}

static int step_orders(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    (void)k;
    s->mapped = true;
    return attached_send(s, reterr);
}

static int (*const steps[])(struct keeper *k, struct sandbox *s, struct error *reterr) = {
    step_directory, step_slot,   step_groups, step_socket, step_record, step_disk,
    step_clone,     step_attach, step_maps,   step_go,     step_orders,
};

int launch_start(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    int r = features_check(&k->features, s->job, &s->degraded, reterr);

    s->deadline_ms = clock_deadline(START_MS);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++)
        r = steps[i](k, s, reterr);
    return r;
}

void launch_attached(struct sandbox *s, bool ok)
{
    struct error err;

    s->attacher = 0;
    s->attached = ok;
    if (s->state != SANDBOX_STARTING)
        return;
    if (!ok)
        error_set(&err, ERR_SYSTEM, "cannot enter the control groups of the sandbox");
    if (!ok || attached_send(s, &err) < 0)
        sandbox_fail(s, &err);
}

static void launch_done(struct keeper *k, struct sandbox *s)
{
    struct keeper_event event;

    (void)failpoint("init-ready");
    close(TAKE_FD(s->launch_fd));
    if (!s->listener_count) {
        close(TAKE_FD(s->userns_fd));
        close(TAKE_FD(s->netns_fd));
    }
    s->state = SANDBOX_RUNNING;
    event = sandbox_event(s, KEEPER_OPENED);
    clients_answer(k, KEEPER_OPEN, s->id, &event);
}

static void launch_listeners(struct keeper *k, struct sandbox *s, const int *fds, size_t count)
{
    struct error err;

    if (s->listeners_in || count != s->job->port_count + 1) {
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
        error_set(&err, ERR_INTERNAL, "the listeners of the sandbox got lost");
        sandbox_fail(s, &err);
        return;
    }
    s->listeners_in = true;
    memcpy(s->listeners, fds, count * sizeof(*fds));
    s->listener_count = count;
    if (egress_add(k, s, &err) < 0)
        sandbox_fail(s, &err);
}

static void launch_report_take(struct sandbox *s, struct launch_report *report)
{
    struct error err = {.code = (enum error_code)report->code, .sys = report->sys};

    report->text[sizeof(report->text) - 1] = 0;
    memcpy(err.text, report->text, sizeof(err.text));
    if (report->step == LAUNCH_READY) {
        s->ready = true;
        return;
    }
    if (report->code <= ERR_OK || report->code >= ERR_CODE_COUNT)
        err.code = ERR_INTERNAL;
    sandbox_fail(s, &err);
}

/* The socket closes on the exec of init, or with the process. */
static void launch_ready(struct keeper *k, void *object, short revents)
{
    struct sandbox *s = object;
    struct launch_report report = {0};
    int fds[JOB_PORTS + 1];
    size_t count = ARRAY_LEN(fds);
    ssize_t n;
    struct error err;

    (void)revents;
    if (s->state != SANDBOX_STARTING)
        return;
    n = fd_recv(s->launch_fd, &report, sizeof(report), fds, &count);
    /* It ended with an order of ours unread; what it said before is still there to be read. */
    if (n < 0 && errno == ECONNRESET)
        return;
    if (n == (ssize_t)sizeof(report) && report.step == LAUNCH_LISTENERS) {
        launch_listeners(k, s, fds, count);
        return;
    }
    if (n > 0)
        fd_close_all(fds, count);
    if (n == (ssize_t)sizeof(report)) {
        launch_report_take(s, &report);
    } else if (n == 0 && s->ready) {
        launch_done(k, s);
    } else {
        error_set(&err, ERR_SYSTEM, "the sandbox's first process ended during its start");
        sandbox_fail(s, &err);
    }
}

void launch_watch(struct keeper *k, struct sandbox *s)
{
    struct error err;

    if (clock_ms() >= s->deadline_ms) {
        error_set(&err, ERR_TIMEOUT, "the sandbox did not start within %d seconds",
                  START_MS / 1000);
        sandbox_fail(s, &err);
        return;
    }
    keeper_wake_at(k, s->deadline_ms);
    keeper_watch(k, s->launch_fd, POLLIN, launch_ready, s);
}
