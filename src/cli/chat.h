/* SPDX-License-Identifier: MIT */
/*
 * The terminal chat: a client of the API and nothing else. One thread reads keys and draws; a
 * stream's thread reads the events of a run (chat_stream.h).
 */
#pragma once

#include "cli/chat_api.h"
#include "cli/chat_call.h"
#include "cli/chat_config.h"
#include "cli/chat_memory.h"
#include "cli/chat_place.h"
#include "cli/chat_view.h"
#include "cli/local_server.h"
#include "cli/term/line.h"
#include "cli/term/markdown.h"
#include "cli/term/panel.h"
#include "cli/term/spinner.h"
#include "cli/term/term.h"

struct chat {
    const struct settings *settings;
    struct chat_api api;
    struct local_server server;
    struct chat_place place;
    struct chat_memory memory;
    struct chat_config config;
    struct chat_view view;

    struct term *term;
    struct panels *panels;
    struct spinner *spinner;
    struct line *line;
    int signal_fd; /* readable: somebody wants us to stop, or to end */
    int signal;    /* the one that ends us; 0 */

    char history[PATH_LEN]; /* of the line editor */
    char thread_id[CHAT_THREAD_SIZE];
    struct buf attached; /* what the next message says about uploaded files */
    bool is_one_shot;    /* one message, and the end */
    bool is_answer_only; /* and its answer into a pipe: nothing else is printed */
    bool is_lost;        /* the server that was there does not answer any more */
    bool is_over;
    int status; /* of the process */
};

/* ---- what is said to the person ---- */

/* Lines in a role; whatever is in them is made harmless. */
void chat_say(struct chat *c, enum style_role role, const char *fmt, ...) printf_like(3, 4);

/* What went wrong; on stderr where only the answer is printed. */
void chat_complain(struct chat *c, const char *fmt, ...) printf_like(2, 3);

/* An empty line between things of different kinds. */
void chat_gap(struct chat *c);

/* ---- waiting ---- */

/* Takes a signal that has come. SIGINT: 1; none: 0; one that ends us: -1, and `is_over` is set. */
int chat_signal_take(struct chat *c);

/* A server that answers: starts one here when none does. */
int chat_server_ensure(struct chat *c, struct error *reterr) must_check;

/*
 * Reads an answer from the person. 1: `ret` has it; 0: there is none (Ctrl-C, Ctrl-D, the end of
 * input); <0: no input works. With `secret` nothing is shown, and history knows nothing.
 */
int chat_ask_line(struct chat *c, const char *prompt, bool secret, struct buf *ret,
                  struct error *reterr) must_check;

/* ---- runs (chat_run.c) ---- */

/* A message of the person's, and all that comes of it, with the questions that are asked on the
 * way. Failures are told; `status` is set. */
void chat_run_message(struct chat *c, const char *text);

/* Follows a run that is there already, from its beginning. */
void chat_run_follow(struct chat *c, const char *run_id);

/* Answers what the conversation waits for (the view's `waiting`), and goes on. */
void chat_run_answer(struct chat *c);

/* ---- questions (chat_ask.c) ---- */

/*
 * Asks what `waiting` (the interrupts of a run) wants to know. 1: `ret` is what a run is resumed
 * with; 0: the person does not want to answer now.
 */
int chat_ask(struct chat *c, yyjson_val *waiting, yyjson_mut_doc *doc, yyjson_mut_val **ret,
             struct error *reterr) must_check;

/* ---- conversations (chat_thread.c) ---- */

/* The kept one or a new one. `id` NULL: the one that was used last. */
int chat_thread_open(struct chat *c, const char *id, bool fresh, struct error *reterr) must_check;
int chat_thread_new(struct chat *c, struct error *reterr) must_check;
int chat_thread_switch(struct chat *c, const char *id, struct error *reterr) must_check;

/* A few lines of what was said; then goes on with what still runs, or waits for an answer. */
void chat_thread_recap(struct chat *c);

/* Marks all that was said as known, without a word. */
void chat_thread_know(struct chat *c);

/* Asks again what the conversation waits for. */
void chat_thread_wait_ask(struct chat *c);

/* ---- displays (chat_display.c) ---- */

/* What stands below a panel: paths of files in lines that can be copied, and pictures. */
enum { CHAT_PICTURES = 16 };
struct chat_shown {
    struct buf saved;
    struct buf pictures[CHAT_PICTURES];
    size_t count;
};

/* Shows one item of a result in its panel, or collects it for below. */
void chat_display_show(struct chat *c, struct panel *panel, yyjson_val *item,
                       struct chat_shown *below);
/* Prints what was collected, and forgets it. */
void chat_shown_print(struct chat *c, struct chat_shown *below);
