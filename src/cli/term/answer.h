/* SPDX-License-Identifier: MIT */
/*
 * What a terminal answers when it is asked, apart from what a person types meanwhile. An answer may
 * also come late, in the middle of a line that is edited; the same parser takes it out there.
 */
#pragma once

#include "base/buf.h"
#include "cli/term/term.h"

enum { ANSWER_MAX = 256 };

struct answer {
    bool is_complete; /* DA1 has come, which was asked last */
    bool has_kitty, has_sixel, has_rgb;
    unsigned cell_width, cell_height; /* 0: not told */
    /* private */
    unsigned len;
    char held[ANSWER_MAX];
};

/*
 * What is asked, in one piece. Inside tmux and screen only what they answer themselves; of a
 * terminal that is known to print such questions nothing ("").
 */
const char *answer_questions(const struct term_caps *caps);

/* Takes input; what is no answer is appended to `typed`. 0, or -1 when that is full. */
int answer_feed(struct answer *a, const char *data, size_t len, struct buf *typed) must_check;

/* No more comes: what was held back was typed. */
int answer_finish(struct answer *a, struct buf *typed) must_check;

/* What the answers change in what the environment said. */
void answer_apply(const struct answer *a, struct term_caps *caps);
