/* SPDX-License-Identifier: MIT */
/*
 * What bounds a sandbox's use of egress. A build with failpoints reads other values from the
 * environment variable SBX_EGRESS_LIMITS ("idle_ms=500,conns=4"), so that tests need not wait.
 */
#pragma once

#include <stdint.h>

struct limits {
    int64_t resolve_ms; /* until a name is resolved */
    int64_t connect_ms; /* for one address while there are more */
    int64_t dial_ms;    /* from accept to a standing connection */
    int64_t idle_ms;    /* without a byte in either direction */
    int64_t half_ms;    /* the same when one direction is closed */
    int64_t conns;      /* of a sandbox at once */
    int64_t conn_rate;  /* of a sandbox a second; what is over waits */
    int64_t conn_burst;
    int64_t dns_rate; /* questions of a sandbox a second; what is over waits */
    int64_t dns_burst;
};

void limits_init(struct limits *l);
