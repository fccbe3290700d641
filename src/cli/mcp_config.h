/* SPDX-License-Identifier: MIT */
/* What a person pastes into the settings of a client of `sandbox-agent mcp`. */
#pragma once

/* Prints it for one client; returns the exit status. */
int mcp_config_print(const char *client);
