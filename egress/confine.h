/* SPDX-License-Identifier: MIT */
/*
 * Giving up what egress does not need. The order matters: Landlock binds a thread and what it
 * starts later, so it comes before the resolver's threads; the system call filter is put on all
 * threads at once, so it comes after them and has no call that makes one.
 */
#pragma once

#include "base/error.h"

/* Descriptors, limits, capabilities, no new privileges, Landlock where the kernel has it. */
int confine_early(struct error *reterr) must_check;

/* The filter. Does nothing in a sanitizer's build, whose runtime needs more calls. */
int confine_late(struct error *reterr) must_check;
