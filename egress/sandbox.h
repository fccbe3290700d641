/* SPDX-License-Identifier: MIT */
/*
 * One sandbox: the listeners that live in its network namespace, its names, its connections and its
 * budget. What one sandbox does is paid from its own budget, so none can starve another.
 */
#pragma once

#include "egress/bucket.h"
#include "egress/egress.h"
#include "egress/names.h"

struct lookup;

struct listener {
    struct watch watch;
    struct sandbox *box;
    uint16_t port;
};

struct sandbox {
    struct sandbox *next;
    char id[JOB_ID + 1];
    enum job_network network;
    struct names names;
    struct watch dns;
    size_t listener_count;
    struct listener *listeners;
    struct conn *conns;
    size_t conn_count;
    struct lookup *lookups;
    int lookups_running;
    struct bucket conn_bucket;
    struct bucket dns_bucket;
    int64_t accept_at; /* listeners are off until then; 0: they are on */
    int64_t dns_at;
    int64_t full_logged; /* when the last line on a full name table was written */
    /* for the line at its end */
    uint64_t accepted;
    uint64_t refused;
    uint64_t sent;
    uint64_t received;
};

/* Takes the descriptors of an ADD over, whatever it returns: listeners in order, then UDP. */
int sandbox_add(struct egress *e, const struct egress_msg *msg, int *fds, size_t count,
                struct error *reterr) must_check;

struct sandbox *sandbox_find(const struct egress *e, const char *id);

/* Resets its connections, closes its sockets and puts it among the dead. */
void sandbox_remove(struct egress *e, struct sandbox *box);

/* Switches listeners on again whose pause is over. */
void sandbox_tick(struct egress *e, struct sandbox *box);

/* Frees what sandbox_remove() left. */
void sandbox_reap(struct egress *e);
