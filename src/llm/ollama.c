/* SPDX-License-Identifier: MIT */
/*
 * Ollama's own chat interface: lines of JSON, calls of tools in one piece. Pictures of results are
 * shown in a user's message behind them: whether a tool's message may hold some depends on each
 * model's template.
 */
#include "base/str.h"
#include "llm/body.h"

struct ollama {
    unsigned calls; /* so many came */
};

struct builder {
    struct llm_stream *s;
    const struct llm_request *request;
    yyjson_mut_doc *doc;
    yyjson_mut_val *messages;
};

/* ---- the request ---- */

static yyjson_mut_val *message_add(struct builder *b, const char *role, const char *content)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->doc, b->messages);

    yyjson_mut_obj_add_str(b->doc, o, "role", role);
    yyjson_mut_obj_add_str(b->doc, o, "content", content ? content : "");
    return o;
}

/* What a message has beside its text: pictures in a list, and words for what cannot be sent. */
static void media_add(struct builder *b, yyjson_mut_val *message, const struct llm_message *m)
{
    yyjson_mut_val *images = yyjson_mut_obj_get(message, "images");

    for (size_t i = 0; i < m->part_count; i++) {
        const struct llm_part *part = &m->parts[i];

        if (part->kind != LLM_IMAGE || !part->data)
            continue;
        if (!images)
            images = yyjson_mut_obj_add_arr(b->doc, message, "images");
        yyjson_mut_arr_add_str(b->doc, images, part->data);
    }
}

static bool has_images(const struct llm_message *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        if (m->parts[i].kind == LLM_IMAGE && m->parts[i].data)
            return true;
    }
    return false;
}

/* The text, and what stands for parts that cannot be sent. */
static const char *content_make(struct builder *b, const struct llm_message *m)
{
    const char *text = body_text(b->s, m);

    for (size_t i = 0; text && i < m->part_count; i++) {
        const struct llm_part *part = &m->parts[i];
        const char *note;

        if (part->kind != LLM_FILE && (part->kind != LLM_IMAGE || part->data))
            continue;
        if (!(note = body_omitted(b->s, part)))
            return body_check(b->doc, NULL);
        text = arena_printf(b->s->arena, "%s%s%s", text, *text ? "\n" : "", note);
    }
    return body_check(b->doc, text);
}

static void thinking_add(struct builder *b, yyjson_mut_val *message, const struct llm_message *m)
{
    if (!body_is_own(m, &provider_ollama))
        return;
    for (size_t i = 0; i < m->part_count; i++) {
        if (m->parts[i].kind != LLM_REASONING || !m->parts[i].text)
            continue;
        yyjson_mut_obj_add_str(b->doc, message, "thinking", m->parts[i].text);
        return;
    }
}

static void assistant_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *message = message_add(b, "assistant", content_make(b, m));
    yyjson_mut_val *calls =
        m->call_count ? yyjson_mut_obj_add_arr(b->doc, message, "tool_calls") : NULL;

    thinking_add(b, message, m);
    for (size_t i = 0; i < m->call_count; i++) {
        const struct llm_tool_call *call = &m->calls[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->doc, calls), *function;

        yyjson_mut_obj_add_str(b->doc, o, "id", call->id);
        function = yyjson_mut_obj_add_obj(b->doc, o, "function");
        yyjson_mut_obj_add_uint(b->doc, function, "index", i);
        yyjson_mut_obj_add_str(b->doc, function, "name", call->name);
        yyjson_mut_obj_add_val(b->doc, function, "arguments", build_arguments(b->doc, call));
    }
}

/* The results of one turn, and behind them what they show. */
static size_t results_add(struct builder *b, size_t at)
{
    const struct llm_request *request = b->request;
    yyjson_mut_val *shown = NULL;
    size_t first = at, end;

    for (; at < request->message_count && request->messages[at].role == LLM_TOOL; at++) {
        const struct llm_message *m = &request->messages[at];
        yyjson_mut_val *o = message_add(b, "tool", content_make(b, m));

        yyjson_mut_obj_add_str(b->doc, o, "tool_name", body_tool_name(request, at));
        if (m->tool_call_id)
            yyjson_mut_obj_add_str(b->doc, o, "tool_call_id", m->tool_call_id);
    }
    for (end = at, at = first; at < end; at++) {
        if (!has_images(&request->messages[at]))
            continue;
        if (!shown)
            shown = message_add(b, "user", "[what the results of the tools show]");
        media_add(b, shown, &request->messages[at]);
    }
    return end;
}

static void messages_add(struct builder *b, yyjson_mut_val *root)
{
    size_t i = 0;

    b->messages = yyjson_mut_obj_add_arr(b->doc, root, "messages");
    while (i < b->request->message_count) {
        const struct llm_message *m = &b->request->messages[i];

        if (m->role == LLM_TOOL) {
            i = results_add(b, i);
            continue;
        }
        if (m->role == LLM_ASSISTANT)
            assistant_add(b, m);
        else
            media_add(b,
                      message_add(b, m->role == LLM_SYSTEM ? "system" : "user", content_make(b, m)),
                      m);
        i++;
    }
}

static void tools_add(struct builder *b, yyjson_mut_val *root)
{
    yyjson_mut_val *list =
        b->request->tool_count ? yyjson_mut_obj_add_arr(b->doc, root, "tools") : NULL;

    for (size_t i = 0; i < b->request->tool_count; i++) {
        const struct llm_tool *tool = &b->request->tools[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->doc, list), *function;

        yyjson_mut_obj_add_str(b->doc, o, "type", "function");
        function = yyjson_mut_obj_add_obj(b->doc, o, "function");
        yyjson_mut_obj_add_str(b->doc, function, "name", tool->name);
        yyjson_mut_obj_add_str(b->doc, function, "description", tool->description);
        yyjson_mut_obj_add_val(b->doc, function, "parameters", build_schema(b->doc, tool));
    }
}

static const struct option_place ollama_options[] = {
    {"temperature", "temperature"},
    {"top_p", "top_p"},
    {"top_k", "top_k"},
    {"min_p", "min_p"},
    {"max_tokens", "num_predict"},
    {"max_completion_tokens", "num_predict"},
    {"num_predict", "num_predict"},
    {"num_ctx", "num_ctx"},
    {"stop", "stop"},
    {"seed", "seed"},
    {"repeat_penalty", "repeat_penalty"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {NULL, NULL},
};

static int ollama_build(const struct llm_request *request, struct llm_stream *s,
                        struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = body_begin(s);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    struct builder b = {.s = s, .request = request, .doc = doc};
    const char *key = request->model.api_key;
    int r;

    if (!root || str_copy(s->path, sizeof(s->path), "/api/chat") < 0)
        return error_no_memory(reterr);
    if (key && *key && (r = stream_header(s, reterr, "Authorization: Bearer %s", key)) < 0)
        return r;
    yyjson_mut_obj_add_str(doc, root, "model", request->model.name);
    messages_add(&b, root);
    tools_add(&b, root);
    yyjson_mut_obj_add_bool(doc, root, "stream", true);
    if (request->max_tokens)
        yyjson_mut_obj_add_sint(doc, yyjson_mut_obj_add_obj(doc, root, "options"), "num_predict",
                                request->max_tokens);
    return body_finish(s, doc, "options", ollama_options, reterr);
}

/* ---- the answer ---- */

/* An object as Ollama has it; text as those write it that only speak like Ollama. */
static int arguments_take(struct llm_stream *s, unsigned index, yyjson_val *arguments,
                          struct error *reterr)
{
    auto_buf struct buf text = {.max = LLM_ARGUMENTS_BYTES};
    int r;

    if (yyjson_is_str(arguments))
        return stream_arguments(s, index, yyjson_get_str(arguments), yyjson_get_len(arguments),
                                reterr);
    if (!arguments || yyjson_is_null(arguments))
        return stream_arguments(s, index, "{}", 2, reterr);
    if ((r = json_write(arguments, &text, reterr)) < 0)
        return r;
    return stream_arguments(s, index, text.data, text.len, reterr);
}

static int call_take(struct llm_stream *s, yyjson_val *call, struct error *reterr)
{
    yyjson_val *function = yyjson_obj_get(call, "function");
    struct ollama *own;
    unsigned index;
    int r;

    if (!yyjson_is_obj(function))
        return 0;
    if (!s->own && !(s->own = arena_alloc(s->arena, sizeof(*own))))
        return error_no_memory(reterr);
    own = s->own;
    index = own->calls++;
    r = stream_call(s, index, json_get_str(call, "id", NULL), json_get_str(function, "name", ""),
                    reterr);
    return r < 0 ? r : arguments_take(s, index, yyjson_obj_get(function, "arguments"), reterr);
}

static int message_take(struct llm_stream *s, yyjson_val *message, struct error *reterr)
{
    yyjson_val *thinking = yyjson_obj_get(message, "thinking");
    yyjson_val *content = yyjson_obj_get(message, "content");
    yyjson_val *call;
    size_t i, max;
    int r;

    if (yyjson_get_len(thinking) && yyjson_is_str(thinking) &&
        (r = stream_reasoning(s, yyjson_get_str(thinking), yyjson_get_len(thinking), reterr)) < 0)
        return r;
    if (yyjson_get_len(content) && yyjson_is_str(content) &&
        (r = stream_text(s, yyjson_get_str(content), yyjson_get_len(content), reterr)) < 0)
        return r;
    yyjson_arr_foreach(yyjson_obj_get(message, "tool_calls"), i, max, call)
    {
        if ((r = call_take(s, call, reterr)) < 0)
            return r;
    }
    return 0;
}

static int64_t count_get(yyjson_val *root, const char *key)
{
    yyjson_val *v = yyjson_obj_get(root, key);

    return yyjson_is_int(v) && yyjson_get_sint(v) >= 0 ? yyjson_get_sint(v) : -1;
}

static void done_take(struct llm_stream *s, yyjson_val *root)
{
    const char *reason = json_get_str(root, "done_reason", "stop");

    stream_usage(s, &(struct llm_usage){.input = count_get(root, "prompt_eval_count"),
                                        .output = count_get(root, "eval_count"),
                                        .cache_read = -1,
                                        .cache_creation = -1,
                                        .reasoning = -1});
    stream_finish(s, *reason ? reason : "stop");
    s->finished = true;
}

/* An error is text, or an object with a message as proxies have it. */
static int error_take(struct llm_stream *s, yyjson_val *error, struct error *reterr)
{
    const char *text = yyjson_get_str(error);

    if (!text)
        text = json_get_str(error, "message", "an error without a message");
    return stream_fail(s, 500, text, reterr);
}

static int line_take(struct llm_stream *s, yyjson_val *root, struct error *reterr)
{
    yyjson_val *error = yyjson_obj_get(root, "error");
    const char *model = json_get_str(root, "model", NULL);
    int r;

    if (error && !yyjson_is_null(error))
        return error_take(s, error, reterr);
    if (model)
        stream_model(s, model);
    r = message_take(s, yyjson_obj_get(root, "message"), reterr);
    if (r == 0 && json_get_bool(root, "done", false))
        done_take(s, root);
    return r;
}

static int ollama_feed(struct llm_stream *s, const char *data, size_t len, struct error *reterr)
{
    return stream_lines(s, data, len, line_take, reterr);
}

const struct provider_entry provider_ollama = {
    .name = "ollama",
    .title = "Ollama",
    .base_url = "http://127.0.0.1:11434",
    .build = ollama_build,
    .feed = ollama_feed,
};
