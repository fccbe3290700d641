/* SPDX-License-Identifier: MIT */
/*
 * Media of an answer. Every value that is not plain text is kept whole in the store. A picture is
 * shown as it is when it is small; a larger one is reduced in the sandbox, and what comes back is
 * checked like any hostile bytes. What a model's API would refuse is never sent: a broken picture
 * in a conversation makes each later call fail.
 */
#include "mcp/content-internal.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "session/filter.h"
#include "wire/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    NOTE_RAW = CONTENT_NOTE_SIZE / 3 - 1, /* each byte may become three */
    INLINE_MAX = 8192,                    /* of a page or a JSON value that stays readable */
    DECODED_MAX = 64 * 1024 * 1024,       /* of one value */
    REDUCED_MAX = 40 * 1024 * 1024,       /* what is handed to the sandbox again */
    WIDE_WANT = 100000, /* at least, for a picture that is reduced because of its pixels */
    REDUCED_MIN = 4096, /* a smaller share of the budget shows nothing */
    BLOCKS_MAX = 20,    /* of media in one answer */
    FRAMES_MAX = 1000,
    TITLE_MAX = 80,
    PLAYER_MAX = 1000, /* of the page around a sound */
    BLOCK_ROOM = 128,  /* of a block's own words and punctuation */
    ONE_MS = 20000,    /* for one picture */
    ALL_MS = 30000,    /* for all */
};

#define SHRINK "/opt/sandbox-agent/kernel/shrink"

void content_media_done(struct content_media *m)
{
    for (size_t i = 0; i < m->count; i++) {
        display_unref(m->items[i].display);
        buf_done(&m->items[i].block);
    }
    m->count = 0;
}

/* ---- kinds ---- */

static bool mime_is(const char *mime, const char *prefix)
{
    return strncasecmp(mime, prefix, strlen(prefix)) == 0;
}

static bool is_svg(const char *mime)
{
    return mime_is(mime, "image/svg");
}

static bool is_picture(const char *mime)
{
    return mime_is(mime, "image/") && !is_svg(mime);
}

/* Base64 in the payload. */
static bool is_binary(const char *mime)
{
    return is_picture(mime) || mime_is(mime, "audio/") || mime_is(mime, "video/") ||
           mime_is(mime, "application/pdf");
}

static bool is_text(const char *mime)
{
    return mime_is(mime, "text/plain") || mime_is(mime, "text/markdown") ||
           mime_is(mime, "text/latex");
}

/* What a model can read although it is not meant for it; not the innards of somebody's figures. */
static bool is_readable(const char *mime)
{
    return mime_is(mime, "text/") || is_svg(mime) || mime_is(mime, "application/json") ||
           mime_is(mime, "application/javascript") || mime_is(mime, "application/geo+json");
}

static bool mime_check(const char *mime)
{
    return str_check_chars(mime,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "/.+-_;= ",
                           DISPLAY_MIME_SIZE - 1);
}

static int value_decode(const char *mime, yyjson_val *value, struct buf *ret)
{
    const char *text = yyjson_get_str(value);

    if (!text)
        return json_write(value, ret, NULL);
    if (is_binary(mime))
        return base64_decode(ret, text, yyjson_get_len(value));
    return buf_append(ret, text, yyjson_get_len(value));
}

static bool is_small(const char *mime, yyjson_val *value)
{
    auto_buf struct buf text;

    buf_init(&text, INLINE_MAX);
    return is_readable(mime) && value_decode(mime, value, &text) >= 0 &&
           !memmem(buf_str(&text), text.len, ";base64,", 8);
}

bool content_stays(const char *mime, yyjson_val *value, bool in_result)
{
    if (is_text(mime) && yyjson_is_str(value))
        return true;
    return in_result && is_small(mime, value);
}

/* ---- notes ---- */

/* A note may quote what the sandbox said, which is any bytes. */
static void note_set(struct content_item *item, const char *fmt, ...) printf_like(2, 3);

static void note_set(struct content_item *item, const char *fmt, ...)
{
    struct utf8_repair repair = {};
    char raw[NOTE_RAW];
    auto_buf struct buf text;
    va_list args;

    buf_init(&text, sizeof(item->note) - 1);
    va_start(args, fmt);
    (void)!vsnprintf(raw, sizeof(raw), fmt, args);
    va_end(args);
    (void)!utf8_repair_feed(&repair, raw, strlen(raw), &text);
    snprintf(item->note, sizeof(item->note), "%s", buf_str(&text));
    for (char *c = item->note; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    }
}

static bool title_find(const struct display *o, const char **ret, size_t *ret_len)
{
    size_t len = MIN(o->len, (size_t)INLINE_MAX);
    const char *start =
        mime_is(o->mime, "text/html") && len ? memmem(o->data, len, "<title>", 7) : NULL;
    const char *end;

    if (!start)
        return false;
    start += strlen("<title>");
    end = memchr(start, '<', len - (size_t)(start - o->data));
    *ret = start;
    *ret_len = MIN(end ? (size_t)(end - start) : 0, (size_t)TITLE_MAX);
    return *ret_len > 0;
}

static void other_note(struct content_item *item, yyjson_val *value)
{
    const struct display *o = item->display;
    yyjson_val *traces = yyjson_obj_get(value, "data");
    const char *title;
    size_t len;

    if (mime_is(item->mime, "application/vnd.plotly"))
        note_set(item, "a Plotly figure of %zu trace%s (%s), %zu bytes", yyjson_arr_size(traces),
                 yyjson_arr_size(traces) == 1 ? "" : "s",
                 json_get_str(yyjson_arr_get_first(traces), "type", "scatter"), o->len);
    else if (title_find(o, &title, &len))
        note_set(item, "%s, %zu bytes, with the title '%.*s'", item->mime, o->len, (int)len, title);
    else
        note_set(item, "%s, %zu bytes", item->mime, o->len);
}

/* ---- what came ---- */

/* A picture is called what its bytes are, because that is what its readers go by. */
static void picture_look(struct content_item *item, const struct buf *data)
{
    struct image_header *h = &item->image;
    struct error err = {};

    if (image_header_parse(buf_str(data), data->len, h, &err) < 0) {
        note_set(item, "a picture that cannot be read (%s), %zu bytes", err.text, data->len);
        return;
    }
    item->has_size = true;
    snprintf(item->mime, sizeof(item->mime), "%s", image_mime(h->kind));
    if (!h->whole)
        note_set(item, "a picture that is cut off, %u x %u pixels", h->width, h->height);
    else if (image_pixels(h) > IMAGE_PIXELS_MAX)
        note_set(item, "a picture of %u x %u pixels, too many to be shown", h->width, h->height);
    else if (h->frames > FRAMES_MAX)
        note_set(item, "a picture of %u frames, too many to be shown", h->frames);
    else
        item->class = CONTENT_PICTURE;
}

/*
 * A page that is nothing but a player, as notebooks show sound: the type and the base64 in it. What
 * does not look exactly so stays a page.
 */
static bool player_find(const char *mime, yyjson_val *value, char ret_mime[DISPLAY_MIME_SIZE],
                        struct buf *ret)
{
    static const char start[] = "src=\"data:audio/", mark[] = ";base64,";
    const char *page = yyjson_get_str(value), *type, *data, *end;
    size_t len = yyjson_get_len(value), type_len;

    if (!page || !mime_is(mime, "text/html") || !strstr(page, "<audio") ||
        !(type = strstr(page, start)) || !(data = strstr(type, mark)) || !(end = strchr(data, '"')))
        return false;
    type += strlen(start) - strlen("audio/");
    type_len = (size_t)(data - type);
    data += strlen(mark);
    if (type_len >= DISPLAY_MIME_SIZE || len - (size_t)(end - data) > PLAYER_MAX ||
        base64_decode(ret, data, (size_t)(end - data)) < 0)
        return false;
    snprintf(ret_mime, DISPLAY_MIME_SIZE, "%.*s", (int)type_len, type);
    return mime_check(ret_mime);
}

static int item_keep(struct content_media *m, struct content_item *item, yyjson_val *value,
                     struct error *reterr)
{
    char mime[DISPLAY_MIME_SIZE];
    auto_buf struct buf data;
    bool decoded = true;
    int r;

    buf_init(&data, DECODED_MAX);
    if (player_find(item->mime, value, mime, &data)) {
        snprintf(item->mime, sizeof(item->mime), "%s", mime);
    } else {
        buf_clear(&data);
        decoded = value_decode(item->mime, value, &data) >= 0;
    }
    if (!decoded) {
        buf_clear(&data);
        note_set(item, "%s that is not valid base64", item->mime);
    } else if (data.len && is_picture(item->mime)) {
        picture_look(item, &data);
    } else if (data.len && mime_is(item->mime, "audio/")) {
        item->class = CONTENT_SOUND;
    }
    r = displays_put(m->context->displays, m->payload->session_id, item->mime, &data,
                     &item->display, reterr);
    if (r == 0 && !item->note[0] && item->class == CONTENT_OTHER)
        other_note(item, value);
    return r;
}

int content_media_add(struct content_media *m, const char *mime, yyjson_val *value,
                      struct error *reterr)
{
    struct content_item *item = &m->items[m->count];
    int r;

    if (m->count == CONTENT_ITEMS_MAX)
        return 0;
    *item = (struct content_item){.class = CONTENT_OTHER};
    buf_init(&item->block, m->limits.media_chars);
    snprintf(item->mime, sizeof(item->mime), "%s",
             mime_check(mime) ? mime : "application/octet-stream");
    r = item_keep(m, item, value, reterr);
    if (r < 0)
        return r;
    if (is_small(item->mime, value))
        item->readable = value;
    m->count++;
    return 1;
}

/* ---- what is shown ---- */

/* What is said of a picture or sound that is not shown; showing it changes the note. */
static void media_note(struct content_item *item)
{
    if (item->class == CONTENT_PICTURE)
        note_set(item, "a picture of %u x %u pixels; this answer has no room for it",
                 item->image.width, item->image.height);
    else
        note_set(item, "%s, %zu bytes; this answer has no room for it", item->mime,
                 item->display->len);
}

static bool is_wide(const struct content_media *m, const struct content_item *item)
{
    return item->class == CONTENT_PICTURE &&
           MAX(item->image.width, item->image.height) > m->limits.side;
}

/* What an item would take. A reduced picture can be more bytes than its whole, if it has few
 * colours. */
static size_t item_want(const struct content_media *m, const struct content_item *item)
{
    size_t len = item->display->len;

    return MIN(is_wide(m, item) ? MAX(len, (size_t)WIDE_WANT) : len, m->limits.media_bytes);
}

static bool item_has_block(const struct content_media *m, const struct content_item *item)
{
    return item->class == CONTENT_PICTURE ||
           (item->class == CONTENT_SOUND && item->display->len <= m->limits.media_bytes);
}

/*
 * The size up to which everything may be: what is smaller leaves its rest to the others. `want` are
 * the sizes of `count` > 0 items, `total` what they may take together.
 */
static size_t share_of(const size_t *want, size_t count, size_t total)
{
    size_t level = total / count, before;

    do {
        size_t rest = total, large = 0;

        before = level;
        for (size_t i = 0; i < count; i++) {
            if (want[i] <= level)
                rest -= want[i];
            else
                large++;
        }
        level = large ? rest / large : total;
    } while (level > before && level < total);
    return level;
}

static int block_set(struct content_item *item, const void *data, size_t len, const char *mime,
                     struct error *reterr)
{
    snprintf(item->mime, sizeof(item->mime), "%s", mime);
    if (base64_encode(&item->block, data, len) < 0)
        return error_no_memory(reterr);
    return 0;
}

/* Runs the reduction and judges what it answers. */
static int picture_reduce(const struct content_media *m, const struct content_item *item,
                          int64_t timeout_ms, struct buf *ret, struct error *reterr)
{
    const struct display *o = item->display;
    char side[16], bytes[32];
    const char *argv[] = {SHRINK, side, bytes, NULL};
    struct image_header h;
    int r;

    snprintf(side, sizeof(side), "%u", m->limits.side);
    snprintf(bytes, sizeof(bytes), "%zu", ret->max);
    r = session_filter(m->context->manager,
                       &(struct session_filter){.id = m->payload->session_id,
                                                .owner = m->context->owner,
                                                .argv = argv,
                                                .in = o->data,
                                                .in_len = o->len,
                                                .timeout_ms = timeout_ms},
                       ret, reterr);
    if (r < 0 || (r = image_header_parse(buf_str(ret), ret->len, &h, reterr)) < 0)
        return r;
    if (!h.whole || (h.kind != IMAGE_PNG && h.kind != IMAGE_JPEG) || h.width > m->limits.side ||
        h.height > m->limits.side)
        return error_set(reterr, ERR_PROTOCOL, "the copy is not what was asked for");
    return 0;
}

static int picture_show_reduced(const struct content_media *m, struct content_item *item,
                                size_t cap, int64_t left_ms, struct error *reterr)
{
    const struct image_header *h = &item->image;
    struct image_header small = {};
    struct error err = {};
    auto_buf struct buf copy;

    buf_init(&copy, cap);
    if (left_ms <= 0) {
        note_set(item, "a picture of %u x %u pixels; there was no time to reduce it", h->width,
                 h->height);
        return 0;
    }
    if (picture_reduce(m, item, MIN(left_ms, (int64_t)ONE_MS), &copy, &err) < 0 ||
        image_header_parse(copy.data, copy.len, &small, &err) < 0) {
        note_set(item, "a picture of %u x %u pixels that could not be reduced (%.80s)", h->width,
                 h->height, err.text);
        return 0;
    }
    note_set(item, "the whole picture, %u x %u pixels; shown is a copy of %u x %u", h->width,
             h->height, small.width, small.height);
    return block_set(item, copy.data, copy.len, image_mime(small.kind), reterr);
}

static bool can_be_reduced(const struct content_media *m, const struct content_item *item,
                           size_t cap)
{
    return (item->image.kind == IMAGE_PNG || item->image.kind == IMAGE_JPEG) &&
           cap >= REDUCED_MIN && item->display->len <= REDUCED_MAX && m->payload->session_id;
}

static int item_show(const struct content_media *m, struct content_item *item, size_t cap,
                     int64_t deadline, struct error *reterr)
{
    const struct display *o = item->display;
    bool picture = item->class == CONTENT_PICTURE;

    if (o->len <= cap && !is_wide(m, item)) {
        item->is_original = true;
        item->note[0] = 0;
        return block_set(item, o->data, o->len, o->mime, reterr);
    }
    if (picture && can_be_reduced(m, item, cap))
        return picture_show_reduced(m, item, cap, deadline - clock_ms(), reterr);
    if (picture)
        note_set(item, "a picture of %u x %u pixels, %zu bytes: too large to be shown",
                 item->image.width, item->image.height, o->len);
    return 0;
}

int content_media_show(struct content_media *m, struct error *reterr)
{
    struct content_item *shown[BLOCKS_MAX];
    size_t want[BLOCKS_MAX], count = 0, total, level;
    int64_t deadline = clock_deadline(ALL_MS);

    for (size_t i = 0; i < m->count; i++) {
        struct content_item *item = &m->items[i];

        if (!item->note[0])
            media_note(item);
        if (count == BLOCKS_MAX || !item_has_block(m, item))
            continue;
        want[count] = item_want(m, item);
        shown[count++] = item;
    }
    if (count == 0)
        return 0;
    /* Base64 rounds up to three bytes. */
    total = m->limits.media_chars / 4 * 3;
    level = share_of(want, count, total - MIN(total, 3 * count));
    for (size_t i = 0; i < count; i++) {
        if (item_show(m, shown[i], MIN(level, want[i]), deadline, reterr) < 0)
            return -ERR_NO_MEMORY;
    }
    return 0;
}

/* ---- blocks ---- */

yyjson_mut_val *content_item_object(yyjson_mut_doc *doc, const struct content_item *item)
{
    const struct display *o = item->display;
    yyjson_mut_val *object = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_strcpy(doc, object, "type", o->mime);
    if (item->readable)
        yyjson_mut_obj_add_val(doc, object, "data", yyjson_val_mut_copy(doc, item->readable));
    if (o->uri[0])
        yyjson_mut_obj_add_strcpy(doc, object, "uri", o->uri);
    yyjson_mut_obj_add_uint(doc, object, "size", o->len);
    if (item->has_size) {
        yyjson_mut_obj_add_uint(doc, object, "width", item->image.width);
        yyjson_mut_obj_add_uint(doc, object, "height", item->image.height);
    }
    if (item->note[0])
        yyjson_mut_obj_add_strcpy(doc, object, "note", item->note);
    return object;
}

size_t content_item_blocks(yyjson_mut_doc *doc, yyjson_mut_val *content,
                           const struct content_item *item)
{
    const struct display *o = item->display;
    yyjson_mut_val *block;
    size_t used = 0;

    if (item->block.len) {
        block = yyjson_mut_arr_add_obj(doc, content);
        yyjson_mut_obj_add_str(doc, block, "type",
                               item->class == CONTENT_SOUND ? "audio" : "image");
        yyjson_mut_obj_add_val(doc, block, "data",
                               json_mut_text(doc, item->block.data, item->block.len));
        yyjson_mut_obj_add_strcpy(doc, block, "mimeType", item->mime);
        used += item->block.len + strlen(item->mime) + BLOCK_ROOM;
    }
    if (!item->is_original && o->uri[0]) {
        block = yyjson_mut_arr_add_obj(doc, content);
        yyjson_mut_obj_add_str(doc, block, "type", "resource_link");
        yyjson_mut_obj_add_strcpy(doc, block, "uri", o->uri);
        yyjson_mut_obj_add_strcpy(doc, block, "name", o->name);
        yyjson_mut_obj_add_strcpy(doc, block, "mimeType", o->mime);
        yyjson_mut_obj_add_uint(doc, block, "size", o->len);
        yyjson_mut_obj_add_strcpy(doc, block, "description", item->note);
        used += strlen(o->uri) + strlen(o->name) + strlen(o->mime) + BLOCK_ROOM +
                content_escaped_len(item->note, strlen(item->note));
    }
    return used;
}
