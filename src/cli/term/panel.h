/* SPDX-License-Identifier: MIT */
/*
 * Panels: a border with a title around the input and the output of a tool call.
 *
 *     ╭─ execute_code · python ──────────────╮
 *     │ print(1)                             │
 *     ├─ output ─────────────────────────────┤
 *     │ 1                                    │
 *     ╰─ ok · 0.3 s ─────────────────────────╯
 *
 * Lines are printed below each other as they come and never again; a line without its end is in the
 * open part of the terminal. Several panels may be open: one is on the screen, the others wait for
 * it to be closed and appear then, in the order in which they were opened. Not on a terminal: the
 * title, the lines indented, the note; no border. One thread uses all panels of a terminal.
 */
#pragma once

#include "cli/term/highlight.h"
#include "cli/term/term.h"

enum panel_state { PANEL_RUNNING, PANEL_OK, PANEL_ERROR, PANEL_WARNING };

struct panels; /* the panels of one terminal */
struct panel;

int panels_new(struct term *t, struct panels **ret, struct error *reterr) must_check;
void panels_free(struct panels *p); /* panels that are open are closed with the note "stopped" */
DEFINE_CLEANUP(struct panels *, panels_free)
#define auto_panels auto_cleanup(panels_free_cleanup)

/*
 * `title` is any text (it is cleaned and cut). Of the output's lines `lines_max` are printed (0:
 * all of them); of more the last ones are shown while they come, and named in one line at the end.
 */
int panel_open(struct panels *all, const char *title, unsigned lines_max, struct panel **ret,
               struct error *reterr) must_check;

/*
 * What the functions below are given may be hostile. They do not fail: a panel that meets no memory
 * loses lines, which its end tells.
 */

/* Input: highlighted lines; never cut by lines_max. HIGHLIGHT_NONE: plain. */
void panel_code(struct panel *p, enum highlight_language language, const char *code, size_t len);

/* Whether nothing was lost so far. */
bool panel_is_whole(const struct panel *p);

/* A rule across with a label, before what follows. Two in a row are one; one at the end is none. */
void panel_rule(struct panel *p, const char *label);

/* Output as it comes, with its own colours; '\r' begins its line again. */
void panel_feed(struct panel *p, const char *data, size_t len);

/* One line of ours in a role. An unfinished line of the output before it ends. */
void panel_note(struct panel *p, enum style_role role, const char *text);

/*
 * Ends it: the border in the colour of the state, and the note in it (NULL: none). The panel is
 * gone for the caller.
 */
void panel_close(struct panel *p, enum panel_state state, const char *note);

/* Closes all, those that wait too: a run was stopped. */
void panels_close_all(struct panels *all, enum panel_state state, const char *note);
