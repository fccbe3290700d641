/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox holds on this host, in a file of its run directory, so that the next keeper of the
 * instance can end and remove what a killed one left. Text lines; a torn file is read as far as it
 * goes.
 */
#pragma once

#include "launcher/cgroup.h"

#include <stdint.h>
#include <sys/types.h>

#define RECORD_FILE "record"

struct record {
    pid_t pid; /* init's; 0: it was not started yet */
    uint64_t start_time;
    uint32_t slot;
    int32_t loop; /* number of the loop device, -1: none */
    struct cgroup_set groups;
};

/* Writes the lines below, and for people owner, limits and time of the job. */
int record_write(int dirfd, const struct record *record, const struct launch_job *job,
                 struct error *reterr) must_check;

void record_parse(const char *text, const char *boot_id, struct record *ret);

/*
 * Ends and removes every sandbox below `sb_fd`. Called by a keeper that holds the instance's lock
 * and has no sandbox yet. A process is signalled only when its start time is the recorded one.
 */
void record_clean_all(int sb_fd, const struct cgroup_set *base);
