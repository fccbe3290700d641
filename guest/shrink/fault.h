/* SPDX-License-Identifier: MIT */
/*
 * The way out of a codec. libpng and libjpeg end a failed call by a jump; the only function that is
 * jumped to is here. What is between may own nothing: all memory belongs to the work's object.
 */
#pragma once

#include "base/error.h"

#include <setjmp.h>

struct fault {
    jmp_buf out;
    enum error_code code; /* what fault_raise() is about to report; ERR_OK: a bad picture */
    struct error *err;
};

/* Runs `work`, and returns its result or, after a fault, a negative code. */
int fault_guard(struct fault *f, int (*work)(void *arg), void *arg, struct error *reterr);

/* Ends the guarded work: "<what>: <why>". */
_Noreturn void fault_raise(struct fault *f, const char *what, const char *why);
