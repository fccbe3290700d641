/* SPDX-License-Identifier: MIT */
/*
 * Assistants: named configurations of the one graph. The graph's own one is the system's: everybody
 * sees it, nobody changes it.
 */
#include "api/api-internal.h"
#include "base/str.h"
#include "base/uuid.h"

enum { ASSISTANTS_LIMIT = 10, ASSISTANTS_LIMIT_MAX = 1000 };

/* `graph_id`: as the client calls the graph; NULL: by its own name. */
static yyjson_mut_val *assistant_format(yyjson_mut_doc *doc, const struct store_assistant *a,
                                        const char *graph_id)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    api_add_str(doc, v, "assistant_id", a->id);
    api_add_str(doc, v, "graph_id", graph_id ? graph_id : a->graph_id);
    api_add_str(doc, v, "name", a->name);
    api_add_str(doc, v, "description", a->description);
    api_add_raw(doc, v, "config", a->config);
    api_add_raw(doc, v, "context", a->context);
    api_add_raw(doc, v, "metadata", a->metadata);
    yyjson_mut_obj_add_int(doc, v, "version", a->version);
    api_add_time(doc, v, "created_at", a->created_us);
    api_add_time(doc, v, "updated_at", a->updated_us);
    api_add_str(doc, v, "user_id", a->owner[0] ? a->owner : "system");
    return v;
}

static void assistant_reply(struct http_request *req, const struct store_assistant *a)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;

    yyjson_mut_doc_set_root(doc, assistant_format(doc, a, NULL));
    api_reply_doc(req, 200, owned);
}

static void list_reply(struct http_request *req, const struct store_assistant *list, size_t count,
                       const char *graph_id)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(root, assistant_format(doc, &list[i], graph_id));
    api_reply_doc(req, 200, owned);
}

/* A UUID or a name of the graph, as a path has it; answers 404. */
static const char *id_of(struct http_request *req)
{
    const char *id = api_assistant_id(http_param(req, "assistant_id"));

    if (!id)
        api_not_found(req, "assistant");
    return id;
}

static int assistant_get(struct http_request *req, struct store_assistant *ret)
{
    const char *id = id_of(req);
    struct error error;

    if (!id)
        return -1;
    if (store_assistant_get(api_of(req)->store, http_principal(req), id, http_arena(req), ret,
                            &error) < 0)
        return api_fail(req, &error);
    return 0;
}

/* ---- searching ---- */

static int filter_parse(struct http_request *req, yyjson_val *body,
                        struct store_assistant_filter *ret)
{
    const char *graph = json_get_str(body, "graph_id", NULL);

    *ret = (struct store_assistant_filter){
        .name = json_get_str(body, "name", NULL),
        .graph_id = graph && str_eq(graph, AGENT_GRAPH_ALIAS) ? AGENT_GRAPH : graph,
        .metadata = api_metadata_filter(req, yyjson_obj_get(body, "metadata")),
    };
    return 0;
}

static void on_search(struct http_request *req)
{
    struct store_assistant_filter filter;
    struct store_assistant *list = NULL;
    struct store_page page;
    struct error error;
    yyjson_val *body;
    size_t count = 0;
    int64_t total = 0;

    if (api_body(req, &body) < 0 ||
        api_page(req, body, ASSISTANTS_LIMIT, ASSISTANTS_LIMIT_MAX, &page) < 0 ||
        filter_parse(req, body, &filter) < 0)
        return;
    if (store_assistant_search(api_of(req)->store, http_principal(req), &filter, &page,
                               http_arena(req), &list, &count, &total, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    api_pagination(req, &page, count, total);
    /* Who asks for the graph by its other name finds it under that one. */
    list_reply(req, list, count, filter.graph_id ? json_get_str(body, "graph_id", NULL) : NULL);
}

static void on_count(struct http_request *req)
{
    struct store_assistant_filter filter;
    struct store_page page = {.limit = 1};
    struct error error;
    yyjson_val *body;
    int64_t total = 0;

    if (api_body(req, &body) < 0 || filter_parse(req, body, &filter) < 0)
        return;
    if (store_assistant_search(api_of(req)->store, http_principal(req), &filter, &page,
                               http_arena(req), NULL, NULL, &total, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_text(req, 200, arena_printf(http_arena(req), "%lld", (long long)total));
}

static void on_list(struct http_request *req)
{
    struct store_page page = {.limit = ASSISTANTS_LIMIT_MAX};
    struct store_assistant *list = NULL;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc), *array = yyjson_mut_arr(doc);
    struct error error;
    size_t count = 0;
    int64_t total = 0;

    if (store_assistant_search(api_of(req)->store, http_principal(req),
                               &(struct store_assistant_filter){}, &page, http_arena(req), &list,
                               &count, &total, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(array, assistant_format(doc, &list[i], NULL));
    yyjson_mut_obj_add_val(doc, root, "assistants", array);
    yyjson_mut_obj_add_int(doc, root, "total", total);
    api_reply_doc(req, 200, owned);
}

/* ---- one assistant ---- */

static void on_get(struct http_request *req)
{
    struct store_assistant a = {};

    if (assistant_get(req, &a) == 0)
        assistant_reply(req, &a);
}

/* Members that are objects, and texts of the right kind. */
static int fields_check(struct http_request *req, yyjson_val *body)
{
    static const char *const objects[] = {"config", "context", "metadata"};
    static const char *const texts[] = {"name", "description", "graph_id"};

    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        yyjson_val *v = yyjson_obj_get(body, objects[i]);

        if (v && !yyjson_is_null(v) && !yyjson_is_obj(v))
            return api_unprocessable(req, "'%s' has to be an object", objects[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        yyjson_val *v = yyjson_obj_get(body, texts[i]);

        if (v && !yyjson_is_null(v) && !yyjson_is_str(v))
            return api_unprocessable(req, "'%s' has to be a string", texts[i]);
    }
    if (yyjson_obj_size(yyjson_obj_get(yyjson_obj_get(body, "config"), "configurable")) > 0 &&
        yyjson_obj_size(yyjson_obj_get(body, "context")) > 0) {
        struct error error;

        error_set(&error, ERR_INVALID, "give either 'config.configurable' or 'context'");
        return api_fail(req, &error);
    }
    return 0;
}

/* What the body says in place of what is there. */
static int fields_take(struct http_request *req, yyjson_val *body, struct store_assistant *a)
{
    const char *graph = json_get_str(body, "graph_id", NULL), *text;

    if (graph && !api_graph_check(graph))
        return api_not_found(req, "graph");
    a->graph_id = AGENT_GRAPH;
    a->name = json_get_str(body, "name", a->name);
    a->description = json_get_str(body, "description", a->description);
    if ((text = api_member(req, body, "config")))
        a->config = text;
    if ((text = api_member(req, body, "context")))
        a->context = text;
    return 0;
}

static const char *metadata_merge(struct http_request *req, const char *old, yyjson_val *patch)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_mut_doc *merged = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = merged;
    auto_buf struct buf text;
    yyjson_val *key, *value;
    yyjson_mut_val *root;
    size_t i, max;

    buf_init(&text, MIB);
    if (json_parse(old, strlen(old), &doc, NULL) < 0)
        return old;
    root = yyjson_val_mut_copy(merged, yyjson_doc_get_root(doc));
    yyjson_mut_doc_set_root(merged, root);
    yyjson_obj_foreach(patch, i, max, key, value)
    {
        yyjson_mut_obj_remove_key(root, yyjson_get_str(key));
        yyjson_mut_obj_add(root, yyjson_val_mut_copy(merged, key),
                           yyjson_val_mut_copy(merged, value));
    }
    if (json_mut_write(owned, &text, NULL) < 0)
        return old;
    return arena_memdup(http_arena(req), buf_str(&text), text.len);
}

static void on_create(struct http_request *req)
{
    const char *exists, *given;
    char *id = arena_alloc(http_arena(req), UUID_LEN + 1);
    struct store_assistant a = {.name = "Untitled", .config = "{}", .context = "{}"}, ret = {};
    struct error error;
    yyjson_val *body;
    const char *metadata;

    if (!id || api_body(req, &body) < 0 || fields_check(req, body) < 0)
        return;
    given = json_get_str(body, "assistant_id", NULL);
    exists = json_get_str(body, "if_exists", "raise");
    metadata = api_member(req, body, "metadata");
    if (!json_get_str(body, "graph_id", NULL)) {
        api_unprocessable(req, "'graph_id' is missing");
        return;
    }
    if (given && !uuid_check(given)) {
        api_unprocessable(req, "'assistant_id' is not a UUID");
        return;
    }
    if (fields_take(req, body, &a) < 0)
        return;
    a.metadata = metadata ? metadata : "{}";
    a.owner = http_principal(req);
    a.id = given ? given : id;
    if ((!given && uuid_v4(id, &error) < 0) ||
        store_assistant_create(api_of(req)->store, &a, str_eq(exists, "do_nothing"),
                               http_arena(req), &ret, &error) < 0)
        api_fail(req, &error);
    else
        assistant_reply(req, &ret);
}

/* The graph's own assistant belongs to nobody who could change it. */
static int own_check(struct http_request *req, const struct store_assistant *a)
{
    struct error error;

    if (a->owner[0])
        return 0;
    error_set(&error, ERR_DENIED, "the graph's own assistant cannot be changed");
    return api_fail(req, &error);
}

static void on_update(struct http_request *req)
{
    struct store_assistant a = {}, ret = {};
    struct error error;
    yyjson_val *body;

    if (api_body(req, &body) < 0 || fields_check(req, body) < 0 || assistant_get(req, &a) < 0 ||
        own_check(req, &a) < 0 || fields_take(req, body, &a) < 0)
        return;
    if (yyjson_is_obj(yyjson_obj_get(body, "metadata")))
        a.metadata = metadata_merge(req, a.metadata, yyjson_obj_get(body, "metadata"));
    if (store_assistant_update(api_of(req)->store, http_principal(req), &a, http_arena(req), &ret,
                               &error) < 0)
        api_fail(req, &error);
    else
        assistant_reply(req, &ret);
}

static void on_delete(struct http_request *req)
{
    struct store_assistant a = {};
    struct error error;

    if (assistant_get(req, &a) < 0 || own_check(req, &a) < 0)
        return;
    if (store_assistant_delete(api_of(req)->store, http_principal(req), a.id, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_text(req, 200, "{\"status\":\"deleted\"}");
}

/* ---- versions ---- */

static void on_versions(struct http_request *req)
{
    struct store_assistant *list = NULL, a = {};
    struct store_page page;
    struct error error;
    yyjson_val *body;
    size_t count = 0;

    if (api_body(req, &body) < 0 ||
        api_page(req, body, ASSISTANTS_LIMIT, ASSISTANTS_LIMIT_MAX, &page) < 0 ||
        assistant_get(req, &a) < 0)
        return;
    if (store_assistant_versions(api_of(req)->store, http_principal(req), a.id,
                                 api_metadata_filter(req, yyjson_obj_get(body, "metadata")), &page,
                                 http_arena(req), &list, &count, &error) < 0)
        api_fail(req, &error);
    else
        list_reply(req, list, count, NULL);
}

static void on_latest(struct http_request *req)
{
    struct store_assistant a = {}, ret = {};
    struct error error;
    yyjson_val *body;
    int64_t version;

    if (api_body(req, &body) < 0)
        return;
    if (!api_whole(yyjson_obj_get(body, "version"), &version)) {
        api_unprocessable(req, "'version' has to be a number");
        return;
    }
    if (assistant_get(req, &a) < 0 || own_check(req, &a) < 0)
        return;
    if (store_assistant_set_version(api_of(req)->store, http_principal(req), a.id, version,
                                    http_arena(req), &ret, &error) < 0)
        api_fail(req, &error);
    else
        assistant_reply(req, &ret);
}

/* ---- the graph ---- */

static void on_graph(struct http_request *req)
{
    const char *xray = http_query(req, "xray");
    struct store_assistant a = {};
    auto_buf struct buf b;
    int64_t depth;

    if (xray && str_parse_int(xray, INT64_MIN, INT64_MAX, &depth) == 0 && depth < 0) {
        api_unprocessable(req, "'xray' is true, false or a number from 0 on");
        return;
    }
    buf_init(&b, MIB);
    if (assistant_get(req, &a) == 0 && agent_graph_write(&b) == 0)
        api_reply(req, 200, &b);
}

static void on_schemas(struct http_request *req)
{
    struct store_assistant a = {};
    auto_buf struct buf b;

    buf_init(&b, MIB);
    if (assistant_get(req, &a) == 0 && agent_schemas_write(a.graph_id, &b) == 0)
        api_reply(req, 200, &b);
}

static void on_subgraphs(struct http_request *req)
{
    struct store_assistant a = {};

    if (assistant_get(req, &a) == 0)
        api_reply_text(req, 200, "{}");
}

const struct route_entry api_assistant_routes[] = {
    {"POST", "/assistants/search", "Search assistants", on_search},
    {"POST", "/assistants/count", "Count assistants", on_count},
    {"GET", "/assistants", "List all assistants", on_list},
    {"POST", "/assistants", "Create an assistant", on_create},
    {"GET", "/assistants/{assistant_id}", "Get an assistant", on_get},
    {"PATCH", "/assistants/{assistant_id}", "Make a new version of an assistant", on_update},
    {"DELETE", "/assistants/{assistant_id}", "Delete an assistant", on_delete},
    {"GET", "/assistants/{assistant_id}/graph", "The graph as nodes and edges", on_graph},
    {"GET", "/assistants/{assistant_id}/schemas", "JSON Schemas of the graph", on_schemas},
    {"GET", "/assistants/{assistant_id}/subgraphs", "Subgraphs: there are none", on_subgraphs},
    {"GET", "/assistants/{assistant_id}/subgraphs/{namespace}", "A subgraph: there is none",
     on_subgraphs},
    {"POST", "/assistants/{assistant_id}/versions", "List versions, newest first", on_versions},
    {"POST", "/assistants/{assistant_id}/latest", "Go back to a version", on_latest},
    {},
};
