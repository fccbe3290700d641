/* SPDX-License-Identifier: MIT */
/*
 * Results of tool calls. A payload in which nothing has to be replaced is embedded as it is, byte
 * for byte; any other is built anew. The size is then forced below the limit in the order of what a
 * reader misses least: the text that mirrors the structured content, long strings, everything.
 */
#include "mcp/content.h"

#include "base/str.h"
#include "mcp/content-internal.h"

#include <string.h>

enum {
    ENVELOPE = 16 * 1024,   /* for what is around our three members */
    MIRROR_MIN = 32 * 1024, /* of the text, before strings are cut */
    LISTED_MAX = 200,       /* displays in the structured content */
    METADATA_MAX = 2048,
    STRING_FIRST = 256 * 1024,
    STRING_LAST = 128,
};

static const struct content_limits defaults = {1568, 500000, 700000, 1048576};

static struct content_limits limits_get(const struct content_limits *l)
{
    return (struct content_limits){
        .side = l->side ? l->side : defaults.side,
        .media_bytes = l->media_bytes ? l->media_bytes : defaults.media_bytes,
        .media_chars = l->media_chars ? l->media_chars : defaults.media_chars,
        .message_chars = l->message_chars ? l->message_chars : defaults.message_chars};
}

struct answer {
    struct content_media media;
    yyjson_val *root; /* of the payload */
    yyjson_mut_doc *doc;
    yyjson_mut_val *content;
    size_t used; /* bytes of what is in `content` and around it */
    size_t next; /* the item that comes next in the order of the payload */
    size_t omitted;
};

static const char *display_type(yyjson_val *display)
{
    return json_get_str(display, "type", "");
}

/* ---- is there anything to do ---- */

static bool displays_stay(yyjson_val *displays)
{
    size_t i, max;
    yyjson_val *d;

    if (yyjson_arr_size(displays) > LISTED_MAX)
        return false;
    yyjson_arr_foreach(displays, i, max, d)
    {
        if (!content_stays(display_type(d), yyjson_obj_get(d, "data"), false))
            return false;
    }
    return true;
}

static bool result_stays(yyjson_val *result)
{
    size_t i, max;
    yyjson_val *mime, *value;

    yyjson_obj_foreach(result, i, max, mime, value)
    {
        if (!content_stays(yyjson_get_str(mime), value, true))
            return false;
    }
    return true;
}

/* A line break would end the message where lines are messages. */
static bool payload_stays(const struct content_payload *p, yyjson_val *root)
{
    return displays_stay(yyjson_obj_get(root, "display_outputs")) &&
           result_stays(yyjson_obj_get(root, "result")) && !memchr(p->json, '\n', p->len) &&
           !memmem(p->json, p->len, ";base64,", 8);
}

/* ---- the structured content ---- */

static int media_collect(struct answer *a, struct error *reterr)
{
    size_t i, max;
    yyjson_val *key, *v;
    int r = 0;

    yyjson_arr_foreach(yyjson_obj_get(a->root, "display_outputs"), i, max, v)
    {
        yyjson_val *data = yyjson_obj_get(v, "data");

        if (i < LISTED_MAX && r >= 0 && !content_stays(display_type(v), data, false))
            r = content_media_add(&a->media, display_type(v), data, reterr);
    }
    yyjson_obj_foreach(yyjson_obj_get(a->root, "result"), i, max, key, v)
    {
        if (r >= 0 && !content_stays(yyjson_get_str(key), v, true))
            r = content_media_add(&a->media, yyjson_get_str(key), v, reterr);
    }
    return r < 0 ? r : 0;
}

/* The object of the next item, or NULL when there were too many. */
static yyjson_mut_val *item_next(struct answer *a, yyjson_mut_doc *out)
{
    if (a->next == a->media.count)
        return NULL;
    return content_item_object(out, &a->media.items[a->next++]);
}

/* A display that stays, without what else a kernel may have put beside it. */
static yyjson_mut_val *display_copy(yyjson_mut_doc *out, yyjson_val *display)
{
    yyjson_mut_val *copy = yyjson_mut_obj(out);
    yyjson_val *metadata = yyjson_obj_get(display, "metadata");
    auto_buf struct buf text;

    buf_init(&text, METADATA_MAX);
    yyjson_mut_obj_add_val(out, copy, "type",
                           yyjson_val_mut_copy(out, yyjson_obj_get(display, "type")));
    yyjson_mut_obj_add_val(out, copy, "data",
                           yyjson_val_mut_copy(out, yyjson_obj_get(display, "data")));
    if (metadata && json_write(metadata, &text, NULL) == 0)
        yyjson_mut_obj_add_val(out, copy, "metadata", yyjson_val_mut_copy(out, metadata));
    return copy;
}

/* What a display looks like as text stays with it, whatever becomes of its data. */
static void display_text_add(yyjson_mut_doc *out, yyjson_mut_val *item, yyjson_val *display)
{
    yyjson_val *text = yyjson_obj_get(display, "text");

    if (yyjson_is_str(text))
        yyjson_mut_obj_add_val(out, item, "text", yyjson_val_mut_copy(out, text));
}

static yyjson_mut_val *displays_build(struct answer *a, yyjson_mut_doc *out, yyjson_val *displays)
{
    yyjson_mut_val *list = yyjson_mut_arr(out);
    size_t i, max;
    yyjson_val *d;

    yyjson_arr_foreach(displays, i, max, d)
    {
        bool stays = content_stays(display_type(d), yyjson_obj_get(d, "data"), false);
        yyjson_mut_val *item = i >= LISTED_MAX ? NULL
                               : stays         ? display_copy(out, d)
                                               : item_next(a, out);

        if (item) {
            display_text_add(out, item, d);
            yyjson_mut_arr_append(list, item);
        } else {
            a->omitted++;
        }
    }
    return list;
}

static yyjson_mut_val *result_build(struct answer *a, yyjson_mut_doc *out, yyjson_val *result)
{
    yyjson_mut_val *map = yyjson_mut_obj(out);
    size_t i, max;
    yyjson_val *mime, *value;

    yyjson_obj_foreach(result, i, max, mime, value)
    {
        yyjson_mut_val *copy = content_stays(yyjson_get_str(mime), value, true)
                                   ? yyjson_val_mut_copy(out, value)
                                   : item_next(a, out);

        if (copy)
            yyjson_mut_obj_add(map, yyjson_val_mut_copy(out, mime), copy);
        else
            a->omitted++;
    }
    return map;
}

static yyjson_mut_val *member_build(struct answer *a, yyjson_mut_doc *out, const char *key,
                                    yyjson_val *value)
{
    if (str_eq(key, "display_outputs") && yyjson_is_arr(value))
        return displays_build(a, out, value);
    if (str_eq(key, "result") && yyjson_is_obj(value))
        return result_build(a, out, value);
    return yyjson_val_mut_copy(out, value);
}

static yyjson_mut_doc *structured_build(struct answer *a)
{
    yyjson_mut_doc *out = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(out);
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_mut_doc_set_root(out, root);
    yyjson_obj_foreach(a->root, i, max, key, value)
    {
        yyjson_mut_obj_add(root, yyjson_val_mut_copy(out, key),
                           member_build(a, out, yyjson_get_str(key), value));
    }
    if (a->omitted)
        yyjson_mut_obj_add_uint(out, root, "omitted", a->omitted);
    content_strip_base64(out, root);
    return out;
}

/* ---- the size ---- */

/* Writes it, with strings cut as far as needed. ERR_LIMIT: that does not help. */
static int structured_write(yyjson_mut_doc *out, size_t max, struct buf *ret, struct error *reterr)
{
    for (size_t limit = STRING_FIRST; limit >= STRING_LAST; limit /= 2) {
        buf_clear(ret);
        if (json_mut_write(out, ret, reterr) == 0 && ret->len <= max)
            return 0;
        content_cut_strings(out, yyjson_mut_doc_get_root(out), limit);
    }
    return error_set(reterr, ERR_LIMIT, "the result does not fit into a message");
}

/* When nothing can be shown, this is what is left. */
static int structured_minimum(const struct content_payload *p, struct buf *ret,
                              struct error *reterr)
{
    buf_clear(ret);
    if (buf_printf(ret,
                   "{\"success\":%s,\"note\":\"the result was left out: it is too large or too "
                   "deep for a message\"}",
                   p->success ? "true" : "false") < 0)
        return error_no_memory(reterr);
    return 0;
}

static int text_add(struct answer *a, const char *json, size_t len, struct error *reterr)
{
    size_t max = a->media.limits.message_chars;
    yyjson_mut_val *block = yyjson_mut_obj(a->doc), *text;

    text = content_fit_text(a->doc, json, len, max - MIN(max, a->used + len));
    if (!text || !yyjson_mut_obj_add_str(a->doc, block, "type", "text") ||
        !yyjson_mut_obj_add_val(a->doc, block, "text", text) ||
        !yyjson_mut_arr_prepend(a->content, block))
        return error_no_memory(reterr);
    return 0;
}

static int result_fill(struct answer *a, yyjson_mut_val *result, const struct buf *json,
                       struct error *reterr)
{
    yyjson_mut_doc *doc = a->doc;

    if (text_add(a, buf_str(json), json->len, reterr) < 0)
        return -ERR_NO_MEMORY;
    if (!yyjson_mut_obj_add_val(doc, result, "content", a->content) ||
        !yyjson_mut_obj_add_val(doc, result, "structuredContent",
                                yyjson_mut_rawncpy(doc, buf_str(json), json->len)) ||
        !yyjson_mut_obj_add_bool(doc, result, "isError", !a->media.payload->success))
        return error_no_memory(reterr);
    return 0;
}

/* ---- the whole ---- */

/* What is to become the structured content, as JSON of at most `max` bytes. */
static int structured_make(struct answer *a, struct buf *ret, struct error *reterr)
{
    const struct content_payload *p = a->media.payload;
    size_t max = a->media.limits.message_chars;
    auto_json_mut yyjson_mut_doc *out = NULL;

    if (payload_stays(p, a->root) && a->used + p->len + MIRROR_MIN <= max)
        return buf_append(ret, p->json, p->len) < 0 ? error_no_memory(reterr) : 0;
    if (media_collect(a, reterr) < 0 || content_media_show(&a->media, reterr) < 0)
        return -ERR_NO_MEMORY;
    for (size_t i = 0; i < a->media.count; i++)
        a->used += content_item_blocks(a->doc, a->content, &a->media.items[i]);
    max -= MIN(max, a->used + MIRROR_MIN);
    out = structured_build(a);
    if (out && structured_write(out, max, ret, reterr) == 0)
        return 0;
    return structured_minimum(p, ret, reterr);
}

static int answer_make(struct answer *a, yyjson_mut_val *result, struct error *reterr)
{
    const struct content_payload *p = a->media.payload;
    auto_buf struct buf json;
    auto_json yyjson_doc *parsed = NULL;
    int r;

    buf_init(&json, a->media.limits.message_chars);
    r = json_parse(p->json, p->len, &parsed, NULL);
    if (r == 0)
        a->root = yyjson_doc_get_root(parsed);
    if (r < 0 || !yyjson_is_obj(a->root))
        r = structured_minimum(p, &json, reterr);
    else
        r = structured_make(a, &json, reterr);
    return r < 0 ? r : result_fill(a, result, &json, reterr);
}

int content_format(const struct content_context *c, const struct content_payload *p,
                   yyjson_mut_doc *doc, yyjson_mut_val *result, struct error *reterr)
{
    auto_free struct answer *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return error_no_memory(reterr);
    a->media.context = c;
    a->media.payload = p;
    a->media.limits = limits_get(&c->limits);
    a->doc = doc;
    a->content = yyjson_mut_arr(doc);
    a->used = ENVELOPE;
    r = answer_make(a, result, reterr);
    content_media_done(&a->media);
    return r;
}
