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

/* Referenced; a new one where there is none and `create`, else NULL. Where there are too many, the
 * one that was not used for the longest time makes room. */
struct frame_log *thread_log_get(struct thread_logs *t, const char *owner, const char *thread_id,
                                 bool create);

/* The thread is gone: followers end. */
void thread_log_drop(struct thread_logs *t, const char *owner, const char *thread_id);
/* Forgets those that nobody has now and that were not used for some time, and the oldest of them
 * while all together are too large. */
void thread_logs_sweep(struct thread_logs *t);
/* Ends all followers: the server stops. */
void thread_logs_close(struct thread_logs *t);
