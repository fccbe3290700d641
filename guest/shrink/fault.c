/* SPDX-License-Identifier: MIT */
/* Jumps out of codecs. The guard keeps its state behind pointers, so nothing of it is clobbered. */
#include "shrink/fault.h"

int fault_guard(struct fault *f, int (*work)(void *arg), void *arg, struct error *reterr)
{
    struct error unheard = {};

    f->code = ERR_OK;
    f->err = reterr ? reterr : &unheard;
    if (setjmp(f->out))
        return -(int)f->code;
    return work(arg);
}

void fault_raise(struct fault *f, const char *what, const char *why)
{
    if (f->code == ERR_OK)
        f->code = ERR_INVALID;
    (void)error_set(f->err, f->code, "%s: %s", what, why);
    longjmp(f->out, 1);
}
