/* SPDX-License-Identifier: MIT */
/*
 * OpenAI's Chat Completions, and the many servers that speak it more or less. Images of tool
 * results go into a user message behind the results, as a tool message takes text only. Calls are
 * found in openai-calls.c.
 */
#include "llm/openai-internal.h"

#include "base/str.h"
#include "llm/body.h"

enum { OPENAI_ID_MAX = 40 };

/* ---- the request ---- */

struct builder {
    struct llm_stream *s;
    const struct llm_request *request;
    yyjson_mut_doc *doc;
    yyjson_mut_val *messages;
    size_t last_user;
    bool own_service; /* OpenAI's, which is stricter than others and knows newer members */
};

static bool text_part_add(struct builder *b, yyjson_mut_val *content, const char *text)
{
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(b->doc, content);

    return text && yyjson_mut_obj_add_str(b->doc, block, "type", "text") &&
           yyjson_mut_obj_add_str(b->doc, block, "text", text);
}

static bool image_add(struct builder *b, yyjson_mut_val *content, const struct llm_part *part)
{
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(b->doc, content);

    return yyjson_mut_obj_add_str(b->doc, block, "type", "image_url") &&
           yyjson_mut_obj_add_val(b->doc, yyjson_mut_obj_add_obj(b->doc, block, "image_url"), "url",
                                  build_data_url(b->doc, part));
}

static bool file_add(struct builder *b, yyjson_mut_val *content, const struct llm_part *part)
{
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(b->doc, content), *file;

    if (!yyjson_mut_obj_add_str(b->doc, block, "type", "file"))
        return false;
    file = yyjson_mut_obj_add_obj(b->doc, block, "file");
    return yyjson_mut_obj_add_str(b->doc, file, "filename", part->name ? part->name : "file") &&
           yyjson_mut_obj_add_val(b->doc, file, "file_data", build_data_url(b->doc, part));
}

static bool part_add(struct builder *b, yyjson_mut_val *content, const struct llm_part *part)
{
    if (build_is_empty(part) || part->kind == LLM_REASONING)
        return true;
    if (part->kind == LLM_TEXT)
        return text_part_add(b, content, part->text);
    if (part->kind == LLM_IMAGE && build_is_picture(part))
        return image_add(b, content, part);
    if (part->kind == LLM_FILE && part->data)
        return file_add(b, content, part);
    return text_part_add(b, content, body_omitted(b->s, part));
}

static yyjson_mut_val *message_begin(struct builder *b, const char *role)
{
    yyjson_mut_val *message = yyjson_mut_arr_add_obj(b->doc, b->messages);

    return yyjson_mut_obj_add_str(b->doc, message, "role", role) ? message : NULL;
}

static bool text_message_add(struct builder *b, const struct llm_message *m, const char *role)
{
    const char *text = body_text(b->s, m);

    return text && yyjson_mut_obj_add_str(b->doc, message_begin(b, role), "content", text);
}

static bool user_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *content;

    /* One text as a string: what every server understands. */
    if (m->part_count == 0 || (m->part_count == 1 && m->parts[0].kind == LLM_TEXT))
        return text_message_add(b, m, "user");
    content = yyjson_mut_obj_add_arr(b->doc, message_begin(b, "user"), "content");
    for (size_t i = 0; i < m->part_count; i++) {
        if (!part_add(b, content, &m->parts[i]))
            return false;
    }
    return yyjson_mut_arr_size(content) || text_part_add(b, content, "");
}

/* Some servers keep their own state in ids, so they get back what they gave. */
static yyjson_mut_val *id_make(struct builder *b, const char *id)
{
    if (b->own_service)
        return build_id(b->doc, id, OPENAI_ID_MAX);
    return yyjson_mut_str(b->doc, id ? id : "");
}

/* What the server had put beside the call; Gemini's signatures come so. */
static bool call_raw_add(struct builder *b, yyjson_mut_val *call, const char *raw)
{
    yyjson_mut_val *extra = yyjson_mut_obj_get(build_json(b->doc, raw), "extra_content");

    return !extra || yyjson_mut_obj_add_val(b->doc, call, "extra_content",
                                            yyjson_mut_val_mut_copy(b->doc, extra));
}

static bool call_add(struct builder *b, yyjson_mut_val *calls, const struct llm_message *m,
                     const struct llm_tool_call *from)
{
    yyjson_mut_val *call = yyjson_mut_arr_add_obj(b->doc, calls), *function;
    size_t len = 0;
    auto_free char *arguments = yyjson_mut_val_write(build_arguments(b->doc, from), 0, &len);

    if (!arguments || !yyjson_mut_obj_add_val(b->doc, call, "id", id_make(b, from->id)) ||
        !yyjson_mut_obj_add_str(b->doc, call, "type", "function"))
        return false;
    function = yyjson_mut_obj_add_obj(b->doc, call, "function");
    if (!yyjson_mut_obj_add_val(b->doc, function, "name", build_name(b->doc, from->name)) ||
        !yyjson_mut_obj_add_strncpy(b->doc, function, "arguments", arguments, len))
        return false;
    return !from->raw || !body_is_own(m, &provider_openai) || call_raw_add(b, call, from->raw);
}

/* Models that think between tool calls want to see what they thought in this turn; the member that
 * it came in is the part's `raw`. */
static bool reasoning_add(struct builder *b, yyjson_mut_val *message, const struct llm_message *m)
{
    auto_buf struct buf text = {.max = LLM_TEXT_BYTES};
    const char *field = NULL;

    for (size_t i = 0; i < m->part_count; i++) {
        const struct llm_part *part = &m->parts[i];
        const char *of = part->kind == LLM_REASONING ? reasoning_field(part->raw) : NULL;

        field = of ? of : field;
        if (of && part->text && buf_append_str(&text, part->text) < 0)
            return false;
    }
    return !field || yyjson_mut_obj_add_strncpy(b->doc, message, field, buf_str(&text), text.len);
}

static bool assistant_add(struct builder *b, size_t at)
{
    const struct llm_message *m = &b->request->messages[at];
    yyjson_mut_val *message = message_begin(b, "assistant"), *calls;
    const char *text = body_text(b->s, m);

    if (!text)
        return false;
    /* With calls, an empty text is refused by some and null taken by all. */
    if (!*text && m->call_count ? !yyjson_mut_obj_add_null(b->doc, message, "content")
                                : !yyjson_mut_obj_add_str(b->doc, message, "content", text))
        return false;
    if (body_is_own(m, &provider_openai) && at > b->last_user && !reasoning_add(b, message, m))
        return false;
    if (!m->call_count)
        return message;
    calls = yyjson_mut_obj_add_arr(b->doc, message, "tool_calls");
    for (size_t i = 0; i < m->call_count; i++) {
        if (!call_add(b, calls, m, &m->calls[i]))
            return false;
    }
    return true;
}

static bool result_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *message = message_begin(b, "tool");
    const char *text = body_text(b->s, m);

    return text &&
           yyjson_mut_obj_add_val(b->doc, message, "tool_call_id", id_make(b, m->tool_call_id)) &&
           yyjson_mut_obj_add_str(b->doc, message, "content", text);
}

static bool is_media(const struct llm_part *part)
{
    return (part->kind == LLM_IMAGE || part->kind == LLM_FILE) && !build_is_empty(part);
}

/* The model has to know which result an image is of: several calls may have given some. */
static bool result_media_add(struct builder *b, yyjson_mut_val *content, size_t at)
{
    const struct llm_message *m = &b->request->messages[at];
    bool named = false;

    for (size_t i = 0; i < m->part_count; i++) {
        if (!is_media(&m->parts[i]))
            continue;
        if (!named && !text_part_add(b, content,
                                     arena_printf(b->s->arena, "From the result of %s (%s):",
                                                  body_tool_name(b->request, at),
                                                  m->tool_call_id ? m->tool_call_id : "")))
            return false;
        named = true;
        if (!part_add(b, content, &m->parts[i]))
            return false;
    }
    return true;
}

/* All results that follow each other, then their images; sets `at` to what comes after. */
static bool results_add(struct builder *b, size_t *at)
{
    const struct llm_request *r = b->request;
    yyjson_mut_val *content = yyjson_mut_arr(b->doc);
    size_t from = *at;

    for (; *at < r->message_count && r->messages[*at].role == LLM_TOOL; (*at)++) {
        if (!result_add(b, &r->messages[*at]))
            return false;
    }
    for (; from < *at; from++) {
        if (!result_media_add(b, content, from))
            return false;
    }
    return !yyjson_mut_arr_size(content) ||
           yyjson_mut_obj_add_val(b->doc, message_begin(b, "user"), "content", content);
}

static bool messages_add(struct builder *b)
{
    const struct llm_request *r = b->request;
    bool ok = b->messages;

    for (size_t at = 0; ok && at < r->message_count;) {
        const struct llm_message *m = &r->messages[at];

        if (m->role == LLM_TOOL) {
            ok = results_add(b, &at);
            continue;
        }
        if (m->role == LLM_ASSISTANT)
            ok = assistant_add(b, at);
        else
            ok = m->role == LLM_SYSTEM ? text_message_add(b, m, "system") : user_add(b, m);
        at++;
    }
    return ok;
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
        yyjson_mut_val *tool = yyjson_mut_arr_add_obj(b->doc, tools), *function;

        if (!yyjson_mut_obj_add_str(b->doc, tool, "type", "function"))
            return false;
        function = yyjson_mut_obj_add_obj(b->doc, tool, "function");
        if (!yyjson_mut_obj_add_str(b->doc, function, "name", t->name) ||
            !yyjson_mut_obj_add_str(b->doc, function, "description",
                                    t->description ? t->description : "") ||
            !yyjson_mut_obj_add_val(b->doc, function, "parameters", build_schema(b->doc, t)))
            return false;
    }
    return true;
}

static bool root_build(struct builder *b)
{
    const struct llm_request *r = b->request;
    yyjson_mut_val *root = yyjson_mut_obj(b->doc), *options;

    yyjson_mut_doc_set_root(b->doc, root);
    if (!yyjson_mut_obj_add_str(b->doc, root, "model", r->model.name))
        return false;
    b->messages = yyjson_mut_obj_add_arr(b->doc, root, "messages");
    if (!messages_add(b) || !tools_add(b, root) ||
        !yyjson_mut_obj_add_bool(b->doc, root, "stream", true))
        return false;
    options = yyjson_mut_obj_add_obj(b->doc, root, "stream_options");
    if (!yyjson_mut_obj_add_bool(b->doc, options, "include_usage", true))
        return false;
    return r->max_tokens <= 0 ||
           yyjson_mut_obj_add_sint(b->doc, root,
                                   b->own_service ? "max_completion_tokens" : "max_tokens",
                                   r->max_tokens);
}

static int openai_build(const struct llm_request *request, struct llm_stream *s,
                        struct error *reterr)
{
    static const struct option_place none[] = {{NULL, NULL}};
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    const char *base = request->model.base_url, *key = request->model.api_key;
    struct builder b = {.s = s, .request = request, .doc = doc};
    int r;

    b.own_service = !base || !*base || str_starts(base, "https://api.openai.com");
    for (size_t i = 0; i < request->message_count; i++) {
        if (request->messages[i].role == LLM_USER)
            b.last_user = i;
    }
    if (!doc || !root_build(&b))
        return error_no_memory(reterr);
    r = str_copy(s->path, sizeof(s->path), "/chat/completions");
    if (r == 0 && key && *key)
        r = stream_header(s, reterr, "Authorization: Bearer %s", key);
    return r < 0 ? r : body_finish(s, doc, "", none, reterr);
}

/* ---- the answer ---- */

static struct openai *own_get(struct llm_stream *s)
{
    if (!s->own)
        s->own = arena_alloc(s->arena, sizeof(struct openai));
    return s->own;
}

static void usage_take(struct llm_stream *s, yyjson_val *usage)
{
    yyjson_val *input = yyjson_obj_get(usage, "prompt_tokens_details");
    yyjson_val *output = yyjson_obj_get(usage, "completion_tokens_details");
    struct llm_usage u = {
        .input = json_count(usage, "prompt_tokens"),
        .output = json_count(usage, "completion_tokens"),
        .cache_read = json_count(input, "cached_tokens"),
        .cache_creation = -1,
        .reasoning = json_count(output, "reasoning_tokens"),
    };

    if (u.cache_read < 0) /* DeepSeek's name */
        u.cache_read = json_count(usage, "prompt_cache_hit_tokens");
    stream_usage(s, &u);
}

/* Errors in a stream come without a status of their own. */
static unsigned error_status(yyjson_val *error)
{
    static const struct {
        const char *word;
        unsigned status;
    } words[] = {{"rate_limit", 429},  {"quota", 429},          {"overloaded", 503},
                 {"unavailable", 503}, {"server_error", 500},   {"internal", 500},
                 {"timeout", 504},     {"authentication", 401}, {"invalid", 400}};
    static const char *const members[] = {"code", "status", "type"};

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        yyjson_val *v = yyjson_obj_get(error, members[i]);

        if (yyjson_is_uint(v) && yyjson_get_uint(v) >= 400 && yyjson_get_uint(v) < 600)
            return (unsigned)yyjson_get_uint(v);
        for (size_t k = 0; yyjson_is_str(v) && k < ARRAY_LEN(words); k++) {
            if (strcasestr(yyjson_get_str(v), words[k].word))
                return words[k].status;
        }
    }
    return 0;
}

static int error_take(struct llm_stream *s, yyjson_val *error, struct error *reterr)
{
    const char *text = yyjson_is_str(error) ? yyjson_get_str(error)
                                            : json_get_str(error, "message", "no reason given");

    return stream_fail(s, error_status(error), text, reterr);
}

/* Reasoning is over when anything else comes. */
static int reasoning_end(struct llm_stream *s, struct openai *own, struct error *reterr)
{
    const char *field = TAKE_PTR(own->field);

    return field ? stream_part_end(s, field, reterr) : 0;
}

static int text_take(struct llm_stream *s, struct openai *own, yyjson_val *text,
                     struct error *reterr)
{
    int r;

    if (yyjson_get_len(text) == 0)
        return 0;
    r = reasoning_end(s, own, reterr);
    return r < 0 ? r : stream_text(s, yyjson_get_str(text), yyjson_get_len(text), reterr);
}

/* Some servers send blocks as they take them: [{"type": "text", "text"}]. */
static int content_take(struct llm_stream *s, struct openai *own, yyjson_val *content,
                        struct error *reterr)
{
    size_t i, max;
    yyjson_val *block;
    int r = 0;

    if (yyjson_is_str(content))
        return text_take(s, own, content, reterr);
    yyjson_arr_foreach(content, i, max, block)
    {
        yyjson_val *text = yyjson_obj_get(block, "text");

        if (r == 0 && yyjson_is_str(text))
            r = text_take(s, own, text, reterr);
    }
    return r;
}

static const struct reasoning_entry {
    const char *name, *raw;
} reasoning_table[] = {{"reasoning_content", "\"reasoning_content\""},
                       {"reasoning", "\"reasoning\""}};

const char *reasoning_field(const char *raw)
{
    for (size_t i = 0; raw && i < ARRAY_LEN(reasoning_table); i++) {
        if (str_eq(raw, reasoning_table[i].raw))
            return reasoning_table[i].name;
    }
    return NULL;
}

static int reasoning_take(struct llm_stream *s, struct openai *own, yyjson_val *delta,
                          struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(reasoning_table); i++) {
        yyjson_val *v = yyjson_obj_get(delta, reasoning_table[i].name);

        if (!yyjson_is_str(v) || yyjson_get_len(v) == 0)
            continue;
        own->field = reasoning_table[i].raw;
        return stream_reasoning(s, yyjson_get_str(v), yyjson_get_len(v), reterr);
    }
    return 0;
}

static int delta_take(struct llm_stream *s, struct openai *own, yyjson_val *delta,
                      struct error *reterr)
{
    yyjson_val *calls = yyjson_obj_get(delta, "tool_calls"), *call;
    yyjson_val *legacy = yyjson_obj_get(delta, "function_call");
    size_t i, max;
    int r = reasoning_take(s, own, delta, reterr);

    if (r == 0)
        r = content_take(s, own, yyjson_obj_get(delta, "content"), reterr);
    if (r == 0)
        r = content_take(s, own, yyjson_obj_get(delta, "refusal"), reterr);
    if (r == 0 && (yyjson_arr_size(calls) || yyjson_is_obj(legacy)))
        r = reasoning_end(s, own, reterr);
    yyjson_arr_foreach(calls, i, max, call)
    {
        if (r == 0)
            r = openai_call(s, own, call, yyjson_obj_get(call, "function"), reterr);
    }
    if (r == 0 && yyjson_is_obj(legacy))
        r = openai_call(s, own, NULL, legacy, reterr);
    return r;
}

static void finish_take(struct llm_stream *s, struct openai *own, const char *reason)
{
    static const struct {
        const char *from, *to;
    } words[] = {{"function_call", "tool_calls"},
                 {"tool_use", "tool_calls"},
                 {"end_turn", "stop"},
                 {"eos", "stop"},
                 {"STOP", "stop"},
                 {"max_tokens", "length"},
                 {"model_length", "length"},
                 {"MAX_TOKENS", "length"}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(reason, words[i].from))
            reason = words[i].to;
    }
    own->has_finish = true;
    stream_finish(s, reason);
}

static int choice_take(struct llm_stream *s, struct openai *own, yyjson_val *choice,
                       struct error *reterr)
{
    const char *reason = json_get_str(choice, "finish_reason", "");
    yyjson_val *delta = yyjson_obj_get(choice, "delta");
    int r;

    /* With `n` among the options there are more answers than anybody reads. */
    if (json_count(choice, "index") > 0)
        return 0;
    if (!yyjson_is_obj(delta))
        delta = yyjson_obj_get(choice, "message");
    if (str_eq(reason, "error"))
        return error_take(s, yyjson_obj_get(choice, "error"), reterr);
    r = delta_take(s, own, delta, reterr);
    if (r == 0 && *reason)
        finish_take(s, own, reason);
    return r;
}

static int chunk_take(struct llm_stream *s, const char *event, yyjson_val *root,
                      struct error *reterr)
{
    struct openai *own = own_get(s);
    yyjson_val *error = yyjson_obj_get(root, "error"), *choice, *choices;
    const char *model = json_get_str(root, "model", NULL);
    size_t i, max;
    int r = 0;

    if (!own)
        return error_no_memory(reterr);
    if (yyjson_is_obj(error) || yyjson_is_str(error))
        return error_take(s, error, reterr);
    if (str_eq(event, "error") || str_eq(json_get_str(root, "object", ""), "error"))
        return error_take(s, root, reterr);
    if (model && !*s->model_name)
        stream_model(s, model);
    usage_take(s, yyjson_obj_get(root, "usage"));
    choices = yyjson_obj_get(root, "choices");
    yyjson_arr_foreach(choices, i, max, choice)
    {
        if (r == 0)
            r = choice_take(s, own, choice, reterr);
    }
    return r;
}

/* A server that takes no notice of "stream" answers with one document. */
static int whole_take(struct llm_stream *s, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    int r = stream_json(s, buf_str(&s->scratch), s->scratch.len, &doc, reterr);

    return r < 0 ? r : chunk_take(s, "", yyjson_doc_get_root(doc), reterr);
}

static int answer_end(struct llm_stream *s, struct openai *own, struct error *reterr)
{
    int r = own->whole ? whole_take(s, reterr) : 0;

    if (r == 0)
        r = reasoning_end(s, own, reterr);
    s->finished = s->finished || own->has_finish;
    return r;
}

static int openai_feed(struct llm_stream *s, const char *data, size_t len, struct error *reterr)
{
    struct openai *own = own_get(s);

    if (!own)
        return error_no_memory(reterr);
    if (!data)
        return answer_end(s, own, reterr);
    for (size_t i = 0; i < len && !own->begun; i++) {
        own->begun = !strchr(" \t\r\n", data[i]);
        own->whole = data[i] == '{';
    }
    if (!own->whole)
        return stream_events(s, data, len, chunk_take, reterr);
    if (buf_append(&s->scratch, data, len) < 0)
        return error_set(reterr, ERR_LIMIT, "the model's answer is above the limit of %llu",
                         LLM_EVENT_BYTES);
    return 0;
}

const struct provider_entry provider_openai = {
    .name = "openai",
    .title = "OpenAI",
    .base_url = "https://api.openai.com/v1",
    .needs_key = true,
    .images_in_results = false,
    .build = openai_build,
    .feed = openai_feed,
};
