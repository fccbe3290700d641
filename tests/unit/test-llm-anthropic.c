/* SPDX-License-Identifier: MIT */
/* What Anthropic's Messages are sent, and what their answers are read as. */
#include "base/str.h"
#include "tests/lib/llm.h"

#define J(...) #__VA_ARGS__
#define TEXT(s) &(const struct llm_part){.kind = LLM_TEXT, .text = (s)}, .part_count = 1
#define E(...) "data: " #__VA_ARGS__ "\n\n"
#define STOP(reason) \
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason \
    "\"},\"usage\":{\"output_tokens\":9}}\n\n" \
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

static struct llm_request request_of(const struct llm_message *messages, size_t count)
{
    return (struct llm_request){.size = sizeof(struct llm_request),
                                .model = {.provider = "anthropic", .name = "m"},
                                .messages = messages,
                                .message_count = count,
                                .cancel_fd = -1};
}

/* ---- requests ---- */

TEST(anthropic_builds_a_request)
{
    static const struct llm_tool tools[] = {
        {"execute_code", "Runs code.", J({"type" : "object", "properties" : {"n" : {}}})}};
    const struct llm_message messages[] = {{.role = LLM_SYSTEM, .parts = TEXT("be kind")},
                                           {.role = LLM_USER, .parts = TEXT("hi")}};
    struct llm_request request = request_of(messages, 2);
    auto_llm_test struct llm_test t = {};

    request.model.api_key = "secret";
    request.tools = tools;
    request.tool_count = 1;
    request.options = J({"temperature" : 1, "stream" : false});
    llm_test_build(&t, &provider_anthropic, &request, J({
        "model" : "m",
        "max_tokens" : 8192,
        "stream" : true,
        "system" :
            [ {"type" : "text", "text" : "be kind", "cache_control" : {"type" : "ephemeral"}} ],
        "messages" : [ {
            "role" : "user",
            "content" :
                [ {"type" : "text", "text" : "hi", "cache_control" : {"type" : "ephemeral"}} ]
        } ],
        "tools" : [ {
            "name" : "execute_code",
            "description" : "Runs code.",
            "input_schema" : {"type" : "object", "properties" : {"n" : {}}}
        } ],
        "temperature" : 1
    }));
    assert_str_eq(t.s.path, "/v1/messages");
    assert_str_eq(t.s.headers[0], "anthropic-version: 2023-06-01");
    assert_str_eq(t.s.headers[1], "x-api-key: secret");
}

TEST(anthropic_takes_a_base_with_its_version)
{
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = TEXT("hi")}};
    struct llm_request request = request_of(messages, 1);
    auto_llm_test struct llm_test t = {};
    struct error err = {};

    request.model.base_url = "http://127.0.0.1:1/v1";
    llm_test_open(&t, &provider_anthropic, &request);
    assert_ok(provider_anthropic.build(&request, &t.s, &err), err);
    assert_str_eq(t.s.path, "/messages");
    assert_uint_eq(t.s.header_count, 1);
}

TEST(anthropic_puts_results_first_and_images_into_them)
{
    const struct llm_part thoughts[] = {
        {.kind = LLM_REASONING,
         .text = "hmm",
         .raw = J({"type" : "thinking", "thinking" : "hmm", "signature" : "S"})},
        {.kind = LLM_REASONING, .text = "", .raw = J({"type" : "redacted_thinking", "data" : "D"})},
        {.kind = LLM_REASONING, .text = "x", .raw = J({"type" : "text", "text" : "forged"})},
        {.kind = LLM_REASONING, .text = "x"},
        {.kind = LLM_TEXT, .text = "\n\n"},
        {.kind = LLM_TEXT, .text = "so"}};
    const struct llm_tool_call calls[] = {{.id = "a", .name = "plot", .arguments = "{\"n\":1}"},
                                          {.id = "functions.b:0", .name = "", .arguments = "[]"}};
    const struct llm_part result[] = {
        {.kind = LLM_TEXT, .text = ""},
        {.kind = LLM_IMAGE, .mime = "image/png", .data = "QUJD"},
        {.kind = LLM_FILE, .mime = "application/pdf", .data = "JVBE", .name = "a.pdf"},
        {.kind = LLM_IMAGE, .mime = "image/tiff", .data = "QUJD"}};
    const struct llm_message messages[] = {
        {.role = LLM_ASSISTANT,
         .provider = "anthropic",
         .parts = thoughts,
         .part_count = 6,
         .calls = calls,
         .call_count = 2},
        {.role = LLM_TOOL, .tool_call_id = "a", .parts = result, .part_count = 4},
        {.role = LLM_TOOL, .tool_call_id = "functions.b:0", .is_error = true},
        {.role = LLM_USER, .parts = TEXT("and?")},
        {.role = LLM_ASSISTANT},
        {.role = LLM_USER, .parts = TEXT(" ")},
        {.role = LLM_USER, .parts = TEXT("well?")}};
    struct llm_request request = request_of(messages, 7);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_anthropic, &request, J({
        "model" : "m",
        "max_tokens" : 8192,
        "stream" : true,
        "messages" : [
            {
                "role" : "user",
                "content" : [ {"type" : "text", "text" : "(The beginning is left out.)"} ]
            },
            {
                "role" : "assistant",
                "content" : [
                    {"type" : "thinking", "thinking" : "hmm", "signature" : "S"},
                    {"type" : "redacted_thinking", "data" : "D"}, {"type" : "text", "text" : "so"},
                    {"type" : "tool_use", "id" : "a", "name" : "plot", "input" : {"n" : 1}}, {
                        "type" : "tool_use",
                        "id" : "call_b0c2eecbb519e65ffbd1592e29085d1a",
                        "name" : "unknown",
                        "input" : {"invalid_arguments" : "[]"}
                    }
                ]
            },
            {
                "role" : "user",
                "content" : [
                    {
                        "type" : "tool_result",
                        "tool_use_id" : "a",
                        "content" : [
                            {
                                "type" : "image",
                                "source" :
                                    {"type" : "base64", "media_type" : "image/png", "data" : "QUJD"}
                            },
                            {
                                "type" : "document",
                                "title" : "a.pdf",
                                "source" : {
                                    "type" : "base64",
                                    "media_type" : "application/pdf",
                                    "data" : "JVBE"
                                }
                            },
                            {
                                "type" : "text",
                                "text" :
                                    "[left out, as this model takes none such: image image/tiff]"
                            }
                        ]
                    },
                    {
                        "type" : "tool_result",
                        "tool_use_id" : "call_b0c2eecbb519e65ffbd1592e29085d1a",
                        "is_error" : true
                    },
                    {"type" : "text", "text" : "and?"},
                    {"type" : "text",
                     "text" : "well?",
                     "cache_control" : {"type" : "ephemeral"}}
                ]
            }
        ]
    }));
}

TEST(anthropic_gives_no_thoughts_of_others)
{
    const struct llm_part thoughts[] = {
        {.kind = LLM_REASONING,
         .text = "hmm",
         .raw = J({"type" : "thinking", "thinking" : "hmm", "signature" : "S"})},
        {.kind = LLM_TEXT, .text = "so"}};
    const struct llm_message messages[] = {
        {.role = LLM_USER, .parts = TEXT("q")},
        {.role = LLM_ASSISTANT, .provider = "google_genai", .parts = thoughts, .part_count = 2},
        {.role = LLM_ASSISTANT, .parts = thoughts, .part_count = 2}};
    struct llm_request request = request_of(messages, 3);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_anthropic, &request, J({
        "model" : "m",
        "max_tokens" : 8192,
        "stream" : true,
        "messages" : [
            {"role" : "user", "content" : [ {"type" : "text", "text" : "q"} ]}, {
                "role" : "assistant",
                "content" : [
                    {"type" : "text", "text" : "so"},
                    {"type" : "text", "text" : "so", "cache_control" : {"type" :
                                                                            "ephemeral"}}
                ]
            }
        ]
    }));
}

/* ---- answers ---- */

static void decodes(const char *text, const char *want)
{
    struct llm_request request = request_of(NULL, 0);

    llm_test_answer(&provider_anthropic, &request, text, want);
}

/* clang-format off */
#define START \
    E({"type":"message_start","message":{"model":"m-1","usage": \
       {"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":3}}})
#define BLOCK(n, ...) \
    "data: {\"type\":\"content_block_start\",\"index\":" #n ",\"content_block\":" #__VA_ARGS__ \
    "}\n\n"
#define DELTA(n, ...) \
    "data: {\"type\":\"content_block_delta\",\"index\":" #n ",\"delta\":" #__VA_ARGS__ "}\n\n"
#define END(n) "data: {\"type\":\"content_block_stop\",\"index\":" #n "}\n\n"
/* clang-format on */

TEST(anthropic_reads_text_and_usage)
{
    decodes(START
            "event: ping\ndata: {\"type\": \"ping\"}\n\n" BLOCK(0, {"type" : "text", "text" : ""})
                DELTA(0, {"type" : "text_delta", "text" : "Hel"})
                    DELTA(0, {"type" : "text_delta", "text" : "lo"}) END(0) STOP("end_turn"),
            "text[Hello] m-1 stop 8/9/3/-1");
}

TEST(anthropic_reads_thinking_and_keeps_its_blocks)
{
    decodes(START BLOCK(0, {"type" : "thinking", "thinking" : "", "signature" : ""})
                DELTA(0, {"type" : "thinking_delta", "thinking" : "a\"b"})
                    DELTA(0, {"type" : "signature_delta", "signature" : "S1"})
                        DELTA(0, {"type" : "signature_delta", "signature" : "S2"}) END(0)
                            BLOCK(1, {"type" : "redacted_thinking", "data" : "D"}) END(1)
                                BLOCK(2, {"type" : "text", "text" : "x"}) END(2)
                                    BLOCK(3, {"type" : "thinking", "thinking" : ""})
                                        DELTA(3, {"type" : "signature_delta", "signature" : "S3"})
                                            END(3) STOP("max_tokens"),
            "thought[a\"b]={\"type\":\"thinking\",\"thinking\":\"a\\\"b\",\"signature\":\"S1S2\"} "
            "thought[]={\"type\":\"redacted_thinking\",\"data\":\"D\"} text[x] "
            "thought[]={\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"S3\"} "
            "m-1 length 8/9/3/-1");
}

TEST(anthropic_reads_calls)
{
    decodes(START BLOCK(0, {"type" : "text", "text" : ""})
                DELTA(0, {"type" : "text_delta", "text" : "now"}) END(0)
                    BLOCK(1, {"type" : "tool_use", "id" : "t1", "name" : "f", "input" : {}})
                        DELTA(1, {"type" : "input_json_delta", "partial_json" : ""})
                            DELTA(1, {"type" : "input_json_delta", "partial_json" : "{\"x\""})
                                DELTA(1, {"type" : "input_json_delta", "partial_json" : ":1}"})
                                    END(1)
                                        BLOCK(2, {"type" : "tool_use", "id" : "t2", "name" : "g"})
                                            END(2) STOP("tool_use"),
            "text[now] call[t1 f {\"x\":1}] call[t2 g {}] m-1 tool_calls 8/9/3/-1");
    decodes(START BLOCK(0, {"type" : "tool_use", "id" : "t", "name" : "f", "input" : {"x" : 1}})
                BLOCK(1, {"type" : "tool_use", "id" : "t", "name" : "f", "input" : {}})
                    DELTA(1, {"type" : "input_json_delta", "partial_json" : "{oops"})
                        STOP("tool_use"),
            "call[t f {\"x\":1}] call[made f {oops invalid] m-1 tool_calls 8/9/3/-1");
}

TEST(anthropic_fails_in_the_middle_of_a_stream)
{
    decodes(START
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
            "\"message\":\"Overloaded\"}}\n\n",
            "UPSTREAM again: Anthropic answered 529: Overloaded");
    decodes(E({"type" : "error", "error" : {"type" : "invalid_request_error", "message" : "no"}}),
            "INVALID_INPUT: Anthropic answered 400: no");
    decodes(E({"type" : "error"}), "UPSTREAM: Anthropic failed: no reason given");
    decodes(START BLOCK(0, {"type" : "text", "text" : "x"}),
            "UPSTREAM again: Anthropic: the answer ended in the middle");
}

TEST(anthropic_reads_odd_types_as_nothing)
{
    decodes(E([]) E({"type" : 1}) E({"type" : "message_start", "message" : 1}) BLOCK(0, null)
                DELTA(0, {"type" : "input_json_delta", "partial_json" : "{}"})
                    DELTA(7, {"type" : "input_json_delta", "partial_json" : 1})
                        DELTA(0, {"type" : "text_delta", "text" : null}) END(9) END(-1)
                            E({"type" : "content_block_delta"})
                                E({"type" : "message_delta", "delta" : [], "usage" : 3})
                                    E({"type" : "message_stop"}),
            "m stop -1/-1/-1/-1");
    decodes(BLOCK(1024, {"type" : "text"}), "LIMIT_REACHED: an answer of more than 1024 blocks");
}
