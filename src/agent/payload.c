/* SPDX-License-Identifier: MIT */
/*
 * Tools' payloads hold what was displayed in two places: the list display_outputs, and the MIME map
 * of a result. One walk over both serves whoever replaces it: with notes, references or data.
 */
#include "agent/view-internal.h"

#include "base/sha256.h"
#include "base/str.h"

#include <strings.h>

static bool mime_is(const char *mime, const char *prefix)
{
    return strncasecmp(mime, prefix, strlen(prefix)) == 0;
}

bool view_is_image(const char *mime)
{
    return mime_is(mime, "image/") && !mime_is(mime, "image/svg");
}

bool view_is_base64(const char *mime)
{
    return view_is_image(mime) || mime_is(mime, "audio/") || mime_is(mime, "video/") ||
           mime_is(mime, "application/pdf");
}

bool view_is_readable(const char *mime)
{
    return mime_is(mime, "text/plain") || mime_is(mime, "text/markdown") ||
           mime_is(mime, "text/latex") || strcasecmp(mime, "application/json") == 0;
}

struct walk {
    const struct view_rewrite *how;
    yyjson_mut_doc *doc;
};

/* Data may be an object, too, and have a member of that name. */
static bool is_reference(yyjson_val *value)
{
    return yyjson_get_len(yyjson_obj_get(value, "blob")) == 2 * SHA256_SIZE &&
           yyjson_is_uint(yyjson_obj_get(value, "size"));
}

static int display_rewrite(struct walk *w, struct view_display *d, yyjson_mut_val **ret,
                           struct error *reterr)
{
    yyjson_val *data = d->in_result ? NULL : yyjson_obj_get(d->value, "data");

    if (!data && is_reference(d->value))
        d->blob = json_get_str(d->value, "blob", NULL);
    else
        d->data = d->in_result ? d->value : data;
    return w->how->each(w->how->user, w->doc, d, ret, reterr);
}

static int displays_rewrite(struct walk *w, yyjson_val *displays, yyjson_mut_val *ret,
                            struct error *reterr)
{
    yyjson_val *value;
    size_t i, max;

    yyjson_arr_foreach(displays, i, max, value)
    {
        struct view_display d = {.mime = json_get_str(value, "type", ""), .value = value};
        yyjson_mut_val *item = NULL;
        int r = display_rewrite(w, &d, &item, reterr);

        if (r < 0)
            return r;
        if (!yyjson_mut_arr_append(ret, item))
            return error_no_memory(reterr);
    }
    return 0;
}

static int result_rewrite(struct walk *w, yyjson_val *result, yyjson_mut_val *ret,
                          struct error *reterr)
{
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach(result, i, max, key, value)
    {
        struct view_display d = {.mime = yyjson_get_str(key), .value = value, .in_result = true};
        yyjson_mut_val *item = NULL;
        int r = 0;

        /* A tool may give another kind of result, whose members are no MIME types. */
        if (strchr(d.mime, '/'))
            r = display_rewrite(w, &d, &item, reterr);
        else
            item = yyjson_val_mut_copy(w->doc, value);
        if (r < 0)
            return r;
        if (!yyjson_mut_obj_add(ret, yyjson_val_mut_copy(w->doc, key), item))
            return error_no_memory(reterr);
    }
    return 0;
}

static int member_rewrite(struct walk *w, yyjson_val *key, yyjson_val *value, yyjson_mut_val *root,
                          struct error *reterr)
{
    yyjson_mut_val *name = yyjson_val_mut_copy(w->doc, key), *copy;
    int r = 0;

    if (yyjson_equals_str(key, "display_outputs") && yyjson_is_arr(value)) {
        name = yyjson_mut_str(w->doc, w->how->displays_key);
        copy = yyjson_mut_arr(w->doc);
        r = displays_rewrite(w, value, copy, reterr);
    } else if (yyjson_equals_str(key, "result") && yyjson_is_obj(value)) {
        copy = yyjson_mut_obj(w->doc);
        r = result_rewrite(w, value, copy, reterr);
    } else {
        copy = yyjson_val_mut_copy(w->doc, value);
    }
    if (r < 0)
        return r;
    return yyjson_mut_obj_add(root, name, copy) ? 0 : error_no_memory(reterr);
}

static bool shows_something(yyjson_val *root)
{
    return yyjson_arr_size(yyjson_obj_get(root, "display_outputs")) > 0 ||
           yyjson_obj_size(yyjson_obj_get(root, "result")) > 0;
}

/* Any text may come here, also one that is not from a tool of ours. */
static int payload_open(const char *text, size_t len, yyjson_doc **ret, struct error *reterr)
{
    if (!text || len == 0 || *text != '{' ||
        (!memmem(text, len, "\"display_outputs\"", 17) && !memmem(text, len, "\"result\"", 8)))
        return 0;
    if (json_parse(text, len, ret, reterr) == -ERR_NO_MEMORY)
        return -ERR_NO_MEMORY;
    return *ret && shows_something(yyjson_doc_get_root(*ret));
}

int view_payload_rewrite(const char *text, size_t len, const struct view_rewrite *how,
                         struct buf *ret, struct error *reterr)
{
    auto_json yyjson_doc *from = NULL;
    auto_json_mut yyjson_mut_doc *doc = NULL;
    struct walk w = {.how = how};
    yyjson_mut_val *root;
    yyjson_val *key, *value;
    size_t i, max;
    int r = payload_open(text, len, &from, reterr);

    if (r <= 0)
        return r;
    w.doc = doc = yyjson_mut_doc_new(NULL);
    root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_obj_foreach(yyjson_doc_get_root(from), i, max, key, value)
    {
        r = member_rewrite(&w, key, value, root, reterr);
        if (r < 0)
            return r;
    }
    r = json_mut_write(doc, ret, reterr);
    return r < 0 ? r : 1;
}
