/* SPDX-License-Identifier: MIT */
/* What the files of frames share: v1 by mode, v2 by channel. */
#pragma once

#include "api/frames.h"
#include "api/live.h"
#include "base/buf.h"

#define FRAME_MAX (64 * MIB)

struct frames_block; /* of a message in v2 */

struct frames {
    struct frames_options options;
    struct arena arena; /* of the options' texts */
    char provider[64], model[160];
    struct buf data, meta; /* reused from frame to frame */

    /* The message that is streamed, as far as it has come: for `messages` and v2. */
    char message_id[128];
    struct buf text, reasoning;
    struct frames_call {
        char id[256], name[160];
        struct buf arguments;
    } calls[64];
    size_t call_count;
    int open;       /* v2: kind of the block that is open, or -1 */
    unsigned block; /* v2: its index */
};

/* Appends a frame whose data is in f->data; nothing when it did not fit. */
void frames_put(struct frames *f, const char *event, uint32_t tags);

/* buf_* that remembers a failure: what is not whole is not sent. */
bool frames_text(struct frames *f, const char *text);
bool frames_json(struct frames *f, const char *json, size_t len);
bool frames_quoted(struct frames *f, const char *text);

/* The metadata object of a message of this event, in f->meta. */
const char *frames_meta(struct frames *f, const struct agent_event *e);

/* Keeps what has come of a streamed message. */
void frames_collect(struct frames *f, const struct agent_event *e);

void frames2_begin(struct frames *f);
void frames2_event(struct frames *f, const struct agent_event *e);
void frames2_end(struct frames *f, const char *status, const char *error);
