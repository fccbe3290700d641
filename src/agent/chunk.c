/* SPDX-License-Identifier: MIT */
/* Chunks; see chunk.h. Whether a call is whole is seen from the braces of its arguments. */
#include "agent/chunk.h"

#include <stdio.h>

enum chunk_state { CALL_UNSEEN, CALL_WAITS, CALL_OPEN, CALL_SENT };

struct chunk_call {
    enum chunk_state state;
    unsigned index;
    char *id, *name;
    struct buf waiting; /* arguments that could not be sent yet */

    /* Of the arguments that were sent. */
    int depth;
    bool in_string, escaped, begun;
};

static int chunks_new_id(struct chunks *c, struct error *reterr)
{
    char id[UUID_LEN + 1];
    int r = uuid_v7(id, reterr);

    if (r < 0)
        return r;
    snprintf(c->id, sizeof(c->id), "lc_run--%s", id);
    return 0;
}

int chunks_init(struct chunks *c, struct walk *w, struct error *reterr)
{
    *c = (struct chunks){.walk = w, .block_index = -1};
    buf_init(&c->text, LLM_TEXT_BYTES);
    return chunks_new_id(c, reterr);
}

static void chunks_clear(struct chunks *c)
{
    for (size_t i = 0; c->calls && i < LLM_CALLS_MAX; i++) {
        free(c->calls[i].id);
        free(c->calls[i].name);
        buf_done(&c->calls[i].waiting);
    }
    free(c->calls);
    c->calls = c->open = NULL;
    buf_clear(&c->text);
    c->blocks = false;
    c->block_index = -1;
}

void chunks_done(struct chunks *c)
{
    chunks_clear(c);
    buf_done(&c->text);
}

/* ---- one chunk ---- */

/* What is special about a chunk; the rest is the same in all. */
struct chunk {
    yyjson_mut_val *content, *call, *metadata, *usage;
    const struct llm_delta *delta;
    const struct llm_reply *reply; /* of the last one */
};

static yyjson_mut_val *or_empty(yyjson_mut_doc *doc, yyjson_mut_val *v)
{
    return v ? v : yyjson_mut_obj(doc);
}

static int chunk_send(struct chunks *c, yyjson_mut_doc *doc, const struct chunk *chunk,
                      struct error *reterr)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc), *calls;
    const struct llm_reply *reply = chunk->reply;
    auto_buf struct buf json;
    int r;

    buf_init(&json, LLM_REPLY_BYTES);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "content",
                           chunk->content ? chunk->content : yyjson_mut_str(doc, ""));
    yyjson_mut_obj_add_obj(doc, root, "additional_kwargs");
    yyjson_mut_obj_add_val(doc, root, "response_metadata", or_empty(doc, chunk->metadata));
    yyjson_mut_obj_add_str(doc, root, "type", "AIMessageChunk");
    yyjson_mut_obj_add_null(doc, root, "name");
    yyjson_mut_obj_add_str(doc, root, "id", c->id);
    yyjson_mut_obj_add_arr(doc, root, "tool_calls");
    yyjson_mut_obj_add_arr(doc, root, "invalid_tool_calls");
    yyjson_mut_obj_add_val(doc, root, "usage_metadata",
                           chunk->usage ? chunk->usage : yyjson_mut_null(doc));
    calls = yyjson_mut_obj_add_arr(doc, root, "tool_call_chunks");
    if (chunk->call)
        yyjson_mut_arr_add_val(calls, chunk->call);
    yyjson_mut_obj_add_val(doc, root, "chunk_position",
                           reply ? yyjson_mut_str(doc, "last") : yyjson_mut_null(doc));
    if ((r = json_mut_write(doc, &json, reterr)) < 0)
        return r;
    walk_emit(c->walk, &(struct agent_event){.type = AGENT_CHUNK,
                                             .json = buf_str(&json),
                                             .len = json.len,
                                             .message_id = c->id,
                                             .delta = chunk->delta,
                                             .usage = reply ? &reply->usage : NULL,
                                             .finish_reason = reply ? reply->finish_reason : NULL});
    return 0;
}

/* ---- text and reasoning ---- */

static int block_send(struct chunks *c, const struct llm_delta *d, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    bool thinks = d->kind == LLM_DELTA_REASONING;
    yyjson_mut_val *text = json_mut_text(doc, d->text, d->len), *list, *block;

    c->blocks |= thinks;
    if (!c->blocks)
        return chunk_send(c, doc, &(struct chunk){.content = text, .delta = d}, reterr);
    if (c->block_index < 0 || c->block != d->kind)
        c->block_index++;
    c->block = d->kind;
    list = yyjson_mut_arr(doc);
    block = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, block, "type", thinks ? "reasoning" : "text");
    yyjson_mut_obj_add_val(doc, block, thinks ? "reasoning" : "text", text);
    yyjson_mut_obj_add_int(doc, block, "index", c->block_index);
    return chunk_send(c, doc, &(struct chunk){.content = list, .delta = d}, reterr);
}

static int late_text_send(struct chunks *c, struct error *reterr)
{
    struct llm_delta d = {.kind = LLM_DELTA_TEXT, .text = buf_str(&c->text), .len = c->text.len};
    int r = c->text.len ? block_send(c, &d, reterr) : 0;

    buf_clear(&c->text);
    return r;
}

/* ---- calls ---- */

static int call_send(struct chunks *c, const struct chunk_call *call, const struct llm_delta *d,
                     struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    bool begins = d->kind == LLM_DELTA_CALL;

    yyjson_mut_obj_add_val(doc, o, "name",
                           begins ? yyjson_mut_str(doc, call->name) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, o, "args", json_mut_text(doc, d->text, d->len));
    yyjson_mut_obj_add_val(doc, o, "id",
                           begins ? yyjson_mut_str(doc, call->id) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_uint(doc, o, "index", call->index);
    yyjson_mut_obj_add_str(doc, o, "type", "tool_call_chunk");
    return chunk_send(
        c, doc,
        &(struct chunk){.content = c->blocks ? yyjson_mut_arr(doc) : NULL, .call = o, .delta = d},
        reterr);
}

/* Whether the braces that were opened are closed again. */
static bool call_scan(struct chunk_call *call, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char ch = text[i];

        if (call->in_string) {
            if (call->escaped)
                call->escaped = false;
            else if (ch == '\\')
                call->escaped = true;
            else if (ch == '"')
                call->in_string = false;
            continue;
        }
        call->in_string = ch == '"';
        if (ch == '{' || ch == '[') {
            call->depth++;
            call->begun = true;
        }
        if (ch == '}' || ch == ']')
            call->depth--;
    }
    return call->begun && call->depth <= 0 && !call->in_string;
}

static int arguments_send(struct chunks *c, struct chunk_call *call, const char *text, size_t len,
                          struct error *reterr)
{
    struct llm_delta d = {
        .kind = LLM_DELTA_ARGUMENTS, .text = text, .len = len, .index = call->index};
    int r = len ? call_send(c, call, &d, reterr) : 0;

    if (r == 0 && call_scan(call, text, len)) {
        call->state = CALL_SENT;
        c->open = NULL;
    }
    return r;
}

static int call_open(struct chunks *c, struct chunk_call *call, struct error *reterr)
{
    struct llm_delta d = {.kind = LLM_DELTA_CALL,
                          .text = "",
                          .index = call->index,
                          .id = call->id,
                          .name = call->name};
    int r;

    call->state = CALL_OPEN;
    c->open = call;
    r = call_send(c, call, &d, reterr);
    if (r == 0 && call->waiting.len)
        r = arguments_send(c, call, buf_str(&call->waiting), call->waiting.len, reterr);
    buf_done(&call->waiting);
    return r;
}

/* With no call open: what waits, the next call as far as it has come. */
static int chunks_flush(struct chunks *c, struct error *reterr)
{
    int r = 0;

    for (size_t i = 0; c->calls && i < LLM_CALLS_MAX && r == 0 && !c->open; i++) {
        if (c->calls[i].state == CALL_WAITS)
            r = call_open(c, &c->calls[i], reterr);
    }
    if (r == 0 && !c->open)
        r = late_text_send(c, reterr);
    return r;
}

static int on_call(struct chunks *c, struct chunk_call *call, const struct llm_delta *d,
                   struct error *reterr)
{
    if (call->state != CALL_UNSEEN)
        return 0;
    call->id = strdup(d->id ? d->id : "");
    call->name = strdup(d->name ? d->name : "");
    if (!call->id || !call->name)
        return error_no_memory(reterr);
    buf_init(&call->waiting, LLM_ARGUMENTS_BYTES);
    call->index = d->index;
    call->state = CALL_WAITS;
    return c->open ? 0 : call_open(c, call, reterr);
}

static int on_arguments(struct chunks *c, struct chunk_call *call, const struct llm_delta *d,
                        struct error *reterr)
{
    int r;

    if (call->state == CALL_WAITS)
        return buf_append(&call->waiting, d->text, d->len) < 0
                   ? error_set(reterr, ERR_LIMIT, "the arguments of a tool call are too long")
                   : 0;
    if (call->state != CALL_OPEN)
        return 0;
    r = arguments_send(c, call, d->text, d->len, reterr);
    return r == 0 && !c->open ? chunks_flush(c, reterr) : r;
}

/* ---- deltas ---- */

static int on_retry(struct chunks *c, struct error *reterr)
{
    chunks_clear(c);
    return chunks_new_id(c, reterr);
}

int chunks_delta(void *user, const struct llm_delta *d, struct error *reterr)
{
    struct chunks *c = user;
    bool about_call = d->kind == LLM_DELTA_CALL || d->kind == LLM_DELTA_ARGUMENTS;

    if (d->kind == LLM_DELTA_RETRY)
        return on_retry(c, reterr);
    if (d->kind == LLM_DELTA_TEXT && c->open)
        return buf_append(&c->text, d->text, d->len) < 0
                   ? error_set(reterr, ERR_LIMIT, "the model's answer is too long")
                   : 0;
    if (!about_call)
        return block_send(c, d, reterr);
    if (!c->calls && !(c->calls = calloc(LLM_CALLS_MAX, sizeof(*c->calls))))
        return error_no_memory(reterr);
    if (d->index >= LLM_CALLS_MAX)
        return error_set(reterr, ERR_LIMIT, "more than %d tool calls in one answer", LLM_CALLS_MAX);
    return (d->kind == LLM_DELTA_CALL ? on_call : on_arguments)(c, &c->calls[d->index], d, reterr);
}

/* The very members of the message, so that what clients put together is the same. */
static int last_send(struct chunks *c, const struct llm_reply *reply, const struct message *m,
                     struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json yyjson_doc *whole = NULL;
    yyjson_val *root;
    int r = json_parse(m->json, m->len, &whole, reterr);

    if (r < 0)
        return r;
    root = yyjson_doc_get_root(whole);
    return chunk_send(
        c, doc,
        &(struct chunk){.content = c->blocks ? yyjson_mut_arr(doc) : NULL,
                        .metadata =
                            yyjson_val_mut_copy(doc, yyjson_obj_get(root, "response_metadata")),
                        .usage = yyjson_val_mut_copy(doc, yyjson_obj_get(root, "usage_metadata")),
                        .reply = reply},
        reterr);
}

int chunks_finish(struct chunks *c, const struct llm_reply *reply, const struct message *m,
                  struct error *reterr)
{
    int r = 0;

    /* What is still open has all that it will get. */
    do {
        if (c->open)
            c->open->state = CALL_SENT;
        c->open = NULL;
        r = chunks_flush(c, reterr);
    } while (r == 0 && c->open);
    return r < 0 ? r : last_send(c, reply, m, reterr);
}
