/* SPDX-License-Identifier: MIT */
/* The sandboxes of an owner's threads. */
#include "api/api-internal.h"

#include "base/str.h"
#include "session/session.h"

static bool is_owners(struct http_request *req, const struct session_info *s)
{
    struct store_thread t = {};

    return store_thread_get(api_of(req)->store, http_principal(req), s->owner, http_arena(req), &t,
                            NULL) == 0;
}

static yyjson_mut_val *session_format(yyjson_mut_doc *doc, const struct session_info *s)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);
    int64_t now = timestamp_now();
    char name[] = "sandbox-........";

    yyjson_mut_obj_add_strcpy(doc, v, "session_id", s->id);
    yyjson_mut_obj_add_strcpy(doc, v, "container_id", s->id);
    memcpy(name + strlen("sandbox-"), s->id, ID_SHORT);
    yyjson_mut_obj_add_strcpy(doc, v, "container_name", name);
    yyjson_mut_obj_add_strcpy(doc, v, "runtime", s->runtime);
    api_add_str(doc, v, "status", session_status_name(s->status));
    yyjson_mut_obj_add_strcpy(doc, v, "thread_id", s->owner);
    yyjson_mut_obj_add_bool(doc, v, "busy", s->busy);
    api_add_time(doc, v, "created_at", s->created_wall_ms * 1000);
    api_add_time(doc, v, "last_activity", now - s->idle_ms * 1000);
    return v;
}

static void on_list(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_arr(doc);
    auto_free struct session_info *list = NULL;
    struct error error;
    size_t count = 0;

    if (session_list(api_of(req)->manager, NULL, &list, &count, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++) {
        if (list[i].status != SESSION_DEAD && is_owners(req, &list[i]))
            yyjson_mut_arr_append(root, session_format(doc, &list[i]));
    }
    api_reply_doc(req, 200, owned);
}

/* A session of one of the owner's threads; answers 404. */
static int session_get(struct http_request *req, struct session_info *ret)
{
    const char *id = http_param(req, "session_id");

    if (session_get_info(api_of(req)->manager, id, NULL, ret, NULL) < 0 || !is_owners(req, ret))
        return api_not_found(req, "session");
    return 0;
}

static void on_delete(struct http_request *req)
{
    struct session_info info = {};
    struct error error;

    if (session_get(req, &info) < 0)
        return;
    if (session_stop(api_of(req)->manager, info.id, info.owner, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    (void)!store_export_delete(api_of(req)->store, info.id, NULL);
    api_reply_text(req, 200,
                   arena_printf(http_arena(req), "{\"ok\":true,\"session_id\":\"%s\"}", info.id));
}

static void on_interrupt(struct http_request *req)
{
    struct session_info info = {};
    struct error error;

    if (session_get(req, &info) < 0)
        return;
    if (session_interrupt(api_of(req)->manager, info.id, info.owner, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_text(
            req, 200,
            arena_printf(http_arena(req), "{\"ok\":true,\"session_id\":\"%s\"}", info.id));
}

const struct route_entry api_session_routes[] = {
    {"GET", "/sessions", "The live sandboxes of the owner's threads", on_list},
    {"DELETE", "/sessions/{session_id}", "End a sandbox", on_delete},
    {"POST", "/sessions/{session_id}/interrupt", "Interrupt its running cell", on_interrupt},
    {},
};
