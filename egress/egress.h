/* SPDX-License-Identifier: MIT */
/*
 * The state of the program. One thread runs one epoll loop over everything here; the resolver's
 * threads see nothing but their own jobs. Nothing is freed while a batch of events is worked
 * through: a dead connection or sandbox waits in a list until the batch is over.
 */
#pragma once

#include "base/clock.h"
#include "egress/limits.h"
#include "egress/policy.h"
#include "egress/relay.h"
#include "egress/resolver.h"

struct conn;
struct egress;
struct sandbox;

/* Something that epoll watches; it is part of the object that it belongs to. */
struct watch {
    int fd; /* -1: dead, late events are dropped */
    void (*ready)(struct egress *e, struct watch *w, uint32_t events);
};

#define WATCH_OWNER(watch, type, member) \
    ((type *)(void *)((char *)(watch) - offsetof(type, member)))

struct egress {
    int epoll_fd;
    struct watch control;
    struct watch resolved;
    char unsent_gone[JOB_ID + 1]; /* the answer that the keeper's socket did not take */
    struct policy policy;
    struct limits limits;
    struct resolver resolver;
    struct pipe_pool pipes;
    struct name *proxy_name; /* the proxy's host, resolved like any other name */
    struct sandbox *sandboxes;
    struct sandbox *dead_sandboxes;
    struct conn *dead_conns;
    struct conn *busy; /* have more to relay than one turn allows */
    size_t sandbox_count;
    size_t conn_count;
    size_t listener_count; /* TCP and UDP */
    size_t fd_limit;
    int64_t now;  /* of this turn of the loop */
    int64_t wake; /* when egress_tick() has something to do */
    bool stop;
};

int egress_init(struct egress *e, int control_fd, struct error *reterr) must_check;
int egress_run(struct egress *e, struct error *reterr) must_check;

int watch_add(struct egress *e, struct watch *w, uint32_t events) must_check;
void watch_set(struct egress *e, struct watch *w, uint32_t events);

/* Closes the descriptor; epoll forgets it where nobody else holds the same socket. */
void watch_close(struct watch *w);

/* For sockets that the keeper holds too: epoll would go on reporting them. */
void watch_remove(struct egress *e, struct watch *w);

/* Makes the loop turn at `deadline` at the latest. */
static inline void egress_wake(struct egress *e, int64_t deadline)
{
    e->wake = MIN(e->wake, deadline);
}

/* Connections for which there are descriptors, over all sandboxes. */
size_t egress_capacity(const struct egress *e);
