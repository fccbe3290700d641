/* SPDX-License-Identifier: MIT */
/* Messages: every spelling becomes the one form of the contract, and stays it. */
#include "agent/message.h"

#include "base/str.h"
#include "base/uuid.h"
#include "llm/llm.h"

#include "tests/lib/test.h"

static struct message *parse(const char *text)
{
    auto_json yyjson_doc *doc = NULL;
    struct message *m = NULL;
    struct error err = {};

    assert_ok(json_parse(text, strlen(text), &doc, &err), err);
    if (message_parse(yyjson_doc_get_root(doc), &m, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", text, err.text);
    return m;
}

static void expect(const char *text, const char *json)
{
    auto_message struct message *m = parse(text), *again = NULL;

    assert_str_eq(m->json, json);
    assert_uint_eq(m->len, strlen(json));
    again = parse(m->json);
    assert_str_eq(again->json, json);
    assert_str_eq(again->id, m->id);
}

static void refuse(const char *text, const char *part)
{
    auto_json yyjson_doc *doc = NULL;
    auto_message struct message *m = NULL;
    struct error err = {};

    assert_ok(json_parse(text, strlen(text), &doc, &err), err);
    if (message_parse(yyjson_doc_get_root(doc), &m, &err) != -ERR_INVALID)
        test_fail(__FILE__, __LINE__, "%s was accepted", text);
    assert_str_has(err.text, part);
}

#define TAIL "\"name\":null,\"additional_kwargs\":{},\"response_metadata\":{}"
#define AI_TAIL TAIL ",\"tool_calls\":[],\"invalid_tool_calls\":[],\"usage_metadata\":null}"

TEST(missing_members_are_filled_in)
{
    expect("{\"id\":\"h\",\"content\":\"hi\",\"type\":\"human\"}",
           "{\"type\":\"human\",\"content\":\"hi\",\"id\":\"h\"," TAIL "}");
    expect("{\"id\":\"s\",\"content\":[],\"type\":\"system\",\"name\":null}",
           "{\"type\":\"system\",\"content\":[],\"id\":\"s\"," TAIL "}");
    expect("{\"id\":\"a\",\"content\":null,\"type\":\"ai\"}",
           "{\"type\":\"ai\",\"content\":\"\",\"id\":\"a\"," AI_TAIL);
    expect("{\"id\":\"t\",\"content\":\"2\",\"role\":\"tool\",\"tool_call_id\":\"c\"}",
           "{\"type\":\"tool\",\"content\":\"2\",\"id\":\"t\",\"name\":null,\"tool_call_id\":\"c\","
           "\"artifact\":null,\"status\":\"success\",\"additional_kwargs\":{},"
           "\"response_metadata\":{}}");
    expect("{\"type\":\"remove\",\"id\":\"h1\"}",
           "{\"type\":\"remove\",\"id\":\"h1\",\"content\":\"\"}");
}

TEST(every_role_has_its_type)
{
    static const char *const roles[][2] = {
        {"user", "human"},    {"human", "human"},   {"assistant", "ai"},
        {"ai", "ai"},         {"tool", "tool"},     {"AIMessageChunk", "ai"},
        {"system", "system"}, {"function", "tool"}, {"ToolMessageChunk", "tool"},
    };

    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        char text[200], head[40];
        auto_message struct message *m = NULL;

        snprintf(text, sizeof(text),
                 "{\"role\":\"%s\",\"type\":\"message\",\"content\":\"x\",\"id\":\"1\","
                 "\"tool_call_id\":\"c\"}",
                 roles[i][0]);
        snprintf(head, sizeof(head), "{\"type\":\"%s\",", roles[i][1]);
        m = parse(text);
        assert_true(str_starts(m->json, head));
        assert_null(strstr(m->json, "\"role\""));
    }
    expect("{\"role\":\"developer\",\"content\":\"x\",\"id\":\"1\"}",
           "{\"type\":\"system\",\"content\":\"x\",\"id\":\"1\",\"name\":null,"
           "\"additional_kwargs\":{\"__openai_role__\":\"developer\"},\"response_metadata\":{}}");
}

TEST(a_text_and_a_pair_are_messages)
{
    auto_message struct message *text = parse("\"hi\"");
    auto_message struct message *pair = parse("[\"assistant\",\"yes\"]");

    assert_int_eq(text->type, MESSAGE_HUMAN);
    assert_true(str_starts(text->json, "{\"type\":\"human\",\"content\":\"hi\",\"id\":\""));
    assert_true(uuid_check(text->id));
    assert_int_eq(pair->type, MESSAGE_AI);
    assert_true(str_starts(pair->json, "{\"type\":\"ai\",\"content\":\"yes\""));
    assert_false(message_has_calls(pair));
}

TEST(the_constructor_form)
{
    expect("{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain_core\",\"messages\","
           "\"HumanMessage\"],\"kwargs\":{\"content\":\"hi\",\"id\":\"h\",\"extra\":[1]}}",
           "{\"type\":\"human\",\"content\":\"hi\",\"id\":\"h\"," TAIL ",\"extra\":[1]}");
}

TEST(unknown_members_blocks_and_numbers_stay)
{
    expect("{\"zeta\":1.0,\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://"
           "x/\"},\"b\":1,\"a\":18446744073709551615},\"text\"],\"type\":\"human\",\"id\":\"h\","
           "\"example\":false,\"additional_kwargs\":{\"k\":-9223372036854775808}}",
           "{\"type\":\"human\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
           "\"https://x/\"},\"b\":1,\"a\":18446744073709551615},\"text\"],\"id\":\"h\",\"name\":"
           "null,\"additional_kwargs\":{\"k\":-9223372036854775808},\"response_metadata\":{},"
           "\"zeta\":1.0,\"example\":false}");
}

TEST(tool_calls_of_openai_become_ours)
{
    auto_message struct message *m = NULL;

    expect("{\"role\":\"assistant\",\"id\":\"a\",\"content\":\"\",\"tool_calls\":["
           "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
           "\"{\\\"x\\\":1}\"}},"
           "{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"\"}},"
           "{\"id\":\"3\",\"type\":\"function\",\"function\":{\"name\":\"h\",\"arguments\":"
           "\"{bad\"}},{\"name\":\"i\",\"args\":{\"y\":2},\"id\":\"4\",\"extra\":true}]}",
           "{\"type\":\"ai\",\"content\":\"\",\"id\":\"a\"," TAIL
           ",\"tool_calls\":[{\"name\":\"f\",\"args\":{\"x\":1},\"id\":\"1\",\"type\":"
           "\"tool_call\"},{\"name\":\"g\",\"args\":{},\"id\":\"2\",\"type\":\"tool_call\"},"
           "{\"name\":\"i\",\"args\":{\"y\":2},\"id\":\"4\",\"type\":\"tool_call\",\"extra\":true}"
           "],\"invalid_tool_calls\":[{\"name\":\"h\",\"args\":\"{bad\",\"id\":\"3\",\"error\":"
           "\"the arguments are not valid JSON\",\"type\":\"invalid_tool_call\"}],"
           "\"usage_metadata\":null}");
    m = parse("{\"type\":\"ai\",\"content\":\"\",\"additional_kwargs\":{\"tool_calls\":[{\"id\":"
              "\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}");
    assert_true(message_has_calls(m));
    assert_str_has(m->json, "\"tool_calls\":[{\"name\":\"f\",\"args\":{},\"id\":\"1\"");
}

TEST(a_call_without_an_id_gets_one)
{
    auto_message struct message *m =
        parse("{\"type\":\"ai\",\"content\":\"\",\"tool_calls\":[{\"name\":\"f\",\"id\":null}]}");

    assert_str_has(m->json, "{\"name\":\"f\",\"args\":{},\"id\":\"call_");
}

TEST(what_is_no_message_is_refused_by_name)
{
    refuse("1", "no object, text, or pair");
    refuse("[\"user\"]", "no object, text, or pair");
    refuse("[\"nobody\",\"x\"]", "'nobody'");
    refuse("{\"content\":\"x\"}", "neither type nor role");
    refuse("{\"type\":\"human\"}", "no content");
    refuse("{\"type\":\"human\",\"content\":{}}", "content is neither");
    refuse("{\"type\":\"human\",\"content\":[\"a\",1]}", "content[1]");
    refuse("{\"type\":\"human\",\"content\":\"\",\"id\":[]}", "id");
    refuse("{\"type\":\"human\",\"content\":\"\",\"id\":\"a\\u0000b\"}", "id");
    refuse("{\"type\":\"human\",\"content\":\"\",\"name\":1}", "name");
    refuse("{\"type\":\"human\",\"content\":\"\",\"additional_kwargs\":[]}", "additional_kwargs");
    refuse("{\"type\":\"ai\",\"usage_metadata\":1}", "usage_metadata");
    refuse("{\"type\":\"ai\",\"tool_calls\":{}}", "tool_calls");
    refuse("{\"type\":\"ai\",\"tool_calls\":1}", "tool_calls");
    refuse("{\"type\":\"ai\",\"tool_calls\":[{\"args\":{}}]}", "tool_calls[0]: a tool call has no");
    refuse("{\"type\":\"ai\",\"tool_calls\":[{\"name\":\"f\",\"args\":[]}]}", "arguments");
    refuse("{\"type\":\"ai\",\"invalid_tool_calls\":[1]}", "invalid_tool_calls[0]");
    refuse("{\"type\":\"tool\",\"content\":\"\"}", "tool_call_id");
    refuse("{\"type\":\"tool\",\"content\":\"\",\"tool_call_id\":\"c\",\"status\":\"ok\"}",
           "status");
    refuse("{\"type\":\"remove\"}", "id");
}

TEST(the_number_of_calls_is_limited)
{
    static const char *const keys[] = {"tool_calls", "invalid_tool_calls"};

    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        auto_json yyjson_doc *doc = NULL;
        auto_message struct message *m = NULL;
        auto_buf struct buf text;
        struct error err = {};
        int r;

        buf_init(&text, MIB);
        r = buf_printf(&text, "{\"type\":\"ai\",\"%s\":[{\"name\":\"f\"}", keys[k]);
        for (int i = 0; i < LLM_CALLS_MAX; i++)
            r |= buf_append_str(&text, ",{\"name\":\"f\"}");
        r |= buf_append_str(&text, "]}");
        assert_int_eq(r, 0);
        assert_ok(json_parse(buf_str(&text), text.len, &doc, &err), err);
        assert_int_eq(message_parse(yyjson_doc_get_root(doc), &m, &err), -ERR_LIMIT);
    }
}

TEST(arguments_that_could_not_be_read_again_are_refused)
{
    char text[400] = "{\"type\":\"ai\",\"tool_calls\":[{\"name\":\"f\",\"args\":\"{\\\"a\\\":";
    size_t len = strlen(text);

    memset(text + len, '[', 63);
    memset(text + len + 63, ']', 63);
    strncat(text, "}\"}]}", 6);
    refuse(text, "deeper");
}

TEST(a_stored_message_comes_back)
{
    auto_message struct message *m = parse("\"hi\""), *back = NULL;
    struct error err = {};

    assert_ok(message_load(m->json, m->len, 7, &back, &err), err);
    assert_str_eq(back->json, m->json);
    assert_str_eq(back->id, m->id);
    assert_int_eq(back->ref, 7);
}

TEST(garbage_from_the_store_is_an_error)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "1",
        "{}",
        "{\"type\":\"human\",\"content\":\"\"}",
        "{\"type\":\"human\",\"content\":\"\",\"id\":\"\"}",
        "{\"type\":\"human\",\"content\":1,\"id\":\"a\"}",
        "{\"type\":\"x\",\"content\":\"\",\"id\":\"a\"}",
        "{\"type\":\"human\",\"content\":\"\",\"id\":\"a\\u0000\"}",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_message struct message *m = NULL;
        struct error err = {};

        if (message_load(bad[i], strlen(bad[i]), 0, &m, &err) != -ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' was loaded", bad[i]);
    }
}

TEST(the_result_of_a_tool)
{
    const struct message_tool_result result = {
        .id = "t1",
        .name = "execute_code",
        .tool_call_id = "c1",
        .content = "{\"success\":false}",
        .len = strlen("{\"success\":false}"),
        .is_error = true,
    };
    auto_message struct message *m = NULL;
    struct error err = {};

    assert_ok(message_make_tool(&result, &m, &err), err);
    assert_int_eq(m->type, MESSAGE_TOOL);
    assert_str_eq(m->json,
                  "{\"type\":\"tool\",\"content\":\"{\\\"success\\\":false}\",\"id\":\"t1\","
                  "\"name\":\"execute_code\",\"tool_call_id\":\"c1\",\"artifact\":null,"
                  "\"status\":\"error\",\"additional_kwargs\":{},\"response_metadata\":{}"
                  "}");
}

TEST(a_message_above_the_limit_is_refused)
{
    size_t len = MESSAGE_BYTES_MAX;
    auto_free char *content = malloc(len);
    struct message_tool_result result = {
        .name = "f", .tool_call_id = "c", .content = content, .len = len};
    auto_message struct message *m = NULL;
    struct error err = {};

    assert_not_null(content);
    memset(content, 'x', len);
    assert_int_eq(message_make_tool(&result, &m, &err), -ERR_LIMIT);
    result.len -= 1024;
    assert_ok(message_make_tool(&result, &m, &err), err);
}

TEST(the_text_of_a_message)
{
    auto_message struct message *m =
        parse("{\"type\":\"human\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
              "\"image\",\"text\":\"x\"},\"b\",{\"type\":\"text\"},{\"type\":\"text\",\"text\":"
              "\"c\"}]}");
    auto_message struct message *plain = parse("\"d\"");
    auto_buf struct buf text;
    struct error err = {};

    buf_init(&text, 4);
    assert_ok(message_text(m, &text, &err), err);
    assert_ok(message_text(plain, &text, &err), err);
    assert_str_eq(buf_str(&text), "abcd");
    assert_int_eq(message_text(plain, &text, &err), -ERR_LIMIT);
}
