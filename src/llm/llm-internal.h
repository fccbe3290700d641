/* SPDX-License-Identifier: MIT */
/*
 * What the provider files share: an answer while it is decoded. A provider's feed() calls the
 * stream_* functions below; they check every bound, give the deltas, and collect the reply.
 */
#pragma once

#include "llm/llm.h"
#include "wire/sse.h"

enum { LLM_HEADERS_MAX = 16 };

struct llm_call_state {
    char id[256], name[160];
    struct buf arguments;
    const char *raw; /* in the arena */
    bool named, used;
};

struct llm_stream {
    const struct llm_request *request;
    const struct provider_entry *provider;
    struct arena *arena; /* of the whole call */
    llm_delta_fn *delta;
    void *user;

    /* What build() fills. */
    char path[512]; /* after the base URL: "/chat/completions" */
    const char *headers[LLM_HEADERS_MAX];
    size_t header_count;
    struct buf body;

    /* Decoding. */
    struct sse_parser sse;
    struct buf line; /* NDJSON */
    struct llm_part *parts;
    size_t part_count, part_cap;
    struct buf text, reasoning;   /* of the part that is open */
    int open_part;                /* enum llm_part_kind, or -1 */
    struct llm_call_state *calls; /* LLM_CALLS_MAX of them, or NULL while there is none */
    size_t call_count;
    struct llm_usage usage;
    char finish_reason[64], model_name[160];
    bool started;  /* a delta was given */
    bool finished; /* the provider said that the answer is whole */
    size_t bytes;
    void *own; /* the provider's; in the arena */
};

/* ---- for build() ---- */

int stream_header(struct llm_stream *s, struct error *reterr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))) must_check;
/* The request's body from a document; merges request->options into its root. */
int stream_body(struct llm_stream *s, yyjson_mut_doc *doc, struct error *reterr) must_check;

/* ---- for feed() ---- */

int stream_text(struct llm_stream *s, const char *text, size_t len,
                struct error *reterr) must_check;
int stream_reasoning(struct llm_stream *s, const char *text, size_t len,
                     struct error *reterr) must_check;
/* Ends the open part; `raw`: the provider's own block (JSON), kept with a reasoning part. Two parts
 * of one kind become one without it. */
int stream_part_end(struct llm_stream *s, const char *raw, struct error *reterr) must_check;

/*
 * A tool call under a number of the provider's own choosing (0 to LLM_CALLS_MAX - 1). Id and name
 * may come with any piece (NULL: not with this one); a delta CALL is given once the name is known.
 */
int stream_call(struct llm_stream *s, unsigned index, const char *id, const char *name,
                struct error *reterr) must_check;
int stream_arguments(struct llm_stream *s, unsigned index, const char *text, size_t len,
                     struct error *reterr) must_check;
/* What has to go back with it: JSON. */
int stream_call_raw(struct llm_stream *s, unsigned index, const char *raw,
                    struct error *reterr) must_check;

void stream_usage(struct llm_stream *s, const struct llm_usage *usage); /* -1 keeps what it was */
void stream_finish(struct llm_stream *s, const char *reason);           /* translated already */
void stream_model(struct llm_stream *s, const char *name);

/* The error that a provider reports in the middle of a stream, with its own message; a status of
 * its kind decides about a retry. Always <0. */
int stream_fail(struct llm_stream *s, unsigned status, const char *message, struct error *reterr);

/* Splits NDJSON and gives each line as a document. */
typedef int stream_line_fn(struct llm_stream *s, yyjson_val *root, struct error *reterr);
int stream_lines(struct llm_stream *s, const char *data, size_t len, stream_line_fn *each,
                 struct error *reterr) must_check;

/* ---- providers ---- */

extern const struct provider_entry provider_openai, provider_anthropic, provider_google,
    provider_ollama, provider_direct;
