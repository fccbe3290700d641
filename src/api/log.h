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

struct frame_log;
struct http_request;

struct frame_log_options {
    size_t max_bytes;
    int64_t epoch_ms; /* ids of frames are "EPOCH-SEQ" */
};

/* One frame. `tags` is a set of bits that followers filter by; `scope` a text for the follower's
 * own filter ("" for none). */
struct log_frame {
    const char *event;
    const char *data; /* one line of JSON */
    size_t len;
    uint32_t tags;
    const char *scope;
    bool ends; /* what came before is over: see frame_log_turn() */
};

int frame_log_new(const struct frame_log_options *options, struct frame_log **ret,
                  struct error *reterr) must_check;
struct frame_log *frame_log_ref(struct frame_log *log);
void frame_log_unref(struct frame_log *log);
/* Whether anybody has a reference beside the caller's: runs, followers. */
bool frame_log_is_shared(const struct frame_log *log);

/* Without memory the frame is lost, and followers are told of a gap. */
void frame_log_append(struct frame_log *log, const struct log_frame *frame);
/* The number that the next frame gets, from 1 on, for data that names it; where one thread appends.
 */
uint64_t frame_log_next_seq(struct frame_log *log);
int64_t frame_log_epoch(const struct frame_log *log);
/* Something new begins: all up to the last frame that ended something is the past. */
void frame_log_turn(struct frame_log *log);

/* Nothing comes after it; followers end after the last frame. */
void frame_log_close(struct frame_log *log);
bool frame_log_is_closed(struct frame_log *log);
size_t frame_log_bytes(struct frame_log *log);

/* ---- followers ---- */

struct follow_options {
    struct frame_log *log;
    uint32_t tags;         /* frames with one of these bits, and those with none */
    const char *after;     /* an id: what comes after it; "-1", "-", unknown or NULL: everything */
    uint32_t present_tags; /* frames with one of these bits, where they are the past, are not for
                            * one that names no id */
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
    struct frame_log *(*next)(void *user);
};

struct follower;

/* Answers a request with an event stream that follows the log. */
int frame_log_follow(struct http_request *req, const struct follow_options *options,
                     struct error *reterr) must_check;

/* How many followers there are now. */
size_t frame_log_followers(struct frame_log *log);

/* Wakes all followers of the log: `next` may have something. */
void frame_log_wake(struct frame_log *log);
