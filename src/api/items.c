/* SPDX-License-Identifier: MIT */
/*
 * The long-term store. A namespace is a list of labels outside and one text with dots inside, so no
 * label holds a dot.
 */
#include "api/api-internal.h"

#include "base/str.h"

enum {
    ITEMS_LIMIT = 10,
    NAMESPACES_LIMIT = 100,
    LIMIT_MAX = 1000,
    LABELS_MAX = 32,
    NAME_MAX_BYTES = 512,
    MINUTES_MAX = 100000000,
};
#define MINUTE_US (60 * (int64_t)1000000)

/* ---- names ---- */

static bool label_check(yyjson_val *v)
{
    size_t len = yyjson_get_len(v);

    return yyjson_is_str(v) && len > 0 && len <= NAME_MAX_BYTES &&
           strlen(yyjson_get_str(v)) == len && !strchr(yyjson_get_str(v), '.');
}

/* A text with dots, whose labels are whole. */
static bool joined_check(const char *s)
{
    size_t labels = 1;

    if (!*s || strlen(s) > (size_t)LABELS_MAX * NAME_MAX_BYTES)
        return false;
    for (const char *p = s; *p; p++) {
        if (*p != '.')
            continue;
        labels++;
        if (p == s || p[1] == '.' || !p[1])
            return false;
    }
    return labels <= LABELS_MAX;
}

static int namespace_refuse(struct http_request *req, const char *name)
{
    return api_unprocessable(req,
                             "'%s' has to be up to %d labels of 1 to %d bytes, none of which holds "
                             "a dot",
                             name, LABELS_MAX, NAME_MAX_BYTES);
}

/* An array of labels, or a text with dots; "" for none. Answers 422. */
static const char *namespace_parse(struct http_request *req, yyjson_val *body, const char *name)
{
    yyjson_val *list = yyjson_obj_get(body, name), *label;
    const char *joined = "";
    size_t i, max;

    if (yyjson_is_str(list) && strlen(yyjson_get_str(list)) == yyjson_get_len(list) &&
        joined_check(yyjson_get_str(list)))
        return yyjson_get_str(list);
    if (list && !yyjson_is_null(list) &&
        (!yyjson_is_arr(list) || yyjson_arr_size(list) > LABELS_MAX)) {
        namespace_refuse(req, name);
        return NULL;
    }
    yyjson_arr_foreach(list, i, max, label)
    {
        if (!label_check(label)) {
            namespace_refuse(req, name);
            return NULL;
        }
        joined =
            arena_printf(http_arena(req), "%s%s%s", joined, i ? "." : "", yyjson_get_str(label));
        if (!joined)
            break;
    }
    if (!joined)
        namespace_refuse(req, name);
    return joined;
}

struct item_name {
    const char *namespace, *key;
};

static int name_check(struct http_request *req, const struct item_name *name)
{
    if (!*name->namespace)
        return namespace_refuse(req, "namespace");
    if (!name->key || !*name->key || strlen(name->key) > NAME_MAX_BYTES)
        return api_unprocessable(req, "'key' has to be a text of 1 to %d bytes", NAME_MAX_BYTES);
    return 0;
}

static int name_parse(struct http_request *req, yyjson_val *body, struct item_name *ret)
{
    yyjson_val *key = yyjson_obj_get(body, "key");

    ret->namespace = namespace_parse(req, body, "namespace");
    if (!ret->namespace)
        return -1;
    ret->key = yyjson_is_str(key) && strlen(yyjson_get_str(key)) == yyjson_get_len(key)
                   ? yyjson_get_str(key)
                   : NULL;
    return name_check(req, ret);
}

/* The query's namespace: with dots, repeated, or both. */
static int name_query(struct http_request *req, struct item_name *ret)
{
    const char *joined = "", *part;

    for (size_t i = 0; joined && (part = http_query_at(req, "namespace", i)); i++)
        joined = arena_printf(http_arena(req), "%s%s%s", joined, i ? "." : "", part);
    if (!joined || !joined_check(joined))
        return namespace_refuse(req, "namespace");
    *ret = (struct item_name){.namespace = joined, .key = http_query(req, "key")};
    return name_check(req, ret);
}

/* ---- one item ---- */

static yyjson_mut_val *labels_format(yyjson_mut_doc *doc, const char *joined)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);

    for (const char *p = joined; *p;) {
        size_t len = strcspn(p, ".");

        yyjson_mut_arr_append(list, yyjson_mut_strn(doc, p, len));
        p += len + (p[len] == '.');
    }
    return list;
}

static yyjson_mut_val *item_format(yyjson_mut_doc *doc, const struct store_item *item)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_val(doc, v, "namespace", labels_format(doc, item->namespace));
    api_add_str(doc, v, "key", item->key);
    api_add_raw(doc, v, "value", item->value);
    api_add_time(doc, v, "created_at", item->created_us);
    api_add_time(doc, v, "updated_at", item->updated_us);
    return v;
}

static int ttl_parse(struct http_request *req, yyjson_val *body, int64_t *ret)
{
    yyjson_val *ttl = yyjson_obj_get(body, "ttl");

    *ret = 0;
    if (!ttl || yyjson_is_null(ttl))
        return 0;
    if (!yyjson_is_num(ttl) || yyjson_get_num(ttl) <= 0 || yyjson_get_num(ttl) > MINUTES_MAX)
        return api_unprocessable(req, "'ttl' has to be minutes, up to %d", MINUTES_MAX);
    *ret = MAX((int64_t)(yyjson_get_num(ttl) * (double)MINUTE_US), 1);
    return 0;
}

static void on_put(struct http_request *req)
{
    struct store_item item = {};
    struct item_name name;
    auto_buf struct buf value;
    struct error error;
    yyjson_val *body;

    buf_init(&value, API_ANSWER_MAX);
    if (api_body(req, &body) < 0 || name_parse(req, body, &name) < 0 ||
        ttl_parse(req, body, &item.ttl_us) < 0)
        return;
    if (!yyjson_is_obj(yyjson_obj_get(body, "value"))) {
        api_unprocessable(req, "'value' has to be an object");
        return;
    }
    if (json_write(yyjson_obj_get(body, "value"), &value, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    item.namespace = name.namespace;
    item.key = name.key;
    item.value = buf_str(&value);
    if (store_item_put(api_of(req)->store, http_principal(req), &item, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_empty(req, 204);
}

/* A missing item is null, as Agent Server answers. */
static void on_get(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    const char *refresh = http_query(req, "refresh_ttl");
    auto_arena struct arena arena;
    struct store_item item = {};
    struct item_name name;
    struct error error;
    bool renew = true;
    int r;

    arena_init(&arena, API_ANSWER_MAX);
    if (name_query(req, &name) < 0)
        return;
    if (refresh && str_parse_bool(refresh, &renew) < 0)
        renew = true;
    r = store_item_get(api_of(req)->store, http_principal(req), name.namespace, name.key, renew,
                       &arena, &item, &error);
    if (r < 0 && error.code == ERR_NOT_FOUND) {
        api_reply_text(req, 200, "null");
        return;
    }
    if (r < 0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, item_format(doc, &item));
    api_reply_doc(req, 200, owned);
}

/* One that is not there is as good as deleted. */
static void on_delete(struct http_request *req)
{
    struct item_name name;
    struct error error;
    yyjson_val *body;

    if (http_body(req)->len == 0) {
        if (name_query(req, &name) < 0)
            return;
    } else if (api_body(req, &body) < 0 || name_parse(req, body, &name) < 0) {
        return;
    }
    if (store_item_delete(api_of(req)->store, http_principal(req), name.namespace, name.key,
                          &error) < 0 &&
        error.code != ERR_NOT_FOUND)
        api_fail(req, &error);
    else
        api_reply_empty(req, 204);
}

/* ---- searching ---- */

/* Values are compared whole: what looks like an operator would silently find nothing. */
static const char *operator_find(yyjson_val *value)
{
    size_t i, max;
    yyjson_val *key, *inner;

    yyjson_obj_foreach(value, i, max, key, inner)
    {
        if (yyjson_get_str(key)[0] == '$')
            return yyjson_get_str(key);
    }
    return NULL;
}

static int filter_parse(struct http_request *req, yyjson_val *body, const char **ret)
{
    yyjson_val *filter = yyjson_obj_get(body, "filter"), *key, *value;
    size_t i, max;

    *ret = NULL;
    if (!filter || yyjson_is_null(filter))
        return 0;
    if (!yyjson_is_obj(filter))
        return api_unprocessable(req, "'filter' has to be an object");
    yyjson_obj_foreach(filter, i, max, key, value)
    {
        const char *word = operator_find(value);

        if (word)
            return api_unprocessable(req, "items are not filtered by '%.20s', only by values",
                                     word);
    }
    if (yyjson_obj_size(filter))
        *ret = api_member(req, body, "filter");
    return 0;
}

/* Begins the time to live of what was found again. */
static void items_renew(struct http_request *req, struct arena *arena, struct store_item *list,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct store_item item = list[i];

        if (item.ttl_us && store_item_get(api_of(req)->store, http_principal(req), item.namespace,
                                          item.key, true, arena, &item, NULL) == 0)
            list[i] = item;
    }
}

static void on_search(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc), *items = yyjson_mut_arr(doc);
    const char *prefix, *filter;
    auto_arena struct arena arena;
    struct store_item *list = NULL;
    struct store_page page;
    struct error error;
    yyjson_val *body;
    size_t count = 0;

    arena_init(&arena, API_ANSWER_MAX);
    if (api_body(req, &body) < 0 || api_page(req, body, ITEMS_LIMIT, LIMIT_MAX, &page) < 0 ||
        filter_parse(req, body, &filter) < 0)
        return;
    prefix = namespace_parse(req, body, "namespace_prefix");
    if (!prefix)
        return;
    if (store_item_search(api_of(req)->store, http_principal(req), prefix, filter,
                          json_get_str(body, "query", NULL), &page, &arena, &list, &count,
                          &error) < 0) {
        api_fail(req, &error);
        return;
    }
    if (json_get_bool(body, "refresh_ttl", true))
        items_renew(req, &arena, list, count);
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *v = item_format(doc, &list[i]);

        yyjson_mut_obj_add_null(doc, v, "score");
        yyjson_mut_arr_append(items, v);
    }
    yyjson_mut_obj_add_val(doc, root, "items", items);
    yyjson_mut_obj_add_uint(doc, root, "total", count);
    yyjson_mut_obj_add_int(doc, root, "limit", page.limit);
    yyjson_mut_obj_add_int(doc, root, "offset", page.offset);
    api_reply_doc(req, 200, owned);
}

/* ---- namespaces ---- */

/* The n-th label and its length; NULL behind the last. */
static const char *label_at(const char *joined, size_t n, size_t *ret_len)
{
    for (; n > 0 && joined; n--) {
        joined = strchr(joined, '.');
        joined = joined ? joined + 1 : NULL;
    }
    *ret_len = joined ? strcspn(joined, ".") : 0;
    return joined;
}

static size_t label_count(const char *joined)
{
    size_t n = *joined != 0;

    for (; *joined; joined++)
        n += *joined == '.';
    return n;
}

/* Whether the labels from the `from`-th on are those of the pattern; "*" is any one label. */
static bool labels_match(const char *joined, size_t from, const char *pattern)
{
    size_t count = label_count(pattern);

    for (size_t i = 0; i < count; i++) {
        size_t len, want_len;
        const char *label = label_at(joined, from + i, &len);
        const char *want = label_at(pattern, i, &want_len);

        if (!label)
            return false;
        if (want_len == 1 && *want == '*')
            continue;
        if (len != want_len || memcmp(label, want, len) != 0)
            return false;
    }
    return true;
}

struct namespace_filter {
    const char *prefix, *suffix;
    int64_t depth; /* 0: any */
};

static bool namespace_matches(const char *joined, const struct namespace_filter *f)
{
    size_t count = label_count(joined), tail = label_count(f->suffix);

    return tail <= count && labels_match(joined, 0, f->prefix) &&
           labels_match(joined, count - tail, f->suffix);
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keeps those that match, cut to the depth, each once and sorted. */
static size_t namespaces_filter(struct arena *arena, const char **list, size_t count,
                                const struct namespace_filter *f)
{
    size_t kept = 0, n = 0, len;

    for (size_t i = 0; i < count; i++) {
        const char *name = list[i], *more;

        if (!namespace_matches(name, f))
            continue;
        more = f->depth ? label_at(name, (size_t)f->depth, &len) : NULL;
        if (more)
            name = arena_memdup(arena, name, (size_t)(more - name) - 1);
        if (name)
            list[kept++] = name;
    }
    if (kept)
        qsort(list, kept, sizeof(*list), text_compare);
    for (size_t i = 0; i < kept; i++) {
        if (n == 0 || !str_eq(list[n - 1], list[i]))
            list[n++] = list[i];
    }
    return n;
}

static int namespace_filter_parse(struct http_request *req, yyjson_val *body,
                                  struct namespace_filter *ret)
{
    yyjson_val *depth = yyjson_obj_get(body, "max_depth");

    ret->prefix = namespace_parse(req, body, "prefix");
    if (!ret->prefix)
        return -1;
    ret->suffix = namespace_parse(req, body, "suffix");
    if (!ret->suffix)
        return -1;
    ret->depth = 0;
    if (!depth || yyjson_is_null(depth))
        return 0;
    if (!api_whole(depth, &ret->depth) || ret->depth < 1 || ret->depth > LIMIT_MAX)
        return api_unprocessable(req, "'max_depth' has to be a number from 1 to %d", LIMIT_MAX);
    return 0;
}

static void on_namespaces(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc), *array = yyjson_mut_arr(doc);
    struct namespace_filter filter;
    struct store_page page;
    struct error error;
    const char **list = NULL;
    yyjson_val *body;
    size_t count = 0;

    if (api_body(req, &body) < 0 || api_page(req, body, NAMESPACES_LIMIT, LIMIT_MAX, &page) < 0 ||
        namespace_filter_parse(req, body, &filter) < 0)
        return;
    if (store_item_namespaces(api_of(req)->store, http_principal(req), http_arena(req), &list,
                              &count, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    count = namespaces_filter(http_arena(req), list, count, &filter);
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = (size_t)page.offset; i < count && i < (size_t)(page.offset + page.limit); i++)
        yyjson_mut_arr_append(array, labels_format(doc, list[i]));
    yyjson_mut_obj_add_val(doc, root, "namespaces", array);
    api_reply_doc(req, 200, owned);
}

const struct route_entry api_item_routes[] = {
    {"PUT", "/store/items", "Put an item into the long-term store", on_put},
    {"GET", "/store/items", "Get an item, or null", on_get},
    {"DELETE", "/store/items", "Delete an item", on_delete},
    {"POST", "/store/items/search", "Search items", on_search},
    {"POST", "/store/namespaces", "List the namespaces that hold items", on_namespaces},
    {},
};
