/* SPDX-License-Identifier: MIT */
/* What a person pastes into the settings of a client of `sandbox-agent mcp`. */
#pragma once

#include "cli/verb.h"

/* Prints it for one client, with the verb's other options; returns the exit status. */
int mcp_config_print(const char *client, const struct verb_args *args);
