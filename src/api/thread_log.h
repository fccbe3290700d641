/* SPDX-License-Identifier: MIT */
/*
 * The event logs of threads that somebody follows by protocol v2. A log begins with the first run
 * that was started by the protocol or the first follower, goes on across runs, and ends with the
 * thread or when nobody has used it for a while.
 */
#pragma once

#include "api/log.h"

struct thread_logs;

int thread_logs_new(struct thread_logs **ret, struct error *reterr) must_check;
void thread_logs_free(struct thread_logs *t);

/* Referenced; a new one where there is none and `create`, else NULL. */
struct frame_log *thread_log_get(struct thread_logs *t, const char *owner, const char *thread_id,
                                 bool create);

/* The thread is gone: followers end. */
void thread_log_drop(struct thread_logs *t, const char *owner, const char *thread_id);
/* Forgets those without followers that were not used for some time. */
void thread_logs_sweep(struct thread_logs *t);
/* Ends all followers: the server stops. */
void thread_logs_close(struct thread_logs *t);
