/* SPDX-License-Identifier: MIT */
/*
 * The signals that ask a verb to stop, waited for by a thread, so that a handler may take locks.
 * Start with {.fd = -1}.
 */
#pragma once

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>

/* Called for SIGINT, SIGTERM, SIGHUP and SIGUSR2, on the thread that waits for them. */
typedef void stop_signals_fn(void *user, int sig);

struct stop_signals {
    stop_signals_fn *handle; /* NULL: the descriptor says it all */
    void *user;
    int fd; /* of stop_signals_take(): readable for ever when one has come and was handled */
    pthread_t thread;
    bool over; /* the thread is to end; atomic */
};

/* Before any thread starts: nobody else gets these signals, and SIGPIPE is ignored. */
void stop_signals_block(void);

int stop_signals_take(struct stop_signals *s, struct error *reterr) must_check;
void stop_signals_leave(struct stop_signals *s); /* also what was never taken; closes `fd` */
