/* SPDX-License-Identifier: MIT */
/*
 * One sandbox from its job to its last trace. It is started in steps (launch.c), of which each may
 * fail; its end (sandbox.c) undoes whatever of them was done, so there is one way out.
 */
#pragma once

#include "launcher/keeper.h"
#include "launcher/slot.h"

enum sandbox_state {
    SANDBOX_STARTING,
    SANDBOX_RUNNING,
    SANDBOX_ENDING,
    SANDBOX_GONE, /* to be freed at the end of the round */
};

enum egress_state {
    EGRESS_NONE, /* egress knows nothing of it */
    EGRESS_ADDED,
    EGRESS_REMOVING, /* EGRESS_GONE is waited for */
};

struct sandbox {
    struct sandbox *next;
    char id[JOB_ID + 1];
    enum sandbox_state state;
    struct launch_job *job;
    int job_fd;
    struct id_plan ids;
    struct slot slot;
    struct cgroup_set groups;
    int dir_fd; /* run directory; -1: not made */
    int control_fd;
    int disk_fd, loop;
    pid_t pid; /* init; 0: none or reaped */
    int pidfd;
    pid_t attacher;
    int launch_fd; /* our end while it starts */
    int64_t deadline_ms;
    bool mapped, attached; /* the two orders of the launch: sent; may be sent */
    bool listeners_in, ready;
    int listeners[JOB_PORTS + 1];
    size_t listener_count;
    int userns_fd, netns_fd; /* for the end of an install network */
    enum egress_state egress;
    int64_t egress_deadline_ms;
    bool sealing;
    int oom_fd;
    short oom_events;
    uint32_t degraded;
    bool failed; /* the start failed; `err` says why */
    struct error err;
    bool closing; /* somebody asked for its end */
    bool oom;
    bool exited;
    int exit_status; /* as waitid() gives them */
    int exit_code;
    bool killed; /* SIGKILL was sent */
};

/* launch.c: the steps before the loop takes over. On failure the sandbox is to be ended. */
int launch_start(struct keeper *k, struct sandbox *s, struct error *reterr) must_check;
void launch_watch(struct keeper *k, struct sandbox *s);
/* The attacher ended. */
void launch_attached(struct sandbox *s, bool ok);

/* sandbox.c */
int sandbox_open(struct keeper *k, int job_fd, char *ret_id, struct error *reterr) must_check;
struct sandbox *sandbox_find(const struct keeper *k, const char *id);
void sandbox_close(struct sandbox *s);
void sandbox_fail(struct sandbox *s, const struct error *err);
/* A child of this keeper ended: true when it was the sandbox's. */
bool sandbox_reaped(struct keeper *k, pid_t pid, const siginfo_t *info);
void sandboxes_watch(struct keeper *k);
void sandboxes_step(struct keeper *k);
struct keeper_event sandbox_event(const struct sandbox *s, enum keeper_kind kind);

/* KEEPER_SEAL: answered by clients_answer() when the network is gone. */
int sandbox_seal(struct keeper *k, struct sandbox *s, struct error *reterr) must_check;
void sandbox_sealed(struct keeper *k, struct sandbox *s);
