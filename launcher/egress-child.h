/* SPDX-License-Identifier: MIT */
/* The egress process: started when the first sandbox needs it, started again when it dies. */
#pragma once

#include "launcher/sandbox.h"

void egress_watch(struct keeper *k);

/* Hands the sandbox's listeners over. */
int egress_add(struct keeper *k, struct sandbox *s, struct error *reterr) must_check;

/* Asks for their end; sandbox->egress becomes EGRESS_NONE when egress has answered or is dead. */
void egress_remove(struct keeper *k, struct sandbox *s);

bool egress_reaped(struct keeper *k, pid_t pid);
void egress_close(struct keeper *k);
