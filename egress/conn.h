/* SPDX-License-Identifier: MIT */
/*
 * One connection from a sandbox to the world. It is accepted before anything is known about its
 * target, so a refusal is a reset; each connection ends with exactly one line in the log.
 */
#pragma once

#include "egress/lookup.h"

enum { CONN_TRIES = 8 };

enum conn_state {
    CONN_RESOLVING,
    CONN_DIALLING,
    CONN_ASKING, /* the proxy, by CONNECT */
    CONN_RELAYING,
    CONN_DEAD,
};

struct conn {
    struct conn *next; /* of its sandbox, or of the dead */
    struct conn *prev;
    struct conn *busy_next;
    bool busy;
    enum conn_state state;
    struct sandbox *box;

    struct watch client;
    struct watch server;
    struct relay_end client_end;
    struct relay_end server_end;
    struct flow up;
    struct flow down;

    const struct name *name; /* NULL: an address without a name */
    struct addr dest;        /* what the client dialled */
    uint16_t port;
    bool by_proxy;
    enum route route;
    const struct name *waits_for; /* while resolving */
    size_t try_count;
    size_t try_next;
    struct addr tries[CONN_TRIES];
    struct addr peer;  /* the address that was dialled; family 0: none yet */
    struct buf answer; /* of the proxy */

    int64_t started;
    int64_t dial_until;
    int64_t deadline;
};

/*
 * Whether a sandbox may open another connection now. Where those that came first hold all
 * descriptors, one that has less than its share takes a place of the one that has most:
 * conn_make_room() then ends a connection of that.
 */
bool conn_has_room(const struct egress *e, const struct sandbox *box);
void conn_make_room(struct egress *e);

/* Takes an accepted socket over. */
void conn_open(struct egress *e, struct sandbox *box, int fd, uint16_t port);

/* Ends a connection with its line in the log; all but "done" resets both sides. */
void conn_close(struct egress *e, struct conn *c, const char *verdict, const char *reason);

static inline void conn_refuse(struct egress *e, struct conn *c, const char *reason)
{
    conn_close(e, c, "refused", reason);
}

void conn_set_deadline(struct egress *e, struct conn *c, int64_t deadline);

/* Goes on with all connections that wait for this name. */
void conn_resolved(struct egress *e, struct sandbox *box, const struct lookup *l);

/* The way to the target stands: relay from now on. */
void conn_relay(struct egress *e, struct conn *c);

void conn_tick(struct egress *e, struct conn *c);
void conn_run_busy(struct egress *e);
void conn_reap(struct egress *e);
