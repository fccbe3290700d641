/* SPDX-License-Identifier: MIT */
/* What the files of the view share: messages while they are made ready for a model. */
#pragma once

#include "agent/view.h"

enum {
    VIEW_IMAGES = 8, /* the newest of them */
    VIEW_SIDE = 8000,
    VIEW_EXTRACT = 8 * KIB,
};
#define VIEW_IMAGE_BYTES (5 * MIB) /* of base64 */
#define VIEW_IMAGE_OLDER "[an older image]"

struct view_entry {
    struct llm_message m;   /* parts, calls and their numbers are filled in at the end */
    struct llm_part *parts; /* in the arena, as are all texts */
    size_t part_count;
    const struct llm_tool_call *calls;
    size_t call_count;

    int64_t tokens;
    size_t turn, step; /* a model's turn and the results of its calls are one step */
    size_t left_out;   /* messages that were here */
    bool is_human;
    bool gone;
};

struct view {
    const struct view_options *options;
    struct arena *arena;
    struct view_entry *entries;
    size_t count;
};

/* ---- texts ---- */

/* A copy without NUL characters; `hostile`: control, bidirectional and invisible characters become
 * escapes. NULL: no memory. */
char *view_text(struct arena *arena, const char *text, size_t len, bool hostile);

/* The ends of a text, each of at most `end` bytes, and a note between them. NULL: no memory. */
char *view_ends(struct arena *arena, const char *text, size_t end);

/* ---- parts ---- */

/*
 * Parts of one message while they are collected. An image is not final before view_images_choose()
 * and view_images_fetch(): `text` is the note to stand in its place (NULL: nothing), `name` the
 * blob that holds its data.
 */
struct view_parts {
    const struct view *view;
    struct llm_part *items;
    size_t count, cap;
    bool hostile;     /* texts are a tool's */
    bool images_gone; /* newer messages have as many as are shown: nothing is copied */
};

int view_part_add(struct view_parts *p, const struct llm_part *part,
                  struct error *reterr) must_check;
int view_part_text(struct view_parts *p, const char *text, size_t len,
                   struct error *reterr) must_check;
int view_part_note(struct view_parts *p, struct error *reterr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))) must_check;

/* The parts of a content: a text or blocks, of a human or a tool. */
int view_content(struct view_parts *p, yyjson_val *content, struct error *reterr) must_check;
/* One block that is no text: an image, a file, or a note. */
int view_media(struct view_parts *p, yyjson_val *block, struct error *reterr) must_check;
/* A tool's payload: its text without displays, and their images. */
int view_payload(struct view_parts *p, const char *text, size_t len,
                 struct error *reterr) must_check;

/* Reads the picture in base64 and tells its size; false when it is none that models take. */
struct view_picture {
    const char *mime; /* as its bytes say */
    uint32_t width, height;
};
bool view_picture_read(const char *data, size_t len, struct view_picture *ret);

/* Which images are shown: the newest; and fetches the data of those. */
void view_images_choose(struct view *v);
int view_images_fetch(struct view *v, struct error *reterr) must_check;

/* ---- what is displayed by a tool's payload ---- */

/* An entry of display_outputs, or a member of result. */
struct view_display {
    const char *mime;
    yyjson_val *value; /* all of it */
    yyjson_val *data;  /* NULL: it is a reference */
    const char *blob;  /* SHA-256; NULL */
    bool in_result;
};

/* Gives what is to stand in its place. */
typedef int view_display_fn(void *user, yyjson_mut_doc *doc, const struct view_display *d,
                            yyjson_mut_val **ret, struct error *reterr);

struct view_rewrite {
    const char *displays_key; /* in place of "display_outputs" */
    view_display_fn *each;
    void *user;
};

/* 1 when `text` is a payload and what became of it was appended; 0 when it shows nothing. */
int view_payload_rewrite(const char *text, size_t len, const struct view_rewrite *how,
                         struct buf *ret, struct error *reterr) must_check;

bool view_is_image(const char *mime); /* of a kind that is base64 */
bool view_is_base64(const char *mime);
bool view_is_readable(const char *mime); /* a model reads it as it is */

/* ---- the window ---- */

void view_count(struct view_entry *e);
int view_trim(struct view *v, struct error *reterr) must_check;
