/* SPDX-License-Identifier: MIT */
/*
 * One line per event to stderr, as text or JSON. Only the outer rooms log. Never secrets, never
 * guest output: values are escaped, so a hostile value can neither end the line nor reach the
 * terminal.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_configure(enum log_level level, bool json);

/* "error", "warn", "info" or "debug"; -1 for another word. */
int log_level_parse(const char *word, enum log_level *ret) must_check;

void log_event(enum log_level level, const char *fmt, ...) printf_like(2, 3);

#define log_error(...) log_event(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_event(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_event(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_LEVEL_DEBUG, __VA_ARGS__)
