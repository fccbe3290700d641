/* SPDX-License-Identifier: MIT */
/*
 * Columns and lines of text for the terminal (UTF-8 with sequences of cli/term/style.h). Widths are
 * those of Unicode (East Asian wide and emoji: 2, combining: 0), whatever the locale is.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Columns of the text; sequences have none, a tab and a line's end count as one. */
size_t text_width(const char *text, size_t len);

/* Columns of one character. */
int text_char_width(uint32_t c);

/* The character at `text`, its length in `ret_len`; U+FFFD and 1 where it is ill-formed. */
uint32_t text_char(const char *text, size_t len, size_t *ret_len);

/* Length of the SGR sequence at `text`, or 0. */
size_t text_sequence(const char *text, size_t len);

/* How many bytes from the start have at most `width` columns; sequences behind them included. */
size_t text_fit(const char *text, size_t len, size_t width);

struct text_wrap {
    size_t width;      /* of a whole line, with what is before it; 0: never break a line */
    const char *first; /* before the first line; "" */
    const char *rest;  /* before the others */
    bool hard;         /* break anywhere and keep all spaces (code); else between words */
};

/*
 * Appends lines, each with a '\n'. A style goes on over a break, but never over what is before a
 * line. Empty text is one empty line. No line of prose, and no empty line, ends with spaces.
 */
int text_wrap(struct buf *ret, const char *text, size_t len,
              const struct text_wrap *wrap) must_check;

/* One line of exactly `width` columns: cut with "…", or filled with spaces. */
int text_pad(struct buf *ret, const char *text, size_t len, size_t width) must_check;

/* The text with spaces for tabs, up to the next column of 8; '\n' begins a line. */
int text_expand(struct buf *ret, const char *text, size_t len) must_check;

/* `count` times a string. */
int text_repeat(struct buf *ret, const char *s, size_t count) must_check;
