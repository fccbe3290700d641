/* SPDX-License-Identifier: MIT */
/*
 * What the events of runs look like. Calls of tools are shown in the order in which they were made:
 * a result that comes early waits until those before it are there.
 */
#pragma once

#include "base/json.h"
#include "cli/term/clean.h"
#include "cli/term/markdown.h"
#include "cli/term/panel.h"

struct chat;
struct chat_event;

/* With the last lines of an output that is longer, and the one that tells, these are 60. */
enum { CHAT_PANEL_LINES = 55 };

struct chat_call {
    struct chat_call *next;
    char *id, *name;
    yyjson_doc *args; /* NULL: not known */
    struct panel *panel;
    bool is_shown;   /* its arguments are on the screen */
    bool is_asked;   /* a question is about it */
    bool has_output; /* some came while it ran */
    char *result;    /* its message as JSON, while it waits; NULL */
    size_t result_len;
};

enum chat_part { CHAT_PART_NONE, CHAT_PART_THOUGHT, CHAT_PART_TEXT };

struct chat_view {
    struct markdown_stream *markdown;
    struct chat_call *calls; /* not closed yet, in order */
    bool is_unsettled;       /* some have no panel yet: perhaps they have to be approved first */

    /* The message that streams. */
    char streaming[128]; /* its id; "" */
    enum chat_part part;
    size_t text_len; /* bytes of its text that were shown */
    struct clean clean;
    struct buf thought; /* an unfinished line of thinking */

    yyjson_doc *waiting; /* an array of interrupts; NULL */
    bool has_results;    /* of calls, shown since the run began */
    char outcome[32];    /* of the run's `end`: "success", "error", "interrupted"; "" */
    bool has_failed;     /* an error was told */
};

int chat_view_init(struct chat *c, struct error *reterr) must_check;
void chat_view_done(struct chat *c);

/* Before a run; calls that wait for an answer stay open. */
void chat_view_begin(struct chat *c);

/* One event of the server's. */
void chat_view_event(struct chat *c, const struct chat_event *event);

/* After it: what is unfinished is closed, unless the run waits for an answer. */
void chat_view_end(struct chat *c, enum panel_state state, const char *note);

/* A message that was not shown yet; others are passed over. */
void chat_view_message(struct chat *c, yyjson_val *message);

/* Opens the panels of a message's calls; `again` also of those that had one. */
void chat_view_calls(struct chat *c, yyjson_val *message, bool again);

/* Nothing has come for a moment: calls that were made get their panels. */
void chat_view_settle(struct chat *c);

/* The text of a message's content: a string, or its text blocks. Appends. */
int chat_content_text(yyjson_val *content, struct buf *ret) must_check;

/* The panel of a call that is open, by its id; NULL. */
struct panel *chat_view_panel(struct chat *c, const char *call_id);

/* A thought as it comes, and its end (chat_thought.c). */
void chat_thought_feed(struct chat *c, const char *text, size_t len);
void chat_thought_end(struct chat *c);
