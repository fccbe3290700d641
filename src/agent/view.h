/* SPDX-License-Identifier: MIT */
/*
 * What a model is shown of a conversation: the system prompt, the messages that fit into its
 * window, tool results without what only people look at, images in blocks where it has eyes. The
 * conversation itself stays as it is.
 */
#pragma once

#include "agent/message.h"
#include "base/arena.h"
#include "llm/llm.h"

struct store;

/* Where the bytes of displays are: stored once, and referred to by a message as
 * {"type": MIME, "blob": SHA-256, "size": n} in its display_outputs. */
struct view_options {
    struct store *store; /* for blobs; NULL: none are attached */
    const char *thread_id;
    bool images;           /* as settings and the run say, and what is known of the model */
    int64_t window_tokens; /* 0: as known for the model's name, else 128,000 */
    const char *system;    /* the system prompt; not used when the first message is one */
    struct llm_model model;
};

/*
 * By rule: the first human message and the newest turns stay whole; older tool results are cut to
 * their ends, then whole turns (a human message and all up to the next one) go, oldest first, with
 * a note in their place; a tool result never stands without its call, nor a call without a result
 * (an unanswered one gets a note). What people wrote is cut only where it alone is above the
 * window. Texts of tools are data: control characters, bidirectional and invisible characters are
 * written as escapes. Images: the newest 8, at most 5 MiB each.
 */
int view_make(const struct transcript *t, const struct view_options *options, struct arena *arena,
              struct llm_message **ret, size_t *ret_count, struct error *reterr) must_check;

/*
 * What a model replied, as the AI message that view_make() reads back. What a provider wants back
 * untouched goes along as `extras.raw` of a block or a call, for that provider only. Content is a
 * text where nothing but text came without such. `id` NULL: a new one.
 */
int view_reply(const struct llm_reply *reply, const char *id, const char *provider,
               struct message **ret, struct error *reterr) must_check;

/* About so many tokens: 4 bytes of ASCII or one other character each. */
int64_t view_tokens(const char *text, size_t len);

/* The window of a model by its name; 0 when nothing is known. */
int64_t view_window(const char *model);

/*
 * Takes the large parts out of a tool's payload (a JSON object): each display whose data is above
 * 8 KiB is put into the store and becomes a reference. Appends the payload as it is kept.
 */
int view_extract(const char *payload, size_t len, struct store *store, const char *thread_id,
                 struct buf *ret, struct error *reterr) must_check;

/* The reverse for clients that want everything in one piece: a message with the data in place of
 * its references; itself (referenced) when it has none. A lost blob stays a reference. */
int view_inline(struct message *m, struct store *store, const char *thread_id, struct message **ret,
                struct error *reterr) must_check;

/* Our own system prompt (at most 1,500 tokens). */
const char *agent_prompt(void);
