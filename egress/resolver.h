/* SPDX-License-Identifier: MIT */
/*
 * getaddrinfo() in a few threads. A job is filled by the loop, handed over, and not touched until
 * it comes back; the loop never hands over more jobs than there are threads, so none waits here and
 * the loop alone decides whose turn it is.
 */
#pragma once

#include "wire/addr.h"

#include <pthread.h>

enum { RESOLVER_THREADS = 8, RESOLVER_ADDRS = 64 };

struct resolver_job {
    struct resolver_job *next;
    char host[HOST_SIZE];
    int failure; /* EAI_*, 0 on success */
    size_t count;
    struct addr addrs[RESOLVER_ADDRS];
};

struct resolver {
    pthread_mutex_t lock;
    pthread_cond_t submitted;
    struct resolver_job *todo;
    struct resolver_job *done;
    int event_fd; /* readable when jobs are done */
    int running;  /* jobs handed over and not yet taken back; the loop's own */
};

int resolver_init(struct resolver *r, struct error *reterr) must_check;

static inline bool resolver_is_free(const struct resolver *r)
{
    return r->running < RESOLVER_THREADS;
}

void resolver_submit(struct resolver *r, struct resolver_job *job);

/* All jobs that are done, as a list. */
struct resolver_job *resolver_take(struct resolver *r);
