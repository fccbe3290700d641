/* SPDX-License-Identifier: MIT */
/* What every provider shares: the bounds of an answer, ids of calls, masked messages, the forms
 * that requests are given, and what names tell of vision. */
#include "base/str.h"
#include "tests/lib/llm.h"

static struct llm_request request_of(const struct llm_message *messages, size_t count)
{
    return (struct llm_request){.size = sizeof(struct llm_request),
                                .model = {.provider = "openai", .name = "m"},
                                .messages = messages,
                                .message_count = count,
                                .cancel_fd = -1};
}

struct seen {
    struct buf text;
    char id[64];
};

static int seen_delta(void *user, const struct llm_delta *d, struct error *reterr)
{
    struct seen *seen = user;

    if (d->kind == LLM_DELTA_CALL)
        snprintf(seen->id, sizeof(seen->id), "%s", d->id);
    if (d->text && (d->text[d->len] || buf_printf(&seen->text, "%u[%s]", d->index, d->text) < 0))
        return error_no_memory(reterr);
    return 0;
}

/* ---- parts ---- */

TEST(stream_joins_parts_of_a_kind_unless_a_block_ends_them)
{
    struct llm_request request = request_of(NULL, 0);
    auto_llm_test struct llm_test t = {};
    auto_buf struct buf told = {.max = KIB};
    struct llm_reply reply;
    struct error err = {};

    llm_test_open(&t, &provider_openai, &request);
    assert_ok(stream_text(&t.s, "a", 1, &err), err);
    assert_ok(stream_part_end(&t.s, NULL, &err), err);
    assert_ok(stream_text(&t.s, "b", 1, &err), err);
    assert_ok(stream_reasoning(&t.s, "c", 1, &err), err);
    assert_ok(stream_part_end(&t.s, "1", &err), err);
    assert_ok(stream_reasoning(&t.s, "d", 1, &err), err);
    assert_ok(stream_part_end(&t.s, NULL, &err), err);
    assert_ok(stream_part_end(&t.s, "2", &err), err);
    assert_ok(stream_text(&t.s, "", 0, &err), err);
    assert_ok(stream_reply(&t.s, &reply, &err), err);
    llm_test_tell_parts(&reply, &told);
    assert_str_eq(buf_str(&told), "text[ab] thought[c]=1 thought[d] thought[]=2 ");
}

TEST(stream_bounds_texts_arguments_and_parts)
{
    struct llm_request request = request_of(NULL, 0);
    auto_llm_test struct llm_test t = {};
    auto_free char *piece = calloc(1, MIB);
    struct error err = {};
    int r = 0;

    assert_not_null(piece);
    if (test_is_torture())
        test_skip("many appends of a megabyte");
    memset(piece, 'x', MIB);
    llm_test_open(&t, &provider_openai, &request);
    /* All parts together. */
    for (int i = 0; i < 8; i++) {
        assert_ok(stream_text(&t.s, piece, MIB, &err), err);
        assert_ok(stream_part_end(&t.s, "1", &err), err);
    }
    assert_int_eq(stream_text(&t.s, "x", 1, &err), -(int)ERR_LIMIT);
    for (int i = 0; i < 4; i++)
        assert_ok(stream_arguments(&t.s, 127, piece, MIB, &err), err);
    assert_int_eq(stream_arguments(&t.s, 127, "x", 1, &err), -(int)ERR_LIMIT);
    assert_int_eq(stream_call(&t.s, 128, "a", "b", &err), -(int)ERR_LIMIT);
    for (int i = 0; i < LLM_PARTS_MAX && r == 0; i++)
        r = stream_part_end(&t.s, "1", &err);
    assert_int_eq(r, -(int)ERR_LIMIT);
}

/* ---- calls ---- */

TEST(stream_gives_the_id_of_a_call_once)
{
    const struct llm_tool_call before[] = {{.id = "old", .name = "f"}};
    const struct llm_message messages[] = {
        {.role = LLM_ASSISTANT, .calls = before, .call_count = 1}};
    struct llm_request request = request_of(messages, 1);
    static const char *const ids[] = {"old", "", NULL, "a", "a"};

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        auto_llm_test struct llm_test t = {};
        struct seen seen = {};
        struct llm_reply reply;
        struct error err = {};

        arena_init(&t.arena, MIB);
        stream_init(&t.s, &request, &provider_openai, &(struct llm_sink){seen_delta, &seen},
                    &t.arena);
        t.open = true;
        assert_ok(stream_call(&t.s, 0, "a", "f", &err), err);
        assert_ok(stream_call(&t.s, 5, ids[i], "f", &err), err);
        assert_ok(stream_call(&t.s, 5, "later", "other", &err), err);
        assert_ok(stream_reply(&t.s, &reply, &err), err);
        assert_uint_eq(reply.call_count, 2);
        assert_str_eq(reply.calls[0].id, "a");
        assert_str_eq(reply.calls[1].id, seen.id);
        assert_true(str_starts(seen.id, "call_"));
        assert_str_eq(reply.calls[1].name, "f");
    }
}

TEST(stream_holds_arguments_back_until_there_is_a_name)
{
    struct llm_request request = request_of(NULL, 0);
    auto_llm_test struct llm_test t = {};
    struct seen seen = {.text.max = KIB};
    struct error err = {};
    int r;

    arena_init(&t.arena, MIB);
    stream_init(&t.s, &request, &provider_openai, &(struct llm_sink){seen_delta, &seen}, &t.arena);
    t.open = true;
    r = stream_arguments(&t.s, 3, "{\"a\"", 4, &err);
    if (r == 0)
        r = stream_arguments(&t.s, 3, ":1", 2, &err);
    if (r == 0 && !seen.text.len)
        r = stream_call(&t.s, 3, NULL, "f", &err);
    if (r == 0)
        r = stream_arguments(&t.s, 3, "}", 1, &err);
    snprintf(seen.id, sizeof(seen.id), "%s", buf_str(&seen.text));
    buf_done(&seen.text);
    assert_ok(r, err);
    assert_str_eq(seen.id, "3[{\"a\":1]3[}]");
}

TEST(stream_cuts_names_and_drops_calls_of_nothing)
{
    struct llm_request request = request_of(NULL, 0);
    auto_llm_test struct llm_test t = {};
    struct llm_reply reply;
    struct error err = {};
    char name[1000] = "";

    memset(name, 'n', sizeof(name) - 1);
    llm_test_open(&t, &provider_openai, &request);
    assert_ok(stream_call(&t.s, 0, name, name, &err), err);
    assert_ok(stream_call(&t.s, 1, "only an id", NULL, &err), err);
    stream_finish(&t.s, "length");
    stream_model(&t.s, name);
    assert_ok(stream_reply(&t.s, &reply, &err), err);
    assert_uint_eq(reply.call_count, 1);
    assert_uint_eq(strlen(reply.calls[0].name), 159);
    assert_true(str_starts(reply.calls[0].id, "call_"));
    assert_str_eq(reply.finish_reason, "length");
    assert_uint_eq(strlen(reply.model_name), 159);
}

/* ---- messages of providers ---- */

TEST(upstream_finds_the_message)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"{\"error\":{\"message\":\"a\"}}", "a"},
        {"[{\"error\":{\"message\":\"a\"}}]", "a"},
        {"{\"error\":\"a\"}", "a"},
        {"{\"detail\":[{\"msg\":\"a\"}]}", "a"},
        {"{\"message\":\"a\"}", "a"},
        {"[[[[{\"error\":\"a\"}]]]]", ""},
        {"{\"other\":1}", ""},
        {"no json \xff", "no json \xef\xbf\xbd"},
        {"  <!doctype html>", ""},
        {"", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_buf struct buf got = {.max = KIB};

        assert_int_eq(upstream_message(cases[i].body, strlen(cases[i].body), &got), 0);
        assert_str_eq(buf_str(&got), cases[i].message);
    }
}

TEST(upstream_masks_what_looks_like_a_key)
{
    static const struct {
        const char *text, *key, *shown;
    } cases[] = {
        {"bad key: abcdefgh12.", "abcdefgh12", "bad key: ***."},
        {"abc:def ghi", "abc:def", "*** ghi"},
        {"bad abcd****h12", "abcdefgh12", "bad ***"},
        {"sk-proj-12345678 and \"AIza12345678\"", NULL, "*** and \"***\""},
        {"sk-8 is short", "", "sk-8 is short"},
        {"two\r\nlines\x1b[0m", NULL, "two  lines [0m"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_buf struct buf got = {.max = KIB};

        assert_int_eq(upstream_mask(cases[i].text, strlen(cases[i].text), cases[i].key, &got), 0);
        assert_str_eq(buf_str(&got), cases[i].shown);
    }
}

TEST(upstream_cuts_long_messages_between_characters)
{
    auto_buf struct buf text = {.max = 8 * KIB}, got = {.max = KIB};

    for (int i = 0; i < 2000; i++)
        assert_int_eq(buf_append_str(&text, "\xe2\x82\xac"), 0);
    assert_int_eq(upstream_mask(text.data, text.len, NULL, &got), 0);
    assert_uint_eq(got.len, 300);
}

/* ---- forms of requests ---- */

static void written(yyjson_mut_val *value, const char *want)
{
    size_t len = 0;
    auto_free char *text = yyjson_mut_val_write(value, 0, &len);

    assert_not_null(text);
    assert_str_eq(text, want);
}

TEST(build_gives_forms_that_services_take)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

    assert_not_null(doc);
    written(build_name(doc, "a b\xc3\xa4"), "\"a_b__\"");
    written(build_name(doc, ""), "\"unknown\"");
    written(build_id(doc, "call_1-a", 40), "\"call_1-a\"");
    written(build_id(doc, NULL, 40), "\"call_e3b0c44298fc1c149afbf4c8996fb924\"");
    written(build_arguments(doc, &(struct llm_tool_call){.arguments = "{\"a\":1}"}), "{\"a\":1}");
    written(build_arguments(doc, &(struct llm_tool_call){.arguments = NULL}), "{}");
    written(build_arguments(doc, &(struct llm_tool_call){.arguments = "\"{}\""}),
            "{\"invalid_arguments\":\"\\\"{}\\\"\"}");
    written(build_schema(doc, &(struct llm_tool){.schema = "{\"oneOf\":[],\"type\":\"array\"}"}),
            "{\"type\":\"object\",\"properties\":{}}");
    assert_null(build_schema(doc, &(struct llm_tool){.schema = "[]"}));
    assert_null(build_json(doc, "{"));
    assert_null(build_json(doc, NULL));
}

/* ---- providers and vision ---- */

TEST(provider_is_found_by_the_names_that_people_use)
{
    static const struct {
        const char *name, *found;
    } cases[] = {{"openai", "openai"},       {"OpenAI-compatible", "openai"},
                 {"anthropic", "anthropic"}, {"claude", "anthropic"},
                 {"google", "google_genai"}, {"gemini", "google_genai"},
                 {"ollama", "ollama"},       {"direct", "direct"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct provider_entry *p = provider_find(cases[i].name);

        assert_not_null(p);
        assert_str_eq(p->name, cases[i].found);
    }
    assert_null(provider_find(""));
    assert_null(provider_find("nobody"));
}

TEST(vision_is_known_of_some_names)
{
    static const char *const yes[] = {"gpt-4o-mini",
                                      "gpt-4.1",
                                      "gpt-5-nano",
                                      "o3",
                                      "o4-mini",
                                      "claude-3-haiku-20240307",
                                      "claude-sonnet-4-5",
                                      "gemini-2.5-flash",
                                      "models/gemini-3-pro",
                                      "llava:13b",
                                      "qwen2.5-vl-72b",
                                      "qwen2.5vl:7b",
                                      "llama3.2-vision:11b",
                                      "gemma3:4b",
                                      "pixtral-12b",
                                      "openai/gpt-4o",
                                      "google/gemma-3-27b-it",
                                      "Qwen/Qwen2-VL-7B-Instruct"};
    static const char *const unknown[] = {
        "gpt-3.5-turbo", "o1-mini", "o3-mini",  "deepseek-chat", "gemma3:1b",    "llama3.2",
        "mygpt-4o",      "",        "qwen3:8b", "claude-2.1",    "mistral-large"};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (vision_of_name(yes[i]) != LLM_VISION_YES)
            test_fail(__FILE__, __LINE__, "%s should see", yes[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        if (vision_of_name(unknown[i]) != LLM_VISION_UNKNOWN)
            test_fail(__FILE__, __LINE__, "%s should not be known to see", unknown[i]);
    }
}

TEST(vision_is_learnt_once_per_provider_model_and_place)
{
    auto_free struct vision_table *t = calloc(1, sizeof(*t));
    const struct llm_model a = {"openai", "m", "http://a", "key"}, b = {"openai", "m", "http://b"},
                           c = {"ollama", "m", "http://a"}, d = {"openai", "gpt-4o", "http://a"};

    assert_not_null(t);
    vision_learn(t, &a, LLM_VISION_YES);
    vision_learn(t, &a, LLM_VISION_NO);
    vision_learn(t, &d, LLM_VISION_NO);
    assert_int_eq(vision_get(t, &a), LLM_VISION_YES);
    assert_int_eq(vision_get(t, &b), LLM_VISION_UNKNOWN);
    assert_int_eq(vision_get(t, &c), LLM_VISION_UNKNOWN);
    assert_int_eq(vision_get(t, &d), LLM_VISION_NO);
    /* The oldest goes when there are too many. */
    for (unsigned i = 0; i < VISION_LEARNT_MAX; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%u", i);
        vision_learn(t, &(struct llm_model){"openai", name}, LLM_VISION_NO);
    }
    assert_int_eq(vision_get(t, &a), LLM_VISION_UNKNOWN);
    assert_int_eq(vision_get(t, &(struct llm_model){"openai", "n255"}), LLM_VISION_NO);
}
