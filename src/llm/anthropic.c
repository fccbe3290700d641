/* SPDX-License-Identifier: MIT */
/*
 * Anthropic's Messages. Roles have to alternate, so what stands between two turns of the model is
 * one user message, which begins with the results of its calls; blocks of what it thought go back
 * as they came, or not at all. The conversation so far is marked for the service's cache: an agent
 * sends it again with each step.
 */
#include "base/str.h"
#include "llm/body.h"

#include <stdio.h>

enum { ANTHROPIC_MAX_TOKENS = 8192, ANTHROPIC_ID_MAX = 64, ANTHROPIC_BLOCKS_MAX = 1024 };

/* ---- the request ---- */

struct builder {
    struct llm_stream *s;
    const struct llm_request *request;
    yyjson_mut_doc *doc;
    yyjson_mut_val *messages;
    yyjson_mut_val *content; /* of the message that is open */
    const char *role;        /* of it */
};

static yyjson_mut_val *block_add(struct builder *b, yyjson_mut_val *content, const char *type)
{
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(b->doc, content);

    return yyjson_mut_obj_add_str(b->doc, block, "type", type) ? block : NULL;
}

static bool text_add(struct builder *b, yyjson_mut_val *content, const char *text)
{
    return text && yyjson_mut_obj_add_str(b->doc, block_add(b, content, "text"), "text", text);
}

/* {"source": {"type": "base64" or "url", ...}}, of an image or a document. */
static bool source_add(struct builder *b, yyjson_mut_val *block, const struct llm_part *part)
{
    yyjson_mut_val *source = yyjson_mut_obj_add_obj(b->doc, block, "source");

    if (!part->data)
        return yyjson_mut_obj_add_str(b->doc, source, "type", "url") &&
               yyjson_mut_obj_add_str(b->doc, source, "url", part->url);
    return yyjson_mut_obj_add_str(b->doc, source, "type", "base64") &&
           yyjson_mut_obj_add_str(b->doc, source, "media_type", part->mime) &&
           yyjson_mut_obj_add_str(b->doc, source, "data", part->data);
}

/* What the service reads itself, page by page. */
static bool document_add(struct builder *b, yyjson_mut_val *content, const struct llm_part *part)
{
    yyjson_mut_val *block = block_add(b, content, "document");

    return source_add(b, block, part) &&
           (!part->name || yyjson_mut_obj_add_str(b->doc, block, "title", part->name));
}

static bool is_document(const struct llm_part *part)
{
    return part->kind == LLM_FILE &&
           (part->data ? part->mime && str_eq(part->mime, "application/pdf") : part->url != NULL);
}

/* Nothing is better than an empty block: the service refuses those. */
static bool part_add(struct builder *b, yyjson_mut_val *content, const struct llm_part *part)
{
    if (build_is_empty(part) || part->kind == LLM_REASONING)
        return true;
    if (part->kind == LLM_TEXT)
        return text_add(b, content, part->text);
    if (part->kind == LLM_IMAGE && build_is_picture(part))
        return source_add(b, block_add(b, content, "image"), part);
    if (is_document(part))
        return document_add(b, content, part);
    return text_add(b, content, body_omitted(b->s, part));
}

static bool parts_add(struct builder *b, yyjson_mut_val *content, const struct llm_message *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        if (!part_add(b, content, &m->parts[i]))
            return false;
    }
    return true;
}

/* Goes on with the open message when it is of the role. */
static bool role_begin(struct builder *b, const char *role)
{
    yyjson_mut_val *message;

    if (b->role && str_eq(b->role, role))
        return true;
    message = yyjson_mut_arr_add_obj(b->doc, b->messages);
    if (!yyjson_mut_obj_add_str(b->doc, message, "role", role))
        return false;
    b->role = role;
    b->content = yyjson_mut_obj_add_arr(b->doc, message, "content");
    return b->content;
}

/* A message that would be empty is left out. */
static bool user_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *content = yyjson_mut_arr(b->doc), *block;

    if (!content || !parts_add(b, content, m))
        return false;
    if (yyjson_mut_arr_size(content) == 0)
        return true;
    if (!role_begin(b, "user"))
        return false;
    while ((block = yyjson_mut_arr_remove_first(content))) {
        if (!yyjson_mut_arr_append(b->content, block))
            return false;
    }
    return true;
}

static bool result_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *block, *content;

    if (!role_begin(b, "user"))
        return false;
    block = block_add(b, b->content, "tool_result");
    if (!yyjson_mut_obj_add_val(b->doc, block, "tool_use_id",
                                build_id(b->doc, m->tool_call_id, ANTHROPIC_ID_MAX)))
        return false;
    content = yyjson_mut_arr(b->doc);
    if (!content || !parts_add(b, content, m))
        return false;
    if (yyjson_mut_arr_size(content) && !yyjson_mut_obj_add_val(b->doc, block, "content", content))
        return false;
    return !m->is_error || yyjson_mut_obj_add_bool(b->doc, block, "is_error", true);
}

/* The service's own block, and nothing else that a conversation may hold in its place. */
static yyjson_mut_val *thinking_make(struct builder *b, const struct llm_message *m,
                                     const struct llm_part *part)
{
    yyjson_mut_val *block =
        part->raw && body_is_own(m, &provider_anthropic) ? build_json(b->doc, part->raw) : NULL;
    const char *type = yyjson_mut_get_str(yyjson_mut_obj_get(block, "type"));

    return type && (str_eq(type, "thinking") || str_eq(type, "redacted_thinking")) ? block : NULL;
}

static bool assistant_part_add(struct builder *b, const struct llm_message *m,
                               const struct llm_part *part)
{
    yyjson_mut_val *block;

    if (part->kind == LLM_TEXT && !build_is_empty(part))
        return role_begin(b, "assistant") && text_add(b, b->content, part->text);
    block = part->kind == LLM_REASONING ? thinking_make(b, m, part) : NULL;
    return !block || (role_begin(b, "assistant") && yyjson_mut_arr_append(b->content, block));
}

static bool call_add(struct builder *b, const struct llm_tool_call *call)
{
    yyjson_mut_val *block;

    if (!role_begin(b, "assistant"))
        return false;
    block = block_add(b, b->content, "tool_use");
    return yyjson_mut_obj_add_val(b->doc, block, "id",
                                  build_id(b->doc, call->id, ANTHROPIC_ID_MAX)) &&
           yyjson_mut_obj_add_val(b->doc, block, "name", build_name(b->doc, call->name)) &&
           yyjson_mut_obj_add_val(b->doc, block, "input", build_arguments(b->doc, call));
}

static bool assistant_add(struct builder *b, const struct llm_message *m)
{
    /* The first message has to be a user's. */
    if (!b->role &&
        !(role_begin(b, "user") && text_add(b, b->content, "(The beginning is left out.)")))
        return false;
    for (size_t i = 0; i < m->part_count; i++) {
        if (!assistant_part_add(b, m, &m->parts[i]))
            return false;
    }
    for (size_t i = 0; i < m->call_count; i++) {
        if (!call_add(b, &m->calls[i]))
            return false;
    }
    return true;
}

/* The service caches what stands before a mark, and takes no mark on what was thought. */
static bool cache_mark(struct builder *b, yyjson_mut_val *block)
{
    const char *type = yyjson_mut_get_str(yyjson_mut_obj_get(block, "type"));

    if (!type || strstr(type, "thinking"))
        return true;
    return yyjson_mut_obj_add_str(b->doc, yyjson_mut_obj_add_obj(b->doc, block, "cache_control"),
                                  "type", "ephemeral");
}

static bool system_add(struct builder *b, yyjson_mut_val *root, const struct llm_message *m)
{
    yyjson_mut_val *content = yyjson_mut_arr(b->doc);

    if (!content || !parts_add(b, content, m))
        return false;
    if (yyjson_mut_arr_size(content) == 0)
        return true;
    return cache_mark(b, yyjson_mut_arr_get_last(content)) &&
           yyjson_mut_obj_add_val(b->doc, root, "system", content);
}

static bool messages_add(struct builder *b, yyjson_mut_val *root)
{
    bool ok = true;

    for (size_t i = 0; ok && i < b->request->message_count; i++) {
        const struct llm_message *m = &b->request->messages[i];

        if (m->role == LLM_SYSTEM)
            ok = system_add(b, root, m);
        else if (m->role == LLM_ASSISTANT)
            ok = assistant_add(b, m);
        else
            ok = m->role == LLM_TOOL ? result_add(b, m) : user_add(b, m);
    }
    return ok && cache_mark(b, yyjson_mut_arr_get_last(b->content)) &&
           yyjson_mut_obj_add_val(b->doc, root, "messages", b->messages);
}

static bool tools_add(struct builder *b, yyjson_mut_val *root)
{
    const struct llm_request *r = b->request;
    yyjson_mut_val *tools;

    if (!r->tool_count)
        return true;
    tools = yyjson_mut_obj_add_arr(b->doc, root, "tools");
    for (size_t i = 0; i < r->tool_count; i++) {
        const struct llm_tool *t = &r->tools[i];
        yyjson_mut_val *tool = yyjson_mut_arr_add_obj(b->doc, tools);

        if (!yyjson_mut_obj_add_str(b->doc, tool, "name", t->name) ||
            !yyjson_mut_obj_add_str(b->doc, tool, "description",
                                    t->description ? t->description : "") ||
            !yyjson_mut_obj_add_val(b->doc, tool, "input_schema", build_schema(b->doc, t)))
            return false;
    }
    return true;
}

static bool root_build(struct builder *b)
{
    const struct llm_request *r = b->request;
    yyjson_mut_val *root = yyjson_mut_obj(b->doc);

    yyjson_mut_doc_set_root(b->doc, root);
    b->messages = yyjson_mut_arr(b->doc);
    return yyjson_mut_obj_add_str(b->doc, root, "model", r->model.name) &&
           yyjson_mut_obj_add_sint(b->doc, root, "max_tokens",
                                   r->max_tokens > 0 ? r->max_tokens : ANTHROPIC_MAX_TOKENS) &&
           yyjson_mut_obj_add_bool(b->doc, root, "stream", true) && messages_add(b, root) &&
           tools_add(b, root);
}

static int anthropic_build(const struct llm_request *request, struct llm_stream *s,
                           struct error *reterr)
{
    static const struct option_place none[] = {{NULL, NULL}};
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    const char *base = request->model.base_url, *key = request->model.api_key;
    struct builder b = {.s = s, .request = request, .doc = doc};
    int r;

    if (!doc || !root_build(&b))
        return error_no_memory(reterr);
    /* People give the base with and without the version. */
    snprintf(s->path, sizeof(s->path), "%s/messages", base && str_ends(base, "/v1") ? "" : "/v1");
    r = stream_header(s, reterr, "anthropic-version: 2023-06-01");
    if (r == 0 && key && *key)
        r = stream_header(s, reterr, "x-api-key: %s", key);
    return r < 0 ? r : body_finish(s, doc, "", none, reterr);
}

/* ---- the answer ---- */

enum block_kind { BLOCK_NONE, BLOCK_OTHER, BLOCK_THINKING, BLOCK_CALL };

struct anthropic {
    struct {
        unsigned char kind; /* enum block_kind */
        unsigned char call;
        bool has_input;
    } blocks[ANTHROPIC_BLOCKS_MAX];
    unsigned call_count;
    size_t thinking_from; /* where in `reasoning` the open block begins; its signature: `scratch` */
};

static void count_add(int64_t *sum, int64_t more)
{
    if (more > 0 && __builtin_add_overflow(*sum, more, sum))
        *sum = INT64_MAX;
}

/* What came from the cache is not in the service's own count of the input; elsewhere it is. */
static void usage_take(struct llm_stream *s, yyjson_val *usage)
{
    struct llm_usage u = {
        .input = json_count(usage, "input_tokens"),
        .output = json_count(usage, "output_tokens"),
        .cache_read = json_count(usage, "cache_read_input_tokens"),
        .cache_creation = json_count(usage, "cache_creation_input_tokens"),
        .reasoning = -1,
    };

    if (u.input >= 0) {
        count_add(&u.input, u.cache_read >= 0 ? u.cache_read : s->usage.cache_read);
        count_add(&u.input, u.cache_creation >= 0 ? u.cache_creation : s->usage.cache_creation);
    }
    stream_usage(s, &u);
}

static int message_start(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                         struct error *reterr)
{
    yyjson_val *message = yyjson_obj_get(root, "message");

    stream_model(s, json_get_str(message, "model", NULL));
    usage_take(s, yyjson_obj_get(message, "usage"));
    return 0;
}

static int value_keep(struct llm_stream *s, yyjson_val *value, const char **ret,
                      struct error *reterr)
{
    auto_buf struct buf text = {.max = LLM_EVENT_BYTES};
    int r = json_write(value, &text, reterr);

    if (r < 0)
        return r;
    *ret = arena_memdup(s->arena, text.data, text.len);
    return *ret ? 0 : error_no_memory(reterr);
}

static int text_take(struct llm_stream *s, yyjson_val *text, struct error *reterr)
{
    return yyjson_is_str(text) ? stream_text(s, yyjson_get_str(text), yyjson_get_len(text), reterr)
                               : 0;
}

static int thinking_take(struct llm_stream *s, yyjson_val *text, struct error *reterr)
{
    return yyjson_is_str(text)
               ? stream_reasoning(s, yyjson_get_str(text), yyjson_get_len(text), reterr)
               : 0;
}

static int signature_take(struct llm_stream *s, yyjson_val *text, struct error *reterr)
{
    if (yyjson_is_str(text) &&
        buf_append(&s->scratch, yyjson_get_str(text), yyjson_get_len(text)) < 0)
        return error_set(reterr, ERR_LIMIT, "a signature is above the limit");
    return 0;
}

static int call_start(struct llm_stream *s, struct anthropic *own, unsigned at, yyjson_val *block,
                      struct error *reterr)
{
    yyjson_val *input = yyjson_obj_get(block, "input");
    const char *text;
    int r;

    if (own->call_count >= LLM_CALLS_MAX)
        return error_set(reterr, ERR_LIMIT, "more than %d tool calls at once", LLM_CALLS_MAX);
    own->blocks[at].kind = BLOCK_CALL;
    own->blocks[at].call = (unsigned char)own->call_count;
    r = stream_call(s, own->call_count++, json_get_str(block, "id", NULL),
                    json_get_str(block, "name", NULL), reterr);
    /* The service itself sends {} here, and then pieces; others send all of it. */
    if (r < 0 || yyjson_obj_size(input) == 0)
        return r;
    own->blocks[at].has_input = true;
    r = value_keep(s, input, &text, reterr);
    return r < 0 ? r : stream_arguments(s, own->blocks[at].call, text, strlen(text), reterr);
}

static int thinking_start(struct llm_stream *s, struct anthropic *own, yyjson_val *block,
                          struct error *reterr)
{
    int r;

    own->thinking_from = s->open_part == LLM_REASONING ? s->reasoning.len : 0;
    buf_clear(&s->scratch);
    r = thinking_take(s, yyjson_obj_get(block, "thinking"), reterr);
    return r < 0 ? r : signature_take(s, yyjson_obj_get(block, "signature"), reterr);
}

static int redacted_take(struct llm_stream *s, yyjson_val *block, struct error *reterr)
{
    const char *raw;
    int r = value_keep(s, block, &raw, reterr);

    if (r == 0)
        r = stream_part_end(s, NULL, reterr);
    return r < 0 ? r : stream_part_end(s, raw, reterr);
}

/* The number of the block; ANTHROPIC_BLOCKS_MAX when there is none. */
static unsigned block_index(yyjson_val *root)
{
    int64_t at = json_count(root, "index");

    return at >= 0 && at < ANTHROPIC_BLOCKS_MAX ? (unsigned)at : ANTHROPIC_BLOCKS_MAX;
}

static int block_start(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                       struct error *reterr)
{
    yyjson_val *block = yyjson_obj_get(root, "content_block");
    const char *type = json_get_str(block, "type", "");
    unsigned at = block_index(root);

    if (at == ANTHROPIC_BLOCKS_MAX)
        return error_set(reterr, ERR_LIMIT, "an answer of more than %d blocks",
                         ANTHROPIC_BLOCKS_MAX);
    own->blocks[at].kind = BLOCK_OTHER;
    if (str_eq(type, "tool_use"))
        return call_start(s, own, at, block, reterr);
    if (str_eq(type, "redacted_thinking"))
        return redacted_take(s, block, reterr);
    if (str_eq(type, "text"))
        return text_take(s, yyjson_obj_get(block, "text"), reterr);
    if (!str_eq(type, "thinking"))
        return 0;
    own->blocks[at].kind = BLOCK_THINKING;
    return thinking_start(s, own, block, reterr);
}

static int block_delta(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                       struct error *reterr)
{
    yyjson_val *delta = yyjson_obj_get(root, "delta");
    const char *type = json_get_str(delta, "type", "");
    yyjson_val *piece = yyjson_obj_get(delta, "partial_json");
    unsigned at = block_index(root);

    if (str_eq(type, "text_delta"))
        return text_take(s, yyjson_obj_get(delta, "text"), reterr);
    if (str_eq(type, "thinking_delta"))
        return thinking_take(s, yyjson_obj_get(delta, "thinking"), reterr);
    if (str_eq(type, "signature_delta"))
        return signature_take(s, yyjson_obj_get(delta, "signature"), reterr);
    if (!str_eq(type, "input_json_delta") || !yyjson_is_str(piece) || at == ANTHROPIC_BLOCKS_MAX ||
        own->blocks[at].kind != BLOCK_CALL || own->blocks[at].has_input)
        return 0;
    return stream_arguments(s, own->blocks[at].call, yyjson_get_str(piece), yyjson_get_len(piece),
                            reterr);
}

/* What has to come back: the text and its signature, as one block. */
static int thinking_stop(struct llm_stream *s, struct anthropic *own, struct error *reterr)
{
    auto_buf struct buf raw = {.max = LLM_REPLY_BYTES};
    const char *text = buf_str(&s->reasoning);
    int r;

    if (s->scratch.len == 0)
        return stream_part_end(s, NULL, reterr);
    text += s->open_part == LLM_REASONING ? MIN(own->thinking_from, s->reasoning.len)
                                          : s->reasoning.len;
    if (buf_append_str(&raw, "{\"type\":\"thinking\",\"thinking\":") < 0 ||
        json_quote(&raw, text, strlen(text)) < 0 || buf_append_str(&raw, ",\"signature\":") < 0 ||
        json_quote(&raw, s->scratch.data, s->scratch.len) < 0 || buf_append_str(&raw, "}") < 0)
        return error_no_memory(reterr);
    buf_clear(&s->scratch);
    r = s->open_part == LLM_REASONING ? 0 : stream_part_end(s, NULL, reterr);
    return r < 0 ? r : stream_part_end(s, raw.data, reterr);
}

static int block_stop(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                      struct error *reterr)
{
    unsigned at = block_index(root);

    if (at == ANTHROPIC_BLOCKS_MAX || own->blocks[at].kind != BLOCK_THINKING)
        return 0;
    own->blocks[at].kind = BLOCK_OTHER;
    return thinking_stop(s, own, reterr);
}

static int message_delta(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                         struct error *reterr)
{
    static const struct {
        const char *from, *to;
    } words[] = {{"end_turn", "stop"},
                 {"stop_sequence", "stop"},
                 {"tool_use", "tool_calls"},
                 {"max_tokens", "length"},
                 {"model_context_window_exceeded", "length"},
                 {"refusal", "content_filter"}};
    const char *reason = json_get_str(yyjson_obj_get(root, "delta"), "stop_reason", "");

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(reason, words[i].from))
            reason = words[i].to;
    }
    stream_finish(s, reason);
    usage_take(s, yyjson_obj_get(root, "usage"));
    return 0;
}

static int message_stop(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                        struct error *reterr)
{
    s->finished = true;
    return 0;
}

static int error_take(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                      struct error *reterr)
{
    static const struct {
        const char *type;
        unsigned status;
    } types[] = {{"invalid_request_error", 400},
                 {"authentication_error", 401},
                 {"permission_error", 403},
                 {"not_found_error", 404},
                 {"request_too_large", 413},
                 {"rate_limit_error", 429},
                 {"api_error", 500},
                 {"timeout_error", 504},
                 {"overloaded_error", 529}};
    yyjson_val *error = yyjson_obj_get(root, "error");
    const char *type = json_get_str(error, "type", "");
    unsigned status = 0;

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (str_eq(type, types[i].type))
            status = types[i].status;
    }
    return stream_fail(s, status, json_get_str(error, "message", "no reason given"), reterr);
}

static const struct {
    const char *type;
    int (*take)(struct llm_stream *s, struct anthropic *own, yyjson_val *root,
                struct error *reterr);
} event_table[] = {
    {"message_start", message_start},
    {"content_block_start", block_start},
    {"content_block_delta", block_delta},
    {"content_block_stop", block_stop},
    {"message_delta", message_delta},
    {"message_stop", message_stop},
    {"error", error_take},
};

static int event_take(struct llm_stream *s, const char *event, yyjson_val *root,
                      struct error *reterr)
{
    const char *type = json_get_str(root, "type", event);

    for (size_t i = 0; i < ARRAY_LEN(event_table); i++) {
        if (str_eq(event_table[i].type, type))
            return event_table[i].take(s, s->own, root, reterr);
    }
    return 0;
}

static int anthropic_feed(struct llm_stream *s, const char *data, size_t len, struct error *reterr)
{
    if (!s->own)
        s->own = arena_alloc(s->arena, sizeof(struct anthropic));
    if (!s->own)
        return error_no_memory(reterr);
    return stream_events(s, data, len, event_take, reterr);
}

const struct provider_entry provider_anthropic = {
    .name = "anthropic",
    .title = "Anthropic",
    .base_url = "https://api.anthropic.com",
    .needs_key = true,
    .images_in_results = true,
    .build = anthropic_build,
    .feed = anthropic_feed,
};
