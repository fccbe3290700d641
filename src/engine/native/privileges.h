/* SPDX-License-Identifier: MIT */
/* Giving up what the daemon does not need. */
#pragma once

#include "base/error.h"

/*
 * No capability in any set and no_new_privs, for the calling thread and all that it starts
 * afterwards: call it before other threads exist.
 */
int privileges_drop(struct error *reterr) must_check;
