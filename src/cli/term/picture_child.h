/* SPDX-License-Identifier: MIT */
/* A picture through sandbox-picture, which decodes it in our place. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { PICTURE_TIME_MS = 10 * 1000 };

struct picture_job {
    const char *mode; /* "sixel" or "png" */
    unsigned side;    /* the longest side of the result */
    const void *data;
    size_t len;
    int time_ms; /* the child is killed then */
    int stop_fd; /* readable: it is killed at once; -1 */
};

/*
 * What comes back is the word of a process that a hostile picture may have taken over: the caller
 * checks it. ERR_TIMEOUT; ERR_CANCELLED: `stop_fd`, from which nothing is read.
 */
int picture_child_run(const struct picture_job *job, struct buf *ret,
                      struct error *reterr) must_check;
