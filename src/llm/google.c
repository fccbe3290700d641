/* SPDX-License-Identifier: MIT */
/*
 * Google's Gemini by generateContent. Its newer models sign what they thought, and refuse a
 * conversation in which a signature of the current turn is missing; calls that another model made
 * get the value that Google documents for such histories.
 */
#include "base/str.h"
#include "llm/body.h"

#include <stdio.h>

/* In place of a signature that there never was. */
#define SIGNATURE_NONE "skip_thought_signature_validator"

struct google {
    unsigned calls; /* so many came */
    bool ended;     /* a reason to finish was given; some send one with every chunk */
};

/* ---- the model's name ---- */

static const char *name_bare(const char *name)
{
    return str_starts(name, "models/") ? name + strlen("models/") : name;
}

/* 3 for gemini-3.1-pro and for what is only called the latest; 0 when the name does not tell. */
static unsigned name_generation(const char *name)
{
    unsigned n = 0;

    name = name_bare(name);
    if (!str_starts(name, "gemini-"))
        return 0;
    name += strlen("gemini-");
    while (*name >= '0' && *name <= '9' && n < 1000)
        n = n * 10 + (unsigned)(*name++ - '0');
    return n == 0 && str_ends(name, "-latest") ? 3 : n;
}

/* A base URL may name the version already, as Google's own clients have it. */
static bool base_has_version(const char *base)
{
    static const char *const versions[] = {"/v1", "/v1beta", "/v1alpha"};

    for (size_t i = 0; base && i < ARRAY_LEN(versions); i++) {
        if (str_ends(base, versions[i]))
            return true;
    }
    return false;
}

static int path_build(struct llm_stream *s, struct error *reterr)
{
    const char *name = s->request->model.name, *folder = "models/", *tuned = "tunedModels/";
    int n;

    name = name_bare(name ? name : "");
    if (str_starts(name, tuned)) {
        folder = tuned;
        name += strlen(tuned);
    }
    if (*name == '.' ||
        !str_check_chars(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
                         128))
        return error_set(reterr, ERR_INVALID, "this is no name of a model of google_genai");
    n = snprintf(s->path, sizeof(s->path), "%s/%s%s:streamGenerateContent?alt=sse",
                 base_has_version(s->request->model.base_url) ? "" : "/v1beta", folder, name);
    return n < (int)sizeof(s->path) ? 0 : error_set(reterr, ERR_INTERNAL, "a path is too long");
}

/* ---- parts ---- */

struct builder {
    struct llm_stream *s;
    const struct llm_request *request;
    yyjson_mut_doc *doc;
    yyjson_mut_val *contents;
    unsigned generation;
};

/* Gemini answers other kinds with an error, and the conversation could not go on. */
static bool mime_is_taken(const char *mime)
{
    static const char *const taken[] = {"image/png",  "image/jpeg", "image/webp",
                                        "image/heic", "image/heif", "application/pdf",
                                        "text/",      "audio/",     "video/"};

    for (size_t i = 0; mime && i < ARRAY_LEN(taken); i++) {
        if (str_eq(mime, taken[i]) || (str_ends(taken[i], "/") && str_starts(mime, taken[i])))
            return true;
    }
    return false;
}

/* What a function's response may hold beside its JSON. */
static bool mime_is_taken_in_result(const char *mime)
{
    return mime && (str_eq(mime, "image/png") || str_eq(mime, "image/jpeg") ||
                    str_eq(mime, "image/webp") || str_eq(mime, "application/pdf"));
}

static void text_add(struct builder *b, yyjson_mut_val *parts, const char *text)
{
    if (text && *text)
        yyjson_mut_obj_add_str(b->doc, yyjson_mut_arr_add_obj(b->doc, parts), "text", text);
}

static void inline_add(struct builder *b, yyjson_mut_val *parts, const struct llm_part *part)
{
    yyjson_mut_val *data =
        yyjson_mut_obj_add_obj(b->doc, yyjson_mut_arr_add_obj(b->doc, parts), "inlineData");

    yyjson_mut_obj_add_str(b->doc, data, "mimeType", part->mime);
    yyjson_mut_obj_add_str(b->doc, data, "data", part->data);
}

static void url_add(struct builder *b, yyjson_mut_val *parts, const struct llm_part *part)
{
    yyjson_mut_val *data =
        yyjson_mut_obj_add_obj(b->doc, yyjson_mut_arr_add_obj(b->doc, parts), "fileData");

    if (part->mime)
        yyjson_mut_obj_add_str(b->doc, data, "mimeType", part->mime);
    yyjson_mut_obj_add_str(b->doc, data, "fileUri", part->url);
}

static void media_add(struct builder *b, yyjson_mut_val *parts, const struct llm_part *part)
{
    if (part->data && mime_is_taken(part->mime))
        inline_add(b, parts, part);
    else if (!part->data && part->url)
        url_add(b, parts, part);
    else
        text_add(b, parts, body_check(b->doc, body_omitted(b->s, part)));
}

/* ---- messages ---- */

/* {"role", "parts": []}, which is added by content_end(). */
static yyjson_mut_val *content_begin(struct builder *b, const char *role, yyjson_mut_val **parts)
{
    yyjson_mut_val *content = yyjson_mut_obj(b->doc);

    yyjson_mut_obj_add_str(b->doc, content, "role", role);
    *parts = yyjson_mut_obj_add_arr(b->doc, content, "parts");
    return content;
}

/* One without parts is refused. */
static void content_end(struct builder *b, yyjson_mut_val *content, yyjson_mut_val *parts)
{
    if (yyjson_mut_arr_size(parts))
        yyjson_mut_arr_append(b->contents, content);
}

static void user_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *parts, *content = content_begin(b, "user", &parts);

    for (size_t i = 0; i < m->part_count; i++) {
        const struct llm_part *part = &m->parts[i];

        if (part->kind == LLM_TEXT)
            text_add(b, parts, part->text);
        else if (part->kind != LLM_REASONING)
            media_add(b, parts, part);
    }
    content_end(b, content, parts);
}

/* A member of what Gemini sent with a part; NULL: none, or it was another provider's. */
static const char *raw_get(struct builder *b, const struct llm_message *m, const char *raw,
                           const char *key)
{
    auto_json yyjson_doc *doc = NULL;
    const char *value;

    if (!raw || !body_is_own(m, &provider_google) || json_parse(raw, strlen(raw), &doc, NULL) < 0)
        return NULL;
    value = json_get_str(yyjson_doc_get_root(doc), key, NULL);
    return value ? body_check(b->doc, arena_strdup(b->s->arena, value)) : NULL;
}

/* Thoughts go back only when they are signed: without it they would be read as something said. */
static void thought_add(struct builder *b, yyjson_mut_val *parts, const struct llm_message *m,
                        const struct llm_part *part)
{
    const char *signature = raw_get(b, m, part->raw, "thoughtSignature");
    yyjson_mut_val *o;

    if (!signature)
        return;
    o = yyjson_mut_arr_add_obj(b->doc, parts);
    yyjson_mut_obj_add_str(b->doc, o, "text", part->text ? part->text : "");
    yyjson_mut_obj_add_bool(b->doc, o, "thought", true);
    yyjson_mut_obj_add_str(b->doc, o, "thoughtSignature", signature);
}

static void call_add(struct builder *b, yyjson_mut_val *parts, const struct llm_message *m,
                     const struct llm_tool_call *call)
{
    yyjson_mut_val *part = yyjson_mut_arr_add_obj(b->doc, parts);
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(b->doc, part, "functionCall");
    const char *id = raw_get(b, m, call->raw, "id");
    const char *signature = raw_get(b, m, call->raw, "thoughtSignature");

    if (id)
        yyjson_mut_obj_add_str(b->doc, o, "id", id);
    yyjson_mut_obj_add_val(b->doc, o, "name", build_name(b->doc, call->name));
    yyjson_mut_obj_add_val(b->doc, o, "args", build_arguments(b->doc, call));
    if (!signature && b->generation >= 3 && call == m->calls)
        signature = SIGNATURE_NONE;
    if (signature)
        yyjson_mut_obj_add_str(b->doc, part, "thoughtSignature", signature);
}

static void model_add(struct builder *b, const struct llm_message *m)
{
    yyjson_mut_val *parts, *content = content_begin(b, "model", &parts);

    for (size_t i = 0; i < m->part_count; i++) {
        const struct llm_part *part = &m->parts[i];

        if (part->kind == LLM_TEXT)
            text_add(b, parts, part->text);
        else if (part->kind == LLM_REASONING)
            thought_add(b, parts, m, part);
    }
    for (size_t i = 0; i < m->call_count; i++)
        call_add(b, parts, m, &m->calls[i]);
    content_end(b, content, parts);
}

/* ---- results of tools ---- */

/* The result as an object: what the tool wrote, or the text under the name that Gemini knows. */
static yyjson_mut_val *response_make(struct builder *b, const struct llm_message *m)
{
    auto_json yyjson_doc *doc = NULL;
    const char *text = body_check(b->doc, body_text(b->s, m));
    yyjson_mut_val *o;

    if (!text)
        return NULL;
    if (*text == '{' && json_parse(text, strlen(text), &doc, NULL) == 0)
        return yyjson_mut_raw(b->doc, text);
    o = yyjson_mut_obj(b->doc);
    yyjson_mut_obj_add_str(b->doc, o, m->is_error ? "error" : "output", text);
    return o;
}

static bool part_goes_inside(const struct builder *b, const struct llm_part *part)
{
    return b->generation >= 3 && part->data && mime_is_taken_in_result(part->mime);
}

static void response_add(struct builder *b, yyjson_mut_val *parts, size_t at)
{
    const struct llm_message *m = &b->request->messages[at], *turn = NULL;
    const struct llm_tool_call *call = body_call_find(b->request, at, &turn);
    const char *id = call ? raw_get(b, turn, call->raw, "id") : NULL;
    yyjson_mut_val *o =
        yyjson_mut_obj_add_obj(b->doc, yyjson_mut_arr_add_obj(b->doc, parts), "functionResponse");
    yyjson_mut_val *inside = NULL;

    if (id)
        yyjson_mut_obj_add_str(b->doc, o, "id", id);
    yyjson_mut_obj_add_val(b->doc, o, "name", build_name(b->doc, body_tool_name(b->request, at)));
    yyjson_mut_obj_add_val(b->doc, o, "response", response_make(b, m));
    for (size_t i = 0; i < m->part_count; i++) {
        if (!part_goes_inside(b, &m->parts[i]))
            continue;
        if (!inside)
            inside = yyjson_mut_obj_add_arr(b->doc, o, "parts");
        inline_add(b, inside, &m->parts[i]);
    }
}

/* What of a result has no place in it. */
static void response_media_add(struct builder *b, yyjson_mut_val *parts, size_t at)
{
    const struct llm_message *m = &b->request->messages[at];
    bool told = false;

    for (size_t i = 0; i < m->part_count; i++) {
        const struct llm_part *part = &m->parts[i];

        if ((part->kind != LLM_IMAGE && part->kind != LLM_FILE) || part_goes_inside(b, part))
            continue;
        if (!told)
            text_add(b, parts,
                     body_check(b->doc, arena_printf(b->s->arena, "[what the result of %s shows]",
                                                     body_tool_name(b->request, at))));
        told = true;
        media_add(b, parts, part);
    }
}

/* All results of one turn are one content, with as many parts as there were calls. */
static size_t results_add(struct builder *b, size_t at)
{
    yyjson_mut_val *parts, *media;
    yyjson_mut_val *results = content_begin(b, "user", &parts);
    yyjson_mut_val *shown = content_begin(b, "user", &media);

    for (; at < b->request->message_count && b->request->messages[at].role == LLM_TOOL; at++) {
        response_add(b, parts, at);
        response_media_add(b, media, at);
    }
    content_end(b, results, parts);
    content_end(b, shown, media);
    return at;
}

/* ---- the request ---- */

static void system_add(struct builder *b, yyjson_mut_val *root, const struct llm_message *m)
{
    const char *text = body_check(b->doc, body_text(b->s, m));
    yyjson_mut_val *o;

    if (!text || !*text)
        return;
    o = yyjson_mut_obj_add_obj(b->doc, root, "systemInstruction");
    text_add(b, yyjson_mut_obj_add_arr(b->doc, o, "parts"), text);
}

static void messages_add(struct builder *b, yyjson_mut_val *root)
{
    size_t i = 0;

    b->contents = yyjson_mut_arr(b->doc);
    while (i < b->request->message_count) {
        const struct llm_message *m = &b->request->messages[i];

        if (m->role == LLM_TOOL) {
            i = results_add(b, i);
            continue;
        }
        if (m->role == LLM_SYSTEM)
            system_add(b, root, m);
        else if (m->role == LLM_USER)
            user_add(b, m);
        else
            model_add(b, m);
        i++;
    }
    yyjson_mut_obj_add_val(b->doc, root, "contents", b->contents);
}

/* By `parametersJsonSchema`: `parameters` knows only a part of JSON Schema, and refuses the rest.
 */
static void tools_add(struct builder *b, yyjson_mut_val *root)
{
    yyjson_mut_val *list;

    if (b->request->tool_count == 0)
        return;
    list = yyjson_mut_obj_add_arr(b->doc, root, "tools");
    list = yyjson_mut_obj_add_arr(b->doc, yyjson_mut_arr_add_obj(b->doc, list),
                                  "functionDeclarations");
    for (size_t i = 0; i < b->request->tool_count; i++) {
        const struct llm_tool *tool = &b->request->tools[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->doc, list);

        yyjson_mut_obj_add_str(b->doc, o, "name", tool->name);
        yyjson_mut_obj_add_str(b->doc, o, "description", tool->description);
        yyjson_mut_obj_add_val(b->doc, o, "parametersJsonSchema", build_schema(b->doc, tool));
    }
}

static const struct option_place google_options[] = {
    {"temperature", "temperature"},
    {"top_p", "topP"},
    {"top_k", "topK"},
    {"max_tokens", "maxOutputTokens"},
    {"max_output_tokens", "maxOutputTokens"},
    {"max_completion_tokens", "maxOutputTokens"},
    {"stop", "stopSequences"},
    {"stop_sequences", "stopSequences"},
    {"seed", "seed"},
    {"presence_penalty", "presencePenalty"},
    {"frequency_penalty", "frequencyPenalty"},
    {"thinkingConfig", "thinkingConfig"},
    {NULL, NULL},
};

static int google_build(const struct llm_request *request, struct llm_stream *s,
                        struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = body_begin(s);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc), *config;
    struct builder b = {.s = s, .request = request, .doc = doc};
    const char *key = request->model.api_key;
    int r = path_build(s, reterr);

    if (r < 0 || (key && *key && (r = stream_header(s, reterr, "x-goog-api-key: %s", key)) < 0))
        return r;
    if (!root)
        return error_no_memory(reterr);
    b.generation = name_generation(request->model.name);
    messages_add(&b, root);
    tools_add(&b, root);
    if (request->max_tokens) {
        config = yyjson_mut_obj_add_obj(doc, root, "generationConfig");
        yyjson_mut_obj_add_sint(doc, config, "maxOutputTokens", request->max_tokens);
    }
    return body_finish(s, doc, "generationConfig", google_options, reterr);
}

/* ---- the answer ---- */

static struct google *google_own(struct llm_stream *s)
{
    if (!s->own)
        s->own = arena_alloc(s->arena, sizeof(struct google));
    return s->own;
}

/* What has to go back with a part: its signature and the id that Gemini gave it. NULL: nothing. */
static int raw_make(struct llm_stream *s, yyjson_val *part, const char **ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const char *id = json_get_str(yyjson_obj_get(part, "functionCall"), "id", NULL);
    const char *signature = json_get_str(part, "thoughtSignature", NULL);
    auto_buf struct buf text = {.max = LLM_TEXT_BYTES};
    int r;

    *ret = NULL;
    if (!id && !signature)
        return 0;
    yyjson_mut_doc_set_root(doc, root);
    if (id)
        yyjson_mut_obj_add_str(doc, root, "id", id);
    if (signature)
        yyjson_mut_obj_add_str(doc, root, "thoughtSignature", signature);
    if ((r = json_mut_write(doc, &text, reterr)) < 0)
        return r;
    *ret = arena_memdup(s->arena, text.data, text.len);
    return *ret ? 0 : error_no_memory(reterr);
}

static int call_take(struct llm_stream *s, yyjson_val *part, yyjson_val *call, struct error *reterr)
{
    struct google *own = google_own(s);
    yyjson_val *args = yyjson_obj_get(call, "args");
    auto_buf struct buf text = {.max = LLM_ARGUMENTS_BYTES};
    const char *raw;
    unsigned index;
    int r;

    if (!own)
        return error_no_memory(reterr);
    index = own->calls++;
    if ((r = raw_make(s, part, &raw, reterr)) < 0 ||
        (r = stream_call(s, index, json_get_str(call, "id", NULL), json_get_str(call, "name", ""),
                         reterr)) < 0)
        return r;
    r = args ? json_write(args, &text, reterr) : buf_append_str(&text, "{}");
    if (r < 0 || (r = stream_arguments(s, index, text.data, text.len, reterr)) < 0)
        return r;
    return raw ? stream_call_raw(s, index, raw, reterr) : 0;
}

static int thought_take(struct llm_stream *s, yyjson_val *part, yyjson_val *text,
                        struct error *reterr)
{
    const char *raw;
    int r = raw_make(s, part, &raw, reterr);

    if (r < 0)
        return r;
    r = stream_reasoning(s, yyjson_get_str(text), yyjson_get_len(text), reterr);
    return r < 0 || !raw ? r : stream_part_end(s, raw, reterr);
}

static int part_take(struct llm_stream *s, yyjson_val *part, struct error *reterr)
{
    yyjson_val *call = yyjson_obj_get(part, "functionCall");
    yyjson_val *text = yyjson_obj_get(part, "text");

    if (yyjson_is_obj(call))
        return call_take(s, part, call, reterr);
    if (!yyjson_is_str(text))
        return 0;
    if (json_get_bool(part, "thought", false))
        return thought_take(s, part, text, reterr);
    if (yyjson_get_len(text) == 0)
        return 0;
    return stream_text(s, yyjson_get_str(text), yyjson_get_len(text), reterr);
}

/* ---- the end ---- */

struct finish_entry {
    const char *theirs, *ours;
};

static const struct finish_entry finish_table[] = {
    {"STOP", "stop"},
    {"FUNCTION_CALL", "stop"}, /* of servers that only speak like Gemini */
    {"MAX_TOKENS", "length"},
    {"SAFETY", "content_filter"},
    {"RECITATION", "content_filter"},
    {"BLOCKLIST", "content_filter"},
    {"PROHIBITED_CONTENT", "content_filter"},
    {"SPII", "content_filter"},
    {"IMAGE_SAFETY", "content_filter"},
};

static int finish_take(struct llm_stream *s, yyjson_val *candidate, struct error *reterr)
{
    const char *reason = json_get_str(candidate, "finishReason", NULL);
    struct google *own;

    if (!reason || str_eq(reason, "FINISH_REASON_UNSPECIFIED"))
        return 0;
    /* The model wrote a call that its own service could not read: the next try is another one. */
    if (str_eq(reason, "MALFORMED_FUNCTION_CALL") || str_eq(reason, "UNEXPECTED_TOOL_CALL"))
        return stream_fail(s, 502, json_get_str(candidate, "finishMessage", reason), reterr);
    for (size_t i = 0; i < ARRAY_LEN(finish_table); i++) {
        if (str_eq(finish_table[i].theirs, reason))
            reason = finish_table[i].ours;
    }
    if (!(own = google_own(s)))
        return error_no_memory(reterr);
    own->ended = true;
    stream_finish(s, reason);
    return 0;
}

static int64_t count_get(yyjson_val *usage, const char *key)
{
    yyjson_val *v = yyjson_obj_get(usage, key);

    return yyjson_is_int(v) && yyjson_get_sint(v) >= 0 ? yyjson_get_sint(v) : -1;
}

/* Each chunk has the sums so far. What the model thought is told beside what it said. */
static void usage_take(struct llm_stream *s, yyjson_val *usage)
{
    int64_t said = count_get(usage, "candidatesTokenCount");
    int64_t thought = count_get(usage, "thoughtsTokenCount");
    struct llm_usage u = {.input = count_get(usage, "promptTokenCount"),
                          .output = said,
                          .cache_read = count_get(usage, "cachedContentTokenCount"),
                          .cache_creation = -1,
                          .reasoning = thought};

    if (thought > 0 && thought < INT32_MAX && said < INT32_MAX)
        u.output = MAX(said, 0) + thought;
    stream_usage(s, &u);
}

static int error_take(struct llm_stream *s, yyjson_val *error, struct error *reterr)
{
    int64_t code = count_get(error, "code");

    return stream_fail(s, code >= 400 && code < 600 ? (unsigned)code : 500,
                       json_get_str(error, "message", "an error without a message"), reterr);
}

/* The prompt was refused: there is no candidate, and another try would be refused as well. */
static int block_take(struct llm_stream *s, const char *reason, struct error *reterr)
{
    const char *text = arena_printf(s->arena, "the request was blocked (%s)", reason);

    return stream_fail(s, 400, text ? text : "the request was blocked", reterr);
}

static int candidate_take(struct llm_stream *s, yyjson_val *candidate, struct error *reterr)
{
    yyjson_val *parts = yyjson_obj_get(yyjson_obj_get(candidate, "content"), "parts"), *part;
    size_t i, max;
    int r;

    yyjson_arr_foreach(parts, i, max, part)
    {
        if ((r = part_take(s, part, reterr)) < 0)
            return r;
    }
    return finish_take(s, candidate, reterr);
}

static int chunk_take(struct llm_stream *s, const char *event, yyjson_val *root,
                      struct error *reterr)
{
    yyjson_val *error = yyjson_obj_get(root, "error");
    yyjson_val *usage = yyjson_obj_get(root, "usageMetadata");
    const char *blocked = json_get_str(yyjson_obj_get(root, "promptFeedback"), "blockReason", NULL);
    const char *model = json_get_str(root, "modelVersion", NULL);

    if (yyjson_is_obj(error))
        return error_take(s, error, reterr);
    if (blocked && !str_eq(blocked, "BLOCK_REASON_UNSPECIFIED"))
        return block_take(s, blocked, reterr);
    if (model)
        stream_model(s, model);
    if (yyjson_is_obj(usage))
        usage_take(s, usage);
    return candidate_take(s, yyjson_arr_get_first(yyjson_obj_get(root, "candidates")), reterr);
}

static int google_feed(struct llm_stream *s, const char *data, size_t len, struct error *reterr)
{
    const struct google *own = s->own;

    if (!data)
        s->finished = s->finished || (own && own->ended);
    return stream_events(s, data, len, chunk_take, reterr);
}

const struct provider_entry provider_google = {
    .name = "google_genai",
    .title = "Google Gemini",
    .base_url = "https://generativelanguage.googleapis.com",
    .needs_key = true,
    .images_in_results = true,
    .build = google_build,
    .feed = google_feed,
};
