/* SPDX-License-Identifier: MIT */
/* What the files of this room share about sessions and runs. */
#pragma once

#include "engine/engine.h"
#include "engine/image.h"
#include "session/run.h"
#include "session/session.h"

#include <pthread.h>

enum { RUN_DISPLAYS_MAX = 10000 };

struct run {
    struct control_sink sink;  /* first: a sink is cast back to its run */
    struct control_sink sweep; /* of the clean-up after a run that crowded the sandbox */
    unsigned refs;
    struct session *session; /* referenced */
    enum run_kind kind;
    struct buf request; /* payload of EXEC or SPAWN until it is sent */
    int64_t timeout_ms;
    bool started;
    bool acked;
    uint64_t pids_before;
    int64_t started_ms;
    int64_t backstop; /* clock_ms at which the sandbox is given up */
    int64_t asked_ms; /* since when it waits for a line, 0: it does not; under the session's lock */
    int64_t rest_ms;  /* of the backstop, meanwhile */
    struct run *next_queued;

    struct run_log log;

    /* Guarded by `lock`; complete when the log is closed. */
    pthread_mutex_t lock;
    struct text_keep out, err, late_out, late_err;
    struct buf displays; /* JSON items joined by commas */
    size_t display_count;
    struct buf result; /* JSON object or empty */
    struct buf error;  /* JSON object or empty */
    bool error_is_enospc, error_is_eagain;
    bool truncated;
    struct run_outcome outcome;
    char cause[32];
    char restarted[32]; /* why the kernel was replaced before this cell */
    char message[400];
};

/*
 * Calls that go on in a session. Of those that have an operation open in its init only so many do
 * at once as init takes, and the others wait. Who reads may begin to write, and who writes to ask,
 * but never the other way round: so nobody waits for one that waits for him.
 */
enum call_kind { CALL_PROCESS, CALL_READ, CALL_WRITE, CALL_ASK, CALL_KINDS };

/* A path that may be downloaded and imported elsewhere. */
struct session_export {
    char *path; /* normal */
    char type;  /* as struct export_info */
    uint64_t size;
};

struct session {
    unsigned refs;
    char id[ID_LEN + 1];
    struct session_manager *manager;
    char *owner;
    char runtime[17];
    char *dependencies; /* JSON object */
    enum job_network network;
    int64_t created_wall_ms, created_ms;
    uint64_t memory_bytes, tmpfs_bytes, home_bytes, disk_bytes; /* disk: 0 where there is none */
    uint32_t pids;
    char *env_fields; /* encoded `env` fields for commands */
    size_t env_fields_len;
    struct sandbox *sandbox; /* referenced */

    /* Written under the lock; the first four are also read without it, by atomic loads. */
    pthread_mutex_t lock; /* recursive: the end of a run starts the next one */
    enum session_status status;
    int64_t last_activity_ms;
    struct run *current;
    unsigned calls; /* that are going on, and of each kind */
    unsigned calls_of[CALL_KINDS];
    pthread_cond_t call_over; /* or the session is */
    struct run *queue_head, *queue_tail;
    size_t queued;
    bool close_when_idle; /* its life time is over */
    bool closing;         /* it is out of use: no call may start */
    char death[32];       /* cause, when status is SESSION_DEAD */
    struct run **adopted;
    size_t adopted_count;
    struct session_export *exports;
    size_t export_count;

    pthread_mutex_t close_lock; /* held while the sandbox is ended; taken before `lock` */
    bool closed;
};

/* run.c */
struct run *run_new(struct session *s, enum run_kind kind, struct error *reterr);
void run_start(struct run *r); /* under the session's lock; a failure ends the run by itself */
void run_adopt(struct run *r, uint32_t stream);
void run_finish_unstarted(struct run *r, enum run_status status, const char *cause);

/* session.c */
struct session *session_new(struct session_manager *m, const char *owner, struct error *reterr);
const struct settings *session_settings(const struct session *s);
void session_fill_info(struct session *s, struct session_info *ret);

/* These take no lock: the manager asks under its own. */
enum session_status session_get_status(const struct session *s);
int64_t session_get_activity(const struct session *s);
bool session_is_busy(const struct session *s);

/* Its sandbox is there, and then its kernel. ERR_CANCELLED when it was retired meanwhile. */
int session_set_sandbox(struct session *s, struct sandbox *sandbox,
                        struct error *reterr) must_check;
int session_set_running(struct session *s, struct error *reterr) must_check;

/* Under the session's lock. */
void session_set_current(struct session *s, struct run *r);

/* A call other than a run: while it goes on, the session is not collected. */
int session_call_begin(struct session *s, enum call_kind kind, struct error *reterr) must_check;
void session_call_end(struct session *s, enum call_kind kind);

/* A run is over: starts the next one, or marks the session dead. Called by run.c, on the reader
 * thread. */
void session_run_over(struct session *s, struct run *r, bool sandbox_gone, const char *cause);

/* Takes the session out of use, once. Waiting runs end as died. */
void session_retire(struct session *s, const char *cause);

/*
 * The same, but only when nothing runs, or what runs waits for a line, and no call came after
 * `since_ms`; whether it was done.
 */
bool session_retire_idle(struct session *s, const char *cause, int64_t since_ms);

/* Its life time is over: retired now, or after the call that is going on. Whether it is now. */
bool session_expire(struct session *s);

/*
 * A run waits for a line from here on, or no longer. Meanwhile its time stands still, here as in
 * init, and the session counts as idle.
 */
void session_question_open(struct session *s, struct run *r);
void session_question_close(struct session *s, struct run *r);

/* Answers with nothing what was asked before `since_ms`, or by a run of a former process that
 * nobody has taken over while others wait for its end. */
void session_question_expire(struct session *s, int64_t since_ms);

/* manager.c */
struct session *session_find(struct session_manager *m, const char *id, const char *owner,
                             struct error *reterr);
void manager_wake(struct session_manager *m);
const struct settings *manager_settings(const struct session_manager *m);
struct session *session_ref(struct session *s);
void session_unref(struct session *s);

/* environment.c */
int environment_fields(const struct settings *s, const struct session_options *o, bool has_ca,
                       struct buf *ret, struct error *reterr);

/* display.c: from a kernel's JSON to ours */
int display_item(const char *json, size_t len, size_t limit_chars, struct buf *ret,
                 struct error *reterr);
int display_result(const char *json, size_t len, size_t limit_chars, struct buf *ret, bool *ret_cut,
                   struct error *reterr);

/* outcome.c: words for causes */
void outcome_message(const struct session *s, const struct run *r, char *ret, size_t size);
