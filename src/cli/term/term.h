/* SPDX-License-Identifier: MIT */
/*
 * The terminal: what it can do, and the one way to write to it. Finished text is printed once and
 * never touched again. Below it is a part that may change: the open part (an unfinished paragraph,
 * a line that a tool is writing) and a status line (the spinner). Both are erased and drawn anew
 * around everything that is printed; where the output is not a terminal they do not exist.
 * All functions but term_open() and term_free() may be called by any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/term/style.h"

#include <stdbool.h>

enum term_picture {
    TERM_PICTURE_NONE,
    TERM_PICTURE_KITTY,
    TERM_PICTURE_ITERM2,
    TERM_PICTURE_SIXEL,
};

struct term_caps {
    bool is_tty;    /* the output is a terminal that moves its cursor (not TERM=dumb) */
    bool has_input; /* and the input is a terminal, too: there is a person */
    bool is_nested; /* inside tmux or screen: the environment may speak of another terminal */
    bool is_silent; /* it prints questions instead of answering them */
    enum term_color color;
    enum term_picture picture;
    unsigned cell_width, cell_height; /* pixels of one character; a guess when it does not say */
};

struct term;

/* The value of a variable, or NULL: secure_getenv(), or a test's. */
typedef char *term_environment_fn(const char *name);

/*
 * What the environment tells of a terminal: colours (COLORTERM, TERM, NO_COLOR) and pictures.
 * `is_tty` is set already, and goes away where TERM says that it is none.
 */
void term_caps_guess(struct term_caps *caps, term_environment_fn *get);

/*
 * `in` and `out` stay the caller's. When both are terminals it is asked (kitty's query, XTGETTCAP,
 * the size of a cell, DA1), and waited for at most 100 ms; what a person types meanwhile is kept
 * for the line editor. Sets the locale of characters to UTF-8.
 */
int term_open(int in, int out, struct term **ret, struct error *reterr) must_check;
/* As if the output were no terminal. */
int term_open_plain(int in, int out, struct term **ret, struct error *reterr) must_check;
void term_free(struct term *t); /* erases the changing part, and shows what is typed again */
DEFINE_CLEANUP(struct term *, term_free)
#define auto_term auto_cleanup(term_free_cleanup)

const struct term_caps *term_caps(const struct term *t);
enum term_color term_color(const struct term *t);

/* Asked anew each time, so a changed size is seen. Not a terminal: 80 x 24, and no line is cut. */
unsigned term_width(struct term *t);
unsigned term_height(struct term *t);

/* Finished text, whole lines; a missing last '\n' is added. Empty text prints nothing. */
void term_print(struct term *t, const char *text, size_t len);

/* Bytes that are no lines (a picture), at the place of finished text. */
void term_raw(struct term *t, const char *data, size_t len);

/* The open part, or "" for none. Of a part that is higher than the screen the end is shown. */
void term_open_set(struct term *t, const char *text, size_t len);

/* Both in one update: finished text, and the open part below it from now on. */
void term_print_open(struct term *t, const char *text, size_t len, const char *open,
                     size_t open_len);

/* The line below it; "" for none. It is cut at the width. */
void term_status_set(struct term *t, const char *text, size_t len);

/*
 * While a run prints, what is typed is not shown; it waits for the next prompt. Ctrl-C stays a
 * signal. Does nothing when the input is not a terminal. Calls do not nest.
 */
void term_echo(struct term *t, bool on);

/* For the line editor: the descriptors, and what was typed before it could read. */
int term_in(const struct term *t);
int term_out(const struct term *t);
void term_typed_drop(struct term *t); /* and what the terminal still holds */
size_t term_typed_take(struct term *t, char *ret, size_t size);
