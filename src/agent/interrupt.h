/* SPDX-License-Identifier: MIT */
/*
 * What a step asks a person, and the answers. A question's id is a digest of what it is about, so
 * an answer holds for exactly that: other arguments are another question.
 */
#pragma once

#include "agent/batch.h"

/* Whether a person has to approve a call. */
bool approval_needed(const struct walk *w, const struct tool_item *item);

/* The calls that were asked about: that question is not undone by a run with other rules. */
void approval_restore(struct tool_batch *b, yyjson_val *pending);

/* The question about those calls of a batch that need one: fills the walk's `interrupts` and
 * `pending`. 1, or 0 when none does. */
int approval_ask(struct walk *w, struct tool_batch *b, struct error *reterr) must_check;

/*
 * Does to the batch what the answer says: calls are let through, changed, or refused. `pending` is
 * what the checkpoint remembers. An answer that does not fit changes nothing.
 */
int approval_apply(struct walk *w, struct tool_batch *b, yyjson_val *pending,
                   struct error *reterr) must_check;

/* The question of cells that wait for a line, with all that is done by now. 1. */
int input_ask(struct walk *w, struct tool_batch *b, struct error *reterr) must_check;

/* Gives the cells their lines. */
int input_apply(struct walk *w, struct tool_batch *b, yyjson_val *pending,
                struct error *reterr) must_check;

/* An answer that does not fit; the question stays open. */
int resume_refuse(struct walk *w, struct error *reterr, const char *why);
