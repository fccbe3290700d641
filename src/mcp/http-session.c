/* SPDX-License-Identifier: MIT */
/*
 * Peers of the HTTP transport. A session costs little and holds no sandbox, so what nobody uses is
 * kept for hours, but never more than a bounded number of them.
 */
#include "mcp/http-internal.h"

#include "base/clock.h"
#include "base/str.h"

enum { SESSIONS_MAX = 256, IDLE_MS = 4 * 3600 * 1000 };

/* Its peers may outlive it: until calls have ended that answer to them. */
static void http_unref(struct mcp_http *h)
{
    if (__atomic_sub_fetch(&h->refs, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_mutex_destroy(&h->events_lock);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

struct mcp_peer *mcp_peer_new(struct mcp_http *h, bool modern)
{
    struct mcp_peer *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    *p = (struct mcp_peer){.refs = 1, .http = h, .used_ms = clock_ms()};
    if (!modern && id_new(p->id, NULL) < 0) {
        free(p);
        return NULL;
    }
    p->client = mcp_client_new(h->server, NULL);
    if (p->client && !modern)
        p->logs = event_logs_new();
    if (!p->client || (!modern && !p->logs)) {
        if (p->client)
            mcp_client_free(p->client);
        free(p);
        return NULL;
    }
    if (modern)
        mcp_client_set_modern(p->client);
    __atomic_add_fetch(&h->refs, 1, __ATOMIC_RELAXED);
    return p;
}

struct mcp_peer *mcp_peer_ref(struct mcp_peer *p)
{
    __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void mcp_peer_unref(struct mcp_peer *p)
{
    if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
        return;
    mcp_client_free(p->client);
    event_logs_free(p->logs);
    http_unref(p->http);
    free(p);
}

void mcp_peer_use(struct mcp_peer *p, int delta)
{
    pthread_mutex_lock(&p->http->lock);
    p->open += (unsigned)delta;
    p->used_ms = clock_ms();
    pthread_mutex_unlock(&p->http->lock);
}

/* ---- the list ---- */

/* Takes one out of the list, whose reference goes to the caller; under the lock. */
static struct mcp_peer *session_take(struct mcp_http *h, const struct mcp_peer *p)
{
    for (struct mcp_peer **at = &h->sessions; *at; at = &(*at)->next) {
        struct mcp_peer *found = *at;

        if (found != p)
            continue;
        *at = found->next;
        h->count--;
        found->ended = true;
        return found;
    }
    return NULL;
}

/* The session that was not used for longest, if it may go; under the lock. */
static struct mcp_peer *session_unused(struct mcp_http *h, int64_t now)
{
    struct mcp_peer *oldest = NULL;

    for (struct mcp_peer *p = h->sessions; p; p = p->next) {
        if (p->open == 0 && (!oldest || p->used_ms < oldest->used_ms))
            oldest = p;
    }
    if (!oldest || (now - oldest->used_ms < IDLE_MS && h->count < SESSIONS_MAX))
        return NULL;
    return session_take(h, oldest);
}

/* Everything that leads from the client back to the peer: requests, and questions that wait for
 * the answer to one. */
static void session_cut(struct mcp_peer *p)
{
    mcp_session_set_events(p, NULL, NULL);
    mcp_client_channel_gone(p->client, NULL);
    event_logs_end(p->logs);
}

int mcp_session_add(struct mcp_peer *p, struct error *reterr)
{
    struct mcp_http *h = p->http;
    struct mcp_peer *unused;
    bool added;

    pthread_mutex_lock(&h->lock);
    unused = session_unused(h, clock_ms());
    added = h->count < SESSIONS_MAX;
    if (added) {
        p->next = h->sessions;
        h->sessions = mcp_peer_ref(p);
        h->count++;
    }
    pthread_mutex_unlock(&h->lock);
    if (unused)
        session_cut(unused);
    mcp_peer_unref(unused);
    return added ? 0 : error_set(reterr, ERR_LIMIT, "%d sessions are in use", SESSIONS_MAX);
}

struct mcp_peer *mcp_session_find(struct mcp_http *h, const char *id)
{
    struct mcp_peer *p;

    pthread_mutex_lock(&h->lock);
    for (p = h->sessions; p && !str_eq(p->id, id); p = p->next)
        ;
    if (p)
        mcp_peer_ref(p);
    pthread_mutex_unlock(&h->lock);
    return p;
}

bool mcp_session_end(struct mcp_peer *p)
{
    struct mcp_peer *found;

    pthread_mutex_lock(&p->http->lock);
    found = session_take(p->http, p);
    pthread_mutex_unlock(&p->http->lock);
    if (!found)
        return false;
    session_cut(p);
    mcp_peer_unref(found);
    return true;
}

void mcp_session_check(struct mcp_peer *p)
{
    bool ended;

    pthread_mutex_lock(&p->http->lock);
    ended = p->ended;
    pthread_mutex_unlock(&p->http->lock);
    if (ended)
        session_cut(p);
}

void mcp_session_set_events(struct mcp_peer *p, struct exchange *x, const struct exchange *before)
{
    pthread_mutex_lock(&p->http->events_lock);
    if (!before || p->events == before) {
        p->events = x;
        mcp_client_set_events(p->client, x ? exchange_channel(x) : NULL);
    }
    pthread_mutex_unlock(&p->http->events_lock);
}

/* ---- the endpoint ---- */

int mcp_http_new(struct mcp_server *s, struct mcp_http **ret, struct error *reterr)
{
    struct mcp_http *h = calloc(1, sizeof(*h));

    if (!h)
        return error_no_memory(reterr);
    h->refs = 1;
    h->server = s;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->events_lock, NULL);
    *ret = h;
    return 0;
}

int mcp_http_new_shared(mcp_http_find_fn *find, void *user, struct mcp_http **ret,
                        struct error *reterr)
{
    int r = mcp_http_new(NULL, ret, reterr);

    if (r < 0)
        return r;
    (*ret)->find = find;
    (*ret)->find_user = user;
    return 0;
}

void mcp_http_free(struct mcp_http *h)
{
    if (!h)
        return;
    while (h->sessions)
        mcp_session_end(h->sessions);
    http_unref(h);
}
