/* SPDX-License-Identifier: MIT */
/* A model's reply as a stored message. */
#include "agent/view.h"

#include "base/str.h"
#include "base/uuid.h"

#include "tests/lib/test.h"

static const struct llm_usage no_usage = {-1, -1, -1, -1, -1};

TEST(a_plain_text_reply)
{
    const struct llm_part parts[] = {{.kind = LLM_TEXT, .text = "Hel"},
                                     {.kind = LLM_TEXT, .text = "lo"}};
    const struct llm_reply reply = {
        .parts = parts,
        .part_count = 2,
        .usage = {9, 4, 0, -1, 2},
        .finish_reason = "stop",
        .model_name = "m",
    };
    auto_message struct message *m = NULL;
    struct error err = {};

    assert_ok(view_reply(&reply, "a1", "openai", &m, &err), err);
    assert_str_eq(m->json,
                  "{\"type\":\"ai\",\"content\":\"Hello\",\"id\":\"a1\",\"name\":null,"
                  "\"additional_kwargs\":{},\"response_metadata\":{\"model_name\":\"m\","
                  "\"finish_reason\":\"stop\",\"model_provider\":\"openai\"},\"tool_calls\":[],"
                  "\"invalid_tool_calls\":[],\"usage_metadata\":{\"input_tokens\":9,"
                  "\"output_tokens\":4,\"total_tokens\":13,\"input_token_details\":"
                  "{\"cache_read\":0},\"output_token_details\":{\"reasoning\":2}}}");
}

TEST(calls_and_reasoning_keep_what_goes_back)
{
    const struct llm_part parts[] = {
        {.kind = LLM_REASONING, .text = "hm", .raw = "{\"signature\":\"s\"}"},
        {.kind = LLM_TEXT, .text = "I run it", .raw = "not json"},
    };
    const struct llm_tool_call calls[] = {
        {.id = "1", .name = "f", .arguments = "{\"x\":1.0}", .valid = true, .raw = "{\"t\":1}"},
        {.id = "2", .name = "g", .arguments = "{bad", .error = "it ends early"},
    };
    const struct llm_reply reply = {
        .parts = parts, .part_count = 2, .calls = calls, .call_count = 2, .usage = no_usage};
    auto_message struct message *m = NULL;
    struct error err = {};

    assert_ok(view_reply(&reply, NULL, "anthropic", &m, &err), err);
    assert_true(uuid_check(m->id));
    assert_true(message_has_calls(m));
    assert_true(str_starts(m->json, "{\"type\":\"ai\",\"content\":[{\"type\":\"reasoning\","
                                    "\"reasoning\":\"hm\",\"extras\":{\"raw\":{\"signature\":"
                                    "\"s\"}}},{\"type\":\"text\",\"text\":\"I run it\"}],"));
    assert_str_has(m->json,
                   "\"tool_calls\":[{\"name\":\"f\",\"args\":{\"x\":1.0},\"id\":\"1\","
                   "\"type\":\"tool_call\",\"extras\":{\"raw\":{\"t\":1}}}],"
                   "\"invalid_tool_calls\":[{\"name\":\"g\",\"args\":\"{bad\",\"id\":\"2\","
                   "\"error\":\"it ends early\",\"type\":\"invalid_tool_call\"}],"
                   "\"usage_metadata\":null}");
}

TEST(an_empty_reply_is_a_message)
{
    const struct llm_reply reply = {.usage = no_usage};
    auto_message struct message *m = NULL;
    struct error err = {};

    assert_ok(view_reply(&reply, NULL, "ollama", &m, &err), err);
    assert_false(message_has_calls(m));
    assert_str_has(m->json, "\"content\":\"\"");
}
