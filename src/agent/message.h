/* SPDX-License-Identifier: MIT */
/*
 * Messages of a conversation in LangChain's JSON, and the list of them with LangGraph's reducer.
 * A message never changes once it is made, so threads share it by reference, and its text is
 * written once however often it is sent.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum message_type { MESSAGE_HUMAN, MESSAGE_AI, MESSAGE_TOOL, MESSAGE_SYSTEM, MESSAGE_REMOVE };

/* Bytes of one message, and messages of one conversation. */
#define MESSAGE_BYTES_MAX (32 * MIB)
enum { TRANSCRIPT_MAX = 100000 };

struct message {
    atomic_uint refs;
    enum message_type type;
    bool has_calls;   /* see message_has_calls() */
    int64_t ref;      /* in the store; 0: not stored yet. Set once, by the run that stores it */
    const char *id;   /* never empty */
    const char *json; /* compact, keys in the order of the contract */
    size_t len;
};

struct message *message_ref(struct message *m);
void message_unref(struct message *m);
DEFINE_CLEANUP(struct message *, message_unref)
#define auto_message __attribute__((cleanup(message_unref_cleanup)))

/*
 * One message in any spelling that clients use: {"role"} or {"type"}, a string, ["user", "text"],
 * the constructor form {"lc":1,"kwargs"}, OpenAI's tool_calls. Missing members are filled in, an id
 * is made where there is none, unknown members and the order of content blocks stay. ERR_INVALID
 * says which member is wrong.
 */
int message_parse(yyjson_val *value, struct message **ret, struct error *reterr) must_check;

/* Of a text that message_parse() made: as it comes from the store. */
int message_load(const char *json, size_t len, int64_t ref, struct message **ret,
                 struct error *reterr) must_check;

/* Of a document that already has the form of the contract. */
int message_make(yyjson_mut_doc *doc, struct message **ret, struct error *reterr) must_check;

/* {"type":"tool"}: what a tool call gave. `content` is text (JSON as the tool wrote it). */
struct message_tool_result {
    const char *id, *name, *tool_call_id; /* id NULL: a new one */
    const char *content;
    size_t len;
    bool is_error;
};
int message_make_tool(const struct message_tool_result *result, struct message **ret,
                      struct error *reterr) must_check;

/* The text of a message: a string content, or its text blocks joined; appended. */
int message_text(const struct message *m, struct buf *ret, struct error *reterr) must_check;

/* The calls of an AI message that have no tool message after it are what a step has to do. */
bool message_has_calls(const struct message *m);

/* ---- the list ---- */

struct transcript {
    struct message **items; /* references */
    size_t count, cap;
};

void transcript_done(struct transcript *t);
#define auto_transcript __attribute__((cleanup(transcript_done)))

int transcript_append(struct transcript *t, struct message *m,
                      struct error *reterr) must_check; /* takes a reference of its own */
int transcript_copy(const struct transcript *from, struct transcript *ret,
                    struct error *reterr) must_check;

/*
 * The reducer: a message of a known id takes the place of that one, others are appended;
 * {"type":"remove"} takes one away (ERR_INVALID when it is not there), "__remove_all__" all before
 * it. `value`: one message or an array, in any spelling. All or nothing.
 */
int transcript_apply(struct transcript *t, yyjson_val *value, struct error *reterr) must_check;
/* The same with a message that exists. */
int transcript_add(struct transcript *t, struct message *m, struct error *reterr) must_check;

/* [message, ...] appended, as it stands. */
int transcript_write(const struct transcript *t, struct buf *ret, struct error *reterr) must_check;
