/* SPDX-License-Identifier: MIT */
/*
 * What the official conformance suite calls: tools, prompts and resources that a server has only
 * for it (`mcp --conformance-fixture`). They are tables of JSON texts, whose strings may hold
 * "{path.to.a.value}"; progress, logging, questions and their sealed state are the product's own.
 */
#pragma once

#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"

enum { FIXTURE_QUESTIONS_MAX = 4 };

/* What an entry asks the client; each round's answers have to be complete. */
struct fixture_question {
    const char *key, *method;
    const char *params;        /* JSON, expanded */
    enum mcp_capability needs; /* of the client */
    unsigned round;            /* 0, 1 ... */
};

enum fixture_flags {
    FIXTURE_STATE = 1,     /* the answers count only with the state that came with the question */
    FIXTURE_ANY = 2,       /* asks only what this client can be asked */
    FIXTURE_CALL = 4,      /* runs as the product's calls; a task for clients that know tasks */
    FIXTURE_TASK_ONLY = 8, /* a call for no other clients */
    FIXTURE_ASK_LATE = 16, /* as a task it asks while it runs; all in one round */
};

struct fixture_entry {
    const char *name, *description;
    const char *schema; /* of a tool: its inputSchema; of a prompt: its arguments; NULL: none */
    const char *result; /* JSON object, expanded: what the result has; NULL: the call fails */
    struct fixture_question questions[FIXTURE_QUESTIONS_MAX];
    unsigned flags;
    mcp_work_fn *work; /* before the result; on a thread */
    unsigned call_ms;  /* how long a call takes, when it is given no "seconds" */
};

/* Where placeholders are looked up: "arguments.x" in the request's arguments, else the first word
 * is the key of an answer. */
struct fixture_values {
    yyjson_val *arguments;
    yyjson_val *responses; /* modern: by their keys */
    const char *key;       /* legacy: of the only answer */
    yyjson_val *answer;
};

/* ---- the tables (fixture-tools.c, fixture-prompts.c) ---- */

extern const struct fixture_entry fixture_tools[], fixture_prompts[]; /* end without a name */

/* NULL when there is none of the name. */
const struct fixture_entry *fixture_tool_find(const char *name);
const struct fixture_entry *fixture_prompt_find(const char *name);

/* ---- running (fixture.c) ---- */

/* Runs a tool or a prompt; as mcp_method_fn. */
int mcp_fixture_run(struct mcp_request *r, const struct fixture_entry *entry, yyjson_mut_doc *doc,
                    yyjson_mut_val *result, struct error *reterr);

/* What comes with a request. */
struct fixture_values fixture_values_of(const struct mcp_request *r);

/* The result of an entry. */
void fixture_result_fill(const struct fixture_entry *entry, const struct fixture_values *values,
                         yyjson_mut_doc *doc, yyjson_mut_val *result);

/* The questions of a round that this client can be asked, as {key: {"method", "params"}}. */
void fixture_questions_fill(const struct mcp_request *r, const struct fixture_entry *entry,
                            int64_t round, yyjson_mut_doc *doc, yyjson_mut_val *ret);

/* Runs an entry that is a call (fixture-tasks.c). */
mcp_call_fn fixture_call_run;

/* Appends a text with its placeholders replaced; those without a value become empty. */
int fixture_expand(const char *text, const struct fixture_values *values,
                   struct buf *ret) must_check;

/* -32021, with what the client would have had to declare. */
void fixture_fail_capability(struct mcp_request *r, unsigned missing);

void mcp_fixture_tools_list(yyjson_mut_doc *doc, yyjson_mut_val *list);
void mcp_fixture_prompts_list(yyjson_mut_doc *doc, yyjson_mut_val *list);

/* ---- resources (fixture-resources.c) ---- */

void mcp_fixture_resources_list(yyjson_mut_doc *doc, yyjson_mut_val *list);
void mcp_fixture_templates_list(yyjson_mut_doc *doc, yyjson_mut_val *list);

/* Whether there is such a resource. */
bool mcp_fixture_read(const char *uri, yyjson_mut_doc *doc, yyjson_mut_val *result);

#define FIXTURE_NO_ARGUMENTS "{\"type\":\"object\"}"
#define FIXTURE_PNG \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
#define FIXTURE_WAV "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAyIA8gMiAPA=="
