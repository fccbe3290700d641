/* SPDX-License-Identifier: MIT */
/*
 * Colours and weights of text. Text for the terminal is UTF-8 with SGR sequences of one form only:
 * each names the whole style ("\033[0;1;32m"), so a line may be cut at any of them. Without colours
 * (not a terminal, NO_COLOR) no sequence is written at all.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* How many colours the terminal has. */
enum term_color { TERM_COLOR_NONE, TERM_COLOR_16, TERM_COLOR_256, TERM_COLOR_TRUE };

enum style_attr {
    STYLE_BOLD = 1u << 0,
    STYLE_DIM = 1u << 1,
    STYLE_ITALIC = 1u << 2,
    STYLE_UNDERLINE = 1u << 3,
    STYLE_INVERSE = 1u << 4,
    STYLE_STRIKE = 1u << 5,
};

/* A colour: 0 is the terminal's own, else one of these. */
#define STYLE_INDEX(n) \
    (0x01000000u | (uint32_t)(n)) /* of the palette: 0-7, bright 8-15, 16-255 \
                                   */
#define STYLE_RGB(rgb) (0x02000000u | (uint32_t)(rgb))

struct style {
    unsigned attrs; /* enum style_attr */
    uint32_t fg, bg;
};

/* What things look like: the one table of colours, of the 16 that the user's theme defines. */
enum style_role {
    STYLE_PLAIN,
    STYLE_HEADING,
    STYLE_STRONG,
    STYLE_FAINT, /* rules, borders, what is beside the point */
    STYLE_CODE,
    STYLE_LINK,
    STYLE_MATH,
    STYLE_MARK, /* bullets, numbers of lists */
    STYLE_COMMENT,
    STYLE_STRING,
    STYLE_NUMBER,
    STYLE_KEYWORD,
    STYLE_FUNCTION,
    STYLE_RUNNING,
    STYLE_OK,
    STYLE_ERROR,
    STYLE_WARNING,
    STYLE_USER, /* the prompt, and what a person said */
    STYLE_ROLE_COUNT,
};

const struct style *style_of(enum style_role role);
bool style_equal(const struct style *a, const struct style *b);

/* The sequence that sets the style, in the colours that there are; "" without colours. */
int style_put(struct buf *ret, const struct style *style, enum term_color color) must_check;

/* Text in a role, and back to plain. `text` is clean (cli/term/clean.h) or ours. */
int style_text(struct buf *ret, enum style_role role, enum term_color color, const char *text,
               size_t len) must_check;
