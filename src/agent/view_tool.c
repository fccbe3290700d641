/* SPDX-License-Identifier: MIT */
/*
 * What a model is shown of a tool's payload: a note for each display, its own words where it has
 * some, and the pictures as pictures.
 */
#include "agent/view-internal.h"

#include "base/str.h"
#include "wire/utf8.h"

#include <stdio.h>

enum { NOTE_TEXT_MAX = 4000, NOTE_MAX = 256 + NOTE_TEXT_MAX };

struct shown {
    const struct view *view;
    struct view_parts images;
};

/* ---- notes ---- */

struct facts {
    uint64_t size;
    struct view_picture picture; /* mime NULL: not known */
};

static uint64_t uint_of(const struct view_display *d, const char *key)
{
    yyjson_val *v = d->in_result && !d->blob ? NULL : yyjson_obj_get(d->value, key);

    return yyjson_is_uint(v) ? yyjson_get_uint(v) : 0;
}

static int data_size(yyjson_val *data, uint64_t *ret, struct error *reterr)
{
    auto_buf struct buf text;
    int r;

    buf_init(&text, MESSAGE_BYTES_MAX);
    *ret = yyjson_get_len(data);
    if (!data || yyjson_is_str(data))
        return 0;
    r = json_write(data, &text, reterr);
    *ret = text.len;
    return r;
}

static int facts_find(const struct view_display *d, struct facts *ret, struct error *reterr)
{
    int r = 0;

    *ret = (struct facts){};
    /* The facts of a picture that no model would take are told, but it is none to be shown. */
    if (yyjson_is_str(d->data) && view_is_image(d->mime) &&
        !view_picture_read(yyjson_get_str(d->data), yyjson_get_len(d->data), &ret->picture))
        ret->picture.mime = NULL;
    if (d->data)
        r = data_size(d->data, &ret->size, reterr);
    else
        ret->size = uint_of(d, "size");
    if (view_is_base64(d->mime))
        ret->size = ret->size / 4 * 3;
    if (d->blob && view_is_image(d->mime)) {
        ret->picture.width = (uint32_t)MIN(uint_of(d, "width"), UINT32_MAX);
        ret->picture.height = (uint32_t)MIN(uint_of(d, "height"), UINT32_MAX);
    }
    return r;
}

/* What a model can read of it: its data, or the text that came beside. */
static int words_find(const struct view_display *d, struct buf *ret, struct error *reterr)
{
    yyjson_val *beside = d->in_result ? NULL : yyjson_obj_get(d->value, "text");
    yyjson_val *text = d->data && view_is_readable(d->mime) ? d->data : beside;
    auto_buf struct buf all;

    buf_init(&all, MESSAGE_BYTES_MAX);
    if (!text)
        return 0;
    if (!yyjson_is_str(text)) {
        int r = json_write(text, &all, reterr);

        if (r < 0)
            return r;
    } else if (buf_append(&all, yyjson_get_str(text), yyjson_get_len(text)) < 0) {
        return error_no_memory(reterr);
    }
    if (buf_append_str(ret, ": ") < 0 ||
        buf_append(ret, buf_str(&all), utf8_cut(buf_str(&all), all.len, NOTE_TEXT_MAX)) < 0 ||
        (all.len > NOTE_TEXT_MAX && buf_append_str(ret, " [...]") < 0))
        return error_no_memory(reterr);
    return 0;
}

static int note_make(const struct view_display *d, const struct facts *facts, yyjson_mut_doc *doc,
                     yyjson_mut_val **ret, struct error *reterr)
{
    auto_buf struct buf note;
    int r;

    buf_init(&note, NOTE_MAX);
    if (facts->picture.width && facts->picture.height)
        r = buf_printf(&note, "%.128s, %ux%u, shown to the user", d->mime, facts->picture.width,
                       facts->picture.height);
    else
        r = buf_printf(&note, "%.128s, %llu bytes, shown to the user", d->mime,
                       (unsigned long long)facts->size);
    if (r < 0)
        return error_no_memory(reterr);
    r = words_find(d, &note, reterr);
    if (r < 0)
        return r;
    *ret = json_mut_text(doc, buf_str(&note), note.len);
    return 0;
}

/* ---- pictures ---- */

static int image_add(struct shown *s, const struct view_display *d, const struct facts *facts,
                     struct error *reterr)
{
    struct llm_part part = {.kind = LLM_IMAGE, .mime = facts->picture.mime};
    struct arena *arena = s->view->arena;

    if (!s->view->options->images || s->images.images_gone || !view_is_image(d->mime))
        return 0;
    if (facts->picture.mime) {
        part.data = arena_memdup(arena, yyjson_get_str(d->data), yyjson_get_len(d->data));
        return part.data ? view_part_add(&s->images, &part, reterr) : error_no_memory(reterr);
    }
    if (!d->blob || !s->view->options->store || uint_of(d, "size") > VIEW_IMAGE_BYTES)
        return 0;
    part.mime = "image/png";
    part.name = arena_strdup(arena, d->blob);
    return part.name ? view_part_add(&s->images, &part, reterr) : error_no_memory(reterr);
}

static int display_show(void *user, yyjson_mut_doc *doc, const struct view_display *d,
                        yyjson_mut_val **ret, struct error *reterr)
{
    struct shown *s = user;
    struct facts facts;
    int r;

    if (d->in_result && d->data && view_is_readable(d->mime)) {
        *ret = yyjson_val_mut_copy(doc, d->data);
        return 0;
    }
    r = facts_find(d, &facts, reterr);
    if (r == 0)
        r = image_add(s, d, &facts, reterr);
    return r < 0 ? r : note_make(d, &facts, doc, ret, reterr);
}

int view_payload(struct view_parts *p, const char *text, size_t len, struct error *reterr)
{
    struct shown shown = {
        .view = p->view,
        .images = {.view = p->view, .images_gone = p->images_gone},
    };
    const struct view_rewrite how = {
        .displays_key = "display_outputs_summary", .each = display_show, .user = &shown};
    auto_buf struct buf payload;
    int r;

    buf_init(&payload, 2 * MESSAGE_BYTES_MAX);
    r = view_payload_rewrite(text, len, &how, &payload, reterr);
    if (r == 0)
        return view_part_text(p, text, len, reterr);
    if (r > 0)
        r = view_part_text(p, buf_str(&payload), payload.len, reterr);
    for (size_t i = 0; i < shown.images.count && r == 0; i++)
        r = view_part_add(p, &shown.images.items[i], reterr);
    return r;
}
