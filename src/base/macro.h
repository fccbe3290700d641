/* SPDX-License-Identifier: MIT */
/* Cleanup attributes and small helpers that every room uses. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

/* Hand a pointer or descriptor on: the variable keeps nothing, so its cleanup does nothing. */
#define TAKE_PTR(p) \
    ({ \
        __auto_type take_ptr_value = (p); \
        (p) = NULL; \
        take_ptr_value; \
    })
#define TAKE_FD(fd) \
    ({ \
        int take_fd_value = (fd); \
        (fd) = -1; \
        take_fd_value; \
    })

/* Defines the function behind `__attribute__((cleanup))` for a pointer type. */
#define DEFINE_CLEANUP(type, fn) \
    static inline void fn##_cleanup(type *p) \
    { \
        if (*p) \
            fn(*p); \
    }

static inline void macro_free_cleanup(void *p)
{
    free(*(void **)p);
}

static inline void macro_close_cleanup(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define auto_free __attribute__((cleanup(macro_free_cleanup)))
#define auto_fd __attribute__((cleanup(macro_close_cleanup)))
#define auto_cleanup(fn) __attribute__((cleanup(fn)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define KIB (1024ull)
#define MIB (1024ull * KIB)
#define GIB (1024ull * MIB)
