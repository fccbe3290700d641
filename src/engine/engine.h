/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox is made of, and the engines that make one. Every door fills one `struct
 * sandbox_spec`; an engine reads it and gives back a `struct sandbox` whose control connection
 * speaks docs/PROTOCOL.md section 3.
 */
#pragma once

#include "base/error.h"
#include "base/settings.h"
#include "engine/control.h"
#include "engine/image.h"
#include "wire/job.h"

#include <pthread.h>
#include <stdbool.h>

struct engine;

struct sandbox_spec {
    const char *id; /* 32 hex digits, chosen by the caller */
    const char *owner;
    const char *runtime; /* python, node, r */
    const char *rootfs;  /* prepared root file system */
    const char *hostname;
    const char *meta; /* the caller's own record, given back on adoption */
    bool overlay_root;
    bool as_root;
    bool allow_degraded;
    bool install_network;
    enum job_network network;
    uint64_t memory_bytes, tmpfs_bytes, home_bytes, disk_bytes;
    uint32_t cpu_quota_us, cpu_period_us, pids, nofile, lease_ms;
    const uint16_t *ports;
    size_t port_count;
    const struct job_mount *mounts;
    size_t mount_count;
};

/*
 * A running sandbox. Referenced by its session and by the engine's event thread. `ended` and
 * `cause` are set under `lock` and announced on `changed`.
 */
struct sandbox {
    struct engine *engine;
    char id[JOB_ID + 1];
    struct control *control;
    struct launch_job *job; /* what it was started from (also after adoption) */
    uint32_t degraded;
    int pid;
    uint32_t uid;
    char pids_events[JOB_PATH];
    char pids_current[JOB_PATH];
    char memory_events[JOB_PATH];
    char memory_current[JOB_PATH];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended;
    char cause[32];
    unsigned refs;
};

struct engine_options {
    size_t size; /* sizeof(struct engine_options) */
    const struct settings *settings;
    const char *instance; /* "server", or a verb: then "<verb>-<n>" */
    bool drop_privileges; /* give up every capability once the keeper runs; whole process, before
                             threads */
};

struct engine_vtable {
    const char *name;
    int (*open)(struct engine *e, const struct sandbox_spec *spec, struct sandbox **ret,
                struct error *reterr);
    /* Makes sure that the image of a runtime is there; takes minutes. May be NULL. */
    int (*build)(struct engine *e, const char *runtime, image_progress_fn *progress, void *user,
                 struct error *reterr);
    /* Stops the builds that are under way: they fail with ERR_CANCELLED. NULL with `build`. */
    void (*unbuild)(struct engine *e);
    /* Takes the install network of a sandbox away. */
    int (*seal)(struct engine *e, struct sandbox *s, struct error *reterr);
    /* Ends a sandbox and waits until every trace of it is gone. */
    int (*close)(struct engine *e, struct sandbox *s, struct error *reterr);
    /* The sandboxes that were there when the engine started; the caller owns the array. */
    int (*adopt)(struct engine *e, struct sandbox ***ret, size_t *ret_count, struct error *reterr);
    /* `end_all`: end every sandbox of the instance in parallel; else leave them to their lease. */
    void (*free)(struct engine *e, bool end_all);
};

/* First member of every engine. */
struct engine {
    const struct engine_vtable *ops;
};

/* The native engine: namespaces through the keeper. */
int native_engine_new(const struct engine_options *options, struct engine **ret,
                      struct error *reterr) must_check;

struct sandbox *sandbox_new(struct engine *e, const char *id);
struct sandbox *sandbox_ref(struct sandbox *s);
void sandbox_unref(struct sandbox *s);

/* Marks the end, or that it is certain to come; the first cause stays. Wakes who waits. */
void sandbox_set_ended(struct sandbox *s, const char *cause);

/* Waits until the sandbox has ended or the deadline is over; copies the cause. Whether it ended. */
bool sandbox_wait_ended(struct sandbox *s, int64_t deadline, char ret_cause[32]);

DEFINE_CLEANUP(struct sandbox *, sandbox_unref)
#define auto_sandbox __attribute__((cleanup(sandbox_unref_cleanup)))
