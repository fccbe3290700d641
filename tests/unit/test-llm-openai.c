/* SPDX-License-Identifier: MIT */
/* What Chat Completions are sent, and what the answers of many servers are read as. */
#include "base/str.h"
#include "tests/lib/llm.h"

/* JSON as it is written. */
#define J(...) #__VA_ARGS__
#define TEXT(s) &(const struct llm_part){.kind = LLM_TEXT, .text = (s)}, .part_count = 1
/* A chunk with one delta. */
#define D(...) "data: {\"choices\":[{\"index\":0,\"delta\":" #__VA_ARGS__ "}]}\n\n"
#define FINISH(reason) \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]}\n\n"
#define DONE "data: [DONE]\n\n"

static struct llm_request request_of(const struct llm_message *messages, size_t count)
{
    return (struct llm_request){.size = sizeof(struct llm_request),
                                .model = {.provider = "openai", .name = "m"},
                                .messages = messages,
                                .message_count = count,
                                .cancel_fd = -1};
}

/* ---- requests ---- */

TEST(openai_builds_a_request)
{
    static const struct llm_tool tools[] = {
        {"execute_code", "Runs code.",
         J({"$schema" : "x", "type" : "object", "anyOf" : [], "properties" : {"n" : {}}})},
        {"list_sessions", NULL, NULL}};
    const struct llm_message messages[] = {{.role = LLM_SYSTEM, .parts = TEXT("be kind")},
                                           {.role = LLM_USER, .parts = TEXT("hi")}};
    struct llm_request request = request_of(messages, 2);
    auto_llm_test struct llm_test t = {};

    request.model.api_key = "secret";
    request.tools = tools;
    request.tool_count = 2;
    request.max_tokens = 100;
    request.options = J({"temperature" : 0, "model" : "other", "messages" : [], "n" : 1});
    llm_test_build(&t, &provider_openai, &request, J({
        "model" : "m",
        "messages" :
            [ {"role" : "system", "content" : "be kind"}, {"role" : "user", "content" : "hi"} ],
        "tools" : [
            {
                "type" : "function",
                "function" : {
                    "name" : "execute_code",
                    "description" : "Runs code.",
                    "parameters" : {"type" : "object", "properties" : {"n" : {}}}
                }
            },
            {
                "type" : "function",
                "function" : {
                    "name" : "list_sessions",
                    "description" : "",
                    "parameters" : {"type" : "object", "properties" : {}}
                }
            }
        ],
        "stream" : true,
        "stream_options" : {"include_usage" : true},
        "max_completion_tokens" : 100,
        "temperature" : 0,
        "n" : 1
    }));
    assert_str_eq(t.s.path, "/chat/completions");
    assert_str_eq(t.s.headers[0], "Authorization: Bearer secret");
    assert_uint_eq(t.s.header_count, 1);
}

TEST(openai_asks_other_servers_for_max_tokens_and_without_a_key)
{
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = NULL}};
    struct llm_request request = request_of(messages, 1);
    auto_llm_test struct llm_test t = {};

    request.model.base_url = "http://127.0.0.1:1/v1";
    request.model.api_key = "";
    request.max_tokens = 7;
    llm_test_build(&t, &provider_openai, &request, J({
        "model" : "m",
        "messages" : [ {"role" : "user", "content" : ""} ],
        "stream" : true,
        "stream_options" : {"include_usage" : true},
        "max_tokens" : 7
    }));
    assert_uint_eq(t.s.header_count, 0);
}

TEST(openai_sends_images_files_and_notes)
{
    const struct llm_part parts[] = {
        {.kind = LLM_TEXT, .text = "look"},
        {.kind = LLM_TEXT, .text = " \n"},
        {.kind = LLM_IMAGE, .mime = "image/png", .data = "QUJD"},
        {.kind = LLM_IMAGE, .mime = "image/png", .data = ""},
        {.kind = LLM_IMAGE, .url = "https://h/x.png"},
        {.kind = LLM_IMAGE, .mime = "image/svg+xml", .data = "PHN2Zz4="},
        {.kind = LLM_FILE, .mime = "application/pdf", .data = "JVBE", .name = "a.pdf"},
    };
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = parts, .part_count = 7}};
    struct llm_request request = request_of(messages, 1);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_openai, &request, J({
        "model" : "m",
        "messages" : [ {
            "role" : "user",
            "content" : [
                {"type" : "text", "text" : "look"},
                {"type" : "image_url", "image_url" : {"url" : "data:image/png;base64,QUJD"}},
                {"type" : "image_url", "image_url" : {"url" : "https://h/x.png"}}, {
                    "type" : "text",
                    "text" : "[left out, as this model takes none such: image image/svg+xml]"
                },
                {
                    "type" : "file",
                    "file" :
                        {"filename" : "a.pdf", "file_data" : "data:application/pdf;base64,JVBE"}
                }
            ]
        } ],
        "stream" : true,
        "stream_options" : {"include_usage" : true}
    }));
}

/* Case 67: images of results follow all results, as one user message. */
TEST(openai_puts_images_of_results_behind_them)
{
    const struct llm_tool_call calls[] = {{.id = "a", .name = "plot", .arguments = "{\"n\":1}"},
                                          {.id = "b", .name = "bad name!", .arguments = "{oops"}};
    const struct llm_part result[] = {{.kind = LLM_TEXT, .text = "done"},
                                      {.kind = LLM_IMAGE, .mime = "image/png", .data = "QUJD"},
                                      {.kind = LLM_IMAGE, .mime = "image/png", .data = NULL}};
    const struct llm_message messages[] = {
        {.role = LLM_ASSISTANT, .calls = calls, .call_count = 2},
        {.role = LLM_TOOL, .tool_call_id = "a", .parts = result, .part_count = 3},
        {.role = LLM_TOOL, .tool_call_id = "b", .is_error = true, .parts = TEXT("no")},
        {.role = LLM_ASSISTANT, .parts = TEXT("so")}};
    struct llm_request request = request_of(messages, 4);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_openai, &request, J({
        "model" : "m",
        "messages" : [
            {
                "role" : "assistant",
                "content" : null,
                "tool_calls" : [
                    {
                        "id" : "a",
                        "type" : "function",
                        "function" : {"name" : "plot", "arguments" : "{\"n\":1}"}
                    },
                    {
                        "id" : "b",
                        "type" : "function",
                        "function" : {
                            "name" : "bad_name_",
                            "arguments" : "{\"invalid_arguments\":\"{oops\"}"
                        }
                    }
                ]
            },
            {"role" : "tool", "tool_call_id" : "a", "content" : "done"},
            {"role" : "tool", "tool_call_id" : "b", "content" : "no"}, {
                "role" : "user",
                "content" : [
                    {"type" : "text", "text" : "From the result of plot (a):"},
                    {"type" : "image_url", "image_url" : {"url" : "data:image/png;base64,QUJD"}}
                ]
            },
            {"role" : "assistant", "content" : "so"}
        ],
        "stream" : true,
        "stream_options" : {"include_usage" : true}
    }));
}

TEST(openai_returns_what_was_thought_since_the_last_question_and_only_to_itself)
{
    const struct llm_part parts[] = {
        {.kind = LLM_REASONING, .text = "hmm", .raw = "\"reasoning_content\""},
        {.kind = LLM_TEXT, .text = "x"}};
    const struct llm_tool_call calls[] = {
        {.id = "a", .name = "f", .arguments = "{}", .raw = J({"extra_content" : {"g" : 1}})}};
    struct llm_message messages[] = {
        {.role = LLM_ASSISTANT, .provider = "openai", .parts = parts, .part_count = 2},
        {.role = LLM_USER, .parts = TEXT("q")},
        {.role = LLM_ASSISTANT,
         .provider = "openai",
         .parts = parts,
         .part_count = 2,
         .calls = calls,
         .call_count = 1},
        {.role = LLM_ASSISTANT,
         .provider = "anthropic",
         .parts = parts,
         .part_count = 2,
         .calls = calls,
         .call_count = 1}};
    struct llm_request request = request_of(messages, 4);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_openai, &request, J({
        "model" : "m",
        "messages" : [
            {"role" : "assistant", "content" : "x"}, {"role" : "user", "content" : "q"}, {
                "role" : "assistant",
                "content" : "x",
                "reasoning_content" : "hmm",
                "tool_calls" : [ {
                    "id" : "a",
                    "type" : "function",
                    "function" : {"name" : "f", "arguments" : "{}"},
                    "extra_content" : {"g" : 1}
                } ]
            },
            {
                "role" : "assistant",
                "content" : "x",
                "tool_calls" : [ {
                    "id" : "a",
                    "type" : "function",
                    "function" : {"name" : "f", "arguments" : "{}"}
                } ]
            }
        ],
        "stream" : true,
        "stream_options" : {"include_usage" : true}
    }));
}

TEST(openai_refuses_a_key_that_would_be_two_headers)
{
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = TEXT("hi")}};
    struct llm_request request = request_of(messages, 1);
    auto_llm_test struct llm_test t = {};
    struct error err = {};

    request.model.api_key = "secret\r\nX: y";
    llm_test_open(&t, &provider_openai, &request);
    assert_true(provider_openai.build(&request, &t.s, &err) < 0);
    if (!test_is_torture())
        assert_str_eq(err.text, "a control character in what goes into the header Authorization");
}

/* ---- answers ---- */

static void decodes(const char *text, const char *want)
{
    struct llm_request request = request_of(NULL, 0);

    llm_test_answer(&provider_openai, &request, text, want);
}

TEST(openai_reads_text_usage_and_an_end)
{
    decodes(": comment\n\n"
            "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
            "\"content\":\"\"}}],\"usage\":null}\n\n" D({"content" : "Hel"}) D({
                "content" : "l\u00f6"
            }) "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"not "
               "me\"}}]}\n\n" FINISH("stop") "data: "
                                             "{\"choices\":[],\"usage\":{\"prompt_tokens\":5,"
                                             "\"completion_tokens\":"
                                             "2,\"prompt_tokens_details\":{\"cached_tokens\":3}"
                                             ","
                                             "\"completion_tokens_details\":{\"reasoning_"
                                             "tokens\":1}}}\n\n" DONE,
            "text[Hell\u00f6] m-1 stop 5/2/3/1");
}

TEST(openai_reads_characters_that_were_cut_in_two)
{
    decodes(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\n"
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00b\\ud83d\"}}]}\n\n"
        "data: {\"choices\":[{\"delta\":{\"content\":\"c\\ude00\\u0000\"}}]}\n\n" FINISH("stop"),
        "text[a\xf0\x9f\x98\x80"
        "b\xef\xbf\xbd"
        "c\xef\xbf\xbd\xef\xbf\xbd] m stop -1/-1/-1/-1");
}

TEST(openai_reads_bytes_that_are_no_text)
{
    decodes("data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"}}]}\n\n" FINISH("length"),
            "text[a\xef\xbf\xbd] m length -1/-1/-1/-1");
}

TEST(openai_reads_reasoning_of_both_names)
{
    decodes(D({"reasoning_content" : "a"}) D({"reasoning_content" : "b", "content" : null})
                D({"content" : "x"}) FINISH("stop") DONE,
            "thought[ab]=\"reasoning_content\" text[x] m stop -1/-1/-1/-1");
    decodes(D({"reasoning" : "a"}) FINISH("stop") DONE,
            "thought[a]=\"reasoning\" m stop -1/-1/-1/-1");
}

TEST(openai_reads_calls_by_index)
{
    decodes(D({
                "tool_calls" : [ {
                    "index" : 0,
                    "id" : "a",
                    "type" : "function",
                    "function" : {"name" : "f", "arguments" : ""}
                } ]
            }) D({"tool_calls" : [ {"index" : 0, "function" : {"arguments" : "{\"x\":"}} ]})
                D({"tool_calls" : [ {"index" : 1, "id" : "b", "function" : {"name" : "g"}} ]}) D({
                    "tool_calls" : [
                        {"index" : 0, "function" : {"arguments" : "1}"}},
                        {"index" : 1, "function" : {"arguments" : "{}"}}
                    ]
                }) D({"content" : "and text"}) FINISH("tool_calls") DONE,
            "text[and text] call[a f {\"x\":1}] call[b g {}] m tool_calls -1/-1/-1/-1");
}

TEST(openai_reads_calls_that_come_whole)
{
    /* Without an index; with index 0 for all; with the same id for all; without any id. */
    decodes(D({
                "tool_calls" : [
                    {"id" : "a", "function" : {"name" : "f", "arguments" : "{\"x\":1}"}},
                    {"id" : "b", "function" : {"name" : "g", "arguments" : "{}"}}
                ]
            }) FINISH("stop"),
            "call[a f {\"x\":1}] call[b g {}] m tool_calls -1/-1/-1/-1");
    decodes(D({
                "tool_calls" :
                    [ {"index" : 0, "id" : "a", "function" : {"name" : "f", "arguments" : "{}"}} ]
            }) D({
                "tool_calls" :
                    [ {"index" : 0, "id" : "b", "function" : {"name" : "f", "arguments" : "{}"}} ]
            }) FINISH("stop"),
            "call[a f {}] call[b f {}] m tool_calls -1/-1/-1/-1");
    decodes(D({
                "tool_calls" : [ {
                    "index" : 0,
                    "id" : "a",
                    "function" : {"name" : "f", "arguments" : "{\"x\":\"}\"}"}
                } ]
            }) D({
                "tool_calls" :
                    [ {"index" : 0, "id" : "a", "function" : {"name" : "f", "arguments" : "{}"}} ]
            }) FINISH("stop"),
            "call[a f {\"x\":\"}\"}] call[made f {}] m tool_calls -1/-1/-1/-1");
    decodes(D({
                "tool_calls" : [
                    {"function" : {"name" : "f", "arguments" : {"x" : 1}}},
                    {"id" : "", "function" : {"name" : "g", "arguments" : null}}
                ]
            }) FINISH("stop"),
            "call[made f {\"x\":1}] call[made g {}] m tool_calls -1/-1/-1/-1");
    decodes(D({"function_call" : {"name" : "f", "arguments" : "{"}})
                D({"function_call" : {"arguments" : "}"}}) FINISH("function_call"),
            "call[made f {}] m tool_calls -1/-1/-1/-1");
}

TEST(openai_reads_pieces_that_name_their_call_each_time)
{
    decodes(
        D({
            "tool_calls" :
                [ {"index" : 0, "id" : "a", "function" : {"name" : "f", "arguments" : "{\"x\""}} ]
        }) D({
            "tool_calls" :
                [ {"index" : 0, "id" : "a", "function" : {"name" : "f", "arguments" : ":1}"}} ]
        }) FINISH("stop"),
        "call[a f {\"x\":1}] m tool_calls -1/-1/-1/-1");
    decodes(
        D({"tool_calls" : [ {"id" : "a", "function" : {"name" : "f", "arguments" : "{\"x\""}} ]})
            D({"tool_calls" : [ {"id" : "a", "function" : {"arguments" : ":"}} ]})
                D({"tool_calls" : [ {"function" : {"arguments" : "1}"}} ]}) FINISH("stop"),
        "call[a f {\"x\":1}] m tool_calls -1/-1/-1/-1");
}

TEST(openai_reads_malformed_arguments_as_such)
{
    decodes(D({
                "tool_calls" : [
                    {"index" : 0, "id" : "a", "function" : {"name" : "f", "arguments" : "{oops"}},
                    {"index" : 1, "id" : "b", "function" : {"name" : "f", "arguments" : "[1]"}}, {
                        "index" : 2,
                        "id" : "c",
                        "function" : {"name" : "f", "arguments" : "{\"a\":1,\"a\":2}"}
                    },
                    {"index" : 3, "id" : "d", "function" : {"name" : "f", "arguments" : "  "}},
                    {"index" : 4, "function" : {"arguments" : "{}"}}
                ]
            }) FINISH("tool_calls"),
            "call[a f {oops invalid] call[b f [1] invalid] call[c f {\"a\":1,\"a\":2} invalid] "
            "call[d f {}] call[made unknown {}] m tool_calls -1/-1/-1/-1");
}

TEST(openai_keeps_signatures_beside_calls)
{
    decodes(D({
                "tool_calls" : [ {
                    "index" : 0,
                    "id" : "a",
                    "function" : {"name" : "f"},
                    "extra_content" : {"google" : {"thought_signature" : "S"}}
                } ]
            }) FINISH("stop"),
            "call[a f {}]={\"extra_content\":{\"google\":{\"thought_signature\":\"S\"}}} m "
            "tool_calls -1/-1/-1/-1");
}

TEST(openai_reads_one_document_as_an_answer)
{
    decodes(
        J({
            "model" : "m-2",
            "choices" : [ {
                "index" : 0,
                "finish_reason" : "stop",
                "message" : {"role" : "assistant", "content" : [ {"type" : "text", "text" : "hi"} ]}
            } ],
            "usage" : {"prompt_tokens" : 1, "completion_tokens" : 2}
        }),
        "text[hi] m-2 stop 1/2/-1/-1");
    decodes(J({"error" : {"message" : "bad", "code" : 503}}),
            "UPSTREAM again: OpenAI answered 503: bad");
}

TEST(openai_fails_in_the_middle_of_a_stream)
{
    decodes(D({"content" : "x"}) "data: {\"error\":{\"message\":\"slow down\",\"type\":"
                                 "\"rate_limit_error\"}}\n\n",
            "LIMIT_REACHED again: OpenAI answered 429: slow down");
    decodes("data: {\"error\":\"it broke\"}\n\n", "UPSTREAM: OpenAI failed: it broke");
    decodes("event: error\ndata: {\"message\":\"it broke\",\"code\":\"server_error\"}\n\n",
            "UPSTREAM again: OpenAI answered 500: it broke");
    decodes(D({"content" : "x"}) "data: {\"choices\":[{\"delta\"\n\n",
            "UPSTREAM again: OpenAI sent what is not JSON");
}

TEST(openai_tells_an_answer_that_was_cut)
{
    static const char *const cut[] = {"", "\n\n", D({"content" : "x"}), "<html>no</html>",
                                      "data: {\"choices\":[{\"del"};

    for (size_t i = 0; i < ARRAY_LEN(cut); i++)
        decodes(cut[i], "UPSTREAM again: OpenAI: the answer ended in the middle");
    /* With a reason to finish it is whole, whatever is missing behind it. */
    decodes(D({"content" : "x"}) FINISH("stop"), "text[x] m stop -1/-1/-1/-1");
    decodes(D({"content" : "x"}) DONE D({"content" : "y"}), "text[x] m stop -1/-1/-1/-1");
}

TEST(openai_reads_odd_types_as_nothing)
{
    decodes("data: []\n\ndata: 1\n\ndata: {\"choices\":[null,1,{\"delta\":[],\"index\":\"x\"},"
            "{\"delta\":{\"content\":5,\"tool_calls\":{\"a\":1},\"reasoning\":[]}},"
            "{\"delta\":{\"tool_calls\":[null,3,{\"index\":-1,\"id\":7,\"function\":8}]}}],"
            "\"usage\":[],\"model\":9}\n\n" DONE,
            "m stop -1/-1/-1/-1");
}

TEST(openai_bounds_the_number_of_calls)
{
    struct llm_request request = request_of(NULL, 0);
    auto_llm_test struct llm_test t = {};
    struct error err = {};
    int r = 0;

    llm_test_open(&t, &provider_openai, &request);
    for (unsigned i = 0; i <= LLM_CALLS_MAX && r == 0; i++) {
        char piece[200];
        int n =
            snprintf(piece, sizeof(piece),
                     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%u,\"function\":"
                     "{\"name\":\"f\"}}]}}]}\n\n",
                     i);

        r = stream_feed(&t.s, piece, (size_t)n, &err);
    }
    assert_true(r < 0);
    if (!test_is_torture())
        assert_str_eq(err.text, "the model's tool calls are above the limit of 128");
}
