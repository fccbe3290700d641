/* SPDX-License-Identifier: MIT */
/*
 * A program of ours in a session: bytes in, bytes out. It runs beside the queue of cells, as the
 * sandbox's user, so what it answers is as little to be trusted as any output.
 */
#pragma once

#include "session/session.h"

struct session_filter {
    const char *id;
    const char *owner;       /* NULL: whoever owns the session */
    const char *const *argv; /* NULL-terminated; the program by its absolute path */
    const void *in;          /* its stdin */
    size_t in_len;
    int64_t timeout_ms;
};

/*
 * Appends what the program prints; more than the buffer's maximum stops it with ERR_LIMIT. A
 * failure carries the first line of its stderr.
 */
int session_filter(struct session_manager *m, const struct session_filter *f, struct buf *ret,
                   struct error *reterr) must_check;
