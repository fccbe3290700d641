/* SPDX-License-Identifier: MIT */
/*
 * The threads are made before the system call filter is, which then needs no call that makes one.
 * They live as long as the process. glibc reads resolv.conf again by itself when it changes.
 */
#include "egress/resolver.h"

#include "base/macro.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

enum { RESOLVER_STACK = 512 * 1024 };

/*
 * AI_ADDRCONFIG: no AAAA records where the host has no IPv6, since dialling them would only take
 * time.
 */
static void job_run(struct resolver_job *job)
{
    const struct addrinfo hints = {
        .ai_flags = AI_ADDRCONFIG, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    job->count = 0;
    job->failure = getaddrinfo(job->host, NULL, &hints, &found);
    if (job->failure != 0)
        return;
    for (const struct addrinfo *a = found; a && job->count < RESOLVER_ADDRS; a = a->ai_next) {
        uint16_t port;

        job->count += addr_from_sockaddr(a->ai_addr, &job->addrs[job->count], &port) == 0;
    }
    freeaddrinfo(found);
}

static struct resolver_job *job_next(struct resolver *r)
{
    struct resolver_job *job;

    pthread_mutex_lock(&r->lock);
    while (!r->todo)
        pthread_cond_wait(&r->submitted, &r->lock);
    job = r->todo;
    r->todo = job->next;
    pthread_mutex_unlock(&r->lock);
    return job;
}

static void job_finish(struct resolver *r, struct resolver_job *job)
{
    pthread_mutex_lock(&r->lock);
    job->next = r->done;
    r->done = job;
    pthread_mutex_unlock(&r->lock);
    eventfd_write(r->event_fd, 1);
}

static void *resolver_thread(void *arg)
{
    struct resolver *r = arg;

    for (;;) {
        struct resolver_job *job = job_next(r);

        job_run(job);
        job_finish(r, job);
    }
    return NULL;
}

static int threads_start(struct resolver *r, const pthread_attr_t *attr)
{
    for (int i = 0; i < RESOLVER_THREADS; i++) {
        pthread_t thread;
        int sys = pthread_create(&thread, attr, resolver_thread, r);

        if (sys != 0)
            return sys;
    }
    return 0;
}

/* Signals are the main thread's: a SIGTERM must end the process, not wake a resolver. */
int resolver_init(struct resolver *r, struct error *reterr)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int sys;

    *r =
        (struct resolver){.lock = PTHREAD_MUTEX_INITIALIZER, .submitted = PTHREAD_COND_INITIALIZER};
    r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->event_fd < 0)
        return error_sys(reterr, errno, "cannot make an eventfd");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, RESOLVER_STACK);
    sys = threads_start(r, &attr);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (sys != 0)
        return error_sys(reterr, sys, "cannot start the resolver's threads");
    return 0;
}

void resolver_submit(struct resolver *r, struct resolver_job *job)
{
    r->running++;
    pthread_mutex_lock(&r->lock);
    job->next = r->todo;
    r->todo = job;
    pthread_cond_signal(&r->submitted);
    pthread_mutex_unlock(&r->lock);
}

struct resolver_job *resolver_take(struct resolver *r)
{
    struct resolver_job *list;
    eventfd_t count;

    eventfd_read(r->event_fd, &count);
    pthread_mutex_lock(&r->lock);
    list = r->done;
    r->done = NULL;
    pthread_mutex_unlock(&r->lock);
    for (const struct resolver_job *job = list; job; job = job->next)
        r->running--;
    return list;
}
