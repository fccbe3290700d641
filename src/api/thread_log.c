/* SPDX-License-Identifier: MIT */
/* A short list: only threads that are followed right now have one. */
#include "api/thread_log.h"

#include "base/clock.h"
#include "base/str.h"

#include <pthread.h>
#include <stdio.h>

enum { IDLE_MS = 600 * 1000, LOGS_MAX = 4096, KEY_MAX = 256 };
#define THREAD_LOG_BYTES (16 * MIB)
#define ALL_BYTES (128 * MIB) /* of all together */

struct thread_log {
    struct thread_log *next;
    struct frame_log *log;
    int64_t used_ms;
    char key[]; /* owner, a slash (which no thread has), thread */
};

struct thread_logs {
    pthread_mutex_t lock;
    struct thread_log *first;
    size_t count;
    int64_t last_epoch_ms;
};

int thread_logs_new(struct thread_logs **ret, struct error *reterr)
{
    struct thread_logs *t = calloc(1, sizeof(*t));

    if (!t)
        return error_no_memory(reterr);
    pthread_mutex_init(&t->lock, NULL);
    *ret = t;
    return 0;
}

/* With the lock held: the log that `at` points to leaves the list; followers end. */
static void log_remove(struct thread_logs *t, struct thread_log **at)
{
    struct thread_log *gone = *at;

    *at = gone->next;
    t->count--;
    frame_log_close(gone->log);
    frame_log_unref(gone->log);
    free(gone);
}

void thread_logs_free(struct thread_logs *t)
{
    if (!t)
        return;
    while (t->first)
        log_remove(t, &t->first);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static struct thread_log *log_new(struct thread_logs *t, const char *key)
{
    size_t size = strlen(key) + 1;
    struct thread_log *l = calloc(1, sizeof(*l) + size);
    struct frame_log_options options = {.max_bytes = THREAD_LOG_BYTES};

    t->last_epoch_ms = options.epoch_ms = MAX(clock_wall_ms(), t->last_epoch_ms + 1);
    if (!l || frame_log_new(&options, &l->log, NULL) < 0) {
        free(l);
        return NULL;
    }
    memcpy(l->key, key, size);
    l->next = t->first;
    t->first = l;
    t->count++;
    return l;
}

/* With the lock held: where the one stands that was unused for the longest time; NULL when all are
 * in use. */
static struct thread_log **oldest_find(struct thread_logs *t)
{
    struct thread_log **oldest = NULL;

    for (struct thread_log **at = &t->first; *at; at = &(*at)->next) {
        if (!frame_log_is_shared((*at)->log) && (!oldest || (*at)->used_ms <= (*oldest)->used_ms))
            oldest = at;
    }
    return oldest;
}

/* Makes room for one more, if there can be. */
static bool room_make(struct thread_logs *t)
{
    struct thread_log **oldest;

    if (t->count < LOGS_MAX)
        return true;
    oldest = oldest_find(t);
    if (oldest)
        log_remove(t, oldest);
    return oldest;
}

struct frame_log *thread_log_get(struct thread_logs *t, const char *owner, const char *thread_id,
                                 bool create)
{
    struct frame_log *log = NULL;
    struct thread_log *l;
    char key[KEY_MAX];

    snprintf(key, sizeof(key), "%s/%s", owner, thread_id);
    pthread_mutex_lock(&t->lock);
    for (l = t->first; l && !str_eq(l->key, key);)
        l = l->next;
    if (!l && create && room_make(t))
        l = log_new(t, key);
    if (l) {
        l->used_ms = clock_ms();
        log = frame_log_ref(l->log);
    }
    pthread_mutex_unlock(&t->lock);
    return log;
}

void thread_log_drop(struct thread_logs *t, const char *owner, const char *thread_id)
{
    char key[KEY_MAX];

    snprintf(key, sizeof(key), "%s/%s", owner, thread_id);
    pthread_mutex_lock(&t->lock);
    for (struct thread_log **at = &t->first; *at;) {
        if (str_eq((*at)->key, key))
            log_remove(t, at);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&t->lock);
}

void thread_logs_sweep(struct thread_logs *t)
{
    struct thread_log **oldest;
    int64_t now = clock_ms();
    size_t bytes = 0;

    pthread_mutex_lock(&t->lock);
    for (struct thread_log **at = &t->first; *at;) {
        if (frame_log_is_shared((*at)->log))
            (*at)->used_ms = now;
        if (now - (*at)->used_ms > IDLE_MS) {
            log_remove(t, at);
            continue;
        }
        bytes += frame_log_bytes((*at)->log);
        at = &(*at)->next;
    }
    while (bytes > ALL_BYTES && (oldest = oldest_find(t))) {
        bytes -= frame_log_bytes((*oldest)->log);
        log_remove(t, oldest);
    }
    pthread_mutex_unlock(&t->lock);
}

void thread_logs_close(struct thread_logs *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->first)
        log_remove(t, &t->first);
    pthread_mutex_unlock(&t->lock);
}
