/* SPDX-License-Identifier: MIT */
/* The control connections: docs/PROTOCOL.md section 3. Any number of clients up to 16 at once. */
#pragma once

#include "base/error.h"
#include "init/lease.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_CLIENTS = 16 };

/* Listens on `fd`, which is taken over. Clients may change `lease`. */
int control_open(int fd, struct lease *lease, struct error *reterr) must_check;

/* Whether a client is connected. */
bool control_is_held(void);

/* Sends what is to be sent and goes on with file operations. True when there is more to do at once.
 */
bool control_pump(void);

/* Whether a client said SHUTDOWN. */
bool control_is_shut_down(void);

/* Accepts again after it had to stop for lack of descriptors; the next deadline. */
int64_t control_tick(int64_t now);
