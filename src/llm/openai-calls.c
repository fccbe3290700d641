/* SPDX-License-Identifier: MIT */
/*
 * To which call a piece of a Chat Completions stream belongs. By the contract that is its index;
 * but there are servers that send whole calls without an index, all with index 0, with one id for
 * all or with none, and servers that say id and name again with each piece. A piece with a name
 * begins a new call when its id differs, or when the arguments of the call it would go on with are
 * an object that is complete.
 */
#include "base/str.h"
#include "llm/openai-internal.h"

static void arguments_track(struct openai_call *c, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char at = text[i];

        if (c->escaped)
            c->escaped = false;
        else if (c->in_string && at == '\\')
            c->escaped = true;
        else if (at == '"')
            c->in_string = !c->in_string;
        else if (!c->in_string && (at == '{' || at == '['))
            c->depth++;
        else if (!c->in_string && (at == '}' || at == ']') && --c->depth == 0)
            c->whole = true;
    }
}

/* The newest call that the piece may go on with, or -1. */
static int call_find(const struct openai *own, int64_t index, const char *id)
{
    for (int n = (int)own->call_count - 1; n >= 0; n--) {
        const struct openai_call *c = &own->calls[n];

        if (index >= 0 ? c->index == index : !*id || str_eq(c->id, id))
            return n;
    }
    return -1;
}

static bool piece_begins(const struct openai *own, int n, int64_t index, const char *id)
{
    const struct openai_call *c = &own->calls[n];

    if (index < 0 && !*id)
        return true;
    return c->whole || (*id && *c->id && !str_eq(c->id, id));
}

/* The number of the call, which may be a new one; LLM_CALLS_MAX when there are too many. */
static unsigned call_number(struct openai *own, int64_t index, const char *id, bool named)
{
    int n = call_find(own, index, id);
    struct openai_call *c;

    if (n < 0 && index < 0 && !named)
        n = (int)own->call_count - 1;
    if (n >= 0 && !(named && piece_begins(own, n, index, id)))
        return (unsigned)n;
    if (own->call_count == LLM_CALLS_MAX)
        return LLM_CALLS_MAX;
    c = &own->calls[own->call_count];
    c->index = index;
    if (str_copy(c->id, sizeof(c->id), id) < 0)
        c->id[0] = 0;
    return own->call_count++;
}

/* Arguments are a text, or with some servers the object itself. */
static int arguments_take(struct llm_stream *s, struct openai *own, unsigned n, yyjson_val *value,
                          struct error *reterr)
{
    auto_buf struct buf text = {.max = LLM_ARGUMENTS_BYTES};
    int r;

    if (yyjson_is_str(value)) {
        arguments_track(&own->calls[n], yyjson_get_str(value), yyjson_get_len(value));
        return stream_arguments(s, n, yyjson_get_str(value), yyjson_get_len(value), reterr);
    }
    if (!yyjson_is_ctn(value))
        return 0;
    r = json_write(value, &text, reterr);
    if (r < 0)
        return r;
    own->calls[n].whole = true;
    return stream_arguments(s, n, text.data, text.len, reterr);
}

static int extra_take(struct llm_stream *s, unsigned n, yyjson_val *extra, struct error *reterr)
{
    auto_buf struct buf raw = {.max = LLM_EVENT_BYTES};

    if (!yyjson_is_obj(extra))
        return 0;
    if (buf_append_str(&raw, "{\"extra_content\":") < 0 || json_write(extra, &raw, reterr) < 0 ||
        buf_append_str(&raw, "}") < 0)
        return error_no_memory(reterr);
    return stream_call_raw(s, n, raw.data, reterr);
}

int openai_call(struct llm_stream *s, struct openai *own, yyjson_val *call, yyjson_val *function,
                struct error *reterr)
{
    yyjson_val *index = yyjson_obj_get(call, "index");
    const char *id = json_get_str(call, "id", ""), *name = json_get_str(function, "name", "");
    unsigned n = call_number(own,
                             call == NULL            ? 0
                             : yyjson_is_uint(index) ? yyjson_get_sint(index)
                                                     : -1,
                             id, *name != 0);
    int r = stream_call(s, n, id, name, reterr);

    if (r == 0)
        r = arguments_take(s, own, n, yyjson_obj_get(function, "arguments"), reterr);
    if (r == 0)
        r = extra_take(s, n, yyjson_obj_get(call, "extra_content"), reterr);
    return r;
}
