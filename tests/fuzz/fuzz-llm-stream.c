/* SPDX-License-Identifier: MIT */
/*
 * A provider's answer of any bytes, in pieces. The first byte picks the provider, the second how
 * long the pieces are. Whatever comes, every delta is whole UTF-8 and the reply is within its
 * bounds; and an answer says the same when it comes in one piece.
 */
#include "llm/llm-internal.h"
#include "wire/utf8.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_text(const char *text, size_t len)
{
    auto_buf struct buf copy = {.max = 4 * LLM_EVENT_BYTES};
    struct utf8_repair u = {0};

    if (utf8_repair_feed(&u, text, len, &copy) < 0 || utf8_repair_finish(&u, &copy) < 0)
        __builtin_trap();
    return copy.len == len && (len == 0 || memcmp(copy.data, text, len) == 0) &&
           !memchr(text, 0, len);
}

static int delta_check(void *user, const struct llm_delta *d, struct error *reterr)
{
    size_t *count = user;

    ++*count;
    if (d->text && (!is_text(d->text, d->len) || d->text[d->len] || !d->len))
        __builtin_trap();
    if (d->kind == LLM_DELTA_CALL && (!*d->id || !*d->name || d->index >= LLM_CALLS_MAX))
        __builtin_trap();
    return 0;
}

static void reply_check(const struct llm_reply *reply)
{
    if (reply->call_count > LLM_CALLS_MAX || reply->part_count > LLM_PARTS_MAX)
        __builtin_trap();
    for (size_t i = 0; i < reply->part_count; i++) {
        if (!is_text(reply->parts[i].text, strlen(reply->parts[i].text)))
            __builtin_trap();
    }
    for (size_t i = 0; i < reply->call_count; i++) {
        const struct llm_tool_call *c = &reply->calls[i];

        if (!*c->id || !*c->name || c->valid == (c->error != NULL))
            __builtin_trap();
        for (size_t k = 0; k < i; k++) {
            if (strcmp(reply->calls[k].id, c->id) == 0)
                __builtin_trap();
        }
    }
}

/* Appends the texts of the reply, or what failed; nothing that depends on chance. */
static void answer_read(const struct provider_entry *provider, const uint8_t *data, size_t size,
                        size_t piece, struct buf *ret)
{
    static const struct llm_request request = {.size = sizeof(request), .model.name = "m"};
    auto_arena struct arena arena = {.max = 256 * MIB};
    auto_stream struct llm_stream s;
    struct llm_reply reply = {0};
    struct error err = {0};
    size_t deltas = 0;
    int r = 0;

    stream_init(&s, &request, provider, &(struct llm_sink){delta_check, &deltas}, &arena);
    for (size_t at = 0; at < size && r == 0; at += piece)
        r = stream_feed(&s, (const char *)data + at, MIN(piece, size - at), &err);
    if (r == 0)
        r = stream_feed(&s, NULL, 0, &err);
    if (r == 0)
        r = stream_reply(&s, &reply, &err);
    if (r < 0) {
        if (buf_printf(ret, "%d %s", r, err.text) < 0)
            __builtin_trap();
        return;
    }
    reply_check(&reply);
    for (size_t i = 0; i < reply.part_count; i++) {
        if (buf_printf(ret, "%d[%s]", (int)reply.parts[i].kind, reply.parts[i].text) < 0)
            __builtin_trap();
    }
    for (size_t i = 0; i < reply.call_count; i++) {
        if (buf_printf(ret, "%s[%s]", reply.calls[i].name, reply.calls[i].arguments) < 0)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct provider_entry *const providers[] = {&provider_openai, &provider_anthropic,
                                                             &provider_google, &provider_ollama};
    auto_buf struct buf pieces = {.max = 64 * MIB}, whole = {.max = 64 * MIB};
    const struct provider_entry *provider;

    if (size < 2)
        return 0;
    provider = providers[data[0] % ARRAY_LEN(providers)];
    answer_read(provider, data + 2, size - 2, (size_t)data[1] + 1, &pieces);
    answer_read(provider, data + 2, size - 2, size, &whole);
    if (strcmp(buf_str(&pieces), buf_str(&whole)) != 0)
        __builtin_trap();
    return 0;
}
