/* SPDX-License-Identifier: MIT */
/* What the files of frames share: v1 by mode, v2 by channel. */
#pragma once

#include "api/frames.h"
#include "api/live.h"
#include "base/buf.h"

#define FRAME_MAX (64 * MIB)

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
    /* v2: the block of the message that is open. */
    int open;        /* enum llm_delta_kind, or -1 */
    unsigned block;  /* its index */
    size_t block_at; /* where it begins in `text` or `reasoning` */
    size_t told;     /* bytes of its arguments that were told */
    bool message_open;
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

/* Channels of v2, as tags. */
enum frames2_channel {
    CHANNEL_VALUES = 1 << 0,
    CHANNEL_UPDATES = 1 << 1,
    CHANNEL_MESSAGES = 1 << 2,
    CHANNEL_TOOLS = 1 << 3,
    CHANNEL_LIFECYCLE = 1 << 4,
    CHANNEL_INPUT = 1 << 5,
    CHANNEL_CHECKPOINTS = 1 << 6,
    CHANNEL_TASKS = 1 << 7,
    CHANNEL_CUSTOM = 1 << 8,
    TAG_LIFE_OF_RUN = 1 << 9, /* beside CHANNEL_LIFECYCLE: the root's */
};

void frames2_begin(struct frames *f);
void frames2_event(struct frames *f, const struct agent_event *e);
void frames2_end(struct frames *f, const char *status, const char *error);
