/* SPDX-License-Identifier: MIT */
/* Image builds that a client asked for: children that print to the client's descriptor. */
#pragma once

#include "launcher/keeper.h"

/* The id under which clients_answer() finds who waits: "build-PID". */
enum { BUILD_ID = 24 };

int build_start(struct keeper *k, const char *runtime, int out_fd, char ret_id[BUILD_ID],
                struct error *reterr) must_check;
bool build_reaped(struct keeper *k, pid_t pid, const siginfo_t *info);
void builds_stop(struct keeper *k);
