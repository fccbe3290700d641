/* SPDX-License-Identifier: MIT */
/* Bytes that wait to be written. */
#include "init/outq.h"

#include <errno.h>

void outq_init(struct outq *q, size_t max)
{
    buf_init(&q->buf, max);
    q->pos = 0;
}

void outq_done(struct outq *q)
{
    buf_done(&q->buf);
    q->pos = 0;
}

struct buf *outq_room(struct outq *q, size_t more)
{
    if (q->pos > q->buf.len / 2) {
        buf_consume(&q->buf, q->pos);
        q->pos = 0;
    }
    return buf_reserve(&q->buf, more) < 0 ? NULL : &q->buf;
}

int outq_flush(struct outq *q, int fd)
{
    while (outq_len(q) > 0) {
        ssize_t n = write(fd, q->buf.data + q->pos, outq_len(q));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        q->pos += (size_t)n;
    }
    q->pos = 0;
    buf_clear(&q->buf);
    if (q->buf.cap > MIB)
        buf_done(&q->buf);
    return 1;
}
