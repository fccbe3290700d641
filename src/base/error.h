/* SPDX-License-Identifier: MIT */
/*
 * Errors. A failing function returns a negative number and fills a `struct error` on its caller's
 * stack, so nothing has to be released and no thread-local state exists. `reterr` may be NULL.
 */
#pragma once

#include "base/macro.h"

enum error_code {
    ERR_OK,
    ERR_INVALID,     /* the caller's argument is wrong */
    ERR_NOT_FOUND,   /* no such thing, or none that the caller may see */
    ERR_EXISTS,      /* it is there already */
    ERR_DENIED,      /* the caller may not */
    ERR_LIMIT,       /* a named limit is reached */
    ERR_TIMEOUT,     /* it took too long */
    ERR_CANCELLED,   /* somebody stopped it */
    ERR_BUSY,        /* in use by somebody else */
    ERR_UNAVAILABLE, /* this host or installation cannot do it; the text says what to do */
    ERR_PROTOCOL,    /* the other side broke the protocol */
    ERR_UPSTREAM,    /* a service behind us failed */
    ERR_DIED,        /* the sandbox or its kernel ended */
    ERR_DISK,        /* no space or inodes on the host */
    ERR_SYSTEM,      /* the operating system failed us; `sys` is errno */
    ERR_NO_MEMORY,
    ERR_INTERNAL, /* a defect of ours */
    ERR_CODE_COUNT,
};

struct error {
    enum error_code code;
    int sys;
    char text[400];
};

/* What each code is called outside: the one table for every door. */
struct error_entry {
    const char *name; /* stable upper-case name */
    int http_status;
    int jsonrpc_code;
    int exit_status;
    const char *python_class;
};

const struct error_entry *error_entry(enum error_code code);

/* Each returns -(int)code, so that a failing line is one line: `return error_set(reterr, ...)`. */
int error_set(struct error *reterr, enum error_code code, const char *fmt, ...) printf_like(3, 4);

/* Appends ": <strerror(sys)>"; ENOMEM, ENOSPC and EDQUOT get their own code. */
int error_sys(struct error *reterr, int sys, const char *fmt, ...) printf_like(3, 4);

/* Puts "<text>: " before an error that is set already, and returns its negative code. */
int error_wrap(struct error *reterr, const char *fmt, ...) printf_like(2, 3);

static inline int error_no_memory(struct error *reterr)
{
    return error_set(reterr, ERR_NO_MEMORY, "out of memory");
}

/*
 * Static analyzers see one file at a time and do not know that these return negative numbers, so
 * they follow paths that do not exist.
 */
#if defined(SBX_ANALYZER) && !defined(ERROR_IMPLEMENTATION)
#define error_set(...) (error_set(__VA_ARGS__), -1)
#define error_sys(...) (error_sys(__VA_ARGS__), -1)
#define error_wrap(...) (error_wrap(__VA_ARGS__), -1)
#endif
