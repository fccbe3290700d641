/* SPDX-License-Identifier: MIT */
/*
 * What a session has exported: paths, by their normal text. Nothing is copied; a path is resolved
 * inside of the sandbox each time, so a list that outlives what it names gives errors and no more.
 */
#include "session/transfer-internal.h"

#include "base/str.h"

#include <stdio.h>

#define WORKSPACE "/workspace"

/* ---- the list of a session; under its lock ---- */

static struct session_export *export_find(struct session *s, const char *path)
{
    for (size_t i = 0; i < s->export_count; i++) {
        if (str_eq(s->exports[i].path, path))
            return &s->exports[i];
    }
    return NULL;
}

static struct session_export *export_add(struct session *s, const char *path, struct error *reterr)
{
    auto_free char *copy = strdup(path);
    struct session_export *grown;

    if (s->export_count >= EXPORTS_MAX) {
        error_set(reterr, ERR_LIMIT, "%d paths of session %s are exported already; export a folder",
                  EXPORTS_MAX, s->id);
        return NULL;
    }
    grown = realloc(s->exports, (s->export_count + 1) * sizeof(*grown));
    if (grown)
        s->exports = grown;
    if (!grown || !copy) {
        error_no_memory(reterr);
        return NULL;
    }
    grown[s->export_count] = (struct session_export){.path = TAKE_PTR(copy)};
    return &grown[s->export_count++];
}

static int export_put(struct session *s, const struct export_info *info, struct error *reterr)
{
    struct session_export *e;

    pthread_mutex_lock(&s->lock);
    e = export_find(s, info->path);
    if (!e)
        e = export_add(s, info->path, reterr);
    if (e) {
        e->type = info->type;
        e->size = info->size;
    }
    pthread_mutex_unlock(&s->lock);
    return e ? 0 : -ERR_LIMIT;
}

/* ---- exporting ---- */

static int export_look(struct session_manager *m, const struct session_path *at,
                       struct export_info *ret, struct error *reterr)
{
    struct session_path place = {at->id, at->owner, ret->path};
    struct session_file_info info;
    int r = place_normalize(WORKSPACE, at->path, ret->path, reterr);

    if (r < 0)
        return r;
    if (!place_is_below(ret->path, WORKSPACE))
        return error_set(reterr, ERR_DENIED, "'%.200s' is outside " WORKSPACE, at->path);
    r = session_file_look(m, &place, &info, reterr);
    if (r < 0)
        return r;
    ret->type = info.type;
    if (info.type == 'd')
        return session_walk_size(m, &place, &ret->size, reterr);
    ret->size = info.size;
    return place_is_folder(at->path)
               ? error_set(reterr, ERR_INVALID, "'%.200s' is no folder", at->path)
               : 0;
}

int session_export(struct session_manager *m, const struct session_path *at,
                   struct export_info *ret, struct error *reterr)
{
    struct session *s = session_find(m, at->id, at->owner, reterr);
    int r;

    *ret = (struct export_info){};
    if (!s)
        return -ERR_NOT_FOUND;
    r = export_look(m, at, ret, reterr);
    if (r == 0)
        r = export_put(s, ret, reterr);
    session_unref(s);
    return r;
}

int session_export_check(struct session_manager *m, const struct session_path *at,
                         struct error *reterr)
{
    struct session *s = session_find(m, at->id, at->owner, reterr);
    bool covered = false;

    if (!s)
        return -ERR_NOT_FOUND;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->export_count && !covered; i++)
        covered = place_is_below(at->path, s->exports[i].path);
    pthread_mutex_unlock(&s->lock);
    session_unref(s);
    return covered ? 0
                   : error_set(reterr, ERR_DENIED, "'%.200s' is not exported; export it first",
                               at->path);
}

/* ---- listing ---- */

/* One entry at a time is copied out, so that the caller is never called under a lock. */
static bool export_copy(struct session *s, size_t i, struct export_info *ret)
{
    bool there;

    pthread_mutex_lock(&s->lock);
    there = i < s->export_count && session_get_status(s) != SESSION_DEAD;
    if (there) {
        ret->type = s->exports[i].type;
        ret->size = s->exports[i].size;
        snprintf(ret->path, sizeof(ret->path), "%s", s->exports[i].path);
    }
    pthread_mutex_unlock(&s->lock);
    return there;
}

static void exports_tell(struct session *s, session_export_fn *each, void *user)
{
    struct export_info info;

    for (size_t i = 0; export_copy(s, i, &info); i++)
        each(user, s->id, &info);
}

int session_export_list(struct session_manager *m, const char *id, const char *owner,
                        session_export_fn *each, void *user, struct error *reterr)
{
    auto_free struct session_info *infos = NULL;
    struct session *s;
    size_t count;
    int r;

    if (id) {
        s = session_find(m, id, owner, reterr);
        if (!s)
            return -ERR_NOT_FOUND;
        exports_tell(s, each, user);
        session_unref(s);
        return 0;
    }
    r = session_list(m, owner, &infos, &count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++) {
        s = session_find(m, infos[i].id, owner, NULL);
        if (s)
            exports_tell(s, each, user);
        session_unref(s);
    }
    return r;
}
