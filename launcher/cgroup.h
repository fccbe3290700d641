/* SPDX-License-Identifier: MIT */
/*
 * Control groups of one instance and of its sandboxes, on version 1, 2 or both at once. They lie
 * below the keeper's own group (so that limits on us hold for them too) as
 * sandbox-agent/INSTANCE/ID. On a hybrid host a version 2 directory without controllers is used
 * beside the version 1 ones: it has cgroup.kill and is entered by clone3 for nothing, where each
 * attach on version 1 waits 10 ms for an RCU grace period.
 */
#pragma once

#include "launcher/cgroup-layout.h"

#include <sys/types.h>

struct cgroup_dir {
    char path[JOB_PATH];
    uint8_t version;
    uint8_t controllers; /* 1 << CGROUP_x */
};

enum { CGROUP_DIRS = CGROUP_CONTROLLERS + 1 };

struct cgroup_set {
    struct cgroup_dir dirs[CGROUP_DIRS];
    size_t count;
};

/*
 * Makes the instance's directories. What this process may not use is left out: cgroup_find() then
 * says NULL and the sandbox is degraded.
 */
void cgroup_base_open(const struct cgroup_layout *layout, const char *instance,
                      struct cgroup_set *ret);

/* Leaves out the version 2 directory where no process can be started in it. */
void cgroup_base_try(struct cgroup_set *base);

/* A version 2 group that is ours to change, with nobody else in it. */
bool cgroup_is_delegated(const struct cgroup_place *own);

void cgroup_base_close(const struct cgroup_set *base);

/* The directory with a controller; NULL: none. */
const struct cgroup_dir *cgroup_find(const struct cgroup_set *set, enum cgroup_controller c);

/* A sandbox's directories below the base; on failure *ret still names what was made. */
int cgroup_create(const struct cgroup_set *base, const char *id, struct cgroup_set *ret,
                  struct error *reterr) must_check;
int cgroup_limit(const struct cgroup_set *set, const struct launch_job *job,
                 struct error *reterr) must_check;

/* The version 2 directory for CLONE_INTO_CGROUP; -1: none. */
int cgroup_clone_fd(const struct cgroup_set *set);

/* Moves a process into the version 1 directories; waits for the kernel, so call it in a child. */
int cgroup_attach(const struct cgroup_set *set, pid_t pid, struct error *reterr) must_check;

/* Kills all that is inside; true when nothing is. To be repeated until true. */
bool cgroup_kill(const struct cgroup_set *set);

/* Removes the directories; -1 while one of them is busy. */
int cgroup_remove(const struct cgroup_set *set);

/* Becomes ready (poll `*ret_events`) when the memory limit was hit; -1 where nothing can tell. */
int cgroup_oom_open(const struct cgroup_set *set, short *ret_events);

/* How many processes the limit has killed so far. */
uint64_t cgroup_oom_count(const struct cgroup_set *set);

/* The files that tell use and events, for the daemon. */
void cgroup_event_paths(const struct cgroup_set *set, struct keeper_event *event);
