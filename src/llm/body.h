/* SPDX-License-Identifier: MIT */
/* What several builders of request bodies need: options in the places where a service looks for
 * them, and what a conversation says about a tool's result. */
#pragma once

#include "llm/llm-internal.h"

/*
 * A document that remembers when memory was short, so that its builder need not look at each value
 * that it adds: body_finish() fails then. NULL without memory. Its root is an object.
 */
yyjson_mut_doc *body_begin(struct llm_stream *s);

/* `text` itself; NULL counts as memory that was short. */
const char *body_check(yyjson_mut_doc *doc, const char *text);

/* A member of the options that a service wants below another one, perhaps under its own name. */
struct option_place {
    const char *name, *to;
};

/*
 * The request's body: `places` (ended by a NULL name) are moved below the object `inner`, objects
 * are merged, and all other members go to the root. What the options say wins, except over `model`,
 * `messages`, `contents`, `tools` and `stream`, which are not theirs.
 */
int body_finish(struct llm_stream *s, yyjson_mut_doc *doc, const char *inner,
                const struct option_place *places, struct error *reterr) must_check;

/* The texts of a message as one string; "" for none. NULL without memory. */
const char *body_text(struct llm_stream *s, const struct llm_message *m);

/* The call that a tool's result belongs to, of the turns before `at`; `ret_turn` (may be NULL): the
 * assistant's message. NULL when there is none. */
const struct llm_tool_call *body_call_find(const struct llm_request *request, size_t at,
                                           const struct llm_message **ret_turn);

/* The name of the tool that gave the result; "tool" when nothing tells. */
const char *body_tool_name(const struct llm_request *request, size_t at);

/* "[what was left out]", for a part that a service takes in no form; in the arena. NULL without
 * memory. */
const char *body_omitted(struct llm_stream *s, const struct llm_part *part);

static inline bool body_is_own(const struct llm_message *m, const struct provider_entry *provider)
{
    return m->provider && strcmp(m->provider, provider->name) == 0;
}
