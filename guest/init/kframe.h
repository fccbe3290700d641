/* SPDX-License-Identifier: MIT */
/*
 * Frames from a kernel, without a socket. Small ones are read in place; a frame above 64 KiB is
 * read straight into the log block that will keep it, whose header for the client is later written
 * over the end of the kernel's token: a display of 48 MiB is not copied.
 */
#pragma once

#include "init/log.h"

#include <stddef.h>
#include <stdint.h>

enum { KREADER_SMALL = 64 * 1024, KFRAME_MAX = 48 * 1024 * 1024 + KERNEL_TOKEN };

struct kframe {
    uint8_t type;
    uint32_t stream;
    const char *token;
    const char *json;
    size_t len; /* of the JSON */
};

struct kreader {
    char *small; /* KREADER_SMALL bytes, allocated at the first use */
    size_t begin, len;
    size_t used; /* size of the frame that was returned last */
    struct log_block *big;
    size_t big_have, big_size;
};

void kreader_done(struct kreader *r);

/* Where the next bytes go; kreader_filled() when they are there. -1: no memory. */
int kreader_room(struct kreader *r, char **ret, size_t *ret_len) must_check;
void kreader_filled(struct kreader *r, size_t len);

/* 1 and a frame that is valid until the next call, 0 when more bytes are needed, or an error. */
int kreader_next(struct kreader *r, struct kframe *ret, struct error *reterr) must_check;

/* The last frame as a block for the log, the caller's; NULL without memory. */
struct log_block *kreader_take(struct kreader *r, const struct kframe *frame);

/* The status of K_DONE: "ok", "error", "interrupted", or NULL when the object is anything else. */
const char *kframe_status(const struct kframe *frame);
