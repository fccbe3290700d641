/* SPDX-License-Identifier: MIT */
/*
 * The three things a sandbox's network namespace needs, by rtnetlink: lo up, every address local
 * (AnyIP), and no longer.
 */
#pragma once

#include "base/error.h"

int netlink_lo_up(struct error *reterr) must_check;

/* `local 0.0.0.0/0 dev lo` and `local ::/0 dev lo`; the second is left out where IPv6 is off. */
int netlink_any_ip_add(struct error *reterr) must_check;
int netlink_any_ip_remove(struct error *reterr) must_check;
