/* SPDX-License-Identifier: MIT */
/*
 * The line editor: what a person types at the prompt. Enter ends a message; Alt-Enter, or Enter
 * behind a backslash, begins another line of it, and a paste of many lines is one message. Where
 * the input is not a terminal it reads plain lines, without a prompt. One per process.
 */
#pragma once

#include "cli/term/term.h"

enum line_event {
    LINE_TEXT,        /* `ret` has a message, without its last '\n'; valid UTF-8, maybe empty */
    LINE_INTERRUPTED, /* Ctrl-C: what was typed is dropped; `ret` is what it was */
    LINE_END,         /* Ctrl-D at an empty line, or the end of input */
    LINE_STOPPED,     /* `stop_fd` became readable */
};

enum { LINE_MAX_BYTES = 1024 * 1024, LINE_HISTORY_MAX = 1000 };

struct line_choices;

/* `before`: the text before the cursor. Calls line_choice() for whatever may stand there. */
typedef void line_complete_fn(void *user, const char *before, struct line_choices *choices);

/* What replaces `before` from the byte `from` on. A name that goes on (a folder) ends with '/'. */
void line_choice(struct line_choices *choices, size_t from, const char *text);

struct line_options {
    size_t size;                /* sizeof(struct line_options) */
    const char *history;        /* path of the file, made with mode 0600; NULL: nothing is kept */
    int stop_fd;                /* ends the waiting; -1 */
    line_complete_fn *complete; /* may be NULL */
    void *user;
};

struct line;

int line_new(struct term *t, const struct line_options *options, struct line **ret,
             struct error *reterr) must_check;
void line_free(struct line *l);
DEFINE_CLEANUP(struct line *, line_free)
#define auto_line auto_cleanup(line_free_cleanup)

/* Waits for a message. `prompt` is plain text of ours, drawn as STYLE_USER. <0: no input works. */
int line_read(struct line *l, const char *prompt, struct buf *ret, enum line_event *ret_event,
              struct error *reterr) must_check;

/*
 * The same, with nothing of it on the screen: for a terminal. Keys that were pressed before belong
 * to it, so a password that is typed ahead is not left for the next prompt.
 */
int line_read_secret(struct line *l, const char *prompt, struct buf *ret,
                     enum line_event *ret_event, struct error *reterr) must_check;

/* Forgets what was typed before a question was seen. Lines of a pipe stay. */
void line_drop(struct line *l);

/*
 * Keeps a message in the history and its file; not done by line_read(), so that a key which was
 * typed is not kept. One that begins with a space, is empty, or repeats the last, is not kept.
 */
void line_remember(struct line *l, const char *text);
