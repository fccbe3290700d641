/* SPDX-License-Identifier: MIT */
/*
 * What this host offers, as far as a start depends on it. Read once by the keeper. In test builds
 * SBX_WITHOUT=NAME[,NAME...] makes a feature absent: seccomp, userns, landlock, netns, cgroup,
 * idmap, subuid, loop, egress.
 */
#pragma once

#include "wire/job.h"

#include <stdbool.h>

struct features {
    bool userns;
    bool seccomp;
    bool netns;
    bool cgroup;
    bool idmap;
    bool overlay_idmap; /* overlayfs takes an id-mapped lower layer: Linux 5.19 */
    bool subuid;
    bool loop;
    bool egress;
    int landlock_abi;
};

void features_read(struct features *ret);

/*
 * Refuses a job that needs what is missing, by name, unless it says JOB_ALLOW_DEGRADED; adds to
 * *degraded what the sandbox goes without.
 */
int features_check(const struct features *features, const struct launch_job *job,
                   uint32_t *degraded, struct error *reterr) must_check;
