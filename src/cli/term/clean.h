/* SPDX-License-Identifier: MIT */
/*
 * Makes text of models, tools and guests harmless for a terminal. What comes out is well-formed
 * UTF-8 with '\n', '\t' and, in one mode, colour sequences of ours; nothing else below U+0020, none
 * of U+007F-U+009F, no bidirectional control, no invisible character that could carry a message.
 * It takes pieces: a sequence or a character that is cut in two comes out as if it were whole.
 */
#pragma once

#include "cli/term/style.h"
#include "wire/utf8.h"

enum clean_mode {
    CLEAN_STRIP,   /* sequences and invisible characters are left out; a lone control is "^X" */
    CLEAN_COLORS,  /* the same, but colours and weights are kept, written anew by style_put() */
    CLEAN_VISIBLE, /* everything can be seen ("\x1b", "<U+202E>"): for what a person approves;
                      in inverse video, so that it is not taken for text that says the same */
};

enum { CLEAN_SEQUENCE_MAX = 64 };

struct clean {
    enum clean_mode mode;
    enum term_color color; /* of CLEAN_COLORS; of CLEAN_VISIBLE: NONE has no inverse video */
    bool keep_return;      /* '\r' that is not part of a line's end is kept (a panel obeys it) */
    /* private */
    struct utf8_repair repair;
    unsigned char state;
    bool is_return;
    unsigned marks;            /* combining characters in a row */
    unsigned len;              /* of held; above its size: the sequence is too long */
    struct style style, shown; /* what the text has set, and what was written of it */
    uint32_t last;             /* character */
    char held[CLEAN_SEQUENCE_MAX];
};

/* {.mode = ...} is a start, too. Appends to `ret`; 0, or -1 when it is full. */
int clean_feed(struct clean *c, const void *data, size_t len, struct buf *ret) must_check;

/* The end: what was held back, and the plain style again. */
int clean_finish(struct clean *c, struct buf *ret) must_check;

/* A whole text, in CLEAN_STRIP or CLEAN_VISIBLE. */
int clean_text(const char *text, size_t len, enum clean_mode mode, struct buf *ret) must_check;

/*
 * A text as one line of at most `columns`: for titles, names, notes. Ends of lines and tabs become
 * spaces, and what is too long ends with "…".
 */
int clean_line(const char *text, size_t columns, struct buf *ret) must_check;
