/* SPDX-License-Identifier: MIT */
/*
 * The status line while something is waited for: a turning sign, what it is, and for how long. It
 * has a thread of its own that draws ten times a second, below whatever is printed. There is none
 * where the output is not a terminal.
 */
#pragma once

#include "cli/term/term.h"

struct spinner;

int spinner_new(struct term *t, struct spinner **ret, struct error *reterr) must_check;
void spinner_free(struct spinner *s);
DEFINE_CLEANUP(struct spinner *, spinner_free)
#define auto_spinner auto_cleanup(spinner_free_cleanup)

/* Shows it; the time begins at 0 when it was not shown. `what` is cleaned ("thinking"). */
void spinner_start(struct spinner *s, const char *what);

/* Takes it off the screen. */
void spinner_stop(struct spinner *s);
