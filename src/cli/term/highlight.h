/* SPDX-License-Identifier: MIT */
/*
 * Colours for code, from one table of words and quotes per language. It never fails on code that is
 * wrong: what it does not know stays plain. Lines come one by one, so code can be shown as it
 * grows; a string or comment over several lines is the state between them.
 */
#pragma once

#include "base/buf.h"
#include "cli/term/style.h"

#include <stddef.h>

enum highlight_language {
    HIGHLIGHT_NONE,
    HIGHLIGHT_PYTHON,
    HIGHLIGHT_JAVASCRIPT,
    HIGHLIGHT_R,
    HIGHLIGHT_BASH,
    HIGHLIGHT_JSON,
};

struct highlight {
    enum highlight_language language;
    enum term_color color;
    unsigned open; /* private: 0, or 1 + the number of the quote that is open */
};

/* By a name as people write it behind a fence ("py", "js", "sh"), or a runtime ("node", "r"). */
enum highlight_language highlight_find(const char *name, size_t len);

/* Appends one line of clean text, which has no '\n', coloured; each line ends in plain style. */
int highlight_line(struct highlight *h, const char *line, size_t len, struct buf *ret) must_check;

/* A whole text; lines are separated by '\n' as in the text. */
int highlight_text(struct highlight *h, const char *text, size_t len, struct buf *ret) must_check;
