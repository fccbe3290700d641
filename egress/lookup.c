/* SPDX-License-Identifier: MIT */
/*
 * Fair use of the resolver's threads: sandboxes take turns, and one sandbox has at most
 * LOOKUP_SANDBOX threads, so names whose servers never answer hold up only their own sandbox.
 */
#include "egress/lookup.h"

#include "egress/conn.h"

#include "base/str.h"

enum {
    LOOKUP_SANDBOX = 2, /* running */
    LOOKUP_MAX = 256,   /* in all, of one sandbox */
    LOOKUP_KEEP_MS = 5000,
    LOOKUP_FAILED_MS = 1000,
};

/* New ones are put in front, so the last is the one that waits longest. */
static struct lookup *queued_find(const struct sandbox *box)
{
    struct lookup *l = box->lookups, *oldest = NULL;

    for (; l; l = l->next) {
        if (l->state == LOOKUP_QUEUED)
            oldest = l;
    }
    return oldest;
}

/* The sandbox whose turn it is: of those that wait, the one with the fewest running lookups. */
static struct lookup *turn_find(const struct egress *e)
{
    struct lookup *best = NULL;

    for (const struct sandbox *box = e->sandboxes; box; box = box->next) {
        struct lookup *l;

        if (box->lookups_running >= LOOKUP_SANDBOX ||
            (best && box->lookups_running >= best->box->lookups_running))
            continue;
        l = queued_find(box);
        if (l)
            best = l;
    }
    return best;
}

static void lookups_submit(struct egress *e)
{
    while (resolver_is_free(&e->resolver)) {
        struct lookup *l = turn_find(e);

        if (!l)
            return;
        l->state = LOOKUP_RUNNING;
        l->box->lookups_running++;
        resolver_submit(&e->resolver, &l->job);
    }
}

/* Frees results that are too old, counts the others and returns the one for a name. */
static struct lookup *lookup_find(const struct egress *e, struct sandbox *box,
                                  const struct name *name, size_t *ret_count)
{
    struct lookup **p = &box->lookups, *found = NULL;

    *ret_count = 0;

    while (*p) {
        struct lookup *l = *p;

        if (l->state == LOOKUP_DONE && e->now >= l->expires) {
            *p = l->next;
            free(l);
            continue;
        }
        ++*ret_count;
        if (l->name == name)
            found = l;
        p = &l->next;
    }
    return found;
}

const struct lookup *lookup_get(struct egress *e, struct sandbox *box, const struct name *name,
                                int *ret_error)
{
    size_t count;
    struct lookup *l = lookup_find(e, box, name, &count);

    *ret_error = 0;
    if (l)
        return l->state == LOOKUP_DONE ? l : NULL;
    l = count < LOOKUP_MAX ? calloc(1, sizeof(*l)) : NULL;
    if (!l || str_copy(l->job.host, sizeof(l->job.host), name->text) < 0) {
        free(l);
        *ret_error = -1;
        return NULL;
    }
    l->box = box;
    l->name = name;
    l->state = LOOKUP_QUEUED;
    l->next = box->lookups;
    box->lookups = l;
    lookups_submit(e);
    return NULL;
}

/*
 * A failure is kept too, shortly: a client that tries again at once must not cost a thread each
 * time.
 */
static void lookup_finish(struct egress *e, struct lookup *l)
{
    if (!l->box) {
        free(l);
        return;
    }
    l->box->lookups_running--;
    l->state = LOOKUP_DONE;
    l->expires = e->now + (l->job.failure ? LOOKUP_FAILED_MS : LOOKUP_KEEP_MS);
    conn_resolved(e, l->box, l);
}

void lookup_collect(struct egress *e)
{
    struct resolver_job *job = resolver_take(&e->resolver);

    while (job) {
        struct resolver_job *next = job->next;

        lookup_finish(e, (struct lookup *)(void *)((char *)job - offsetof(struct lookup, job)));
        job = next;
    }
    lookups_submit(e);
}

/* What a thread works on cannot be taken from it; it is freed when it comes back. */
void lookup_drop_all(struct sandbox *box)
{
    while (box->lookups) {
        struct lookup *l = box->lookups;

        box->lookups = l->next;
        if (l->state == LOOKUP_RUNNING)
            l->box = NULL;
        else
            free(l);
    }
}
