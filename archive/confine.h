/* SPDX-License-Identifier: MIT */
/*
 * Giving up everything but computing: no descriptor beside 0-2, bounded memory and processor time,
 * and a system call filter that ends the process at the first call it does not know.
 */
#pragma once

#include "base/error.h"

/* What takes more than `cpu_seconds` of processor time is killed. */
int confine(unsigned cpu_seconds, struct error *reterr) must_check;
