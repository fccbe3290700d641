/* SPDX-License-Identifier: MIT */
/*
 * From a target to a standing connection: route, resolve, check, connect, and where there is a
 * proxy, CONNECT. Every function may end the connection; the caller touches it no more.
 */
#pragma once

#include "egress/conn.h"

void dial_start(struct egress *e, struct conn *c);
void dial_resolved(struct egress *e, struct conn *c, const struct lookup *l);

/* The server's socket changed while it was connecting or asking the proxy. */
void dial_ready(struct egress *e, struct conn *c, uint32_t events);

/* The deadline of the present step is over. */
void dial_expired(struct egress *e, struct conn *c);
