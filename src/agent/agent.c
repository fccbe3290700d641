/* SPDX-License-Identifier: MIT */
/* The agent as a whole: what all its runs share. Runs are in run.c, their nodes in step_*.c. */
#include "agent/agent.h"

#include "agent/batch.h"

int agent_new(const struct agent_options *options, struct agent **ret, struct error *reterr)
{
    struct agent *a = calloc(1, sizeof(*a));

    if (!a)
        return error_no_memory(reterr);
    a->settings = options->settings;
    a->store = options->store;
    a->manager = options->manager;
    a->llm = options->llm;
    a->public_url = strdup(options->public_url ? options->public_url : "");
    a->budgets = calloc(AGENT_BUDGETS, sizeof(*a->budgets));
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (!a->public_url || !a->budgets) {
        agent_free(a);
        return error_no_memory(reterr);
    }
    *ret = a;
    return 0;
}

void agent_free(struct agent *a)
{
    if (!a)
        return;
    agent_forget(a, NULL);
    pthread_mutex_lock(&a->lock);
    while (a->workers)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a->budgets);
    free(a->public_url);
    free(a);
}

/* ---- steps that wait for a line ---- */

/* Takes one out of the list: of this thread and checkpoint, where they are given. Under the lock.
 */
static struct tool_batch *held_take(struct agent *a, const char *thread_id, const char *key)
{
    for (struct tool_batch **p = &a->held; *p; p = &(*p)->next) {
        struct tool_batch *b = *p;

        if ((!thread_id || str_eq(b->thread_id, thread_id)) && (!key || str_eq(b->key, key))) {
            *p = b->next;
            b->next = NULL;
            return b;
        }
    }
    return NULL;
}

void agent_forget(struct agent *a, const char *thread_id)
{
    struct tool_batch *b;

    do {
        pthread_mutex_lock(&a->lock);
        b = held_take(a, thread_id, NULL);
        pthread_mutex_unlock(&a->lock);
        if (b) {
            batch_cancel(b);
            batch_unref(b);
        }
    } while (b);
}

struct tool_batch *agent_held_take(struct agent *a, const char *thread_id, const char *key)
{
    struct tool_batch *b;

    pthread_mutex_lock(&a->lock);
    b = held_take(a, thread_id, key);
    pthread_mutex_unlock(&a->lock);
    return b;
}

/* One that has waited too long, or the oldest of too many; out of the list. Under the lock. */
static struct tool_batch *held_expire(struct agent *a)
{
    int64_t now = clock_ms(), ttl = a->settings->idle_ttl_s * 1000;
    struct tool_batch **p, **oldest = NULL, *b = NULL;
    size_t count = 0;

    for (p = &a->held; *p; p = &(*p)->next, count++)
        oldest = p;
    if (oldest && (count > AGENT_HELD_MAX || now - (*oldest)->held_ms > ttl)) {
        b = *oldest;
        *oldest = NULL;
    }
    return b;
}

void agent_hold(struct agent *a, struct tool_batch *b)
{
    struct tool_batch *expired;

    b->held_ms = clock_ms();
    pthread_mutex_lock(&a->lock);
    b->next = a->held;
    a->held = b;
    pthread_mutex_unlock(&a->lock);
    do {
        pthread_mutex_lock(&a->lock);
        expired = held_expire(a);
        pthread_mutex_unlock(&a->lock);
        if (expired) {
            batch_cancel(expired);
            batch_unref(expired);
        }
    } while (expired);
}

/* ---- budget ---- */

enum { DAY_MS = 24 * 60 * 60 * 1000 };

/* The one of this key, else one that is free, else the oldest. */
static struct agent_budget *budget_find(struct agent *a, const char *key)
{
    struct agent_budget *best = NULL;

    for (size_t i = 0; i < AGENT_BUDGETS; i++) {
        struct agent_budget *b = &a->budgets[i];

        if (str_eq(b->key, key))
            return b;
        if (!best || (best->key[0] && (!b->key[0] || b->since_ms < best->since_ms)))
            best = b;
    }
    return best;
}

int agent_budget_take(struct agent *a, const char *thread_id, struct error *reterr)
{
    int64_t max = a->settings->max_model_calls, now = clock_ms();
    char key[INTERRUPT_ID + 1];
    struct agent_budget *b;
    bool spent;

    if (max == 0)
        return 0;
    agent_digest(key, (const char *const[]){"budget", thread_id, NULL});
    pthread_mutex_lock(&a->lock);
    b = budget_find(a, key);
    if (!str_eq(b->key, key) || now - b->since_ms >= DAY_MS) {
        *b = (struct agent_budget){.since_ms = now};
        memcpy(b->key, key, sizeof(key));
    }
    spent = b->count >= max;
    if (!spent)
        b->count++;
    pthread_mutex_unlock(&a->lock);
    if (!spent)
        return 0;
    return error_set(reterr, ERR_LIMIT,
                     "this conversation has made %lld model calls within 24 hours; raise "
                     "MAX_MODEL_CALLS_PER_DAY",
                     (long long)max);
}
