/* SPDX-License-Identifier: MIT */
/* One JSON object over another. The order of members is kept: what was there first comes first. */
#include "store/merge.h"

#include "base/json.h"

#include <string.h>

/* Each member of one is looked for among those of the other. */
enum { MERGE_MAX = 16 << 20, MEMBERS_MAX = 10000 };

static int parse_object(const char *text, yyjson_doc **ret, struct error *reterr)
{
    int r;

    if (!text)
        text = "{}";
    r = json_parse(text, strlen(text), ret, reterr);
    if (r < 0)
        return r;
    if (!yyjson_is_obj(yyjson_doc_get_root(*ret)))
        return error_set(reterr, ERR_INVALID, "not a JSON object");
    if (yyjson_obj_size(yyjson_doc_get_root(*ret)) > MEMBERS_MAX)
        return error_set(reterr, ERR_LIMIT, "a JSON object here has at most %d members",
                         MEMBERS_MAX);
    return 0;
}

static int put_members(yyjson_mut_doc *doc, yyjson_mut_val *to, yyjson_val *from)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(from);
    yyjson_val *key;

    while ((key = yyjson_obj_iter_next(&iter))) {
        yyjson_mut_val *name = yyjson_val_mut_copy(doc, key);
        yyjson_mut_val *value = yyjson_val_mut_copy(doc, yyjson_obj_iter_get_val(key));

        if (!name || !value)
            return -1;
        if (!yyjson_mut_obj_replace(to, name, value) && !yyjson_mut_obj_add(to, name, value))
            return -1;
    }
    return 0;
}

int merge_json(const char *base, const char *patch, struct arena *arena, const char **ret,
               struct error *reterr)
{
    auto_json yyjson_doc *old = NULL, *new = NULL;
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_buf struct buf text;
    int r;

    buf_init(&text, MERGE_MAX);
    r = parse_object(base, &old, reterr);
    if (r == 0)
        r = parse_object(patch, &new, reterr);
    if (r < 0)
        return r;
    if (!doc)
        return error_no_memory(reterr);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, yyjson_doc_get_root(old)));
    if (!yyjson_mut_doc_get_root(doc) ||
        put_members(doc, yyjson_mut_doc_get_root(doc), yyjson_doc_get_root(new)) < 0)
        return error_no_memory(reterr);
    r = json_mut_write(doc, &text, reterr);
    if (r < 0)
        return r;
    *ret = arena_memdup(arena, buf_str(&text), text.len);
    return *ret ? 0 : error_no_memory(reterr);
}
