/* SPDX-License-Identifier: MIT */
/*
 * Markdown (CommonMark with tables, task lists, strikethrough, autolinks, dollar maths) as lines
 * for the terminal. The text may be hostile: it is cleaned first, HTML is shown as it stands, and
 * nothing is fetched; links and pictures are shown with their address. Where the output is not a
 * terminal the text is laid out in the same way without a colour or a break of ours.
 */
#pragma once

#include "cli/term/term.h"

#include <stdint.h>

struct markdown_layout {
    unsigned width; /* 0: lines are not broken */
    enum term_color color;
};

/* The whole text as lines. */
int markdown_render(const char *text, size_t len, const struct markdown_layout *layout,
                    struct buf *ret, struct error *reterr) must_check;

/*
 * A text that grows: blocks that are finished are printed once, the last one is the open part of
 * the terminal. Of a code block each whole line is finished.
 */
struct markdown_stream;

int markdown_stream_new(struct term *t, struct markdown_stream **ret,
                        struct error *reterr) must_check;

/* Any piece, also in the middle of a character. <0 only when memory is short. */
int markdown_stream_feed(struct markdown_stream *m, const char *text, size_t len,
                         struct error *reterr) must_check;

/* The text is over: prints the rest. The stream can then take the next text. */
int markdown_stream_end(struct markdown_stream *m, struct error *reterr) must_check;

/* Forgets what was not printed. */
void markdown_stream_free(struct markdown_stream *m);
DEFINE_CLEANUP(struct markdown_stream *, markdown_stream_free)
#define auto_markdown_stream auto_cleanup(markdown_stream_free_cleanup)
