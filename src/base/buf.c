/* SPDX-License-Identifier: MIT */
/* Bounded growable buffer. Doubling, clipped to the maximum, so that a full buffer wastes nothing.
 */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BUF_FIRST = 256 };

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

static int buf_grow(struct buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : BUF_FIRST;
    char *data;

    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    cap = MIN(cap, MAX(b->max + 1, need));
    data = realloc(b->data, cap);
    if (!data)
        return -1;
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_reserve(struct buf *b, size_t more)
{
    if (more > b->max || b->len > b->max - more)
        return -1;
    if (b->cap < b->len + more + 1 && buf_grow(b, b->len + more + 1) < 0)
        return -1;
    return 0;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
    if (buf_reserve(b, len) < 0)
        return -1;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
    return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_append_byte(struct buf *b, unsigned char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    int need;

    va_start(args, fmt);
    need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (need < 0 || buf_reserve(b, (size_t)need) < 0)
        return -1;
    va_start(args, fmt);
    vsnprintf(b->data + b->len, (size_t)need + 1, fmt, args);
    va_end(args);
    b->len += (size_t)need;
    return 0;
}

void buf_consume(struct buf *b, size_t len)
{
    if (len >= b->len) {
        b->len = 0;
        return;
    }
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
    b->data[b->len] = 0;
}

char *buf_take(struct buf *b)
{
    char *data = b->data;

    *b = (struct buf){.max = b->max};
    return data;
}
