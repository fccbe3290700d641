/* SPDX-License-Identifier: MIT */
/* What is asked of clients: by requests of ours (legacy), and by state that they carry (modern). */
#pragma once

#include "mcp/mcp-internal.h"

/* ---- state that clients carry (state.c) ---- */

/*
 * Seals bytes into text that only this process can open: XChaCha20-Poly1305 with a key of its own,
 * bound to `purpose` and to an end of its life.
 */
struct mcp_state_key;
struct mcp_state_key *mcp_state_key_new(void);
void mcp_state_key_free(struct mcp_state_key *key);
int mcp_state_seal(const struct mcp_state_key *key, const char *purpose, const char *text,
                   struct buf *ret) must_check;
int mcp_state_open(const struct mcp_state_key *key, const char *purpose, const char *sealed,
                   struct buf *ret, struct error *reterr) must_check;

/* What a state is good for: this method, this owner, this name with these arguments. */
int mcp_state_purpose(const struct mcp_request *r, struct buf *ret) must_check;

/* ---- requests of ours to a legacy client (ask.c) ---- */

/*
 * Sends a request on the channel of `r`; `done` is called once, on any thread: with the result, or
 * with NULL when there is none.
 */
typedef void mcp_ask_fn(void *user, yyjson_val *result);
struct mcp_asker {
    mcp_ask_fn *done;
    void *user;
};
int mcp_ask(struct mcp_request *r, const char *method, yyjson_mut_doc *doc, yyjson_mut_val *params,
            const struct mcp_asker *asker, struct error *reterr) must_check;
void mcp_ask_answered(struct mcp_client *c, const struct jsonrpc_message *m);

/* What the client was asked for a request that is over: taken from it under the server's lock, and
 * told that there is no answer outside of it. */
struct mcp_question *mcp_ask_detach(struct mcp_request *r);
void mcp_ask_forget(struct mcp_question *list);
