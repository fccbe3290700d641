/* SPDX-License-Identifier: MIT */
/*
 * Control groups for an ordinary user: on a host with version 2 and a systemd user manager, the
 * keeper runs itself again in a transient scope that is delegated to it. Elsewhere nothing happens,
 * and the sandboxes are degraded.
 */
#pragma once

/* Returns where there is no need or no way. The descriptors above 2 are handed on as they are. */
void scope_enter(char *const argv[]);
