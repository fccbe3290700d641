/* SPDX-License-Identifier: MIT */
/*
 * What became of sessions. One that dies, or is idle for too long, ends without a call that could
 * tell of it; so the living ones of one moment are compared with those of the moment before.
 */
#include "mcp/call-internal.h"

#include "base/str.h"
#include "mcp/displays.h"

struct session_watch {
    size_t count;
    char ids[][ID_LEN + 1]; /* "": it was told of */
};

static struct session_watch *watch_new(const struct session_info *list, size_t count)
{
    struct session_watch *w = calloc(1, sizeof(*w) + count * sizeof(w->ids[0]));

    for (size_t i = 0; w && i < count; i++) {
        if (list[i].status != SESSION_DEAD)
            memcpy(w->ids[w->count++], list[i].id, sizeof(w->ids[0]));
    }
    return w;
}

/* Strikes an id out. */
static void watch_strike(struct session_watch *w, const char *id)
{
    for (size_t i = 0; w && i < w->count; i++) {
        if (str_eq(w->ids[i], id))
            w->ids[i][0] = 0;
    }
}

void mcp_session_ended(struct mcp_server *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    watch_strike(s->watch, id);
    pthread_mutex_unlock(&s->lock);
    displays_drop_session(s->displays, id);
    mcp_notify(s, MCP_RESOURCES_CHANGED, NULL);
}

void mcp_sessions_tick(struct mcp_server *s)
{
    auto_free struct session_info *list = NULL;
    auto_free struct session_watch *before = NULL;
    struct session_watch *now;
    size_t count;
    bool ended = false;

    if (session_list(s->manager, s->owner, &list, &count, NULL) < 0 ||
        !(now = watch_new(list, count)))
        return;
    pthread_mutex_lock(&s->lock);
    before = s->watch;
    s->watch = now;
    for (size_t i = 0; i < now->count; i++)
        watch_strike(before, now->ids[i]);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; before && i < before->count; i++) {
        if (!before->ids[i][0])
            continue;
        displays_drop_session(s->displays, before->ids[i]);
        ended = true;
    }
    if (ended)
        mcp_notify(s, MCP_RESOURCES_CHANGED, NULL);
}
