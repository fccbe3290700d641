/* SPDX-License-Identifier: MIT */
/*
 * Sessions: sandboxes with a kernel, an owner, limits and a queue. One manager per process; all
 * calls from any thread. A session is named by its id everywhere, so that a caller can hold nothing
 * that has ended.
 */
#pragma once

#include "base/id.h"
#include "base/settings.h"
#include "session/run.h"
#include "wire/job.h"

struct engine;
struct session_manager;

enum session_status { SESSION_STARTING, SESSION_RUNNING, SESSION_DEAD };

const char *session_status_name(enum session_status status);

typedef void session_progress_fn(void *user, const char *text);

struct session_manager_options {
    size_t size; /* sizeof(struct session_manager_options) */
    const struct settings *settings;
    const char *instance;          /* "server", "run", "lib", ... */
    bool drop_privileges;          /* the calling process gives up its capabilities */
    bool keep_sessions;            /* leave the sandboxes to their lease at the end */
    bool no_build;                 /* a missing image is an error */
    session_progress_fn *progress; /* lines about image builds and installs; may be NULL */
    void *progress_user;
    struct engine *engine; /* in place of the native one, taken over; NULL */
};

/* Starts the engine and adopts what lives in its instance. */
int session_manager_new(const struct session_manager_options *options, struct session_manager **ret,
                        struct error *reterr) must_check;

/* Stops the image builds that are under way; the creates that wait for them fail with
 * ERR_CANCELLED. */
void session_manager_cancel_builds(struct session_manager *m);

/* From now on as with keep_sessions: who ends is about to start again. */
void session_manager_keep(struct session_manager *m);

/* Ends all sessions (but with keep_sessions) and the engine. */
void session_manager_free(struct session_manager *m);

struct session_dependency {
    const char *name;
    const char *version; /* NULL or "": newest */
};

struct session_options {
    size_t size;           /* sizeof(struct session_options) */
    const char *runtime;   /* python, node, r; NULL: python */
    const char *owner;     /* NULL: nobody's */
    const char *image;     /* a prepared root file system instead of the runtime's own; or NULL */
    int network;           /* enum job_network, or -1: as the settings say */
    uint64_t memory_bytes; /* 0: as the settings say; so for all below */
    int64_t cpu_quota;
    int64_t pids;
    uint64_t tmpfs_bytes;
    const struct session_dependency *dependencies;
    size_t dependency_count;
    const char *const *env; /* NAME=value, NULL-terminated; or NULL */

    bool lowers_limits; /* those given above are refused when they are above the settings' */

    /* Told of the id as soon as the session has its place: session_stop() ends the making. */
    void (*on_id)(void *user, const char *id);
    void *on_id_user;
    struct buf *installer_stderr; /* appended what the installers wrote there; or NULL */
};

struct session_info {
    char id[ID_LEN + 1];
    char runtime[17];
    char owner[129];
    enum session_status status;
    char death[32]; /* cause, when dead */
    bool busy;
    int64_t created_wall_ms, idle_ms;
    enum job_network network;
    uint32_t degraded;           /* bits of enum degraded */
    char dependencies[JOB_META]; /* JSON object */
};

/* Creates a session and fills `ret`; nothing is left behind when it fails. */
int session_create(struct session_manager *m, const struct session_options *o,
                   struct session_info *ret, struct error *reterr) must_check;

/*
 * Ends a session and waits until it is gone. `owner` NULL: whoever's. ERR_NOT_FOUND when there is
 * none that this owner may see.
 */
int session_stop(struct session_manager *m, const char *id, const char *owner,
                 struct error *reterr) must_check;

int session_get_info(struct session_manager *m, const char *id, const char *owner,
                     struct session_info *ret, struct error *reterr) must_check;

/* All sessions that `owner` may see; free the array. */
int session_list(struct session_manager *m, const char *owner, struct session_info **ret,
                 size_t *ret_count, struct error *reterr) must_check;

/* Interrupts the running cell, if any. */
int session_interrupt(struct session_manager *m, const char *id, const char *owner,
                      struct error *reterr) must_check;

struct run_options {
    size_t size; /* sizeof(struct run_options) */
    enum run_kind kind;
    const char *text; /* code, or a command line for `sh -c` */
    size_t len;
    int64_t timeout_ms; /* 0: as the settings say */
    bool stdin_answers; /* the caller answers input requests */
    const char *cwd;    /* of a command; NULL: /workspace */
};

/* Starts a run, or queues it behind the running one. */
int run_open(struct session_manager *m, const char *id, const char *owner,
             const struct run_options *o, struct run **ret, struct error *reterr) must_check;

/*
 * After adoption: the runs that were going on or unread when the former process ended. The next
 * one, referenced; ERR_NOT_FOUND when there is none left.
 */
int run_open_adopted(struct session_manager *m, const char *id, const char *owner, struct run **ret,
                     struct error *reterr) must_check;

/* ---- files, as bytes; paths are the sandbox's, relative ones below /workspace ---- */

struct session_path {
    const char *id;
    const char *owner; /* NULL: whoever owns it */
    const char *path;
};

struct session_file_info {
    char type; /* 'f' file, 'd' directory, 'l' link, 'o' other */
    uint64_t size;
    unsigned mode;
    int64_t mtime_ms;
    const char *target; /* of a link in a listing, for the time of the call; else NULL */
};

int session_file_read(struct session_manager *m, const struct session_path *at, struct buf *ret,
                      struct error *reterr) must_check;
int session_file_write(struct session_manager *m, const struct session_path *at, const void *data,
                       size_t len, struct error *reterr) must_check;
int session_file_stat(struct session_manager *m, const struct session_path *at,
                      struct session_file_info *ret, struct error *reterr) must_check;

/* Calls `each` per entry (name is not NUL-safe beyond C strings; entries with NUL cannot exist). */
typedef void session_file_fn(void *user, const char *name, const struct session_file_info *info);
int session_file_list(struct session_manager *m, const struct session_path *at,
                      session_file_fn *each, void *user, struct error *reterr) must_check;
int session_file_remove(struct session_manager *m, const struct session_path *at, bool recursive,
                        struct error *reterr) must_check;
