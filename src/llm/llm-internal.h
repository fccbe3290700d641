/* SPDX-License-Identifier: MIT */
/*
 * What the provider files share: an answer while it is decoded. A provider's feed() calls the
 * stream_* functions below; they check every bound, give the deltas, and collect the reply.
 */
#pragma once

#include "llm/llm.h"
#include "wire/sse.h"

enum { LLM_HEADERS_MAX = 16, LLM_PARTS_MAX = 4096 };
#define LLM_EVENT_BYTES (16 * MIB) /* one event or line of an answer */
#define LLM_BODY_BYTES (128 * MIB) /* a request */

struct llm_call_state {
    char id[256], name[160];
    struct buf arguments;
    const char *raw;  /* in the arena */
    unsigned held;    /* half of a surrogate pair, whose other half has not come */
    bool named, used; /* named: its delta was given */
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
    struct buf text, reasoning; /* of the part that is open */
    int open_part;              /* enum llm_part_kind, or -1 */
    bool part_ended;            /* it goes on only with more of its kind */
    unsigned held;              /* as in llm_call_state */
    bool halves;                /* stream_json() has met half characters */
    size_t text_total, reasoning_total;
    struct llm_call_state *calls; /* LLM_CALLS_MAX of them, or NULL while there is none */
    size_t call_count;
    struct llm_usage usage;
    char finish_reason[64], model_name[160];
    bool started;  /* a delta was given */
    bool finished; /* the provider said that the answer is whole */
    bool failed;   /* feed() or the receiver of deltas has failed, not the connection ... */
    bool again;    /* ... and another attempt may do better */
    size_t bytes;
    void *own;          /* the provider's; in the arena */
    struct buf scratch; /* the provider's, too */
};

/* ---- for call.c and tests ---- */

struct llm_sink {
    llm_delta_fn *delta; /* or NULL */
    void *user;
};

void stream_init(struct llm_stream *s, const struct llm_request *request,
                 const struct provider_entry *provider, const struct llm_sink *sink,
                 struct arena *arena);
void stream_done(struct llm_stream *s);
#define auto_stream __attribute__((cleanup(stream_done)))

/* The provider's feed() within LLM_REPLY_BYTES; at the end (NULL) also ERR_UPSTREAM for an answer
 * that is not whole. */
int stream_feed(struct llm_stream *s, const char *data, size_t len,
                struct error *reterr) must_check;
/* What was decoded; not `attempts` and `without_images`. */
int stream_reply(struct llm_stream *s, struct llm_reply *ret, struct error *reterr) must_check;

/* ---- for build() ---- */

int stream_header(struct llm_stream *s, struct error *reterr, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))) must_check;
/* These give NULL without memory, and adding NULL to a document fails. */

/* "data:MIME;base64,DATA", or the part's URL. */
yyjson_mut_val *build_data_url(yyjson_mut_doc *doc, const struct llm_part *part);
/* A part that is nothing: an image or file without data and URL, a text of nothing but space. */
bool build_is_empty(const struct llm_part *part);
/* PNG, JPEG, GIF, WebP, or a URL. */
bool build_is_picture(const struct llm_part *part);
/* A call's arguments as an object: what is none becomes a string in one. */
yyjson_mut_val *build_arguments(yyjson_mut_doc *doc, const struct llm_tool_call *call);
/* A tool's schema: an object at its root, without what no service takes there. */
yyjson_mut_val *build_schema(yyjson_mut_doc *doc, const struct llm_tool *tool);
/* JSON text into the document; NULL also when it is none. */
yyjson_mut_val *build_json(yyjson_mut_doc *doc, const char *text);
/* The name of a call for ^[a-zA-Z0-9_-]{1,64}$, whatever a model has made up. */
yyjson_mut_val *build_name(yyjson_mut_doc *doc, const char *name);
/* An id for ^[a-zA-Z0-9_-]{1,max}$ (max >= 37): the same for the same. */
yyjson_mut_val *build_id(yyjson_mut_doc *doc, const char *id, size_t max);

/* ---- for feed() ---- */

int stream_text(struct llm_stream *s, const char *text, size_t len,
                struct error *reterr) must_check;
int stream_reasoning(struct llm_stream *s, const char *text, size_t len,
                     struct error *reterr) must_check;
/* Ends the open part; `raw`: the provider's own block (JSON), kept with it. Two parts of one kind
 * become one without it. With no part open, `raw` is a reasoning part of its own. */
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

/* The error that a provider reports, with its own message; a status of its kind (0: none) decides
 * about a retry. Always <0. */
int stream_fail(struct llm_stream *s, unsigned status, const char *message, struct error *reterr);

/* A document of an answer. Invalid bytes become U+FFFD; halves of a surrogate pair that were cut
 * apart are put together by the stream_* functions. */
int stream_json(struct llm_stream *s, const char *data, size_t len, yyjson_doc **ret,
                struct error *reterr) must_check;

/* A number of tokens and the like; -1 when the member is none. */
static inline int64_t json_count(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);

    return yyjson_is_int(v) && yyjson_get_sint(v) >= 0 ? yyjson_get_sint(v) : -1;
}

/* Appends a piece of text with its halves joined to the ones before and NUL as U+FFFD. */
int text_join(unsigned *held, const char *text, size_t len, struct buf *ret) must_check;

/* Events whose data are JSON; "[DONE]" sets `finished`, and nothing after it is given. */
typedef int stream_event_fn(struct llm_stream *s, const char *event, yyjson_val *root,
                            struct error *reterr);
int stream_events(struct llm_stream *s, const char *data, size_t len, stream_event_fn *each,
                  struct error *reterr) must_check;

/* Splits NDJSON and gives each line as a document. */
typedef int stream_line_fn(struct llm_stream *s, yyjson_val *root, struct error *reterr);
int stream_lines(struct llm_stream *s, const char *data, size_t len, stream_line_fn *each,
                 struct error *reterr) must_check;

/* The message of a provider's own in the body of a failure: {"error": {"message"}} and its kin. */
int upstream_message(const char *body, size_t len, struct buf *ret);
/* Appends a text from outside: at most 300 bytes of it, in one line, without the key. */
int upstream_mask(const char *text, size_t len, const char *key, struct buf *ret);

/* ---- vision.c ---- */

enum { VISION_LEARNT_MAX = 256 };

struct vision_table {
    struct vision_learnt {
        char key[2 * 32 + 1]; /* digest of provider, model and base URL; "" for a free place */
        enum llm_vision vision;
    } learnt[VISION_LEARNT_MAX];
    size_t next; /* the place that is used next: the oldest */
};

/* By its name alone: YES or UNKNOWN. */
enum llm_vision vision_of_name(const char *name);
enum llm_vision vision_get(const struct vision_table *t, const struct llm_model *model);
/* NO does not take the place of a YES that was learnt. */
void vision_learn(struct vision_table *t, const struct llm_model *model, enum llm_vision vision);
/* Whether a failure may mean that the model takes no images, and whether the text is about the
 * picture itself (its size or format) rather than the model. */
bool vision_is_refusal(unsigned status, const char *message);
bool vision_is_about_picture(const char *message);

/* ---- providers ---- */

extern const struct provider_entry provider_openai, provider_anthropic, provider_google,
    provider_ollama, provider_direct;
