/* SPDX-License-Identifier: MIT */
/* Who listens at a port of this host: any of its users can be the first at one. */
#pragma once

#include "wire/url.h"

/*
 * 0 when all that listen at this loopback URL are ours or root's. ERR_DENIED names another user,
 * or says that nobody is seen there (a listener of another network namespace).
 */
int port_owner_check(const struct url *url, struct error *reterr) must_check;
