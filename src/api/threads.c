/* SPDX-License-Identifier: MIT */
/* Threads: conversations. Their values are those of their newest checkpoint. */
#include "api/threads.h"

#include "api/thread_log.h"
#include "base/str.h"
#include "base/uuid.h"

#include <ctype.h>

enum { THREADS_LIMIT = 10, THREADS_LIMIT_MAX = 1000, EXTRACT_MAX = 10, IDS_MAX = 1000 };

static const char *const sort_columns[] = {"thread_id", "status", "created_at", "updated_at",
                                           "state_updated_at"};

/* ---- as clients see them ---- */

/* {"messages": [...]} of the newest checkpoint; NULL when there is none. */
static yyjson_mut_val *values_format(struct http_request *req, yyjson_mut_doc *doc,
                                     const struct store_thread *t)
{
    auto_buf struct buf text;

    buf_init(&text, API_ANSWER_MAX);
    if (!t->head || api_values_append(api_of(req), t->id, NULL, &text) < 0)
        return yyjson_mut_null(doc);
    return yyjson_mut_rawncpy(doc, buf_str(&text), text.len);
}

yyjson_mut_val *thread_format(struct http_request *req, yyjson_mut_doc *doc,
                              const struct store_thread *t)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    api_add_str(doc, v, "thread_id", t->id);
    api_add_time(doc, v, "created_at", t->created_us);
    api_add_time(doc, v, "updated_at", t->updated_us);
    api_add_time(doc, v, "state_updated_at",
                 t->state_updated_us ? t->state_updated_us : t->created_us);
    api_add_raw(doc, v, "metadata", t->metadata);
    api_add_raw(doc, v, "config", t->config ? t->config : "{}");
    api_add_str(doc, v, "status", t->status);
    yyjson_mut_obj_add_val(doc, v, "values", values_format(req, doc, t));
    api_add_raw(doc, v, "interrupts", t->interrupts ? t->interrupts : "{}");
    if (t->error)
        api_add_str(doc, v, "error", t->error);
    if (t->ttl)
        api_add_raw(doc, v, "ttl", t->ttl);
    api_add_str(doc, v, "user_id", t->owner);
    return v;
}

static void thread_reply(struct http_request *req, const struct store_thread *t)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;

    yyjson_mut_doc_set_root(doc, thread_format(req, doc, t));
    api_reply_doc(req, 200, owned);
}

int thread_get(struct http_request *req, struct store_thread *ret)
{
    const char *id = api_thread_id(req);
    struct error error;

    if (!id)
        return -1;
    if (store_thread_get(api_of(req)->store, http_principal(req), id, http_arena(req), ret,
                         &error) < 0)
        return api_fail(req, &error);
    return 0;
}

/* ---- creating ---- */

/* {"ttl": minutes, "strategy"} or minutes; NULL for none. Answers 422. */
static int ttl_parse(struct http_request *req, yyjson_val *body, const char **ret)
{
    yyjson_val *ttl = yyjson_obj_get(body, "ttl");
    yyjson_val *minutes = yyjson_is_obj(ttl) ? yyjson_obj_get(ttl, "ttl") : ttl;

    *ret = NULL;
    if (!ttl || yyjson_is_null(ttl))
        return 0;
    if (!yyjson_is_num(minutes) || yyjson_get_num(minutes) <= 0 || yyjson_get_num(minutes) > 1e8)
        return api_unprocessable(req, "'ttl' has to be minutes, or an object with them");
    *ret = api_member(req, body, "ttl");
    return 0;
}

/* Each superstep's updates become edits of the state, one after another. */
static int supersteps_apply(struct http_request *req, const char *thread_id, yyjson_val *steps)
{
    size_t i, max, n, count;
    yyjson_val *step, *update;
    char checkpoint[UUID_LEN + 1];
    struct error error;

    yyjson_arr_foreach(steps, i, max, step)
    {
        yyjson_arr_foreach(yyjson_obj_get(step, "updates"), n, count, update)
        {
            struct agent_edit edit = {.thread_id = thread_id,
                                      .values = yyjson_obj_get(update, "values"),
                                      .as_node = json_get_str(update, "as_node", NULL)};

            if (agent_state_edit(api_of(req)->agent, &edit, checkpoint, &error) < 0)
                return api_fail(req, &error);
        }
    }
    return 0;
}

static int create_parse(struct http_request *req, yyjson_val *body, struct store_thread *ret)
{
    const char *given = json_get_str(body, "thread_id", json_get_str(body, "threadId", NULL));
    char *id = arena_alloc(http_arena(req), UUID_LEN + 1);
    yyjson_val *metadata = yyjson_obj_get(body, "metadata");
    struct error error;

    if (!id || uuid_v4(id, &error) < 0)
        return api_fail(req, &error);
    if (given && !api_thread_id_check(given))
        return api_unprocessable(req, "'thread_id' is 1 to 128 letters, digits, '-' and '_'");
    if (metadata && !yyjson_is_null(metadata) && !yyjson_is_obj(metadata))
        return api_unprocessable(req, "'metadata' has to be an object");
    if (ttl_parse(req, body, &ret->ttl) < 0)
        return -1;
    ret->id = given ? given : id;
    ret->owner = http_principal(req);
    ret->metadata = api_member(req, body, "metadata");
    if (!ret->metadata)
        ret->metadata = "{}";
    ret->config = "{}";
    ret->status = "idle";
    ret->interrupts = "{}";
    return 0;
}

static void on_create(struct http_request *req)
{
    struct store_thread t = {}, ret = {};
    const char *exists;
    struct error error;
    yyjson_val *body, *steps;

    if (api_body(req, &body) < 0 || create_parse(req, body, &t) < 0)
        return;
    exists = json_get_str(body, "if_exists", json_get_str(body, "ifExists", "raise"));
    if (store_thread_create(api_of(req)->store, &t, str_eq(exists, "do_nothing"), http_arena(req),
                            &ret, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    steps = yyjson_obj_get(body, "supersteps");
    if (steps && supersteps_apply(req, t.id, steps) < 0)
        return;
    if (steps && store_thread_get(api_of(req)->store, http_principal(req), t.id, http_arena(req),
                                  &ret, &error) < 0)
        api_fail(req, &error);
    else
        thread_reply(req, &ret);
}

/* ---- searching ---- */

static int ids_parse(struct http_request *req, yyjson_val *list, struct store_thread_filter *ret)
{
    size_t i, max, count = yyjson_arr_size(list);
    const char **ids = arena_alloc(http_arena(req), (count + 1) * sizeof(char *));
    yyjson_val *id;

    if (count > IDS_MAX || !ids)
        return api_unprocessable(req, "more than %d ids", IDS_MAX);
    yyjson_arr_foreach(list, i, max, id)
    {
        if (!yyjson_is_str(id))
            return api_unprocessable(req, "'ids' has to be an array of strings");
        ids[i] = yyjson_get_str(id);
    }
    ret->ids = ids;
    ret->id_count = count;
    return 0;
}

static int filter_parse(struct http_request *req, yyjson_val *body, struct store_thread_filter *ret)
{
    *ret = (struct store_thread_filter){
        .metadata = api_metadata_filter(req, yyjson_obj_get(body, "metadata")),
        .status = json_get_str(body, "status", NULL),
    };
    if (yyjson_obj_size(yyjson_obj_get(body, "values")) > 0)
        return api_unprocessable(req, "threads are not searched by 'values'; use 'metadata'");
    return yyjson_is_arr(yyjson_obj_get(body, "ids"))
               ? ids_parse(req, yyjson_obj_get(body, "ids"), ret)
               : 0;
}

/* "created_at DESC", as an older client asks: what is not known is the default. */
static void legacy_order(yyjson_val *body, struct http_request *req, struct store_page *page)
{
    const char *order = json_get_str(body, "order_by", NULL);
    size_t len = order ? strcspn(order, " ") : 0;

    if (page->sort_by || !order)
        return;
    for (size_t i = 0; i < ARRAY_LEN(sort_columns); i++) {
        if (strlen(sort_columns[i]) == len && strncmp(order, sort_columns[i], len) == 0) {
            page->sort_by = sort_columns[i];
            page->ascending = strcasecmp(order + len, " asc") == 0;
        }
    }
}

/* Only the members that were asked for. */
static void select_apply(yyjson_mut_val *thread, yyjson_val *select)
{
    yyjson_mut_obj_iter iter;
    yyjson_mut_val *key;
    size_t i, max;
    yyjson_val *name;

    if (!yyjson_is_arr(select) || yyjson_arr_size(select) == 0)
        return;
    yyjson_mut_obj_iter_init(thread, &iter);
    while ((key = yyjson_mut_obj_iter_next(&iter))) {
        bool wanted = false;

        yyjson_arr_foreach(select, i, max, name)
        {
            wanted |= yyjson_is_str(name) && str_eq(yyjson_get_str(name), yyjson_mut_get_str(key));
        }
        if (!wanted)
            yyjson_mut_obj_iter_remove(&iter);
    }
}

/* One step of a path like values.messages[-1].content: what follows it, or NULL at its end. */
static const char *path_step(const char *path, yyjson_val **value)
{
    char name[128];
    size_t len;
    int64_t index, count;

    if (*path == '[') {
        len = strcspn(path + 1, "]");
        if (len == 0 || len >= sizeof(name) || !path[1 + len])
            return NULL;
        memcpy(name, path + 1, len);
        name[len] = 0;
        count = (int64_t)yyjson_arr_size(*value);
        *value = str_parse_int(name, -100000, 100000, &index) < 0
                     ? NULL
                     : yyjson_arr_get(*value, (size_t)(index < 0 ? index + count : index));
        return path + len + 2;
    }
    path += *path == '.';
    len = strcspn(path, ".[");
    if (len == 0 || len >= sizeof(name))
        return NULL;
    memcpy(name, path, len);
    name[len] = 0;
    *value = yyjson_obj_get(*value, name);
    return path + len;
}

static yyjson_val *path_find(yyjson_val *root, const char *path)
{
    while (root && path && *path)
        path = path_step(path, &root);
    return path ? root : NULL;
}

/* {"alias": value at path} beside the thread. */
static void extract_apply(yyjson_mut_doc *doc, yyjson_mut_val *thread, yyjson_val *extract)
{
    size_t len = 0, i, max;
    char *text = yyjson_mut_val_write(thread, YYJSON_WRITE_NOFLAG, &len);
    auto_free char *owned = text;
    auto_json yyjson_doc *copy = NULL;
    yyjson_mut_val *extracted;
    yyjson_val *key, *path;

    if (!text || json_parse(text, len, &copy, NULL) < 0)
        return;
    extracted = yyjson_mut_obj(doc);
    yyjson_obj_foreach(extract, i, max, key, path)
    {
        yyjson_val *v =
            yyjson_is_str(path) ? path_find(yyjson_doc_get_root(copy), yyjson_get_str(path)) : NULL;

        yyjson_mut_obj_add(extracted, yyjson_val_mut_copy(doc, key),
                           v ? yyjson_val_mut_copy(doc, v) : yyjson_mut_null(doc));
    }
    yyjson_mut_obj_add_val(doc, thread, "extracted", extracted);
}

static void on_search(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_arr(doc);
    struct store_thread_filter filter;
    struct store_thread *list = NULL;
    struct store_page page;
    struct error error;
    yyjson_val *body, *extract;
    size_t count = 0;
    int64_t total = 0;

    if (api_body(req, &body) < 0 ||
        api_page(req, body, THREADS_LIMIT, THREADS_LIMIT_MAX, &page) < 0 ||
        filter_parse(req, body, &filter) < 0)
        return;
    legacy_order(body, req, &page);
    extract = yyjson_obj_get(body, "extract");
    if (yyjson_obj_size(extract) > EXTRACT_MAX) {
        api_unprocessable(req, "'extract' has more than %d members", EXTRACT_MAX);
        return;
    }
    if (store_thread_search(api_of(req)->store, http_principal(req), &filter, &page,
                            http_arena(req), &list, &count, &total, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *thread = thread_format(req, doc, &list[i]);

        if (yyjson_is_obj(extract))
            extract_apply(doc, thread, extract);
        select_apply(thread, yyjson_obj_get(body, "select"));
        yyjson_mut_arr_append(root, thread);
    }
    api_pagination(req, &page, count, total);
    api_reply_doc(req, 200, owned);
}

static void on_count(struct http_request *req)
{
    struct store_thread_filter filter;
    struct store_page page = {.limit = 1};
    struct error error;
    yyjson_val *body;
    int64_t total = 0;

    if (api_body(req, &body) < 0 || filter_parse(req, body, &filter) < 0)
        return;
    if (store_thread_search(api_of(req)->store, http_principal(req), &filter, &page,
                            http_arena(req), NULL, NULL, &total, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_text(req, 200, arena_printf(http_arena(req), "%lld", (long long)total));
}

static void on_list(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc), *array = yyjson_mut_arr(doc);
    struct store_page page = {.limit = THREADS_LIMIT_MAX};
    struct store_thread *list = NULL;
    struct error error;
    size_t count = 0;
    int64_t total = 0;

    if (store_thread_search(api_of(req)->store, http_principal(req),
                            &(struct store_thread_filter){}, &page, http_arena(req), &list, &count,
                            &total, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(array, thread_format(req, doc, &list[i]));
    yyjson_mut_obj_add_val(doc, root, "threads", array);
    yyjson_mut_obj_add_int(doc, root, "total", total);
    api_reply_doc(req, 200, owned);
}

/* ---- one thread ---- */

static void on_get(struct http_request *req)
{
    struct store_thread t = {};

    if (thread_get(req, &t) == 0)
        thread_reply(req, &t);
}

static void on_update(struct http_request *req)
{
    const char *id = api_thread_id(req), *ttl, *prefer = http_header(req, "Prefer");
    struct store_thread t = {};
    struct error error;
    yyjson_val *body, *metadata;

    if (!id || api_body(req, &body) < 0 || ttl_parse(req, body, &ttl) < 0)
        return;
    metadata = yyjson_obj_get(body, "metadata");
    if (metadata && !yyjson_is_null(metadata) && !yyjson_is_obj(metadata)) {
        api_unprocessable(req, "'metadata' has to be an object");
        return;
    }
    if (store_thread_update(api_of(req)->store, http_principal(req), id,
                            api_member(req, body, "metadata"), ttl, http_arena(req), &t,
                            &error) < 0)
        api_fail(req, &error);
    else if (prefer && strstr(prefer, "return=minimal"))
        api_reply_empty(req, 204);
    else
        thread_reply(req, &t);
}

int api_thread_delete(struct api *api, const char *owner, const char *thread_id,
                      struct error *reterr)
{
    auto_arena struct arena arena;
    struct store_thread t = {};
    int r;

    arena_init(&arena, MIB);
    r = store_thread_get(api->store, owner, thread_id, &arena, &t, reterr);
    if (r < 0)
        return r;
    live_cancel_thread(api->live, owner, thread_id);
    r = store_thread_delete(api->store, owner, thread_id, reterr);
    if (r < 0)
        return r;
    thread_log_drop(api->threads, owner, thread_id);
    api_thread_clean(api, thread_id);
    return 0;
}

static void on_delete(struct http_request *req)
{
    const char *id = api_thread_id(req);
    struct error error;

    if (!id)
        return;
    if (api_thread_delete(api_of(req), http_principal(req), id, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_empty(req, 204);
}

static void on_copy(struct http_request *req)
{
    const char *id = api_thread_id(req);
    char to[UUID_LEN + 1];
    struct store_thread t = {};
    struct error error;

    if (!id)
        return;
    if (uuid_v4(to, &error) < 0 || store_thread_copy(api_of(req)->store, http_principal(req), id,
                                                     to, http_arena(req), &t, &error) < 0)
        api_fail(req, &error);
    else
        thread_reply(req, &t);
}

static void on_prune(struct http_request *req)
{
    const char *strategy;
    yyjson_val *body, *id;
    size_t i, max;
    int pruned = 0;

    if (api_body(req, &body) < 0)
        return;
    strategy = json_get_str(body, "strategy", "delete");
    if (!str_eq(strategy, "delete") && !str_eq(strategy, "keep_latest")) {
        api_unprocessable(req, "'strategy' is delete or keep_latest");
        return;
    }
    yyjson_arr_foreach(yyjson_obj_get(body, "thread_ids"), i, max, id)
    {
        const char *thread = yyjson_is_str(id) ? yyjson_get_str(id) : "";

        if (str_eq(strategy, "delete"))
            pruned += api_thread_delete(api_of(req), http_principal(req), thread, NULL) == 0;
        else
            pruned +=
                store_thread_prune(api_of(req)->store, http_principal(req), thread, NULL) == 0;
    }
    api_reply_text(req, 200, arena_printf(http_arena(req), "{\"pruned_count\":%d}", pruned));
}

const struct route_entry api_thread_routes[] = {
    {"POST", "/threads/search", "Search threads", on_search},
    {"POST", "/threads/count", "Count threads", on_count},
    {"POST", "/threads/prune", "Delete threads, or all of them but their newest state", on_prune},
    {"GET", "/threads", "List all threads", on_list},
    {"POST", "/threads", "Create a thread", on_create},
    {"GET", "/threads/{thread_id}", "Get a thread", on_get},
    {"PATCH", "/threads/{thread_id}", "Change a thread's metadata", on_update},
    {"DELETE", "/threads/{thread_id}",
     "Delete a thread with its runs, state, sessions, uploads and exports", on_delete},
    {"POST", "/threads/{thread_id}/copy", "Copy a thread with its state", on_copy},
    {},
};
