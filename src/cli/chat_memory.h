/* SPDX-License-Identifier: MIT */
/*
 * What the chat remembers of a conversation: which messages it has shown, so that none is printed
 * again however often the server sends it, and which language each session speaks.
 */
#pragma once

#include "base/json.h"

enum { CHAT_RUNTIMES_MAX = 256 };

struct chat_memory {
    char **seen; /* a hash table of ids, by open addressing */
    size_t seen_count, seen_size;
    struct chat_runtime {
        char session[64], runtime[16];
    } runtimes[CHAT_RUNTIMES_MAX];
    size_t runtime_count; /* of all that were ever told; the newest are kept */
};

void chat_memory_done(struct chat_memory *m);

/* Marks an id. 1 when it is new; 0 when it was marked, or is none; <0 without memory. */
int chat_memory_see(struct chat_memory *m, const char *id) must_check;
/* The same for a call: each has one panel in its life. */
int chat_memory_see_call(struct chat_memory *m, const char *id) must_check;
bool chat_memory_has(const struct chat_memory *m, const char *id);

/* Learns from a tool's result ({"session_id", "runtime"}, also in lists of sessions). */
void chat_memory_learn(struct chat_memory *m, yyjson_val *result);
void chat_memory_learn_message(struct chat_memory *m, yyjson_val *message);

/* "python", "node", "r"; "" when nobody has said it. */
const char *chat_memory_runtime(const struct chat_memory *m, const char *session);

/* How many sessions are known. */
size_t chat_memory_sessions(const struct chat_memory *m);
