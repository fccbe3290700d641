/* SPDX-License-Identifier: MIT */
/*
 * What an agent does, as the frames that clients of the streams know: by mode for the log of its
 * run, and as events of protocol v2 for the log of its thread.
 */
#pragma once

#include "agent/agent.h"
#include "api/log.h"

struct frames;

struct frames_options {
    struct frame_log *log;
    uint32_t modes;           /* enum stream_mode */
    struct frame_log *thread; /* protocol v2; NULL: not wanted */
    const char *run_id, *thread_id, *assistant_id, *graph_id, *provider, *model;
    int64_t attempt;
};

int frames_new(const struct frames_options *options, struct frames **ret,
               struct error *reterr) must_check;
void frames_free(struct frames *f);

/* Of a run whose model is known only now. */
void frames_set_model(struct frames *f, const char *provider, const char *model);

/* For the agent's spec: events whose JSON no mode of this run has. */
unsigned frames_skip_bits(const struct frames *f);

/* The first frame of a further attempt: {"run_id", "attempt"}. */
void frames_begin(struct frames *f);
void frames_event(struct frames *f, const struct agent_event *e);

/* The last ones. `error`: JSON {"error", "message"} of a run that failed, or NULL; `status` of the
 * run: success, error, timeout, interrupted. */
void frames_end(struct frames *f, const char *status, const char *error, const char *values);
