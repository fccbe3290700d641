/* SPDX-License-Identifier: MIT */
/* The daemon's connection to its keeper: requests with answers, and the events of sandboxes. */
#pragma once

#include "base/error.h"
#include "wire/job.h"

struct keeper;

/* Called on the reader thread for events with serial 0 (KEEPER_ENDED, KEEPER_OOM). */
typedef void keeper_event_fn(void *user, const struct keeper_event *event);

/* Told once, on the reader thread, when the keeper is gone. */
typedef void keeper_lost_fn(void *user);

struct keeper_handlers {
    keeper_event_fn *on_event;
    keeper_lost_fn *on_lost;
    void *user;
    const char *image_dir; /* of a keeper that is started: where it builds images */
    bool drop_privileges;  /* once the keeper is there, before the reader thread starts */
};

/*
 * Connects to the keeper that runs in the instance directory, if one does: 1; 0 when there is none.
 */
int keeper_connect(int instance_dir, const struct keeper_handlers *handlers, struct keeper **ret,
                   struct error *reterr) must_check;

/*
 * Starts a keeper for the instance and connects to it. `config` goes to egress.
 */
int keeper_start(int instance_dir, const struct egress_config *config,
                 const struct keeper_handlers *handlers, struct keeper **ret,
                 struct error *reterr) must_check;

/* Whether the keeper is gone, or the connection to it is. */
bool keeper_is_lost(struct keeper *k);

/* Closes the connection; the keeper itself goes on as long as it has sandboxes. NULL is fine. */
void keeper_free(struct keeper *k);

struct keeper_call {
    enum keeper_op op;
    const char *id;  /* or NULL */
    const char *arg; /* or NULL */
    int fd;          /* to pass along, or -1 */
    int64_t deadline;
    /* For each KEEPER_SANDBOX before the final answer; takes over `job_fd`. */
    void (*on_sandbox)(void *user, const struct keeper_event *event, int job_fd);
    void *user;
};

/* Sends a request and waits for its answer. KEEPER_FAILED becomes an error. */
int keeper_call(struct keeper *k, const struct keeper_call *call, struct keeper_event *ret,
                struct error *reterr) must_check;
