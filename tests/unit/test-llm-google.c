/* SPDX-License-Identifier: MIT */
/* What Gemini is sent, and what its answers are read as. */
#include "tests/lib/llm.h"

static const struct llm_tool tools[] = {
    {.name = "execute_code",
     .description = "Runs code.",
     .schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":[\"integer\",\"null\"]}}}"},
};

/* A request of `count` messages to a model. */
static struct llm_request request_of(const char *model, const struct llm_message *messages,
                                     size_t count)
{
    return (struct llm_request){.size = sizeof(struct llm_request),
                                .model = {.provider = "google_genai", .name = model},
                                .messages = messages,
                                .message_count = count,
                                .cancel_fd = -1};
}

#define TEXT(s) &(const struct llm_part){.kind = LLM_TEXT, .text = (s)}, .part_count = 1

TEST(google_builds_a_request)
{
    const struct llm_message messages[] = {
        {.role = LLM_SYSTEM, .parts = TEXT("be kind")},
        {.role = LLM_USER, .parts = TEXT("hi")},
    };
    struct llm_request request = request_of("gemini-2.5-flash", messages, 2);
    auto_llm_test struct llm_test t = {};

    request.model.api_key = "secret";
    request.tools = tools;
    request.tool_count = 1;
    request.max_tokens = 100;
    llm_test_build(
        &t, &provider_google, &request,
        "{\"systemInstruction\":{\"parts\":[{\"text\":\"be kind\"}]},"
        "\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"hi\"}]}],"
        "\"tools\":[{\"functionDeclarations\":[{\"name\":\"execute_code\",\"description\":\"Runs "
        "code.\",\"parametersJsonSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":["
        "\"integer\",\"null\"]}}}}]}],\"generationConfig\":{\"maxOutputTokens\":100}}");
    assert_str_eq(t.s.path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_int_eq((long long)t.s.header_count, 1);
    assert_str_eq(t.s.headers[0], "x-goog-api-key: secret");
}

TEST(google_places_options_where_they_are_looked_for)
{
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = TEXT("hi")}};
    struct llm_request request = request_of("gemini-2.5-flash", messages, 1);
    auto_llm_test struct llm_test t = {};

    request.max_tokens = 100;
    request.options = "{\"temperature\":0.5,\"top_p\":0.9,\"max_tokens\":7,\"model\":\"x\","
                      "\"contents\":[],\"generationConfig\":{\"seed\":1},\"safetySettings\":[]}";
    llm_test_build(&t, &provider_google, &request,
                   "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"hi\"}]}],"
                   "\"generationConfig\":{\"maxOutputTokens\":7,\"temperature\":0.5,\"topP\":0.9,"
                   "\"seed\":1},\"safetySettings\":[]}");
}

TEST(google_refuses_options_that_are_no_object)
{
    static const char *const bad[] = {"[]", "{", "1"};
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = TEXT("hi")}};
    struct llm_request request = request_of("gemini-2.5-flash", messages, 1);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_llm_test struct llm_test t = {};
        struct error err = {};

        request.options = bad[i];
        llm_test_open(&t, &provider_google, &request);
        assert_true(provider_google.build(&request, &t.s, &err) < 0);
        assert_int_eq(err.code, ERR_INVALID);
    }
}

TEST(google_takes_names_that_are_names)
{
    static const struct {
        const char *name, *base, *path;
    } cases[] = {
        {"models/gemini-3-pro", NULL, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"},
        {"gemini-3-pro", "http://127.0.0.1:1/v1",
         "/models/gemini-3-pro:streamGenerateContent?alt=sse"},
        {"tunedModels/mine_1", "http://127.0.0.1:1",
         "/v1beta/tunedModels/mine_1:streamGenerateContent?alt=sse"},
        {"", NULL, NULL},
        {NULL, NULL, NULL},
        {"..", NULL, NULL},
        {"a/b", NULL, NULL},
        {"../x", NULL, NULL},
        {"a?key=b", NULL, NULL},
        {"a b", NULL, NULL},
        {"a:countTokens", NULL, NULL},
        {"models/models/x", NULL, NULL},
    };
    const struct llm_message messages[] = {{.role = LLM_USER, .parts = TEXT("hi")}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_request request = request_of(cases[i].name, messages, 1);
        auto_llm_test struct llm_test t = {};
        struct error err = {};

        request.model.base_url = cases[i].base;
        llm_test_open(&t, &provider_google, &request);
        if (cases[i].path) {
            assert_ok(provider_google.build(&request, &t.s, &err), err);
            assert_str_eq(t.s.path, cases[i].path);
        } else {
            assert_true(provider_google.build(&request, &t.s, &err) < 0);
        }
    }
}

/* ---- a turn with calls ---- */

static const struct llm_tool_call calls[] = {
    {.id = "c1",
     .name = "execute_code",
     .arguments = "{\"n\":1}",
     .valid = true,
     .raw = "{\"id\":\"g1\",\"thoughtSignature\":\"c2ln\"}"},
    {.id = "c2", .name = "execute_code", .arguments = "{}", .valid = true},
};
static const struct llm_part thoughts[] = {
    {.kind = LLM_REASONING, .text = "hm", .raw = "{\"thoughtSignature\":\"dGg=\"}"},
    {.kind = LLM_REASONING, .text = "unsigned"},
    {.kind = LLM_TEXT, .text = "so"},
};
static const struct llm_part shown[] = {
    {.kind = LLM_TEXT, .text = "{\"success\":true}"},
    {.kind = LLM_IMAGE, .mime = "image/png", .data = "iVBO"},
    {.kind = LLM_IMAGE, .mime = "image/gif", .data = "R0lG"},
};

static void turn_fill(struct llm_message ret[4], const char *provider)
{
    static const struct llm_part plot = {.kind = LLM_TEXT, .text = "plot"};
    static const struct llm_part no = {.kind = LLM_TEXT, .text = "no"};

    ret[0] = (struct llm_message){.role = LLM_USER, .parts = &plot, .part_count = 1};
    ret[1] = (struct llm_message){.role = LLM_ASSISTANT,
                                  .parts = thoughts,
                                  .part_count = 3,
                                  .calls = calls,
                                  .call_count = 2,
                                  .provider = provider};
    ret[2] = (struct llm_message){
        .role = LLM_TOOL, .parts = shown, .part_count = 3, .tool_call_id = "c1"};
    ret[3] = (struct llm_message){
        .role = LLM_TOOL, .parts = &no, .part_count = 1, .tool_call_id = "c2", .is_error = true};
}

#define USER_PLOT "{\"role\":\"user\",\"parts\":[{\"text\":\"plot\"}]},"
#define GIF_NOTE "{\"text\":\"[left out, as this model takes none such: image image/gif]\"}"
#define SHOWN_NOTE "{\"text\":\"[what the result of execute_code shows]\"}"

TEST(google_gives_back_what_it_signed)
{
    struct llm_message messages[4] = {};
    struct llm_request request = request_of("gemini-3-pro", messages, 4);
    auto_llm_test struct llm_test t = {};

    turn_fill(messages, "google_genai");
    llm_test_build(
        &t, &provider_google, &request,
        "{\"contents\":[" USER_PLOT "{\"role\":\"model\",\"parts\":["
        "{\"text\":\"hm\",\"thought\":true,\"thoughtSignature\":\"dGg=\"},{\"text\":\"so\"},"
        "{\"functionCall\":{\"id\":\"g1\",\"name\":\"execute_code\",\"args\":{\"n\":1}},"
        "\"thoughtSignature\":\"c2ln\"},"
        "{\"functionCall\":{\"name\":\"execute_code\",\"args\":{}}}]},"
        "{\"role\":\"user\",\"parts\":["
        "{\"functionResponse\":{\"id\":\"g1\",\"name\":\"execute_code\",\"response\":{\"success\":"
        "true},\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"iVBO\"}}]}},"
        "{\"functionResponse\":{\"name\":\"execute_code\",\"response\":{\"error\":\"no\"}}}]},"
        "{\"role\":\"user\",\"parts\":[" SHOWN_NOTE "," GIF_NOTE "]}]}");
}

TEST(google_gets_nothing_that_another_provider_signed)
{
    struct llm_message messages[4] = {};
    struct llm_request request = request_of("gemini-2.5-pro", messages, 4);
    auto_llm_test struct llm_test t = {};

    turn_fill(messages, "anthropic");
    llm_test_build(
        &t, &provider_google, &request,
        "{\"contents\":[" USER_PLOT "{\"role\":\"model\",\"parts\":[{\"text\":\"so\"},"
        "{\"functionCall\":{\"name\":\"execute_code\",\"args\":{\"n\":1}}},"
        "{\"functionCall\":{\"name\":\"execute_code\",\"args\":{}}}]},"
        "{\"role\":\"user\",\"parts\":["
        "{\"functionResponse\":{\"name\":\"execute_code\",\"response\":{\"success\":true}}},"
        "{\"functionResponse\":{\"name\":\"execute_code\",\"response\":{\"error\":\"no\"}}}]},"
        "{\"role\":\"user\",\"parts\":[" SHOWN_NOTE ","
        "{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"iVBO\"}}," GIF_NOTE "]}]}");
}

/* A newer model refuses a call without a signature; only the first of a turn has one. */
TEST(google_signs_calls_of_others_as_documented)
{
    const struct llm_message messages[] = {
        {.role = LLM_USER, .parts = TEXT("plot")},
        {.role = LLM_ASSISTANT, .calls = calls, .call_count = 2, .provider = "openai"},
    };
    struct llm_request request = request_of("gemini-pro-latest", messages, 2);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_google, &request,
                   "{\"contents\":[" USER_PLOT "{\"role\":\"model\",\"parts\":["
                   "{\"functionCall\":{\"name\":\"execute_code\",\"args\":{\"n\":1}},"
                   "\"thoughtSignature\":\"skip_thought_signature_validator\"},"
                   "{\"functionCall\":{\"name\":\"execute_code\",\"args\":{}}}]}]}");
}

TEST(google_sends_pictures_files_and_addresses)
{
    const struct llm_part parts[] = {
        {.kind = LLM_IMAGE, .mime = "image/jpeg", .data = "/9j/"},
        {.kind = LLM_IMAGE, .url = "https://x.example/a.png"},
        {.kind = LLM_FILE, .mime = "application/pdf", .data = "JVBE", .name = "a.pdf"},
        {.kind = LLM_FILE, .mime = "application/zip", .data = "UEsD", .name = "a.zip"},
        {.kind = LLM_TEXT, .text = ""},
    };
    const struct llm_message messages[] = {
        {.role = LLM_USER, .parts = parts, .part_count = ARRAY_LEN(parts)},
        {.role = LLM_ASSISTANT},
    };
    struct llm_request request = request_of("gemini-3-flash", messages, 2);
    auto_llm_test struct llm_test t = {};

    llm_test_build(&t, &provider_google, &request,
                   "{\"contents\":[{\"role\":\"user\",\"parts\":["
                   "{\"inlineData\":{\"mimeType\":\"image/jpeg\",\"data\":\"/9j/\"}},"
                   "{\"fileData\":{\"fileUri\":\"https://x.example/a.png\"}},"
                   "{\"inlineData\":{\"mimeType\":\"application/pdf\",\"data\":\"JVBE\"}},"
                   "{\"text\":\"[left out, as this model takes none such: file a.zip]\"}]}]}");
}

/* ---- answers ---- */

static void answer_is(const char *text, const char *want)
{
    struct llm_request request = request_of("gemini-3-pro", NULL, 0);

    llm_test_answer(&provider_google, &request, text, want);
}

#define PARTS(parts) \
    "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[" parts "]}"
#define MORE "}]}\r\n\r\n"
#define STOP ",\"finishReason\":\"STOP\"}]}\n\n"

TEST(google_decodes_text_and_usage)
{
    answer_is(
        PARTS("{\"text\":\"Gr\xc3\xbc\"}") MORE PARTS(
            "{\"text\":\"\xc3\x9f\\ud83d\\ude00\"}") ",\"finishReason\":\"STOP\"}],"
                                                     "\"modelVersion\":\"gemini-3-pro-001\","
                                                     "\"usageMetadata\":{\"promptTokenCount\":5,"
                                                     "\"candidatesTokenCount\":2,"
                                                     "\"thoughtsTokenCount\":3,"
                                                     "\"cachedContentTokenCount\":4}}\n\n",
        "text[Gr\xc3\xbc\xc3\x9f\xf0\x9f\x98\x80] gemini-3-pro-001 stop 5/5/4/3");
}

TEST(google_decodes_thoughts_and_calls)
{
    answer_is(
        PARTS("{\"text\":\"hm\",\"thought\":true}")
            MORE PARTS("{\"text\":\"\",\"thought\":true,\"thoughtSignature\":\"dGg=\"}") MORE PARTS(
                "{\"functionCall\":{\"name\":\"a\",\"args\":{\"x\":[1,\"\\u00fc\"]},\"id\":\"g1\"},"
                "\"thoughtSignature\":\"c2ln\"},{\"functionCall\":{\"name\":\"b\"}}") STOP,
        "thought[hm]={\"thoughtSignature\":\"dGg=\"} call[g1 a {\"x\":[1,\"\xc3\xbc\"]}]="
        "{\"id\":\"g1\",\"thoughtSignature\":\"c2ln\"} call[made b {}] gemini-3-pro tool_calls "
        "-1/-1/-1/-1");
}

TEST(google_translates_reasons_to_finish)
{
    static const char *const reasons[][2] = {
        {"STOP", "stop"},           {"MAX_TOKENS", "length"}, {"SAFETY", "content_filter"},
        {"SPII", "content_filter"}, {"NOVEL", "NOVEL"},       {"FUNCTION_CALL", "stop"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        char text[256], want[256];

        snprintf(text, sizeof(text), PARTS("{\"text\":\"a\"}") ",\"finishReason\":\"%s\"}]}\n\n",
                 reasons[i][0]);
        snprintf(want, sizeof(want), "text[a] gemini-3-pro %s -1/-1/-1/-1", reasons[i][1]);
        answer_is(text, want);
    }
}

/* Some send a reason with every piece. */
TEST(google_goes_on_after_a_reason)
{
    answer_is(PARTS("{\"text\":\"a\"}") STOP PARTS("{\"text\":\"b\"}") STOP,
              "text[ab] gemini-3-pro stop -1/-1/-1/-1");
}

TEST(google_tells_failures)
{
    answer_is("data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n",
              "LIMIT_REACHED again: Google Gemini answered 429: slow down");
    answer_is("data: {\"error\":{\"message\":\"oops\"}}\n\n",
              "UPSTREAM again: Google Gemini answered 500: oops");
    answer_is("data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n",
              "INVALID_INPUT: Google Gemini answered 400: the request was blocked (SAFETY)");
    answer_is("data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\n\n",
              "UPSTREAM again: Google Gemini answered 502: MALFORMED_FUNCTION_CALL");
}

TEST(google_survives_what_is_malformed)
{
    static const char cut[] = "UPSTREAM again: Google Gemini: the answer ended in the middle";

    answer_is("", cut);
    answer_is("data: [1,2]\n\ndata: 7\n\ndata: null\n\n", cut);
    answer_is("data: {\"candidates\":{\"a\":1}}\n\n", cut);
    answer_is(PARTS("{\"text\":\"a\"}") MORE, cut);
    answer_is(PARTS("{\"text\":7},8,{\"functionCall\":9},{\"inlineData\":{}}") STOP,
              "gemini-3-pro stop -1/-1/-1/-1");
    answer_is(PARTS("{\"functionCall\":{\"args\":[1]}}") STOP,
              "call[made unknown [1] invalid] gemini-3-pro tool_calls -1/-1/-1/-1");
    answer_is("data: {\"candidates\":[\n\n", "UPSTREAM again: Google Gemini sent what is not JSON");
    answer_is(PARTS("{\"text\":\"a\"}") ",\"finishReason\":\"STOP\"}],\"usageMetadata\":{"
                                        "\"promptTokenCount\":-4,\"candidatesTokenCount\":1e300}}"
                                        "\n\n",
              "text[a] gemini-3-pro stop -1/-1/-1/-1");
}
