/* SPDX-License-Identifier: MIT */
/*
 * From a kernel's MIME map to display items and results. A kernel is hostile: what is not an object
 * of the right shape is refused here, and nothing of it reaches a client unparsed.
 */
#include "session/session-internal.h"

#include "base/json.h"
#include "base/str.h"

#include <strings.h>

/* The richest kind wins, as a notebook front end chooses. */
static const char *const preferred[] = {
    "application/vnd.plotly.v1+json",
    "text/html",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    "audio/wav",
    "audio/mpeg",
    "audio/ogg",
    "video/mp4",
    "video/webm",
    "application/geo+json",
    "application/json",
    "text/markdown",
    "text/latex",
    "text/plain",
};

static bool mime_check(const char *mime)
{
    const char *slash = mime ? strchr(mime, '/') : NULL;

    return slash && slash != mime && slash[1] &&
           str_check_chars(mime,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "/.+-_;= ",
                           128);
}

static yyjson_val *best_find(yyjson_val *data, const char **ret_mime)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(data);
    yyjson_val *key;

    for (size_t i = 0; i < ARRAY_LEN(preferred); i++) {
        yyjson_val *v = yyjson_obj_get(data, preferred[i]);

        if (v) {
            *ret_mime = preferred[i];
            return v;
        }
    }
    while ((key = yyjson_obj_iter_next(&it))) {
        if (mime_check(yyjson_get_str(key))) {
            *ret_mime = yyjson_get_str(key);
            return yyjson_obj_iter_get_val(key);
        }
    }
    return NULL;
}

/* Whether cutting such a text leaves something that can still be used. */
static bool mime_is_plain(const char *mime)
{
    return str_eq(mime, "text/plain") || str_eq(mime, "text/markdown");
}

static yyjson_mut_val *value_copy(yyjson_mut_doc *doc, yyjson_val *v, const char *mime,
                                  size_t limit_chars, bool *cut)
{
    auto_buf struct buf text;
    bool now;

    if (!yyjson_is_str(v) || !mime_is_plain(mime))
        return yyjson_val_mut_copy(doc, v);
    buf_init(&text, FRAME_PAYLOAD_MAX);
    now = text_cut(yyjson_get_str(v), yyjson_get_len(v), limit_chars, &text);
    *cut |= now;
    return now ? json_mut_text(doc, buf_str(&text), text.len) : yyjson_val_mut_copy(doc, v);
}

static int map_open(const char *json, size_t len, yyjson_doc **ret_doc, yyjson_val **ret_data,
                    struct error *reterr)
{
    int r = json_parse(json, len, ret_doc, reterr);

    if (r < 0)
        return r;
    *ret_data = yyjson_obj_get(yyjson_doc_get_root(*ret_doc), "data");
    if (!yyjson_is_obj(*ret_data))
        return error_set(reterr, ERR_PROTOCOL, "a display without a MIME map");
    return 0;
}

/* What the best kind looks like as text, for those who cannot show it. */
static void text_add(yyjson_mut_doc *out, yyjson_mut_val *root, yyjson_val *data,
                     size_t limit_chars)
{
    static const char plain[] = "text/plain";
    yyjson_val *text = yyjson_obj_get(data, plain);
    bool cut = false;

    if (yyjson_is_str(text))
        yyjson_mut_obj_add_val(out, root, "text", value_copy(out, text, plain, limit_chars, &cut));
}

int display_item(const char *json, size_t len, size_t limit_chars, struct buf *ret,
                 struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *out = yyjson_mut_doc_new(NULL);
    auto_json yyjson_doc *doc = NULL;
    yyjson_mut_val *root = yyjson_mut_obj(out);
    yyjson_val *data, *best, *metadata;
    const char *mime = NULL;
    bool cut = false;
    int r = map_open(json, len, &doc, &data, reterr);

    if (r < 0)
        return r;
    best = best_find(data, &mime);
    if (!best || !root)
        return error_set(reterr, ERR_PROTOCOL, "a display of no known kind");
    yyjson_mut_doc_set_root(out, root);
    yyjson_mut_obj_add_strcpy(out, root, "type", mime);
    yyjson_mut_obj_add_val(out, root, "data", value_copy(out, best, mime, limit_chars, &cut));
    if (!mime_is_plain(mime))
        text_add(out, root, data, limit_chars);
    metadata = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");
    if (yyjson_is_obj(metadata) && yyjson_obj_size(metadata))
        yyjson_mut_obj_add_val(out, root, "metadata", yyjson_val_mut_copy(out, metadata));
    return json_mut_write(out, ret, reterr);
}

int display_result(const char *json, size_t len, size_t limit_chars, struct buf *ret, bool *ret_cut,
                   struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *out = yyjson_mut_doc_new(NULL);
    auto_json yyjson_doc *doc = NULL;
    yyjson_mut_val *root = yyjson_mut_obj(out);
    yyjson_obj_iter it;
    yyjson_val *data, *key;
    int r = map_open(json, len, &doc, &data, reterr);

    if (r < 0)
        return r;
    if (!root)
        return error_no_memory(reterr);
    yyjson_mut_doc_set_root(out, root);
    it = yyjson_obj_iter_with(data);
    while ((key = yyjson_obj_iter_next(&it))) {
        const char *mime = yyjson_get_str(key);
        yyjson_val *v = yyjson_obj_iter_get_val(key);

        if (mime_check(mime))
            yyjson_mut_obj_add(root, json_mut_text(out, mime, strlen(mime)),
                               value_copy(out, v, mime, limit_chars, ret_cut));
    }
    return json_mut_write(out, ret, reterr);
}
