/* SPDX-License-Identifier: MIT */
/* Calls of tools on the screen: a panel for each, with its input, its output and how it ended. */
#pragma once

#include "cli/chat_view.h"

/* What a cell prints while it runs. */
void chat_call_output(struct chat *c, yyjson_val *event);

/* A tool's message, which ends its call. */
void chat_call_result(struct chat *c, yyjson_val *message);

/* ---- approval ---- */

/* Takes the panels off for a question; what was shown of a call is not shown again. */
void chat_calls_park(struct chat *c);

/* The call that a question is about, each once; NULL. */
struct chat_call *chat_call_match(struct chat *c, const char *name, yyjson_val *args);

/* It is made with other arguments, which are then shown. */
void chat_call_change(struct chat_call *call, yyjson_mut_val *args);

/* ---- the end ---- */

/* Ends all that are open, with a note. */
void chat_calls_close(struct chat *c, enum panel_state state, const char *note);
void chat_calls_free(struct chat *c);
