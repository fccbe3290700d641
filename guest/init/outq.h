/* SPDX-License-Identifier: MIT */
/* Bytes that wait to be written to a descriptor that does not block. Written bytes are skipped, not
 * moved: 50 MiB of code leave in pieces of 200 KiB. */
#pragma once

#include "base/buf.h"

struct outq {
    struct buf buf;
    size_t pos; /* of the first byte that is not written */
};

void outq_init(struct outq *q, size_t max);
void outq_done(struct outq *q);

static inline size_t outq_len(const struct outq *q)
{
    return q->buf.len - q->pos;
}

/* Makes room and gives the buffer to append to; NULL when the maximum is passed or memory is short.
 */
struct buf *outq_room(struct outq *q, size_t more);

/* Writes what can be written: 1 all, 0 the rest has to wait, -1 failed (errno). */
int outq_flush(struct outq *q, int fd) must_check;
