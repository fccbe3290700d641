/* SPDX-License-Identifier: MIT */
/*
 * The handle of a running sandbox. Its end is known from two sides, the keeper's event and the
 * control connection; the keeper's has the cause, so the first cause that is told stays.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>

struct sandbox *sandbox_new(struct engine *e, const char *id)
{
    struct sandbox *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;

    if (!s)
        return NULL;
    s->job = calloc(1, sizeof(*s->job));
    if (!s->job || str_copy(s->id, sizeof(s->id), id) < 0) {
        free(s->job);
        free(s);
        return NULL;
    }
    s->engine = e;
    s->refs = 1;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
    __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

void sandbox_unref(struct sandbox *s)
{
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
        return;
    control_free(s->control);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->job);
    free(s);
}

void sandbox_set_ended(struct sandbox *s, const char *cause)
{
    pthread_mutex_lock(&s->lock);
    if (!s->ended) {
        s->ended = true;
        if (str_copy(s->cause, sizeof(s->cause), cause) < 0)
            s->cause[0] = 0;
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

bool sandbox_wait_ended(struct sandbox *s, int64_t deadline, char ret_cause[32])
{
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
    bool ended;

    pthread_mutex_lock(&s->lock);
    while (!s->ended && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        ;
    ended = s->ended;
    memcpy(ret_cause, s->cause, sizeof(s->cause));
    pthread_mutex_unlock(&s->lock);
    return ended;
}
