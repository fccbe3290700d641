/* SPDX-License-Identifier: MIT */
/*
 * The verb `mcp` in front of a running `api`: messages are handed on to its /mcp, so that sessions
 * are its own and files can be downloaded from it.
 */
#pragma once

#include "base/error.h"
#include "base/settings.h"

struct relay;

/*
 * Looks at API_BASE_URL. 1: an `api` of our name answers there and takes our key; 0: none does, or
 * (with a line in the log) what answers is not given our key, or does not take it.
 */
int relay_find(const struct settings *settings, struct relay **ret,
               struct error *reterr) must_check;
void relay_free(struct relay *r);

/* Until the end of input, or `stop_fd` is readable. */
int relay_run(struct relay *r, int in, int out, int stop_fd, struct error *reterr) must_check;
