/* SPDX-License-Identifier: MIT */
/*
 * Identities. Init itself holds three capabilities; what it starts holds none, and file work is
 * done under the ids of the sandbox user, between ids_enter() and ids_leave().
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* At the start: not dumpable, no new privileges, nothing inheritable or ambient. */
int ids_secure_self(struct error *reterr) must_check;

enum ids_user { IDS_SANDBOX, IDS_ROOT };

/* File system ids of a user. False (and nothing changed, errno set) when they cannot be taken. */
bool ids_enter(enum ids_user user) must_check;
void ids_leave(void);

/* In a fresh child: ids for good, no groups, no capabilities. 0 or -1 with errno. */
int ids_become(enum ids_user user) must_check;
