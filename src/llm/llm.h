/* SPDX-License-Identifier: MIT */
/*
 * Models of any provider behind one call: a conversation in, deltas as they come, the whole reply
 * at the end. One file per provider builds its request and decodes its stream; what they share
 * (retries, bounds, cancellation, vision) is in call.c.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

struct http_client;

/* ---- what is asked ---- */

enum llm_role { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT, LLM_TOOL };

enum llm_part_kind {
    LLM_TEXT,
    LLM_IMAGE,     /* mime and base64 data, or url (http, https) */
    LLM_FILE,      /* mime (application/pdf), base64 data, name */
    LLM_REASONING, /* text; of an assistant's earlier turn: `raw` is the provider's own block */
};

struct llm_part {
    enum llm_part_kind kind;
    const char *text, *mime, *data, *url, *name; /* NULL where it has none */
    const char *raw; /* JSON of the block as the same provider sent it (signatures, ids); NULL */
};

struct llm_tool_call {
    const char *id, *name;
    const char *arguments; /* JSON object text; what the model wrote when it is not valid */
    bool valid;            /* the arguments are a JSON object */
    const char *error;     /* why not; NULL */
    const char *raw;       /* what the provider wants back with it (thoughtSignature); NULL */
};

struct llm_message {
    enum llm_role role;
    const struct llm_part *parts;
    size_t part_count;
    const struct llm_tool_call *calls; /* of an assistant */
    size_t call_count;
    const char *tool_call_id, *name; /* of a tool's result */
    bool is_error;
    const char *provider; /* who wrote an assistant's turn; NULL: not known. `raw` of another
                             provider is not sent */
};

struct llm_tool {
    const char *name, *description;
    const char *schema; /* JSON Schema text */
};

struct llm_model {
    const char *provider; /* openai, anthropic, google_genai, ollama, direct */
    const char *name;
    const char *base_url; /* NULL: the provider's own */
    const char *api_key;  /* NULL or "": none is sent */
    bool public_only;     /* its host may not be at a private address */
};

struct llm_request {
    size_t size; /* sizeof(struct llm_request) */
    struct llm_model model;
    const struct llm_message *messages; /* a system message only as the first */
    size_t message_count;
    const struct llm_tool *tools;
    size_t tool_count;
    int cancel_fd;       /* readable: cancelled; -1 */
    int64_t max_tokens;  /* 0: the provider's default (anthropic needs one: 8192) */
    const char *options; /* JSON object of further members (temperature, ...); NULL */
};

/* ---- what comes ---- */

enum llm_delta_kind {
    LLM_DELTA_TEXT,
    LLM_DELTA_REASONING,
    LLM_DELTA_CALL,      /* a tool call begins: index, id, name */
    LLM_DELTA_ARGUMENTS, /* a piece of its arguments: index, text */
    LLM_DELTA_RETRY,     /* what was given so far of this call does not count: it is made again */
};

struct llm_delta {
    enum llm_delta_kind kind;
    const char *text; /* NUL-terminated UTF-8, whole characters */
    size_t len;
    unsigned index; /* of the tool call */
    const char *id, *name;
};

/* On the calling thread. <0 ends the call with that failure. */
typedef int llm_delta_fn(void *user, const struct llm_delta *d, struct error *reterr);

struct llm_usage {
    /* Tokens; -1: not told. `input` holds what came from the cache or went into it, and `output`
     * the reasoning. */
    int64_t input, output, cache_read, cache_creation, reasoning;
};

/* Lives in the arena of the call. */
struct llm_reply {
    const struct llm_part *parts; /* text and reasoning, in order */
    size_t part_count;
    const struct llm_tool_call *calls; /* every one has an id, made where the provider gave none or
                                          one twice */
    size_t call_count;
    struct llm_usage usage;
    const char *finish_reason; /* stop, tool_calls, length, content_filter, or the provider's */
    const char *model_name;    /* as the provider calls it */
    unsigned attempts;         /* 1 and the retries */
    bool without_images;       /* the model was found to take none, and they were left out */
};

/* Bounds of one reply. */
#define LLM_REPLY_BYTES (64 * MIB)
#define LLM_TEXT_BYTES (8 * MIB)
#define LLM_ARGUMENTS_BYTES (4 * MIB)
enum { LLM_CALLS_MAX = 128, LLM_RETRIES = 3 };

struct llm; /* shared by all runs: the HTTP client, and what is known of models' vision */

int llm_new(struct http_client *client, struct llm **ret, struct error *reterr) must_check;
void llm_free(struct llm *l);

/*
 * Asks the model. Retries 408, 409, 429, 5xx, lost connections and answers that are cut or
 * malformed up to LLM_RETRIES times, after Retry-After (at most 30 s; not at all when it is more
 * than all attempts may wait) or 0.5 s doubled each time with jitter, and only while no delta was
 * given or after telling LLM_DELTA_RETRY. An error's text says provider, status and the provider's
 * own message (cut to 300 bytes, secrets masked); ERR_DENIED for 401 and 403, ERR_LIMIT for 429,
 * ERR_INVALID for 400, 404, 413, 415 and 422, ERR_TIMEOUT, ERR_UPSTREAM else, ERR_CANCELLED; the
 * code of `delta` when that has failed.
 */
int llm_call(struct llm *l, const struct llm_request *request, llm_delta_fn *delta, void *user,
             struct arena *arena, struct llm_reply *ret, struct error *reterr) must_check;

/* ---- vision: known per provider and model, never one flag for all ---- */

enum llm_vision { LLM_VISION_UNKNOWN, LLM_VISION_YES, LLM_VISION_NO };

/* What was learnt in this process. */
enum llm_vision llm_vision_get(struct llm *l, const struct llm_model *model);

/* ---- providers ---- */

struct llm_stream; /* an answer while it is decoded: llm-internal.h */

struct provider_entry {
    const char *name;
    const char *title;    /* for people */
    const char *base_url; /* its own service's */
    bool needs_key;
    bool images_in_results; /* its wire format takes images in tool results */

    /* URL (after the base), headers and body. */
    int (*build)(const struct llm_request *request, struct llm_stream *stream,
                 struct error *reterr);
    /* A piece of a successful reply's body; NULL data at its end. */
    int (*feed)(struct llm_stream *stream, const char *data, size_t len, struct error *reterr);
    /* In place of both, where no service is asked. */
    int (*answer)(const struct llm_request *request, struct llm_stream *stream,
                  struct error *reterr);
};

extern const struct provider_entry *const provider_table[]; /* ended by NULL */

/* Also by the names that people use: "google", "gemini", "openai-compatible". NULL: none. */
const struct provider_entry *provider_find(const char *name);
