/* SPDX-License-Identifier: MIT */
/*
 * A model's answer, and its way back: what was decoded of a hostile stream is a turn of the next
 * request, to whichever provider, and that is always JSON. First byte: who answers. Second: where
 * the stream is cut in two.
 */
#include "llm/llm-internal.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const struct llm_tool tools[] = {
    {"create_session", "", "{}"}, {"execute_code", "", "{}"}, {"execute_terminal", "", "{}"}};

static struct llm_request request_of(const struct provider_entry *provider)
{
    return (struct llm_request){.size = sizeof(struct llm_request),
                                .model = {.provider = provider->name, .name = "gemini-3"},
                                .tools = tools,
                                .tool_count = ARRAY_LEN(tools),
                                .cancel_fd = -1};
}

/* In memory of its own, so that a read behind it is seen. */
static int piece_feed(struct llm_stream *s, const unsigned char *data, size_t len)
{
    auto_free char *piece = malloc(len ? len : 1);

    if (!piece)
        return -1;
    if (len)
        memcpy(piece, data, len);
    return stream_feed(s, piece, len, NULL);
}

static void body_check(const struct provider_entry *provider, const struct llm_request *request,
                       struct arena *arena)
{
    auto_stream struct llm_stream s;
    auto_json yyjson_doc *doc = NULL;
    struct error err = {};
    struct llm_reply reply;

    stream_init(&s, request, provider, NULL, arena);
    if (provider->answer) {
        if (provider->answer(request, &s, &err) == 0 && stream_reply(&s, &reply, &err) == 0 &&
            reply.call_count && !reply.calls[0].valid)
            abort();
        return;
    }
    if (provider->build(request, &s, &err) < 0)
        return;
    /* A body may be nested deeper than what it was made of. */
    if (json_parse(s.body.data, s.body.len, &doc, &err) < 0 && !strstr(err.text, "deeper"))
        abort();
}

static void turns_check(const struct provider_entry *provider, const struct llm_reply *reply,
                        struct arena *arena)
{
    const struct llm_message messages[] = {
        {.role = LLM_USER, .parts = reply->parts, .part_count = reply->part_count},
        {.role = LLM_ASSISTANT,
         .parts = reply->parts,
         .part_count = reply->part_count,
         .calls = reply->calls,
         .call_count = reply->call_count,
         .provider = provider->name},
        {.role = LLM_TOOL,
         .parts = reply->parts,
         .part_count = reply->part_count,
         .tool_call_id = reply->call_count ? reply->calls[0].id : "none"},
    };

    for (size_t i = 0; provider_table[i]; i++) {
        struct llm_request request = request_of(provider_table[i]);

        request.messages = messages;
        request.message_count = ARRAY_LEN(messages);
        body_check(provider_table[i], &request, arena);
    }
}

static void answer_check(const struct provider_entry *provider, const unsigned char *data,
                         size_t size, size_t cut)
{
    struct llm_request request = request_of(provider);
    auto_arena struct arena arena;
    auto_stream struct llm_stream s;
    struct llm_reply reply;

    arena_init(&arena, GIB);
    stream_init(&s, &request, provider, NULL, &arena);
    if (piece_feed(&s, data, cut) == 0 && piece_feed(&s, data + cut, size - cut) == 0 &&
        stream_feed(&s, NULL, 0, NULL) == 0 && stream_reply(&s, &reply, NULL) == 0)
        turns_check(provider, &reply, &arena);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const struct provider_entry *feeding[8];
    size_t count = 0;

    for (size_t i = 0; provider_table[i] && count < ARRAY_LEN(feeding); i++) {
        if (provider_table[i]->feed)
            feeding[count++] = provider_table[i];
    }
    if (size >= 2)
        answer_check(feeding[data[0] % count], data + 2, size - 2, MIN(data[1], size - 2));
    return 0;
}
