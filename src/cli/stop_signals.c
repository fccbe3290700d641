/* SPDX-License-Identifier: MIT */
/* SIGUSR1 only wakes the thread: from outside it means nothing, and ends nothing. */
#include "cli/stop_signals.h"

#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void set_fill(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGHUP);
    sigaddset(ret, SIGUSR1);
    sigaddset(ret, SIGUSR2);
}

static void *signals_main(void *arg)
{
    struct stop_signals *s = arg;
    sigset_t set;
    int sig;

    set_fill(&set);
    while (sigwait(&set, &sig) == 0 && !__atomic_load_n(&s->over, __ATOMIC_ACQUIRE)) {
        if (sig == SIGUSR1)
            continue;
        if (s->handle)
            s->handle(s->user, sig);
        (void)!eventfd_write(s->fd, 1);
    }
    return NULL;
}

void stop_signals_block(void)
{
    sigset_t set;

    set_fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int stop_signals_take(struct stop_signals *s, struct error *reterr)
{
    auto_fd int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int e;

    if (fd < 0)
        return error_sys(reterr, errno, "cannot make an event descriptor");
    s->fd = fd;
    if ((e = pthread_create(&s->thread, NULL, signals_main, s)) != 0) {
        s->fd = -1;
        return error_sys(reterr, e, "cannot start a thread");
    }
    TAKE_FD(fd);
    return 0;
}

void stop_signals_leave(struct stop_signals *s)
{
    if (s->fd < 0)
        return;
    __atomic_store_n(&s->over, true, __ATOMIC_RELEASE);
    pthread_kill(s->thread, SIGUSR1);
    pthread_join(s->thread, NULL);
    close(s->fd);
    s->fd = -1;
}
