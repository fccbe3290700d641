/* SPDX-License-Identifier: MIT */
/* What Ollama is sent, and what its answers are read as. */
#include "tests/lib/llm.h"

static struct llm_request request_of(const struct llm_message *messages, size_t count)
{
    return (struct llm_request){.size = sizeof(struct llm_request),
                                .model = {.provider = "ollama", .name = "qwen3"},
                                .messages = messages,
                                .message_count = count,
                                .cancel_fd = -1};
}

#define TEXT(s) &(const struct llm_part){.kind = LLM_TEXT, .text = (s)}, .part_count = 1

TEST(ollama_builds_a_request)
{
    const struct llm_part seen[] = {
        {.kind = LLM_TEXT, .text = "what "},
        {.kind = LLM_TEXT, .text = "is it"},
        {.kind = LLM_IMAGE, .mime = "image/png", .data = "iVBO"},
        {.kind = LLM_IMAGE, .url = "https://x.example/a.png"},
    };
    const struct llm_message messages[] = {
        {.role = LLM_SYSTEM, .parts = TEXT("be kind")},
        {.role = LLM_USER, .parts = seen, .part_count = 4},
    };
    const struct llm_tool tools[] = {
        {.name = "f", .description = "d", .schema = "{\"type\":\"object\"}"}};
    struct llm_request request = request_of(messages, 2);
    auto_llm_test struct llm_test t = {};

    request.tools = tools;
    request.tool_count = 1;
    request.max_tokens = 9;
    request.options =
        "{\"temperature\":0,\"think\":true,\"stream\":false,\"options\":{\"seed\":1}}";
    llm_test_build(
        &t, &provider_ollama, &request,
        "{\"model\":\"qwen3\",\"messages\":[{\"role\":\"system\",\"content\":\"be kind\"},"
        "{\"role\":\"user\",\"content\":\"what is it\\n[left out, as this model takes none such: "
        "image https://x.example/a.png]\",\"images\":[\"iVBO\"]}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\","
        "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}],\"stream\":true,\"think\":true,"
        "\"options\":{\"num_predict\":9,\"temperature\":0,\"seed\":1}}");
    assert_str_eq(t.s.path, "/api/chat");
    assert_int_eq((long long)t.s.header_count, 0);
}

TEST(ollama_gets_a_key_that_is_given)
{
    struct llm_request request = request_of(NULL, 0);
    auto_llm_test struct llm_test t = {};

    request.model.api_key = "k";
    llm_test_build(&t, &provider_ollama, &request,
                   "{\"model\":\"qwen3\",\"messages\":[],\"stream\":true}");
    assert_str_eq(t.s.headers[0], "Authorization: Bearer k");
}

TEST(ollama_shows_pictures_behind_the_results)
{
    const struct llm_tool_call calls[] = {
        {.id = "c1", .name = "f", .arguments = "{\"n\":1}", .valid = true},
        {.id = "c2", .name = "g", .arguments = "{}", .valid = true},
    };
    const struct llm_part said[] = {
        {.kind = LLM_REASONING, .text = "hm"},
        {.kind = LLM_TEXT, .text = "so"},
    };
    const struct llm_part shown[] = {
        {.kind = LLM_TEXT, .text = "ok"},
        {.kind = LLM_IMAGE, .mime = "image/png", .data = "iVBO"},
    };
    const struct llm_message messages[] = {
        {.role = LLM_USER, .parts = TEXT("plot")},
        {.role = LLM_ASSISTANT,
         .parts = said,
         .part_count = 2,
         .calls = calls,
         .call_count = 2,
         .provider = "ollama"},
        {.role = LLM_TOOL, .parts = shown, .part_count = 2, .tool_call_id = "c1"},
        {.role = LLM_TOOL, .parts = TEXT("no"), .tool_call_id = "c2", .is_error = true},
        {.role = LLM_USER, .parts = TEXT("thanks")},
    };
    struct llm_request request = request_of(messages, 5);
    auto_llm_test struct llm_test t = {};

    llm_test_build(
        &t, &provider_ollama, &request,
        "{\"model\":\"qwen3\",\"messages\":[{\"role\":\"user\",\"content\":\"plot\"},"
        "{\"role\":\"assistant\",\"content\":\"so\",\"thinking\":\"hm\",\"tool_calls\":["
        "{\"id\":\"c1\",\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{\"n\":1}}},"
        "{\"id\":\"c2\",\"function\":{\"index\":1,\"name\":\"g\",\"arguments\":{}}}]},"
        "{\"role\":\"tool\",\"content\":\"ok\",\"tool_name\":\"f\",\"tool_call_id\":\"c1\"},"
        "{\"role\":\"tool\",\"content\":\"no\",\"tool_name\":\"g\",\"tool_call_id\":\"c2\"},"
        "{\"role\":\"user\",\"content\":\"[what the results of the tools show]\",\"images\":["
        "\"iVBO\"]},{\"role\":\"user\",\"content\":\"thanks\"}],\"stream\":true}");
}

/* ---- answers ---- */

static void answer_is(const char *text, const char *want)
{
    struct llm_request request = request_of(NULL, 0);

    llm_test_answer(&provider_ollama, &request, text, want);
}

#define LINE(message) \
    "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\"," message "},\"done\":false}\n"
#define DONE \
    "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true," \
    "\"done_reason\":\"stop\",\"prompt_eval_count\":11,\"eval_count\":7}\n"

TEST(ollama_decodes_thinking_and_text)
{
    answer_is(
        LINE("\"content\":\"\",\"thinking\":\"h\"") LINE("\"content\":\"\",\"thinking\":\"m\"")
            LINE("\"content\":\"Gr\xc3\xbc\"") "\r\n" LINE("\"content\":\"\xc3\x9f\"") DONE,
        "thought[hm] text[Gr\xc3\xbc\xc3\x9f] qwen3:8b stop 11/7/-1/-1");
    /* The last line may have no end. */
    answer_is(LINE("\"content\":\"a\"") "{\"done\":true,\"done_reason\":\"length\"}",
              "text[a] qwen3:8b length -1/-1/-1/-1");
}

TEST(ollama_decodes_calls)
{
    answer_is(
        LINE("\"content\":\"\",\"tool_calls\":[{\"id\":\"x\",\"function\":{\"index\":0,\"name\":"
             "\"f\","
             "\"arguments\":{\"a\":1}}},{\"function\":{\"name\":\"g\",\"arguments\":\"{\\\"b\\\":2}"
             "\"}}]")
            LINE(
                "\"content\":\"\",\"tool_calls\":[{\"id\":\"x\",\"function\":{\"index\":0,\"name\":"
                "\"h\"}}]") DONE,
        "call[x f {\"a\":1}] call[made g {\"b\":2}] call[made h {}] qwen3:8b tool_calls "
        "11/7/-1/-1");
}

TEST(ollama_tells_failures)
{
    answer_is(LINE("\"content\":\"a\"") "{\"error\":\"out of memory\"}\n",
              "UPSTREAM again: Ollama answered 500: out of memory");
    answer_is("{\"error\":{\"message\":\"no\"}}\n", "UPSTREAM again: Ollama answered 500: no");
    answer_is("{\"error\":7}\n", "UPSTREAM again: Ollama answered 500: an error without a message");
}

TEST(ollama_survives_what_is_malformed)
{
    static const char cut[] = "UPSTREAM again: Ollama: the answer ended in the middle";

    answer_is("", cut);
    answer_is("[]\n7\nnull\n{}\n{\"message\":[]}\n", cut);
    answer_is(LINE("\"content\":\"a\""), cut);
    answer_is("{\"done\":tru", "UPSTREAM again: Ollama sent what is not JSON");
    answer_is("<html>\n", "UPSTREAM again: Ollama sent what is not JSON");
    answer_is(LINE("\"content\":7,\"thinking\":[],\"tool_calls\":[1,{},{\"function\":2}]") DONE,
              "qwen3:8b stop 11/7/-1/-1");
    answer_is(LINE("\"content\":\"\",\"tool_calls\":[{\"function\":{\"arguments\":[1]}}]") DONE,
              "call[made unknown [1] invalid] qwen3:8b tool_calls 11/7/-1/-1");
}
