/* SPDX-License-Identifier: MIT */
/*
 * The keeper: owner of every sandbox of one instance. One thread and one poll loop; whatever takes
 * long is a child (attaching to control groups, builds) or is waited for by the loop.
 */
#pragma once

#include "launcher/cgroup.h"
#include "launcher/host.h"
#include "launcher/ids.h"
#include "launcher/seccomp.h"

#include <signal.h>

struct client;
struct sandbox;
struct build;

struct egress {
    pid_t pid; /* 0: not running */
    int sock;
    int64_t started_ms;
    int64_t respawn_ms; /* not before */
};

struct keeper {
    char dir_path[JOB_PATH]; /* of the instance */
    char name[96];           /* of its control groups: unique on this host */
    const char *agent;       /* the program for KEEPER_BUILD; NULL: none */
    int64_t linger_ms;       /* without a client and a sandbox, until the end */
    int dir_fd, lock_fd, sb_fd, slot_fd, listen_fd, signal_fd;
    int init_fd; /* sealed copy */
    int egress_exe_fd, egress_config_fd;
    int filter_fd; /* seccomp program for init's children */
    struct seccomp_program init_filter;
    struct features features;
    struct id_pool ids;
    struct cgroup_set groups;
    struct egress egress;
    struct sandbox *sandboxes;
    struct client *clients;
    struct build *builds;
    bool stopping;
    int64_t idle_ms; /* since when there is nobody; 0: there is somebody */
    struct poll_set *polls;
};

struct keeper_options {
    const char *agent;
    int64_t linger_ms;
};

/* Runs until nothing is left to do; descriptors as in enum keeper_fd. Returns the exit status. */
int keeper_main(const struct keeper_options *options);

/* Calls `ready` in this round of the loop when `fd` has one of `events`. */
typedef void poll_ready(struct keeper *k, void *object, short revents);
void keeper_watch(struct keeper *k, int fd, short events, poll_ready *ready, void *object);

/* The loop wakes up at this monotonic time at the latest. */
void keeper_wake_at(struct keeper *k, int64_t time_ms);
