/* SPDX-License-Identifier: MIT */
/*
 * What happens by the clock: a thread that looks each second for crons that are due, and puts
 * things in order at the start and once a minute.
 */
#include "api/crons.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

enum { SWEEP_MS = 60000, LOOK_MS = 1000, TAKEN_MAX = 100 };

struct crons {
    struct api *api;
    pthread_t thread;
    int stop; /* eventfd */
};

/* One that is due; false when there is none. */
static bool cron_take(struct api *api)
{
    auto_arena struct arena arena;
    struct store_cron c = {};
    struct error error;
    int r;

    arena_init(&arena, API_ANSWER_MAX);
    r = store_cron_take(api->store, timestamp_now(), cron_next, &arena, &c, &error);
    if (r < 0)
        log_warn("crons cannot be looked through: %s", error.text);
    if (r <= 0)
        return false;
    if (cron_fire(api, &c, &arena, &error) < 0)
        log_warn("cron %s could not start its run: %s", c.id, error.text);
    return true;
}

static void *crons_main(void *arg)
{
    struct crons *c = arg;
    int64_t sweep_at = clock_ms();

    do {
        for (int i = 0; c->api->settings->crons && i < TAKEN_MAX && cron_take(c->api); i++)
            ;
        if (clock_ms() >= sweep_at) {
            api_sweep(c->api);
            sweep_at = clock_ms() + SWEEP_MS;
        }
    } while (fd_wait(c->stop, POLLIN, clock_deadline(LOOK_MS)) == 0);
    return NULL;
}

int crons_start(struct api *api, struct error *reterr)
{
    auto_free struct crons *c = calloc(1, sizeof(*c));
    auto_fd int stop = -1;
    int r;

    if (!c)
        return error_no_memory(reterr);
    stop = eventfd(0, EFD_CLOEXEC);
    if (stop < 0)
        return error_sys(reterr, errno, "cannot make an event descriptor");
    c->api = api;
    c->stop = stop;
    r = pthread_create(&c->thread, NULL, crons_main, c);
    if (r != 0)
        return error_sys(reterr, r, "cannot start the thread of the crons");
    TAKE_FD(stop);
    api->crons = TAKE_PTR(c);
    return 0;
}

void crons_stop(struct api *api)
{
    struct crons *c = api->crons;

    if (!c)
        return;
    api->crons = NULL;
    (void)!eventfd_write(c->stop, 1);
    pthread_join(c->thread, NULL);
    close(c->stop);
    free(c);
}
