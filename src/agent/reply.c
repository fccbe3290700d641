/* SPDX-License-Identifier: MIT */
/* From a model's reply to the AI message that is stored: the reverse of what the view reads. */
#include "agent/view.h"

#include "base/str.h"
#include "base/uuid.h"

#include <stdio.h>
#include <string.h>

/*
 * yyjson's functions refuse a NULL value and say so, but each call would need its own check; a
 * draft collects them.
 */
struct draft {
    yyjson_mut_doc *doc;
    bool failed;
};

static void put(struct draft *d, yyjson_mut_val *object, const char *key, yyjson_mut_val *value)
{
    if (!yyjson_mut_obj_add_val(d->doc, object, key, value))
        d->failed = true;
}

static void put_str(struct draft *d, yyjson_mut_val *object, const char *key, const char *text)
{
    put(d, object, key, text ? yyjson_mut_str(d->doc, text) : yyjson_mut_null(d->doc));
}

/* What is no JSON is left out: it could not be sent back either. */
static int put_raw(struct draft *d, yyjson_mut_val *object, const char *raw, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_mut_val *extras;

    if (!raw || json_parse(raw, strlen(raw), &doc, reterr) == -ERR_INVALID)
        return 0;
    if (!doc)
        return error_no_memory(reterr);
    extras = yyjson_mut_obj(d->doc);
    put(d, extras, "raw", yyjson_val_mut_copy(d->doc, yyjson_doc_get_root(doc)));
    put(d, object, "extras", extras);
    return 0;
}

/* ---- content ---- */

static bool is_plain(const struct llm_reply *reply)
{
    for (size_t i = 0; i < reply->part_count; i++) {
        if (reply->parts[i].kind != LLM_TEXT || reply->parts[i].raw)
            return false;
    }
    return true;
}

static yyjson_mut_val *plain_content(struct draft *d, const struct llm_reply *reply,
                                     struct error *reterr)
{
    auto_buf struct buf text;

    buf_init(&text, MESSAGE_BYTES_MAX);
    for (size_t i = 0; i < reply->part_count; i++) {
        if (buf_append_str(&text, reply->parts[i].text) < 0) {
            error_set(reterr, ERR_LIMIT, "the reply is above its limit");
            return NULL;
        }
    }
    return json_mut_text(d->doc, buf_str(&text), text.len);
}

static int block_add(struct draft *d, yyjson_mut_val *content, const struct llm_part *part,
                     struct error *reterr)
{
    const char *kind = part->kind == LLM_REASONING ? "reasoning" : "text";
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(d->doc, content);

    if (part->kind != LLM_REASONING && part->kind != LLM_TEXT)
        return error_set(reterr, ERR_INTERNAL, "a reply with a part of an unknown kind");
    put_str(d, block, "type", kind);
    put_str(d, block, kind, part->text ? part->text : "");
    return put_raw(d, block, part->raw, reterr);
}

static int content_put(struct draft *d, yyjson_mut_val *root, const struct llm_reply *reply,
                       struct error *reterr)
{
    yyjson_mut_val *content;

    if (is_plain(reply)) {
        content = plain_content(d, reply, reterr);
        if (!content)
            return error_wrap(reterr, "content");
        put(d, root, "content", content);
        return 0;
    }
    content = yyjson_mut_arr(d->doc);
    put(d, root, "content", content);
    for (size_t i = 0; i < reply->part_count; i++) {
        int r = block_add(d, content, &reply->parts[i], reterr);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- calls ---- */

static int call_put(struct draft *d, yyjson_mut_val *calls, const struct llm_tool_call *call,
                    struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(d->doc, calls);
    int r = call->valid ? json_parse(call->arguments, strlen(call->arguments), &doc, reterr) : 0;

    if (r < 0)
        return error_wrap(reterr, "the arguments of a call of %.60s", call->name);
    put_str(d, object, "name", call->name);
    put(d, object, "args",
        doc ? yyjson_val_mut_copy(d->doc, yyjson_doc_get_root(doc))
            : yyjson_mut_str(d->doc, call->arguments));
    put_str(d, object, "id", call->id);
    if (!call->valid)
        put_str(d, object, "error",
                call->error ? call->error : "the arguments are not a JSON object");
    put_str(d, object, "type", call->valid ? "tool_call" : "invalid_tool_call");
    return put_raw(d, object, call->raw, reterr);
}

static int calls_put(struct draft *d, yyjson_mut_val *root, const struct llm_reply *reply,
                     struct error *reterr)
{
    yyjson_mut_val *calls = yyjson_mut_arr(d->doc), *invalid = yyjson_mut_arr(d->doc);

    put(d, root, "tool_calls", calls);
    put(d, root, "invalid_tool_calls", invalid);
    for (size_t i = 0; i < reply->call_count; i++) {
        const struct llm_tool_call *call = &reply->calls[i];
        int r = call_put(d, call->valid ? calls : invalid, call, reterr);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- usage ---- */

static void count_put(struct draft *d, yyjson_mut_val *object, const char *key, int64_t count)
{
    if (count >= 0)
        put(d, object, key, yyjson_mut_sint(d->doc, count));
}

/* Clients add up three counts that are always there. */
static yyjson_mut_val *usage_make(struct draft *d, const struct llm_usage *u)
{
    int64_t input = MAX(u->input, 0), output = MAX(u->output, 0), total;
    yyjson_mut_val *usage = yyjson_mut_obj(d->doc), *details;

    if (u->input < 0 && u->output < 0)
        return yyjson_mut_null(d->doc);
    if (__builtin_add_overflow(input, output, &total))
        total = INT64_MAX;
    count_put(d, usage, "input_tokens", input);
    count_put(d, usage, "output_tokens", output);
    count_put(d, usage, "total_tokens", total);
    details = yyjson_mut_obj(d->doc);
    put(d, usage, "input_token_details", details);
    count_put(d, details, "cache_read", u->cache_read);
    count_put(d, details, "cache_creation", u->cache_creation);
    details = yyjson_mut_obj(d->doc);
    put(d, usage, "output_token_details", details);
    count_put(d, details, "reasoning", u->reasoning);
    return usage;
}

static void metadata_put(struct draft *d, yyjson_mut_val *root, const struct llm_reply *reply,
                         const char *provider)
{
    yyjson_mut_val *metadata = yyjson_mut_obj(d->doc);

    put_str(d, root, "name", NULL);
    put(d, root, "additional_kwargs", yyjson_mut_obj(d->doc));
    put(d, root, "response_metadata", metadata);
    put_str(d, metadata, "model_name", reply->model_name);
    put_str(d, metadata, "finish_reason", reply->finish_reason);
    put_str(d, metadata, "model_provider", provider);
}

int view_reply(const struct llm_reply *reply, const char *id, const char *provider,
               struct message **ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    struct draft d = {.doc = doc};
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    char made[UUID_LEN + 1];
    int r = id ? 0 : uuid_v4(made, reterr);

    if (r < 0)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    put_str(&d, root, "type", "ai");
    r = content_put(&d, root, reply, reterr);
    if (r < 0)
        return r;
    put_str(&d, root, "id", id ? id : made);
    metadata_put(&d, root, reply, provider);
    r = calls_put(&d, root, reply, reterr);
    if (r < 0)
        return r;
    put(&d, root, "usage_metadata", usage_make(&d, &reply->usage));
    return d.failed ? error_no_memory(reterr) : message_make(doc, ret, reterr);
}
