/* SPDX-License-Identifier: MIT */
/*
 * A growable byte buffer with a maximum that is given at init. Data is always followed by a NUL
 * byte that does not count, so `data` of a non-empty buffer may be used as a string. An append that
 * would pass the maximum, or meets no memory, fails and leaves the content as it was.
 */
#pragma once

#include "base/macro.h"

#include <stdarg.h>

struct buf {
    char *data; /* NULL while nothing was appended */
    size_t len;
    size_t cap;
    size_t max;
};

static inline void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b);
static inline void buf_clear(struct buf *b)
{
    b->len = 0;
}

/* All return 0, or -1 when the maximum is passed or memory is short. */
int buf_reserve(struct buf *b, size_t more) must_check; /* room for `more` bytes behind len */
int buf_append(struct buf *b, const void *data, size_t len) must_check;
int buf_append_str(struct buf *b, const char *s) must_check;
int buf_append_byte(struct buf *b, unsigned char c) must_check;
int buf_printf(struct buf *b, const char *fmt, ...) printf_like(2, 3) must_check;

/* Removes the first `len` bytes. */
void buf_consume(struct buf *b, size_t len);

/* The content as a string ("" when empty); valid until the next change. */
static inline const char *buf_str(const struct buf *b)
{
    return b->len ? b->data : "";
}

/* Hands the memory over to the caller (free); the buffer is empty afterwards. NULL if empty. */
char *buf_take(struct buf *b);

#define auto_buf __attribute__((cleanup(buf_done)))
