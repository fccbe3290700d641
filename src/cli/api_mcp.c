/* SPDX-License-Identifier: MIT */
/*
 * An MCP server knows one conversation, so each owner has one of its own, made when the owner first
 * asks. It is kept until the end, because peers, tasks and displays are its; there are at most as
 * many as the limit says.
 */
#include "cli/api_mcp.h"

#include "base/settings.h"
#include "base/str.h"
#include "mcp/mcp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { OWNERS_MAX = 256 };

struct door {
    struct door *next;
    char *owner, *download_base;
    char thread[UUID_LEN + 1];
    struct mcp_server *server;
    struct mcp_http *http;
};

struct mcp_doors {
    struct mcp_doors_options options;
    struct mcp_http *shared;
    pthread_mutex_t lock; /* of the list; doors stay until the end */
    struct door *list;
    size_t count;
};

static bool door_free(struct door *d)
{
    bool stopped;

    if (!d)
        return true;
    mcp_http_free(d->http);
    stopped = !d->server || mcp_server_stop(d->server);
    if (!stopped)
        return false;
    mcp_server_free(d->server);
    free(d->download_base);
    free(d->owner);
    free(d);
    return true;
}

static int door_open(const struct mcp_doors_options *o, struct door *d, struct error *reterr)
{
    int r = api_mcp_thread(o->api, d->owner, d->thread, reterr);

    if (r < 0)
        return r;
    if (asprintf(&d->download_base, "%s/threads/%s/files/download", o->settings->api_base_url,
                 d->thread) < 0) {
        d->download_base = NULL;
        return error_no_memory(reterr);
    }
    r = mcp_server_new(&(struct mcp_server_options){.size = sizeof(struct mcp_server_options),
                                                    .settings = o->settings,
                                                    .manager = o->manager,
                                                    .owner = d->thread,
                                                    .download_base = d->download_base},
                       &d->server, reterr);
    return r < 0 ? r : mcp_http_new(d->server, &d->http, reterr);
}

static int door_new(const struct mcp_doors_options *o, const char *owner, struct door **ret,
                    struct error *reterr)
{
    struct door *d = calloc(1, sizeof(*d));
    int r;

    if (!d)
        return error_no_memory(reterr);
    d->owner = strdup(owner);
    r = d->owner ? door_open(o, d, reterr) : error_no_memory(reterr);
    if (r < 0)
        (void)!door_free(d);
    else
        *ret = d;
    return r;
}

/* The owner's door; with the lock held. */
static int door_find(struct mcp_doors *doors, const char *owner, struct door **ret,
                     struct error *reterr)
{
    struct door *d = doors->list;
    int r;

    while (d && !str_eq(d->owner, owner))
        d = d->next;
    if (!d) {
        if (doors->count == OWNERS_MAX)
            return error_set(reterr, ERR_LIMIT, "%d owners use MCP already", OWNERS_MAX);
        r = door_new(&doors->options, owner, &d, reterr);
        if (r < 0)
            return r;
        d->next = doors->list;
        doors->list = d;
        doors->count++;
    }
    *ret = d;
    return 0;
}

static int on_find(void *user, struct http_request *req, struct mcp_http **ret)
{
    struct mcp_doors *doors = user;
    char thread[UUID_LEN + 1];
    struct door *d = NULL;
    struct error error;
    bool off = true;
    int r;

    pthread_mutex_lock(&doors->lock);
    r = door_find(doors, http_principal(req), &d, &error);
    pthread_mutex_unlock(&doors->lock);
    /* Its thread can be deleted like any other; the clients go on with a fresh one of that name. */
    if (r == 0) {
        memcpy(thread, d->thread, sizeof(thread));
        r = api_mcp_thread(doors->options.api, d->owner, thread, &error);
    }
    /* The owner can turn the network off while clients are here. */
    if (r == 0 && (r = api_network_is_off(doors->options.api, d->owner, &off, &error)) == 0)
        mcp_server_set_network_off(d->server, off);
    if (r < 0)
        http_fail(req, 0, &error);
    else
        *ret = d->http;
    return r;
}

int mcp_doors_new(const struct mcp_doors_options *options, struct mcp_doors **ret,
                  struct error *reterr)
{
    struct mcp_doors *doors = calloc(1, sizeof(*doors));
    int r;

    if (!doors)
        return error_no_memory(reterr);
    doors->options = *options;
    r = mcp_http_new_shared(on_find, doors, &doors->shared, reterr);
    if (r < 0) {
        free(doors);
        return r;
    }
    pthread_mutex_init(&doors->lock, NULL);
    *ret = doors;
    return 0;
}

void *mcp_doors_user(struct mcp_doors *doors)
{
    return doors->shared;
}

void mcp_doors_progress(struct mcp_doors *doors, const char *text)
{
    if (!doors)
        return;
    pthread_mutex_lock(&doors->lock);
    for (struct door *d = doors->list; d; d = d->next)
        mcp_server_progress(d->server, text);
    pthread_mutex_unlock(&doors->lock);
}

static struct door *door_take(struct mcp_doors *doors)
{
    struct door *d;

    pthread_mutex_lock(&doors->lock);
    d = doors->list;
    doors->list = d ? d->next : NULL;
    pthread_mutex_unlock(&doors->lock);
    return d;
}

bool mcp_doors_stop(struct mcp_doors *doors)
{
    struct door *d;

    while (doors && (d = door_take(doors))) {
        if (!door_free(d))
            return false;
    }
    return true;
}

void mcp_doors_free(struct mcp_doors *doors)
{
    if (!doors)
        return;
    mcp_http_free(doors->shared);
    pthread_mutex_destroy(&doors->lock);
    free(doors);
}
