/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of a control connection to one init (docs/PROTOCOL.md section 3). A reader
 * thread hands each frame to the sink of its stream; senders write from any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "wire/fields.h"
#include "wire/frame.h"

#include <stdbool.h>

struct control;
struct control_sink;

/*
 * Receives the frames of one stream, on the reader thread. `frame` returns true when the stream is
 * over: then the sink is not touched again. `lost` is called instead, once, when the connection
 * ends first.
 */
struct control_sink {
    bool (*frame)(struct control_sink *sink, const struct frame *f);
    void (*lost)(struct control_sink *sink, const struct error *why);
    bool holds_credit;         /* its owner gives it back, by control_credit() */
    uint32_t stream;           /* set by control_attach_sink */
    struct control_sink *next; /* owned by the connection */
    size_t taken;              /* payload bytes since the last CREDIT */
};

/* Says HELLO on a connected socket (taken over, also on failure) and waits for WELCOME. */
int control_new(int fd, int64_t deadline, struct control **ret, struct error *reterr) must_check;

/* Closes the connection and frees it; sinks that are left are told `lost`. NULL is fine. */
void control_free(struct control *c);

/*
 * Ends the connection: when it returns every sink was told `lost`, and none will be called again.
 * From a sink it does not wait.
 */
void control_cut(struct control *c);

/* The WELCOME payload, valid as long as the connection. */
struct fields control_welcome(const struct control *c);

/* Registers a sink under a new stream number, or under `stream` when that is not 0 (a run of
 * before). */
void control_attach_sink(struct control *c, struct control_sink *sink, uint32_t stream);

/* Takes a sink back; after the return it is not called any more. Not from a sink. */
void control_detach_sink(struct control *c, struct control_sink *sink);

/*
 * For a sink with `holds_credit`: so many payload bytes were taken. What is not taken stays in the
 * sandbox, but for FRAME_WINDOW. From one thread at a time.
 */
void control_credit(struct control *c, struct control_sink *sink, size_t len);

int control_send(struct control *c, uint8_t type, uint32_t stream, const void *payload, size_t len,
                 struct error *reterr) must_check;

/*
 * One request and its answer: sends, hands REPORT and DATA frames to `on_frame` (may be NULL; on
 * the reader thread), waits for END. An END with status other than ok becomes an error with its
 * message.
 */
struct control_request {
    uint8_t type;
    const struct buf *payload;
    bool (*on_frame)(void *user, const struct frame *f); /* false: enough, stop it */
    void *user;
    int64_t deadline;
    /* after the request: further frames on the stream, or NULL */
    int (*feed)(struct control *c, uint32_t stream, void *user, struct error *reterr);
};
int control_call(struct control *c, const struct control_request *req,
                 struct error *reterr) must_check;

/* Turns the fields of a failed END into an error: errno, message, status. 0 when the status is ok.
 */
int control_end_check(const struct fields *end, struct error *reterr) must_check;

bool control_is_lost(struct control *c);
