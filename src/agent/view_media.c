/* SPDX-License-Identifier: MIT */
/*
 * Blocks of a content, in the spellings that clients use. A picture is called what its bytes are,
 * and one that a provider would refuse becomes a note: it would make every later call fail.
 */
#include "agent/view-internal.h"

#include "base/base64.h"
#include "base/str.h"
#include "store/store.h"
#include "wire/image_header.h"
#include "wire/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum { NOTE_SIZE = 400, LABEL_MAX = 100 };
#define FILE_TEXT_MAX (1 * MIB)

/* ---- parts ---- */

int view_part_add(struct view_parts *p, const struct llm_part *part, struct error *reterr)
{
    if (p->count == p->cap) {
        size_t cap = MAX(2 * p->cap, 4);
        struct llm_part *items = arena_alloc(p->view->arena, cap * sizeof(*items));

        if (!items)
            return error_no_memory(reterr);
        if (p->count)
            memcpy(items, p->items, p->count * sizeof(*items));
        p->items = items;
        p->cap = cap;
    }
    p->items[p->count++] = *part;
    return 0;
}

/* Providers refuse a part without text. */
int view_part_text(struct view_parts *p, const char *text, size_t len, struct error *reterr)
{
    struct llm_part part = {.kind = LLM_TEXT};

    if (!text || len == 0)
        return 0;
    part.text = view_text(p->view->arena, text, len, p->hostile);
    if (!part.text)
        return error_no_memory(reterr);
    return *part.text ? view_part_add(p, &part, reterr) : 0;
}

int view_part_note(struct view_parts *p, struct error *reterr, const char *fmt, ...)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;
    char note[NOTE_SIZE];
    va_list args;

    /* It may quote the first bytes of something, and these may end within a character. */
    buf_init(&text, 3 * NOTE_SIZE);
    va_start(args, fmt);
    (void)!vsnprintf(note, sizeof(note), fmt, args);
    va_end(args);
    if (utf8_repair_feed(&repair, note, strlen(note), &text) < 0 ||
        utf8_repair_finish(&repair, &text) < 0)
        return error_no_memory(reterr);
    return view_part_text(p, buf_str(&text), text.len, reterr);
}

/* ---- pictures ---- */

bool view_picture_read(const char *data, size_t len, struct view_picture *ret)
{
    struct image_header h = {};
    auto_buf struct buf bytes;

    buf_init(&bytes, VIEW_IMAGE_BYTES);
    if (len == 0 || len > VIEW_IMAGE_BYTES || base64_decode(&bytes, data, len) < 0 ||
        image_header_parse(buf_str(&bytes), bytes.len, &h, NULL) < 0)
        return false;
    *ret = (struct view_picture){
        .mime = image_mime(h.kind),
        .width = h.width,
        .height = h.height,
    };
    return h.whole && image_pixels(&h) <= IMAGE_PIXELS_MAX && h.width <= VIEW_SIDE &&
           h.height <= VIEW_SIDE;
}

/* What a block holds, whatever it calls it. */
struct media {
    const char *kind; /* of the block */
    const char *mime, *name, *url;
    const char *data; /* base64; NULL: none */
    size_t len;
    yyjson_val *text; /* in place of data; NULL */
};

static int image_note(struct view_parts *p, const struct media *m, const char *why,
                      struct error *reterr)
{
    return view_part_note(p, reterr, "[an image (%.*s, %zu bytes of base64) that %s]", LABEL_MAX,
                          m->mime ? m->mime : "of an unknown kind", m->len, why);
}

static int image_data_add(struct view_parts *p, const struct media *m, struct error *reterr)
{
    struct view_picture picture = {};
    struct llm_part part = {.kind = LLM_IMAGE};

    if (p->images_gone)
        return view_part_note(p, reterr, VIEW_IMAGE_OLDER);
    if (m->len > VIEW_IMAGE_BYTES)
        return image_note(p, m, "is too large to be shown", reterr);
    if (!view_picture_read(m->data, m->len, &picture))
        return image_note(p, m, "cannot be shown: its kind or size is not one that models take",
                          reterr);
    part.mime = picture.mime;
    part.data = arena_memdup(p->view->arena, m->data, m->len);
    part.text = VIEW_IMAGE_OLDER;
    return part.data ? view_part_add(p, &part, reterr) : error_no_memory(reterr);
}

static int image_add(struct view_parts *p, const struct media *m, struct error *reterr)
{
    struct llm_part part = {.kind = LLM_IMAGE};

    if (!p->view->options->images)
        return image_note(p, m, "is not shown: this model sees no images", reterr);
    if (m->data)
        return image_data_add(p, m, reterr);
    if (!m->url || (strncasecmp(m->url, "https://", 8) && strncasecmp(m->url, "http://", 7)))
        return image_note(p, m, "cannot be shown: it has neither data nor an address", reterr);
    part.url = view_text(p->view->arena, m->url, strlen(m->url), false);
    part.text = VIEW_IMAGE_OLDER;
    return part.url ? view_part_add(p, &part, reterr) : error_no_memory(reterr);
}

/* ---- files ---- */

static bool mime_is_readable(const char *mime)
{
    return strncasecmp(mime, "text/", 5) == 0 || strcasecmp(mime, "application/json") == 0;
}

static int file_text_add(struct view_parts *p, const struct media *m, struct error *reterr)
{
    struct utf8_repair repair = {};
    const char *name = m->name ? m->name : "without a name";
    auto_buf struct buf bytes, text;
    int r;

    buf_init(&bytes, FILE_TEXT_MAX);
    buf_init(&text, 3 * FILE_TEXT_MAX);
    if (base64_decode(&bytes, m->data, m->len) < 0 ||
        utf8_repair_feed(&repair, buf_str(&bytes), bytes.len, &text) < 0 ||
        utf8_repair_finish(&repair, &text) < 0)
        return view_part_note(p, reterr, "[the file %.*s (%.*s): too large, or not in base64]",
                              LABEL_MAX, name, LABEL_MAX, m->mime);
    r = view_part_note(p, reterr, "[the file %.*s (%.*s):]", LABEL_MAX, name, LABEL_MAX, m->mime);
    return r < 0 ? r : view_part_text(p, buf_str(&text), text.len, reterr);
}

static int file_add(struct view_parts *p, const struct media *m, struct error *reterr)
{
    struct arena *arena = p->view->arena;
    struct llm_part part = {.kind = LLM_FILE, .mime = "application/pdf"};

    if (m->text)
        return view_part_text(p, yyjson_get_str(m->text), yyjson_get_len(m->text), reterr);
    if (!m->data || !m->mime || m->len == 0)
        return view_part_note(p, reterr, "[a file without content: %.*s]", LABEL_MAX,
                              m->name ? m->name : "without a name");
    if (mime_is_readable(m->mime))
        return file_text_add(p, m, reterr);
    if (strcasecmp(m->mime, part.mime))
        return view_part_note(p, reterr, "[the file %.*s (%.*s, %zu bytes of base64) is not shown]",
                              LABEL_MAX, m->name ? m->name : "without a name", LABEL_MAX, m->mime,
                              m->len);
    part.data = arena_memdup(arena, m->data, m->len);
    part.name = arena_strdup(arena, m->name ? m->name : "document.pdf");
    if (!part.data || !part.name)
        return error_no_memory(reterr);
    return view_part_add(p, &part, reterr);
}

/* ---- blocks ---- */

/* The first of the members that is a text. */
static yyjson_val *text_of(yyjson_val *object, const char *const *keys)
{
    for (; *keys; keys++) {
        yyjson_val *v = yyjson_obj_get(object, *keys);

        if (yyjson_is_str(v))
            return v;
    }
    return NULL;
}

/* "data:MIME;base64,DATA"; false when it is something else. */
static bool data_url_read(const char *url, size_t len, struct arena *arena, struct media *m)
{
    const char *comma = len > 5 && strncasecmp(url, "data:", 5) == 0 ? memchr(url, ',', len) : NULL;
    const char *end = comma ? memchr(url, ';', (size_t)(comma - url)) : NULL;

    if (!end || comma - end < 7 || strncasecmp(comma - 7, ";base64", 7) != 0)
        return false;
    m->mime = arena_memdup(arena, url + 5, (size_t)(end - url - 5));
    m->data = comma + 1;
    m->len = len - (size_t)(comma + 1 - url);
    m->url = NULL;
    return true;
}

static void address_read(struct media *m, yyjson_val *value, struct arena *arena)
{
    if (value && !data_url_read(yyjson_get_str(value), yyjson_get_len(value), arena, m))
        m->url = yyjson_get_str(value);
}

static void data_read(struct media *m, yyjson_val *value, struct arena *arena)
{
    if (!value || data_url_read(yyjson_get_str(value), yyjson_get_len(value), arena, m))
        return;
    m->data = yyjson_get_str(value);
    m->len = yyjson_get_len(value);
}

static void media_read(yyjson_val *block, struct arena *arena, struct media *m)
{
    static const char *const mimes[] = {"mime_type", "mimeType", "media_type", NULL};
    static const char *const datas[] = {"base64", "data", "file_data", NULL};
    static const char *const urls[] = {"url", "image_url", NULL};
    static const char *const names[] = {"filename", "name", NULL};
    static const char *const inner[] = {"source", "image_url", "file", "input_audio"};
    yyjson_val *v;

    *m = (struct media){.kind = json_get_str(block, "type", "")};
    for (size_t i = 0; i <= ARRAY_LEN(inner); i++) {
        yyjson_val *o = i ? yyjson_obj_get(block, inner[i - 1]) : block;

        if (!yyjson_is_obj(o))
            continue;
        v = text_of(o, mimes);
        m->mime = v ? yyjson_get_str(v) : m->mime;
        v = text_of(o, names);
        m->name = v ? yyjson_get_str(v) : m->name;
        address_read(m, text_of(o, urls), arena);
        data_read(m, text_of(o, datas), arena);
    }
    v = yyjson_obj_get(block, "text");
    m->text = yyjson_is_str(v) ? v : NULL;
    v = text_of(yyjson_obj_get(block, "metadata"), names);
    m->name = v ? yyjson_get_str(v) : m->name;
}

int view_media(struct view_parts *p, yyjson_val *block, struct error *reterr)
{
    struct media m;

    media_read(block, p->view->arena, &m);
    if (str_eq(m.kind, "image") || str_eq(m.kind, "image_url") || str_eq(m.kind, "input_image"))
        return image_add(p, &m, reterr);
    if (str_eq(m.kind, "file") || str_eq(m.kind, "document") || str_eq(m.kind, "input_file"))
        return m.mime && strncasecmp(m.mime, "image/", 6) == 0 ? image_add(p, &m, reterr)
                                                               : file_add(p, &m, reterr);
    return view_part_note(p, reterr, "[a part of the kind '%.*s' that is not shown]", LABEL_MAX,
                          m.kind);
}

static int block_add(struct view_parts *p, yyjson_val *block, struct error *reterr)
{
    yyjson_val *text = yyjson_obj_get(block, "text");

    if (yyjson_is_str(block))
        text = block;
    else if (!yyjson_is_str(text) || !strstr(json_get_str(block, "type", ""), "text"))
        return view_media(p, block, reterr);
    return view_part_text(p, yyjson_get_str(text), yyjson_get_len(text), reterr);
}

int view_content(struct view_parts *p, yyjson_val *content, struct error *reterr)
{
    yyjson_val *block;
    size_t i, max;

    if (yyjson_is_str(content))
        return view_part_text(p, yyjson_get_str(content), yyjson_get_len(content), reterr);
    yyjson_arr_foreach(content, i, max, block)
    {
        int r = block_add(p, block, reterr);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- which of them are shown ---- */

static void note_instead(struct llm_part *part)
{
    *part = (struct llm_part){.kind = LLM_TEXT, .text = part->text};
}

static void nothing_drop(struct view_entry *e)
{
    size_t count = 0;

    for (size_t i = 0; i < e->part_count; i++) {
        if (e->parts[i].kind != LLM_TEXT || e->parts[i].text)
            e->parts[count++] = e->parts[i];
    }
    e->part_count = count;
}

void view_images_choose(struct view *v)
{
    size_t count = 0;

    for (size_t i = v->count; i-- > 0;) {
        struct view_entry *e = &v->entries[i];

        for (size_t n = e->part_count; n-- > 0;) {
            if (e->parts[n].kind == LLM_IMAGE && ++count > VIEW_IMAGES)
                note_instead(&e->parts[n]);
        }
        nothing_drop(e);
    }
}

/* A blob that is lost, or not the picture that it was called, is no failure of the whole. */
static int image_fetch(struct view *v, struct llm_part *part, struct error *reterr)
{
    struct view_picture picture = {};
    struct store_blob blob = {};
    int r;

    r = store_blob_get(v->options->store, v->options->thread_id, part->name, v->arena, &blob,
                       reterr);
    if (r == -ERR_NO_MEMORY || r == -ERR_CANCELLED)
        return r;
    if (r < 0 || !view_picture_read(blob.data, blob.len, &picture)) {
        note_instead(part);
        return 0;
    }
    *part = (struct llm_part){.kind = LLM_IMAGE, .mime = picture.mime, .data = blob.data};
    return 0;
}

int view_images_fetch(struct view *v, struct error *reterr)
{
    for (size_t i = 0; i < v->count; i++) {
        struct view_entry *e = &v->entries[i];

        for (size_t n = 0; n < e->part_count && !e->gone; n++) {
            struct llm_part *part = &e->parts[n];
            int r = part->kind == LLM_IMAGE && part->name ? image_fetch(v, part, reterr) : 0;

            if (r < 0)
                return r;
            if (part->kind == LLM_IMAGE)
                part->text = NULL;
        }
        nothing_drop(e);
    }
    return 0;
}
