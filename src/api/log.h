/* SPDX-License-Identifier: MIT */
/*
 * An append-only log of frames with any number of followers, each with a cursor of its own: replay
 * and live tail are the same thing, so nothing is lost or doubled between them. Bounded: the oldest
 * frames go, and who missed them is told how many.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct event_log;
struct http_request;

struct event_log_options {
    size_t max_bytes;
    int64_t epoch_ms; /* ids of frames are "EPOCH-SEQ" */
};

/* One frame. `tags` is a set of bits that followers filter by; `scope` a text for the follower's
 * own filter ("" for none). */
struct event_frame {
    const char *event;
    const char *data; /* one line of JSON */
    size_t len;
    uint32_t tags;
    const char *scope;
};

int event_log_new(const struct event_log_options *options, struct event_log **ret,
                  struct error *reterr) must_check;
struct event_log *event_log_ref(struct event_log *log);
void event_log_unref(struct event_log *log);

/* Without memory the frame is lost, and followers are told of a gap. */
void event_log_append(struct event_log *log, const struct event_frame *frame);
/* The number that the next frame gets, from 1 on, for data that names it; where one thread appends.
 */
uint64_t event_log_next_seq(struct event_log *log);
int64_t event_log_epoch(const struct event_log *log);

/* Nothing comes after it; followers end after the last frame. */
void event_log_close(struct event_log *log);
bool event_log_is_closed(struct event_log *log);
size_t event_log_bytes(struct event_log *log);

/* Drops all frames and the memory of them; later followers begin at the end. */
void event_log_clear(struct event_log *log);

/* ---- followers ---- */

struct follow_options {
    struct event_log *log;
    uint32_t tags;     /* frames with one of these bits, and those with none */
    const char *after; /* an id: what comes after it; "-1", "-", unknown or NULL: everything */
    bool (*wants)(void *user, const char *scope); /* or NULL */
    /* The client has left before the end: called once, on any thread. */
    void (*on_gone)(void *user);
    void (*on_done)(void *user); /* `user` is not used any more; always called, also on a failure */
    void *user;
    /*
     * When the log has ended. NULL: the stream ends, too. Returns the log to go on with (a
     * reference, taken over); or NULL while there is none: then it is asked again each time that
     * `log`, the one the follower began with, is woken.
     */
    struct event_log *(*next)(void *user);
};

struct follower;

/* Answers a request with an event stream that follows the log. */
int event_follow(struct http_request *req, const struct follow_options *options,
                 struct error *reterr) must_check;

/* How many followers there are now. */
size_t event_log_followers(struct event_log *log);

/* Wakes all followers of the log: `next` may have something. */
void event_log_wake(struct event_log *log);
