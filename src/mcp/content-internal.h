/* SPDX-License-Identifier: MIT */
/* What the files about content share: the texts of an answer, and its media. */
#pragma once

#include "mcp/content.h"
#include "mcp/displays.h"
#include "wire/image_header.h"

/* ---- content-text.c ---- */

/* Bytes of a text as a JSON string, without its quotes. */
size_t content_escaped_len(const char *text, size_t len);

/* Replaces long base64 in all strings of the value by a note. */
void content_strip_base64(yyjson_mut_doc *doc, yyjson_mut_val *root);

/* Cuts all strings of the value to so many characters, head and tail. */
void content_cut_strings(yyjson_mut_doc *doc, yyjson_mut_val *root, size_t limit_chars);

/* A string value with the text, cut so that its JSON takes at most `max` bytes. */
yyjson_mut_val *content_fit_text(yyjson_mut_doc *doc, const char *text, size_t len, size_t max);

/* ---- content-media.c ---- */

enum { CONTENT_ITEMS_MAX = 100, CONTENT_NOTE_SIZE = 640 };

enum content_class {
    CONTENT_OTHER,   /* a link only */
    CONTENT_PICTURE, /* whole, of a known kind, and not too large to be reduced */
    CONTENT_SOUND,
};

/* A value that does not stay in the structured content as it was. */
struct content_item {
    struct display *display;
    enum content_class class;
    struct image_header image; /* of a picture */
    bool has_size;             /* the image's size is known, whether it is shown or not */
    bool is_original;          /* the block is the whole */
    yyjson_val *readable;      /* the payload's value, when it is small and text of a kind */
    char mime[DISPLAY_MIME_SIZE];
    struct buf block; /* base64 of what is shown; empty: nothing */
    char note[CONTENT_NOTE_SIZE];
};

struct content_media {
    const struct content_context *context;
    const struct content_payload *payload;
    struct content_limits limits; /* without zeros */
    struct content_item items[CONTENT_ITEMS_MAX];
    size_t count;
};

void content_media_done(struct content_media *m);

/* Whether a value of this kind may stay as it is; a result's value that is small needs no link. */
bool content_stays(const char *mime, yyjson_val *value, bool in_result);

/* Takes a value in: decoded, kept, looked at. 1, or 0 when there are too many already. */
int content_media_add(struct content_media *m, const char *mime, yyjson_val *value,
                      struct error *reterr) must_check;

/* Decides what is shown, and reduces what is too large. */
int content_media_show(struct content_media *m, struct error *reterr) must_check;

/* The object that stands for an item. */
yyjson_mut_val *content_item_object(yyjson_mut_doc *doc, const struct content_item *item);

/* Appends the item's blocks; returns how many bytes of JSON they take. */
size_t content_item_blocks(yyjson_mut_doc *doc, yyjson_mut_val *content,
                           const struct content_item *item);
