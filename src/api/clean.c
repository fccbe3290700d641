/* SPDX-License-Identifier: MIT */
/*
 * What belongs to threads outside of the store, and what is put in order when the server starts and
 * once a minute afterwards. Sandboxes are this host's, so with a database that several servers
 * share nobody here can tell which exported files of others are gone: those go with their threads.
 */
#include "api/api-internal.h"
#include "api/upload.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "session/transfer.h"

#include <fcntl.h>
#include <malloc.h>

/* ---- one thread ---- */

static void sessions_end(struct api *api, const char *thread_id)
{
    auto_free struct session_info *list = NULL;
    struct error error;
    size_t count = 0;

    if (session_list(api->manager, thread_id, &list, &count, &error) < 0) {
        log_warn("the sessions of thread %s cannot be listed, ignoring: %s", thread_id, error.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (session_stop(api->manager, list[i].id, thread_id, &error) < 0 &&
            error.code != ERR_NOT_FOUND)
            log_warn("session %s could not be ended, ignoring: %s", list[i].id, error.text);
        (void)!store_export_delete(api->store, list[i].id, NULL);
    }
}

static void uploads_remove(struct api *api, const char *thread_id)
{
    auto_fd int dir = -1;
    struct error error;

    if (!path_is_name(thread_id))
        return;
    dir = open(api->settings->storage_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && path_remove_tree(dir, thread_id, &error) < 0)
        log_warn("the uploads of thread %s could not be removed whole, ignoring: %s", thread_id,
                 error.text);
}

void api_thread_clean(struct api *api, const char *thread_id)
{
    agent_forget(api->agent, thread_id);
    sessions_end(api, thread_id);
    uploads_remove(api, thread_id);
}

/* ---- all ---- */

static bool session_lives(struct api *api, const char *id)
{
    struct session_info info;

    return session_get_info(api->manager, id, NULL, &info, NULL) == 0 &&
           info.status != SESSION_DEAD;
}

/* Rows of sessions that are gone. */
static void exports_prune(struct api *api)
{
    auto_arena struct arena arena;
    struct store_export *list = NULL;
    struct error error;
    size_t count = 0;

    arena_init(&arena, API_ANSWER_MAX);
    if (!str_eq(store_kind(api->store), "sqlite"))
        return;
    if (store_export_list(api->store, NULL, &arena, &list, &count, &error) < 0) {
        log_warn("exports cannot be listed, ignoring: %s", error.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!session_lives(api, list[i].session_id))
            (void)!store_export_delete(api->store, list[i].session_id, NULL);
    }
}

/* What adopted sessions had exported is registered again; a path that is gone stays out. */
static int exports_restore(struct api *api, struct error *reterr)
{
    auto_arena struct arena arena;
    struct store_export *list = NULL;
    size_t count = 0;
    int r;

    arena_init(&arena, API_ANSWER_MAX);
    r = store_export_list(api->store, NULL, &arena, &list, &count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct session_path at = {.id = list[i].session_id, .path = list[i].path};
        struct export_info info;
        struct error error;

        if (session_lives(api, list[i].session_id) &&
            session_export(api->manager, &at, &info, &error) < 0)
            log_warn("session %s: the export of '%s' is lost: %s", list[i].session_id, list[i].path,
                     error.text);
    }
    return r;
}

/* Each server makes it, so it may be there. */
static int assistant_create(struct api *api, struct error *reterr)
{
    const struct store_assistant a = {.id = AGENT_ASSISTANT,
                                      .owner = "",
                                      .graph_id = AGENT_GRAPH,
                                      .name = AGENT_GRAPH,
                                      .metadata = "{\"created_by\":\"system\"}",
                                      .version = 1};
    auto_arena struct arena arena;
    struct store_assistant ret;

    arena_init(&arena, MIB);
    return store_assistant_create(api->store, &a, true, &arena, &ret, reterr);
}

/* "delete" unless the thread's ttl says otherwise. */
static bool ttl_deletes(const struct store_thread *t)
{
    auto_json yyjson_doc *doc = NULL;

    if (!t->ttl || json_parse(t->ttl, strlen(t->ttl), &doc, NULL) < 0)
        return true;
    return str_eq(json_get_str(yyjson_doc_get_root(doc), "strategy", "delete"), "delete");
}

static void thread_expire(struct api *api, const struct store_thread *t)
{
    struct error error;
    int r = ttl_deletes(t) ? api_thread_delete(api, t->owner, t->id, &error)
                           : store_thread_prune(api->store, t->owner, t->id, &error);

    if (r < 0 && error.code != ERR_NOT_FOUND && error.code != ERR_BUSY)
        log_warn("thread %s stays though its time is over: %s", t->id, error.text);
}

static void threads_expire(struct api *api)
{
    auto_arena struct arena arena;
    struct store_thread *list = NULL;
    struct error error;
    size_t count = 0;

    arena_init(&arena, API_ANSWER_MAX);
    if (store_thread_expired(api->store, timestamp_now(), &arena, &list, &count, &error) < 0) {
        log_warn("threads whose time is over cannot be listed, ignoring: %s", error.text);
        return;
    }
    for (size_t i = 0; i < count; i++)
        thread_expire(api, &list[i]);
}

void api_sweep(struct api *api)
{
    struct error error;

    threads_expire(api);
    if (store_item_expire(api->store, timestamp_now(), &error) < 0)
        log_warn("items whose time is over stay: %s", error.text);
    exports_prune(api);
    upload_sweep(api->settings->storage_dir);
    /* Each thread's part of the heap keeps what large runs had, long after it was freed. */
    malloc_trim(0);
}

int api_recover(struct api *api, struct error *reterr)
{
    int r = assistant_create(api, reterr);

    return r < 0 ? r : exports_restore(api, reterr);
}
