/* SPDX-License-Identifier: MIT */
/*
 * The phases of confinement as a table, and the talk with the parent at its two stops: before
 * anything, until the ids are mapped; and before the end, until the control groups are entered,
 * which takes the kernel long on version 1 and so happens beside the mounts.
 */
#include "launcher/confine.h"

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/signals.h"
#include "base/str.h"
#include "launcher/confine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

int confine_failpoint(const char *name)
{
#ifdef SBX_FAILPOINTS
    const char *armed = getenv("SBX_FAIL");

    if (armed && str_starts(armed, name) && !strchr(armed, '=') &&
        (armed[strlen(name)] == ':' || !armed[strlen(name)]))
        _exit(137);
#endif
    return failpoint(name);
}

static int order_wait(struct confine *c, uint32_t order, int *fds, size_t *fd_count,
                      struct launch_go *ret, struct error *reterr)
{
    ssize_t n = fd_recv(c->sock, ret, sizeof(*ret), fds, fd_count);

    if (n != (ssize_t)sizeof(*ret) || ret->order != order)
        return error_set(reterr, ERR_CANCELLED, "the launcher gave up");
    return 0;
}

static int phase_mapped(struct confine *c, struct error *reterr)
{
    int fds[JOB_MOUNTS + 2];
    size_t count = ARRAY_LEN(fds), next = 0;
    struct launch_go go;
    int r = order_wait(c, LAUNCH_MAPPED, fds, &count, &go, reterr);

    if (r < 0)
        return r;
    if (count != (go.has_root != 0) + (go.has_disk != 0) + go.mount_count) {
        fd_close_all(fds, count);
        return error_set(reterr, ERR_INTERNAL, "descriptors of the launch got lost");
    }
    c->degraded = go.degraded;
    c->image_fd = go.has_root ? fds[next++] : -1;
    c->disk_fd = go.has_disk ? fds[next++] : -1;
    for (uint32_t i = 0; i < JOB_MOUNTS; i++)
        c->mount_fds[i] = i < go.mount_count ? fds[next++] : -1;
    return 0;
}

static int phase_propagation(struct confine *c, struct error *reterr)
{
    (void)c;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_sys(reterr, errno, "cannot make the mounts private");
    return 0;
}

static int phase_hostname(struct confine *c, struct error *reterr)
{
    const char *name = c->job->hostname[0] ? c->job->hostname : "sandbox";

    if (sethostname(name, strlen(name)) < 0 || setdomainname("", 0) < 0)
        return error_sys(reterr, errno, "cannot set the host name");
    return 0;
}

/* The namespace's root is the group that this process is in when it makes the namespace. */
static int phase_attached(struct confine *c, struct error *reterr)
{
    struct launch_go go;
    size_t none = 0;
    int r = order_wait(c, LAUNCH_ATTACHED, NULL, &none, &go, reterr);

    if (r < 0)
        return r;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return error_sys(reterr, errno, "cannot make a cgroup namespace");
    return 0;
}

static int phase_ready(struct confine *c, struct error *reterr)
{
    const struct launch_report report = {.step = LAUNCH_READY, .degraded = c->degraded};

    /* A file mode mask of the launcher's shell is none of the sandbox's business. */
    umask(022);
    if (setsid() < 0 && errno != EPERM)
        return error_sys(reterr, errno, "cannot start a session");
    if (fd_send(c->sock, &report, sizeof(report), NULL, 0) < 0)
        return error_sys(reterr, errno, "cannot report to the launcher");
    return 0;
}

static int (*const phases[])(struct confine *c, struct error *reterr) = {
    phase_mapped,   phase_propagation, confine_root,       confine_dev,      confine_proc,
    confine_masks,  confine_writable,  confine_etc,        confine_dev_seal, confine_extra_mounts,
    confine_pivot,  phase_hostname,    confine_network,    phase_attached,   confine_descriptors,
    confine_limits, phase_ready,       confine_privileges, confine_exec,
};

static void failure_report(const struct confine *c, const struct error *err)
{
    struct launch_report report = {
        .step = LAUNCH_FAILED, .code = (int32_t)err->code, .sys = err->sys};

    memcpy(report.text, err->text, sizeof(report.text));
    (void)!fd_send(c->sock, &report, sizeof(report), NULL, 0);
}

void confine_run(struct confine *c)
{
    struct error err = {0};

    (void)signals_default();
    /* Everything the parent has is ours until confine_descriptors(), but nobody runs inside yet. */
    umask(0);
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        if (phases[i](c, &err) < 0)
            break;
    }
    failure_report(c, &err);
    _exit(1);
}
