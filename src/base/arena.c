/* SPDX-License-Identifier: MIT */
/* Bump allocator over malloc'd blocks. A request larger than a block gets a block of its own size.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_BLOCK = 16 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(max_align_t) char data[];
};

void arena_done(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *b = a->blocks;

        a->blocks = b->next;
        free(b);
    }
    *a = (struct arena){.max = a->max};
}

static int arena_grow(struct arena *a, size_t size)
{
    size_t room = MAX(size, (size_t)ARENA_BLOCK);
    struct arena_block *b;

    if (room > a->max || a->total > a->max - room)
        room = size;
    if (room > a->max || a->total > a->max - room)
        return -1;
    b = malloc(sizeof(*b) + room);
    if (!b)
        return -1;
    b->next = a->blocks;
    b->size = room;
    a->blocks = b;
    a->used = 0;
    a->total += room;
    return 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    void *p;

    if (size > a->max)
        return NULL;
    size = (size + align - 1) / align * align;
    if ((!a->blocks || a->blocks->size - a->used < size) && arena_grow(a, size) < 0)
        return NULL;
    p = a->blocks->data + a->used;
    a->used += size;
    return memset(p, 0, size);
}

char *arena_memdup(struct arena *a, const void *data, size_t len)
{
    char *copy = len < a->max ? arena_alloc(a, len + 1) : NULL;

    if (copy && len)
        memcpy(copy, data, len);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_memdup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;
    char *text;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0)
        return NULL;
    text = arena_alloc(a, (size_t)len + 1);
    if (!text)
        return NULL;
    va_start(args, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}
