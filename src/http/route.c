/* SPDX-License-Identifier: MIT */
/* From a method and a path to an entry of the tables. Segments are compared decoded, so no spelling
 * of a path reaches another handler than its plain form. */
#include "base/str.h"
#include "http/http-internal.h"

/* The parts of "/a/{name}/{rest...}" one after another; false at the end. */
static bool part_next(const char **pattern, const char **ret, size_t *ret_len)
{
    if (**pattern != '/')
        return false;
    *ret = *pattern + 1;
    *ret_len = strcspn(*ret, "/");
    *pattern = *ret + *ret_len;
    return true;
}

static bool param_add(struct http_request *req, const char *name, size_t len, const char *value)
{
    const char *copy = arena_memdup(&req->arena, name, len);

    if (!copy || !value || req->param_count == HTTP_PARAMS_MAX)
        return false;
    req->params[req->param_count++] = (struct http_pair){copy, value};
    return true;
}

static const char *rest_join(struct http_request *req, size_t first)
{
    const struct http_target *t = &req->target;
    const char *joined = t->segments[first];

    for (size_t i = first + 1; joined && i < t->segment_count; i++)
        joined = arena_printf(&req->arena, "%s/%s", joined, t->segments[i]);
    return joined;
}

static bool pattern_match(struct http_request *req, const char *pattern)
{
    const struct http_target *t = &req->target;
    const char *part;
    size_t len, i = 0;

    req->param_count = 0;
    while (part_next(&pattern, &part, &len)) {
        if (i == t->segment_count)
            return false;
        if (len > 5 && part[0] == '{' && memcmp(part + len - 4, "...}", 4) == 0)
            return param_add(req, part + 1, len - 5, rest_join(req, i));
        if (len > 2 && part[0] == '{') {
            if (!t->segments[i][0] || !param_add(req, part + 1, len - 2, t->segments[i]))
                return false;
        } else if (strlen(t->segments[i]) != len || memcmp(t->segments[i], part, len) != 0) {
            return false;
        }
        i++;
    }
    return i == t->segment_count;
}

static void allow_add(struct buf *allow, const char *method)
{
    /* A method that does not fit is one that a client need not know of. */
    if (!strstr(buf_str(allow), method))
        (void)!buf_printf(allow, "%s%s", allow->len ? ", " : "", method);
}

const struct route_entry *route_find(struct http_request *req, const char *method,
                                     struct buf *allow)
{
    const struct route_table *table = req->server->options.tables;

    for (; table && table->entries; table++) {
        for (const struct route_entry *e = table->entries; e->path; e++) {
            if (!pattern_match(req, e->path))
                continue;
            req->user = table->user;
            if (str_eq(e->method, method))
                return e;
            allow_add(allow, e->method);
            if (str_eq(e->method, "GET"))
                allow_add(allow, "HEAD");
        }
    }
    if (allow->len)
        allow_add(allow, "OPTIONS");
    return NULL;
}
