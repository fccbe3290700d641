/* SPDX-License-Identifier: MIT */
/* Host features: found by looking or trying, never by asking for a distribution's name. */
#include "launcher/host.h"

#include "base/str.h"
#include "launcher/sys.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#ifdef SBX_FAILPOINTS
static bool feature_removed(const char *name)
{
    const char *p = getenv("SBX_WITHOUT");
    size_t len = strlen(name);

    while (p && *p) {
        size_t n = strcspn(p, ",");

        if (n == len && strncmp(p, name, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}
#else
static bool feature_removed(const char *name)
{
    (void)name;
    return false;
}
#endif

/* A child that only ends, in namespaces of its own. */
static bool clone_works(uint64_t flags)
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    pid_t pid = sys_clone3(&args);

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return false;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return true;
}

static bool kernel_since(int64_t major, int64_t minor)
{
    struct utsname name;
    int64_t have[2] = {0, 0};
    const char *p = name.release;

    if (uname(&name) < 0)
        return false;
    for (size_t i = 0; i < 2; i++) {
        while (*p >= '0' && *p <= '9')
            have[i] = have[i] * 10 + (*p++ - '0');
        p += *p == '.';
    }
    return have[0] > major || (have[0] == major && have[1] >= minor);
}

void features_read(struct features *ret)
{
    *ret = (struct features){
        .userns = !feature_removed("userns") && clone_works(CLONE_NEWUSER),
        .seccomp = !feature_removed("seccomp") && prctl(PR_GET_SECCOMP) >= 0,
        .netns = !feature_removed("netns") && access("/proc/self/ns/net", F_OK) == 0,
        .cgroup = !feature_removed("cgroup"),
        .idmap = !feature_removed("idmap"),
        .overlay_idmap = kernel_since(5, 19),
        .subuid = !feature_removed("subuid"),
        .loop = !feature_removed("loop") && access("/dev/loop-control", W_OK) == 0,
        .egress = !feature_removed("egress"),
        .landlock_abi = feature_removed("landlock") ? 0 : sys_landlock_abi(),
    };
}

int features_check(const struct features *features, const struct launch_job *job,
                   uint32_t *degraded, struct error *reterr)
{
    const struct {
        bool missing;
        uint32_t bit;
        const char *name;
    } required[] = {
        {!features->seccomp, DEGRADED_NO_SECCOMP, "seccomp filters"},
        {!features->userns, DEGRADED_NO_USERNS, "user namespaces"},
        {!features->netns, DEGRADED_NO_NETNS, "network namespaces"},
    };

    for (size_t i = 0; i < ARRAY_LEN(required); i++) {
        if (!required[i].missing)
            continue;
        if (!(job->flags & JOB_ALLOW_DEGRADED))
            return error_set(reterr, ERR_UNAVAILABLE,
                             "this host has no %s; see 'sandbox-agent doctor', or start with "
                             "--allow-degraded",
                             required[i].name);
        *degraded |= required[i].bit;
    }
    if (!features->userns && geteuid() != 0)
        return error_set(reterr, ERR_UNAVAILABLE,
                         "this host has no user namespaces for an ordinary user; see "
                         "'sandbox-agent doctor'");
    if (!features->landlock_abi)
        *degraded |= DEGRADED_NO_LANDLOCK;
    return 0;
}
