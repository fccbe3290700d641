/* SPDX-License-Identifier: MIT */
/*
 * A model's deltas as AIMessageChunks. Clients put a message together from them, and some look at
 * one tool call per chunk only and think it whole at the first chunk that is about something else.
 * So one call's fragments follow each other, whatever the order was in which the model wrote.
 */
#pragma once

#include "agent/agent-internal.h"

enum { CHUNK_ID = UUID_LEN + 9 }; /* "lc_run--" and a UUID */

struct chunk_call;

struct chunks {
    struct walk *walk;
    char id[CHUNK_ID + 1];     /* of the message */
    bool blocks;               /* content is blocks from now on, because there was reasoning */
    enum llm_delta_kind block; /* of the open one */
    int block_index;           /* -1: none yet */
    struct chunk_call *calls;  /* LLM_CALLS_MAX, or NULL */
    struct chunk_call *open;   /* whose fragments are being sent */
    struct buf text;           /* that came while a call was open */
};

int chunks_init(struct chunks *c, struct walk *w, struct error *reterr) must_check;
void chunks_done(struct chunks *c);
#define auto_chunks __attribute__((cleanup(chunks_done)))

/* An llm_delta_fn; `user` is the chunks. */
int chunks_delta(void *user, const struct llm_delta *d, struct error *reterr);

/* What was kept back, and the last chunk, which says of the whole message `m` what it says. */
int chunks_finish(struct chunks *c, const struct llm_reply *reply, const struct message *m,
                  struct error *reterr) must_check;
