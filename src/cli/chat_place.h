/* SPDX-License-Identifier: MIT */
/*
 * Where the chat keeps things: `$XDG_STATE_HOME or ~/.local/state`/sandbox-agent, also for root,
 * because the conversation is a person's and not the host's.
 */
#pragma once

#include "base/error.h"
#include "base/path.h"

struct chat_place {
    int dir; /* -1 */
    char path[PATH_LEN];
};

/* Makes it (0700). */
int chat_place_open(struct chat_place *p, struct error *reterr) must_check;
void chat_place_done(struct chat_place *p);

/* cli-thread.json: {"thread_id": ...}; "" when there is none that can be read. */
enum { CHAT_THREAD_SIZE = 129 };
void chat_place_thread_load(const struct chat_place *p, char ret[CHAT_THREAD_SIZE]);
int chat_place_thread_save(const struct chat_place *p, const char *thread_id,
                           struct error *reterr) must_check;

/* A new file for a display: displays/<thread>/NNN.<suffix>; its path in `ret`. The descriptor. */
int chat_place_display_create(const struct chat_place *p, const char *thread_id, const char *suffix,
                              char ret[PATH_LEN], struct error *reterr) must_check;

/* Whether it is a thread's name as the API has them. */
bool chat_thread_check(const char *id);
