/* SPDX-License-Identifier: MIT */
/*
 * The events of a run. A thread of its own reads them, so that the terminal's thread can draw, hear
 * keys and stop the run meanwhile. A connection that is cut is made again, and goes on behind the
 * last event; nothing is told twice, and nothing is left out that the server still has.
 */
#pragma once

#include "cli/chat_api.h"

#include <stdint.h>

struct chat_stream;

enum chat_event_kind {
    CHAT_EVENT,    /* an event of the server's: `name`, `data` */
    CHAT_TROUBLE,  /* the connection is cut, and will be made again: each time that it fails */
    CHAT_RESUMED,  /* it is there again */
    CHAT_FINISHED, /* the last one: `error.code` tells how */
};

struct chat_event {
    enum chat_event_kind kind;
    char name[64];
    char *data; /* NUL-terminated; chat_event_done() */
    size_t len;
    struct error error;
};

struct chat_stream_options {
    struct chat_api *api; /* its client, address and key */
    const char *thread_id;
    const char *body;   /* of POST .../runs/stream; NULL: `run_id` is followed from its beginning */
    const char *run_id; /* NULL */
};

int chat_stream_start(const struct chat_stream_options *options, struct chat_stream **ret,
                      struct error *reterr) must_check;

/* Readable while there is an event. */
int chat_stream_fd(const struct chat_stream *s);

/* 1 and an event, or 0. */
int chat_stream_next(struct chat_stream *s, struct chat_event *ret);
void chat_event_done(struct chat_event *event);

/* The run's id, "" until the server has said it. */
void chat_stream_run(struct chat_stream *s, char *ret, size_t size);

/* Ends the reading; the run goes on at the server. */
void chat_stream_free(struct chat_stream *s);
DEFINE_CLEANUP(struct chat_stream *, chat_stream_free)
#define auto_chat_stream __attribute__((cleanup(chat_stream_free_cleanup)))

/* The thread and run of a path like "/threads/T/runs/R"; the run's id, or -1. */
int chat_location_run(const char *location, char *ret, size_t size) must_check;
