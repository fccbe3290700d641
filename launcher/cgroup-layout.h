/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel's own tables say that this process's control groups are. Each controller is
 * looked up by itself, because a hybrid host has some on version 1 and some on version 2; nothing
 * is guessed from path names.
 */
#pragma once

#include "wire/job.h"

#include <stddef.h>

enum cgroup_controller {
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_CPU,
    CGROUP_FREEZER, /* version 1 only */
    CGROUP_CONTROLLERS,
};

const char *cgroup_controller_name(enum cgroup_controller controller);

struct cgroup_place {
    char path[JOB_PATH];  /* directory of our own group; empty: not there */
    char mount[JOB_PATH]; /* mount point, the highest directory above it */
};

struct cgroup_layout {
    struct cgroup_place v1[CGROUP_CONTROLLERS];
    struct cgroup_place v2; /* one for all controllers that are not on version 1 */
};

/* From the texts of /proc/self/mountinfo and /proc/self/cgroup. What does not parse is skipped. */
void cgroup_layout_parse(const char *mountinfo, const char *groups, struct cgroup_layout *ret);

int cgroup_layout_read(struct cgroup_layout *ret, struct error *reterr) must_check;

/* The words of `list` (separated by space, comma or newline) contain `word`. */
bool cgroup_list_has(const char *list, const char *word);
