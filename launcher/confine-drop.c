/* SPDX-License-Identifier: MIT */
/*
 * The last steps before init: limits, descriptors, ids, capabilities, no_new_privs, seccomp, exec.
 * After confine_privileges() this process can do nothing but the exec that it is for.
 */
#include "launcher/confine-internal.h"

#include "base/fd.h"
#include "base/str.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define CAP_BIT(cap) (1ull << (cap))
#define INIT_CAPS (CAP_BIT(CAP_KILL) | CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETGID))

/* Numbers that init finds its descriptors under, then ours that close on exec. */
enum { FD_CONTROL = 3, FD_FILTER, FD_SLOT, FD_OWN_INIT, FD_OWN_SOCK, FD_END, FD_HIGH = 32 };

int confine_limits(struct confine *c, struct error *reterr)
{
    const struct launch_job *job = c->job;
    const uint64_t quota = MAX(job->disk_bytes, MAX(job->tmpfs_bytes, job->home_bytes));
    /*
     * Above the cgroup's limit where there is one: this count falls only some time after a task is
     * gone, so it would refuse first, and nobody would be told why (pids.events).
     */
    const rlim_t tasks = c->degraded & DEGRADED_NO_PIDS_CGROUP ? job->pids : 2ull * job->pids;
    const struct {
        int resource;
        rlim_t soft, hard;
    } limits[] = {
        {RLIMIT_NOFILE, MIN(1024u, job->nofile), job->nofile},
        {RLIMIT_NPROC, tasks, tasks},
        /* 1 is "no dump" also where the core pattern is a pipe, 0 is not. */
        {RLIMIT_CORE, 1, 1},
        {RLIMIT_FSIZE, MAX(4 * GIB, 2 * quota), MAX(4 * GIB, 2 * quota)},
        {RLIMIT_MEMLOCK, 64 * KIB, 64 * KIB},
        {RLIMIT_MSGQUEUE, 0, 0},
        {RLIMIT_SIGPENDING, 1024, 1024},
        {RLIMIT_STACK, 8 * MIB, 64 * MIB},
        {RLIMIT_RTPRIO, 0, 0},
        {RLIMIT_NICE, 0, 0},
        {RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY},
    };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit now, want;

        if (getrlimit((__rlimit_resource_t)limits[i].resource, &now) < 0)
            return error_sys(reterr, errno, "cannot read resource limit %d", limits[i].resource);
        want.rlim_max = MIN(limits[i].hard, now.rlim_max);
        want.rlim_cur = MIN(limits[i].soft, want.rlim_max);
        if (setrlimit((__rlimit_resource_t)limits[i].resource, &want) < 0)
            return error_sys(reterr, errno, "cannot set resource limit %d", limits[i].resource);
    }
    return 0;
}

/* First out of the way, then down to the numbers: no order of the old numbers can collide. */
int confine_descriptors(struct confine *c, struct error *reterr)
{
    auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int *const fds[] = {&c->control_fd, &c->filter_fd, &c->slot_fd, &c->init_fd, &c->sock};

    if (null < 0)
        return error_sys(reterr, errno, "cannot open /dev/null");
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        *fds[i] = fcntl(*fds[i] < 0 ? null : *fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
        if (*fds[i] < 0)
            return error_sys(reterr, errno, "cannot arrange the descriptors");
    }
    for (int i = 0; i < FD_CONTROL; i++) {
        if (sys_fd_place(null, i) < 0)
            return error_sys(reterr, errno, "cannot arrange the descriptors");
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        int want = FD_CONTROL + (int)i, flags = want >= FD_OWN_INIT ? O_CLOEXEC : 0;

        if (dup3(*fds[i], want, flags) < 0)
            return error_sys(reterr, errno, "cannot arrange the descriptors");
        *fds[i] = want;
    }
    null = -1; /* it was overwritten, or is closed now */
    if (close_range(FD_END, ~0u, 0) < 0)
        return error_sys(reterr, errno, "cannot close what was inherited");
    return 0;
}

/* To the ids that own what is mounted; before it, a file made on a fresh tmpfs is EOVERFLOW. */
int confine_identity(struct confine *c, struct error *reterr)
{
    uint32_t id = c->ids->setup;

    if (!c->ids->userns)
        return 0;
    if (!c->ids->one_uid && setgroups(0, NULL) < 0)
        return error_sys(reterr, errno, "cannot drop the supplementary groups");
    if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
        return error_sys(reterr, errno, "cannot take the id %u", id);
    return 0;
}

static int ids_drop(const struct id_plan *ids, struct error *reterr)
{
    uint32_t id = ids->init;

    if (!ids->one_uid && setgroups(0, NULL) < 0)
        return error_sys(reterr, errno, "cannot drop the supplementary groups");
    if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
        return error_sys(reterr, errno, "cannot take the id %u", id);
    return 0;
}

/*
 * Init keeps three capabilities over its exec as ambient ones, whatever its uid is; SECBIT_NOROOT
 * makes uid 0 mean nothing to the kernel, also for user code that runs as `root`.
 */
static int caps_drop(struct error *reterr)
{
    static const unsigned int kept[] = {CAP_KILL, CAP_SETUID, CAP_SETGID};
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    const uint64_t setup = INIT_CAPS | CAP_BIT(CAP_SETPCAP);

    if (sys_capset(setup, setup, INIT_CAPS) < 0)
        return error_sys(reterr, errno, "cannot drop the capabilities");
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0)
            return error_sys(reterr, errno, "cannot keep a capability for init");
    }
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return error_sys(reterr, errno, "cannot empty the bounding set");
    }
    if (prctl(PR_SET_SECUREBITS, bits) < 0 || sys_capset(INIT_CAPS, INIT_CAPS, INIT_CAPS) < 0)
        return error_sys(reterr, errno, "cannot drop the capabilities");
    return 0;
}

int confine_privileges(struct confine *c, struct error *reterr)
{
    int r;

    if ((r = ids_drop(c->ids, reterr)) < 0 || (r = caps_drop(reterr)) < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot set no_new_privs");
    if (!(c->degraded & DEGRADED_NO_SECCOMP) && seccomp_apply(c->filter) < 0)
        return error_sys(reterr, errno, "cannot set the seccomp filter");
    return 0;
}

enum { INIT_WORDS = 40, INIT_TEXT = 24 };

struct init_arguments {
    const char *argv[INIT_WORDS];
    size_t count;
    char text[8][INIT_TEXT];
    size_t texts;
};

static void argument_add(struct init_arguments *a, const char *word)
{
    if (a->count < INIT_WORDS - 1)
        a->argv[a->count++] = word;
}

static void argument_number(struct init_arguments *a, const char *option, uint32_t value)
{
    char *text = a->text[a->texts++];

    snprintf(text, INIT_TEXT, "%u", value);
    argument_add(a, option);
    argument_add(a, text);
}

static void arguments_make(const struct confine *c, struct init_arguments *a)
{
    static const char *const writable[] = {"/tmp", "/workspace", "/home/sandbox", "/dev/shm"};

    argument_add(a, "sandbox-init");
    argument_number(a, "--lease-ms", c->job->lease_ms);
    argument_number(a, "--uid", c->ids->user);
    argument_number(a, "--gid", c->ids->user);
    if (c->ids->as_root) {
        argument_add(a, "--as-root");
        argument_number(a, "--root-uid", c->ids->root);
    }
    if (c->ids->one_uid)
        argument_add(a, "--one-uid");
    if (c->degraded & DEGRADED_NO_MEMORY_CGROUP)
        argument_number(a, "--memory-mib", (uint32_t)MIN(c->job->memory_bytes / MIB, UINT32_MAX));
    if (c->degraded & DEGRADED_NO_LANDLOCK) {
        argument_add(a, "--landlock");
        argument_add(a, "off");
    }
    if (c->degraded & DEGRADED_NO_SECCOMP) {
        argument_add(a, "--seccomp");
        argument_add(a, "off");
    }
    for (size_t i = 0; i < ARRAY_LEN(writable); i++) {
        argument_add(a, "--writable");
        argument_add(a, writable[i]);
    }
    if (c->job->flags & JOB_OVERLAY_ROOT) {
        argument_add(a, "--writable");
        argument_add(a, "/");
    }
    for (uint32_t i = 0; i < c->job->mount_count; i++) {
        if (c->job->mounts[i].writable) {
            argument_add(a, "--writable");
            argument_add(a, c->job->mounts[i].target);
        }
    }
}

int confine_exec(struct confine *c, struct error *reterr)
{
    struct init_arguments arguments = {0};
    char *envp[2] = {NULL, NULL};
#ifdef SBX_FAILPOINTS
    char fail[128];
    const char *armed = getenv("SBX_FAIL");

    if (armed && snprintf(fail, sizeof(fail), "SBX_FAIL=%s", armed) < (int)sizeof(fail))
        envp[0] = fail;
#endif
    arguments_make(c, &arguments);
    execveat(c->init_fd, "", (char *const *)arguments.argv, envp, AT_EMPTY_PATH);
    return error_sys(reterr, errno, "cannot run init");
}
