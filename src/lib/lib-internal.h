/* SPDX-License-Identifier: MIT */
/* What the files of the public library share. */
#pragma once

#include "base/error.h"
#include "base/settings.h"
#include "session/session.h"

#include <sandbox_agent.h>

struct sa {
    struct settings settings;
    struct session_manager *manager;
};

struct sa_run {
    struct run *run;
    struct run_cursor cursor;
    struct run_event event;
    struct sa_event public_event;
};

/* Copies an error out; returns the negative code, for `return sa_fail(...)`. */
int sa_fail(const struct error *error, struct sa_error *reterr);

/* A required argument is NULL: SA_INVALID, for `return sa_missing(...)`. */
int sa_missing(const char *what, struct sa_error *reterr);
