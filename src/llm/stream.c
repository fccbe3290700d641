/* SPDX-License-Identifier: MIT */
/*
 * An answer while it is decoded: what every provider's feed() is held to. A part or a call grows in
 * a bounded buffer, each delta is a view of the buffer's end, and the reply is copied to the arena
 * once. A part is only closed when another one begins, so texts that a service ends needlessly
 * become one.
 */
#include "base/id.h"
#include "base/str.h"
#include "llm/llm-internal.h"
#include "wire/utf8.h"

#include <stdarg.h>
#include <stdio.h>

static int limit_error(struct error *reterr, const char *what, unsigned long long max)
{
    return error_set(reterr, ERR_LIMIT, "the model's %s above the limit of %llu", what, max);
}

/* ---- life ---- */

void stream_init(struct llm_stream *s, const struct llm_request *request,
                 const struct provider_entry *provider, const struct llm_sink *sink,
                 struct arena *arena)
{
    *s = (struct llm_stream){
        .request = request, .provider = provider, .arena = arena, .open_part = -1};
    if (sink) {
        s->delta = sink->delta;
        s->user = sink->user;
    }
    s->usage = (struct llm_usage){-1, -1, -1, -1, -1};
    buf_init(&s->body, LLM_BODY_BYTES);
    buf_init(&s->line, LLM_EVENT_BYTES);
    buf_init(&s->text, LLM_TEXT_BYTES);
    buf_init(&s->reasoning, LLM_TEXT_BYTES);
    buf_init(&s->scratch, LLM_EVENT_BYTES);
    sse_parser_init(&s->sse, LLM_EVENT_BYTES);
}

void stream_done(struct llm_stream *s)
{
    buf_done(&s->body);
    buf_done(&s->line);
    buf_done(&s->text);
    buf_done(&s->reasoning);
    buf_done(&s->scratch);
    sse_parser_done(&s->sse);
    for (size_t i = 0; s->calls && i < LLM_CALLS_MAX; i++)
        buf_done(&s->calls[i].arguments);
}

static bool header_is_safe(const char *header)
{
    for (; *header; header++) {
        if ((unsigned char)*header < ' ' || *header == 0x7f)
            return false;
    }
    return true;
}

int stream_header(struct llm_stream *s, struct error *reterr, const char *fmt, ...)
{
    char *header = NULL;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (s->header_count + 1 >= LLM_HEADERS_MAX)
        return error_set(reterr, ERR_INTERNAL, "too many headers for a model");
    if (len >= 0)
        header = arena_alloc(s->arena, (size_t)len + 1);
    if (!header)
        return error_no_memory(reterr);
    va_start(args, fmt);
    vsnprintf(header, (size_t)len + 1, fmt, args);
    va_end(args);
    if (!header_is_safe(header))
        return error_set(reterr, ERR_INVALID,
                         "a control character in what goes into the header %.*s",
                         (int)strcspn(header, ":"), header);
    s->headers[s->header_count++] = header;
    return 0;
}

/* ---- deltas and texts ---- */

static int delta_give(struct llm_stream *s, const struct llm_delta *d, struct error *reterr)
{
    int r;

    s->started = true;
    r = s->delta ? s->delta(s->user, d, reterr) : 0;
    s->failed = s->failed || r < 0;
    return r;
}

/* Appends a piece; `ret_from`: where it begins. Nothing may come of it when it ends in half a
 * character. */
static int piece_append(struct llm_stream *s, struct buf *b, unsigned *held, const char *text,
                        size_t len, size_t *ret_from)
{
    *ret_from = b->len;
    if (memchr(text, 0, len) || *held || s->halves)
        return text_join(held, text, len, b);
    return buf_append(b, text, len);
}

/* A half whose other half never came. */
static int held_flush(unsigned *held, struct buf *b)
{
    if (!*held)
        return 0;
    *held = 0;
    return buf_append_str(b, "\xef\xbf\xbd");
}

static struct buf *part_buf(struct llm_stream *s)
{
    return s->open_part == LLM_TEXT ? &s->text : &s->reasoning;
}

static int parts_grow(struct llm_stream *s, struct error *reterr)
{
    size_t cap = s->part_cap ? 2 * s->part_cap : 8;
    struct llm_part *parts;

    if (s->part_count >= LLM_PARTS_MAX)
        return limit_error(reterr, "answer has parts", LLM_PARTS_MAX);
    if (s->part_count < s->part_cap)
        return 0;
    parts = arena_alloc(s->arena, cap * sizeof(*parts));
    if (!parts)
        return error_no_memory(reterr);
    if (s->part_count)
        memcpy(parts, s->parts, s->part_count * sizeof(*parts));
    s->parts = parts;
    s->part_cap = cap;
    return 0;
}

static int part_push(struct llm_stream *s, enum llm_part_kind kind, const char *raw,
                     struct error *reterr)
{
    struct llm_part part = {.kind = kind};
    struct buf *b = kind == LLM_TEXT ? &s->text : &s->reasoning;
    int r = parts_grow(s, reterr);

    if (r < 0)
        return r;
    if (held_flush(&s->held, b) < 0)
        return error_no_memory(reterr);
    part.text = arena_memdup(s->arena, buf_str(b), b->len);
    part.raw = raw ? arena_strdup(s->arena, raw) : NULL;
    if (!part.text || (raw && !part.raw))
        return error_no_memory(reterr);
    s->parts[s->part_count++] = part;
    buf_clear(b);
    s->open_part = -1;
    s->part_ended = false;
    return 0;
}

static int part_close(struct llm_stream *s, struct error *reterr)
{
    return s->open_part < 0 ? 0 : part_push(s, (enum llm_part_kind)s->open_part, NULL, reterr);
}

static int part_add(struct llm_stream *s, enum llm_part_kind kind, const char *text, size_t len,
                    struct error *reterr)
{
    size_t *total = kind == LLM_TEXT ? &s->text_total : &s->reasoning_total, from;
    struct llm_delta d = {.kind = kind == LLM_TEXT ? LLM_DELTA_TEXT : LLM_DELTA_REASONING};
    struct buf *b;
    int r;

    if (len == 0)
        return 0;
    if (s->open_part != (int)kind && (r = part_close(s, reterr)) < 0)
        return r;
    s->open_part = (int)kind;
    s->part_ended = false;
    *total += len;
    b = part_buf(s);
    if (*total > LLM_TEXT_BYTES || piece_append(s, b, &s->held, text, len, &from) < 0)
        return limit_error(reterr, "text is", LLM_TEXT_BYTES);
    d.len = b->len - from;
    if (d.len == 0)
        return 0;
    d.text = b->data + from;
    return delta_give(s, &d, reterr);
}

int stream_text(struct llm_stream *s, const char *text, size_t len, struct error *reterr)
{
    return part_add(s, LLM_TEXT, text, len, reterr);
}

int stream_reasoning(struct llm_stream *s, const char *text, size_t len, struct error *reterr)
{
    return part_add(s, LLM_REASONING, text, len, reterr);
}

int stream_part_end(struct llm_stream *s, const char *raw, struct error *reterr)
{
    int r;

    if (!raw) {
        s->part_ended = true;
        return 0;
    }
    /* A part that has ended already is not the one that the block is of. */
    if (s->part_ended && (r = part_close(s, reterr)) < 0)
        return r;
    return part_push(s, s->open_part < 0 ? LLM_REASONING : (enum llm_part_kind)s->open_part, raw,
                     reterr);
}

/* ---- tool calls ---- */

static bool id_is_taken(const struct llm_stream *s, const struct llm_call_state *of)
{
    for (size_t i = 0; i < LLM_CALLS_MAX; i++) {
        const struct llm_call_state *c = &s->calls[i];

        if (c != of && c->named && str_eq(c->id, of->id))
            return true;
    }
    for (size_t i = 0; s->request && i < s->request->message_count; i++) {
        const struct llm_message *m = &s->request->messages[i];

        for (size_t k = 0; k < m->call_count; k++) {
            if (m->calls[k].id && str_eq(m->calls[k].id, of->id))
                return true;
        }
    }
    return false;
}

static int arguments_give(struct llm_stream *s, unsigned index, size_t from, struct error *reterr)
{
    const struct buf *b = &s->calls[index].arguments;

    if (b->len == from)
        return 0;
    return delta_give(s,
                      &(struct llm_delta){.kind = LLM_DELTA_ARGUMENTS,
                                          .text = b->data + from,
                                          .len = b->len - from,
                                          .index = index},
                      reterr);
}

/* From here on, id and name stay. */
static int call_begin(struct llm_stream *s, unsigned index, struct error *reterr)
{
    struct llm_call_state *c = &s->calls[index];
    char id[ID_LEN + 1];
    int r;

    if (!*c->id || id_is_taken(s, c)) {
        r = id_new(id, reterr);
        if (r < 0)
            return r;
        snprintf(c->id, sizeof(c->id), "call_%.24s", id);
    }
    c->named = true;
    r = delta_give(
        s,
        &(struct llm_delta){.kind = LLM_DELTA_CALL, .index = index, .id = c->id, .name = c->name},
        reterr);
    return r < 0 ? r : arguments_give(s, index, 0, reterr);
}

static int calls_make(struct llm_stream *s, struct error *reterr)
{
    if (s->calls)
        return 0;
    s->calls = arena_alloc(s->arena, LLM_CALLS_MAX * sizeof(*s->calls));
    if (!s->calls)
        return error_no_memory(reterr);
    for (size_t i = 0; i < LLM_CALLS_MAX; i++)
        buf_init(&s->calls[i].arguments, LLM_ARGUMENTS_BYTES);
    return 0;
}

int stream_call(struct llm_stream *s, unsigned index, const char *id, const char *name,
                struct error *reterr)
{
    struct llm_call_state *c;
    size_t len;

    if (index >= LLM_CALLS_MAX)
        return limit_error(reterr, "tool calls are", LLM_CALLS_MAX);
    if (calls_make(s, reterr) < 0)
        return -(int)ERR_NO_MEMORY;
    c = &s->calls[index];
    s->call_count += !c->used;
    c->used = true;
    if (c->named)
        return 0;
    /* An id that is too long is as good as none: it only has to be the same everywhere. */
    if (id && *id && !*c->id && str_copy(c->id, sizeof(c->id), id) < 0)
        c->id[0] = 0;
    if (!name || !*name)
        return 0;
    len = utf8_cut(name, strlen(name), sizeof(c->name) - 1);
    memcpy(c->name, name, len);
    c->name[len] = 0;
    return call_begin(s, index, reterr);
}

int stream_arguments(struct llm_stream *s, unsigned index, const char *text, size_t len,
                     struct error *reterr)
{
    struct llm_call_state *c;
    size_t from;
    int r = stream_call(s, index, NULL, NULL, reterr);

    if (r < 0)
        return r;
    c = &s->calls[index];
    if (piece_append(s, &c->arguments, &c->held, text, len, &from) < 0)
        return limit_error(reterr, "arguments of a tool call are", LLM_ARGUMENTS_BYTES);
    return c->named ? arguments_give(s, index, from, reterr) : 0;
}

int stream_call_raw(struct llm_stream *s, unsigned index, const char *raw, struct error *reterr)
{
    int r = stream_call(s, index, NULL, NULL, reterr);

    if (r < 0)
        return r;
    s->calls[index].raw = arena_strdup(s->arena, raw);
    return s->calls[index].raw ? 0 : error_no_memory(reterr);
}

/* ---- the rest of an answer ---- */

static void usage_set(int64_t *value, int64_t more)
{
    if (more >= 0)
        *value = more;
}

void stream_usage(struct llm_stream *s, const struct llm_usage *usage)
{
    usage_set(&s->usage.input, usage->input);
    usage_set(&s->usage.output, usage->output);
    usage_set(&s->usage.cache_read, usage->cache_read);
    usage_set(&s->usage.cache_creation, usage->cache_creation);
    usage_set(&s->usage.reasoning, usage->reasoning);
}

static void text_set(char *ret, size_t size, const char *text)
{
    size_t len = text ? utf8_cut(text, strlen(text), size - 1) : 0;

    if (len) {
        memcpy(ret, text, len);
        ret[len] = 0;
    }
}

void stream_finish(struct llm_stream *s, const char *reason)
{
    text_set(s->finish_reason, sizeof(s->finish_reason), reason);
}

void stream_model(struct llm_stream *s, const char *name)
{
    text_set(s->model_name, sizeof(s->model_name), name);
}

int stream_feed(struct llm_stream *s, const char *data, size_t len, struct error *reterr)
{
    int r;

    s->bytes += len;
    if (s->bytes > LLM_REPLY_BYTES)
        r = limit_error(reterr, "answer is", LLM_REPLY_BYTES);
    else
        r = s->provider->feed(s, data, len, reterr);
    if (r == 0 && !data && !s->finished) {
        s->again = true;
        r = error_set(reterr, ERR_UPSTREAM, "%s: the answer ended in the middle",
                      s->provider->title);
    }
    s->failed = s->failed || r < 0;
    return r;
}

/* ---- the reply ---- */

static const char *arguments_error(struct llm_stream *s, const char *text, size_t len)
{
    auto_json yyjson_doc *doc = NULL;
    struct error err = {0};

    if (json_parse(text, len, &doc, &err) < 0)
        return arena_strdup(s->arena, err.text);
    if (!yyjson_is_obj(yyjson_doc_get_root(doc)))
        return arena_printf(s->arena, "the arguments are of type %s, not an object",
                            yyjson_get_type_desc(yyjson_doc_get_root(doc)));
    if (json_keys_check(doc, &err) < 0)
        return arena_strdup(s->arena, err.text);
    return NULL;
}

/* What models write when a tool needs nothing. */
static bool arguments_are_none(const char *text)
{
    text += strspn(text, " \t\r\n");
    return !*text || str_eq(text, "null");
}

static int call_finish(struct llm_stream *s, unsigned index, struct llm_tool_call *ret,
                       struct error *reterr)
{
    struct llm_call_state *c = &s->calls[index];
    struct buf *b = &c->arguments;
    const char *text;
    int r = 0;

    if (held_flush(&c->held, b) < 0)
        return error_no_memory(reterr);
    if (!c->named) {
        text_set(c->name, sizeof(c->name), "unknown");
        r = call_begin(s, index, reterr);
    }
    text = arguments_are_none(buf_str(b)) ? "{}" : buf_str(b);
    *ret = (struct llm_tool_call){
        .id = arena_strdup(s->arena, c->id),
        .name = arena_strdup(s->arena, c->name),
        .arguments = arena_strdup(s->arena, text),
        .raw = c->raw,
    };
    if (!ret->id || !ret->name || !ret->arguments)
        return error_no_memory(reterr);
    ret->error = arguments_error(s, text, strlen(text));
    ret->valid = !ret->error;
    return r;
}

static int calls_finish(struct llm_stream *s, struct llm_reply *ret, struct error *reterr)
{
    struct llm_tool_call *calls = arena_alloc(s->arena, s->call_count * sizeof(*calls));
    int r;

    if (!calls)
        return error_no_memory(reterr);
    for (unsigned i = 0; i < LLM_CALLS_MAX; i++) {
        const struct llm_call_state *c = &s->calls[i];

        if (!c->used || (!c->named && c->arguments.len == 0))
            continue;
        r = call_finish(s, i, &calls[ret->call_count], reterr);
        if (r < 0)
            return r;
        ret->call_count++;
    }
    ret->calls = calls;
    return 0;
}

/* Some services say "stop" whatever the model wants. */
static const char *reason_of(const struct llm_stream *s, const struct llm_reply *reply)
{
    if (*s->finish_reason && !str_eq(s->finish_reason, "stop"))
        return s->finish_reason;
    return reply->call_count ? "tool_calls" : "stop";
}

int stream_reply(struct llm_stream *s, struct llm_reply *ret, struct error *reterr)
{
    struct llm_reply reply = {.usage = s->usage};
    int r = part_close(s, reterr);

    if (r == 0 && s->call_count)
        r = calls_finish(s, &reply, reterr);
    if (r < 0)
        return r;
    reply.parts = s->parts;
    reply.part_count = s->part_count;
    reply.finish_reason = arena_strdup(s->arena, reason_of(s, &reply));
    reply.model_name =
        arena_strdup(s->arena, *s->model_name ? s->model_name : s->request->model.name);
    if (!reply.finish_reason || !reply.model_name)
        return error_no_memory(reterr);
    *ret = reply;
    return 0;
}
