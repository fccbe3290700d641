/* SPDX-License-Identifier: MIT */
/*
 * Lines to stderr: one for each connection, and what went wrong. A line never blocks the loop; what
 * nobody takes is dropped and counted.
 */
#pragma once

#include "base/macro.h"

void log_line(const char *fmt, ...) printf_like(1, 2);
