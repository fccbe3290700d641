/* SPDX-License-Identifier: MIT */
/*
 * Large displays live in the store, once, and payloads refer to them by the hash of their text.
 * What is no text but JSON says so in its reference, because text is all that the store keeps.
 */
#include "agent/view-internal.h"

#include "base/sha256.h"
#include "base/str.h"
#include "store/store.h"

struct place {
    struct store *store;
    const char *thread_id;
    bool found; /* something was put back */
};

/* ---- out of a payload ---- */

static int data_text(yyjson_val *data, struct buf *ret, struct error *reterr)
{
    if (!yyjson_is_str(data))
        return json_write(data, ret, reterr);
    if (buf_append(ret, yyjson_get_str(data), yyjson_get_len(data)) < 0)
        return error_no_memory(reterr);
    return 0;
}

static int blob_put(const struct place *p, const char *mime, const struct buf *data,
                    char sha256[2 * SHA256_SIZE + 1], struct error *reterr)
{
    const struct store_blob blob = {
        .sha256 = sha256, .mime = mime, .data = buf_str(data), .len = data->len};
    struct sha256 state;

    sha256_init(&state);
    sha256_update(&state, buf_str(data), data->len);
    sha256_finish_hex(&state, sha256);
    return store_blob_put(p->store, p->thread_id, &blob, reterr);
}

struct reference {
    const struct view_display *display;
    const struct buf *data;
    char sha256[2 * SHA256_SIZE + 1];
};

/* The size of a picture is told, too, so that a note about it needs no blob. */
static bool reference_add(yyjson_mut_doc *doc, const struct reference *r, yyjson_mut_val *ret)
{
    struct view_picture picture = {};

    if (view_is_image(r->display->mime))
        (void)view_picture_read(buf_str(r->data), r->data->len, &picture);
    return yyjson_mut_obj_add_strcpy(doc, ret, "blob", r->sha256) &&
           yyjson_mut_obj_add_uint(doc, ret, "size", r->data->len) &&
           (yyjson_is_str(r->display->data) || yyjson_mut_obj_add_bool(doc, ret, "json", true)) &&
           (!picture.mime || (yyjson_mut_obj_add_uint(doc, ret, "width", picture.width) &&
                              yyjson_mut_obj_add_uint(doc, ret, "height", picture.height)));
}

/* The members of a display in their order, with the reference where its data was. */
static bool members_copy(yyjson_mut_doc *doc, const struct reference *r, yyjson_mut_val *ret)
{
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach(r->display->value, i, max, key, value)
    {
        if (value == r->display->data ? !reference_add(doc, r, ret)
                                      : !yyjson_mut_obj_add(ret, yyjson_val_mut_copy(doc, key),
                                                            yyjson_val_mut_copy(doc, value)))
            return false;
    }
    return true;
}

static int reference_make(const struct place *p, yyjson_mut_doc *doc, struct reference *reference,
                          yyjson_mut_val **ret, struct error *reterr)
{
    const struct view_display *d = reference->display;
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    int r = blob_put(p, d->mime, reference->data, reference->sha256, reterr);

    if (r < 0)
        return error_wrap(reterr, "a display");
    if (d->in_result ? !yyjson_mut_obj_add_strcpy(doc, object, "type", d->mime) ||
                           !reference_add(doc, reference, object)
                     : !members_copy(doc, reference, object))
        return error_no_memory(reterr);
    *ret = object;
    return 0;
}

static int display_extract(void *user, yyjson_mut_doc *doc, const struct view_display *d,
                           yyjson_mut_val **ret, struct error *reterr)
{
    bool stays = !d->data || (d->in_result && view_is_readable(d->mime));
    auto_buf struct buf data;
    struct reference reference = {.display = d, .data = &data};
    int r = 0;

    buf_init(&data, 2 * MESSAGE_BYTES_MAX);
    if (!stays)
        r = data_text(d->data, &data, reterr);
    if (r < 0)
        return r;
    if (data.len > VIEW_EXTRACT)
        return reference_make(user, doc, &reference, ret, reterr);
    *ret = yyjson_val_mut_copy(doc, d->value);
    return 0;
}

int view_extract(const char *payload, size_t len, struct store *store, const char *thread_id,
                 struct buf *ret, struct error *reterr)
{
    struct place place = {.store = store, .thread_id = thread_id};
    const struct view_rewrite how = {
        .displays_key = "display_outputs", .each = display_extract, .user = &place};
    int r = len > VIEW_EXTRACT ? view_payload_rewrite(payload, len, &how, ret, reterr) : 0;

    if (r == 0 && buf_append(ret, payload, len) < 0)
        return error_set(reterr, ERR_LIMIT, "a tool's result is above its limit");
    return r < 0 ? r : 0;
}

/* ---- and back ---- */

static yyjson_mut_val *data_value(yyjson_mut_doc *doc, const struct store_blob *blob, bool is_json)
{
    auto_json yyjson_doc *parsed = NULL;

    if (!is_json)
        return json_mut_text(doc, blob->data, blob->len);
    if (json_parse(blob->data, blob->len, &parsed, NULL) < 0)
        return NULL;
    return yyjson_val_mut_copy(doc, yyjson_doc_get_root(parsed));
}

/* A display with its data where the reference was. */
static bool display_fill(yyjson_mut_doc *doc, yyjson_val *display, yyjson_mut_val *data,
                         yyjson_mut_val *ret)
{
    static const char *const of_reference[] = {"size", "json", "width", "height"};
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach(display, i, max, key, value)
    {
        bool drop = false;

        for (size_t n = 0; n < ARRAY_LEN(of_reference); n++)
            drop |= yyjson_equals_str(key, of_reference[n]);
        if (yyjson_equals_str(key, "blob")) {
            if (!yyjson_mut_obj_add_val(doc, ret, "data", data))
                return false;
        } else if (!drop && !yyjson_mut_obj_add(ret, yyjson_val_mut_copy(doc, key),
                                                yyjson_val_mut_copy(doc, value))) {
            return false;
        }
    }
    return true;
}

static int display_inline(void *user, yyjson_mut_doc *doc, const struct view_display *d,
                          yyjson_mut_val **ret, struct error *reterr)
{
    struct place *p = user;
    auto_arena struct arena arena;
    struct store_blob blob = {};
    yyjson_mut_val *data, *object = yyjson_mut_obj(doc);

    arena_init(&arena, 2 * MESSAGE_BYTES_MAX);
    *ret = yyjson_val_mut_copy(doc, d->value);
    if (d->data || !d->blob ||
        store_blob_get(p->store, p->thread_id, d->blob, &arena, &blob, NULL) < 0)
        return 0;
    data = data_value(doc, &blob, json_get_bool(d->value, "json", false));
    if (!data)
        return 0;
    p->found = true;
    if (!d->in_result && !display_fill(doc, d->value, data, object))
        return error_no_memory(reterr);
    *ret = d->in_result ? data : object;
    return 0;
}

static int content_inline(yyjson_val *content, struct place *place, struct buf *ret,
                          struct error *reterr)
{
    const struct view_rewrite how = {
        .displays_key = "display_outputs", .each = display_inline, .user = place};

    if (!yyjson_is_str(content))
        return 0;
    return view_payload_rewrite(yyjson_get_str(content), yyjson_get_len(content), &how, ret,
                                reterr);
}

static int message_with(yyjson_doc *from, const struct buf *content, struct message **ret,
                        struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_doc_mut_copy(from, NULL);
    yyjson_mut_val *old = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "content");

    if (!old)
        return error_no_memory(reterr);
    yyjson_mut_set_strn(old, buf_str(content), content->len);
    return message_make(doc, ret, reterr);
}

/* What does not fit into a message stays a reference. */
int view_inline(struct message *m, struct store *store, const char *thread_id, struct message **ret,
                struct error *reterr)
{
    struct place place = {.store = store, .thread_id = thread_id};
    auto_json yyjson_doc *doc = NULL;
    auto_buf struct buf content;
    int r;

    buf_init(&content, MESSAGE_BYTES_MAX);
    *ret = message_ref(m);
    if (m->type != MESSAGE_TOOL || !memmem(m->json, m->len, "\\\"blob\\\":", 9))
        return 0;
    r = json_parse(m->json, m->len, &doc, reterr);
    if (r == 0)
        r = content_inline(yyjson_obj_get(yyjson_doc_get_root(doc), "content"), &place, &content,
                           reterr);
    if (r > 0 && place.found) {
        struct message *whole = NULL;

        r = message_with(doc, &content, &whole, reterr);
        if (r == 0) {
            whole->ref = m->ref;
            message_unref(m);
            *ret = whole;
        }
    }
    if (r >= 0 || r == -ERR_LIMIT)
        return 0;
    message_unref(TAKE_PTR(*ret));
    return r;
}
