/* SPDX-License-Identifier: MIT */
/* The manager's insides, shared by manager.c (life, table, clean-up) and create.c (making and
 * adopting sessions). */
#pragma once

#include "engine/image.h"
#include "session/session-internal.h"

struct session_manager {
    const struct settings *settings;
    struct session_manager_options options;
    struct engine *engine;
    struct image_store images;
    char ca_dir[PATH_LEN]; /* empty: no extra CA */
    uint16_t ports[JOB_PORTS];
    size_t port_count;

    pthread_mutex_t lock; /* of the table; never held while a session's lock is taken */
    struct session **sessions;
    size_t count, cap;

    pthread_t collector;
    bool collector_started;
    pthread_mutex_t wake_lock;
    pthread_cond_t wake;
    bool woken, stopping;
};

/* Ends a session and forgets it: its sandbox is closed, its place is free. Waits for whoever is
 * doing so already. */
int manager_end(struct session_manager *m, struct session *s, const char *cause,
                struct error *reterr);

/* Puts a session into the table when the limits allow it. */
int manager_reserve(struct session_manager *m, struct session *s, struct error *reterr);
void manager_forget(struct session_manager *m, struct session *s);

/* A copy of the table, each session referenced; free with manager_snapshot_free(). */
struct session **manager_snapshot(struct session_manager *m, size_t *ret_count);
void manager_snapshot_free(struct session **list, size_t count);

void manager_progress(struct session_manager *m, const char *text);

/* create.c */
int manager_adopt(struct session_manager *m, struct error *reterr);
