/* SPDX-License-Identifier: MIT */
/* JSON from hostile bytes: strictness, depth, and writing within a limit. */
#include "base/json.h"

#include "tests/lib/test.h"

static int parse(const char *text, size_t len)
{
    auto_json yyjson_doc *doc = NULL;
    struct error err;

    return json_parse(text, len, &doc, &err);
}

static void nest(char *text, size_t depth)
{
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = 0;
}

TEST(strict_json_only)
{
    static const char good[] = " {\"a\": [1, 2.5, null, true, \"\\u00e9\"]} ";
    static const char *const bad[] = {
        "",     "{",       "[1,]",        "{\"a\":1,}", "nul", "NaN", "1 2", "'a'",
        "[1]x", "/* */ 1", "\"\\ud800\"", "\"\xff\"",   "01",  "+1",  ".5",  "\"\t\"",
    };

    assert_int_eq(parse(good, strlen(good)), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (parse(bad[i], strlen(bad[i])) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was accepted", bad[i]);
    }
}

static char many[3 * JSON_VALUES_MAX];

/* A list of `count` members, which is one value more. */
static size_t list(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        many[2 * i] = i ? ',' : '[';
        many[2 * i + 1] = '1';
    }
    many[2 * count] = ']';
    return 2 * count + 1;
}

TEST(the_number_of_values_is_limited)
{
    struct error err;
    auto_json yyjson_doc *doc = NULL;
    size_t len = list(JSON_VALUES_MAX - 1);

    assert_int_eq(parse(many, len), 0);
    len = list(JSON_VALUES_MAX);
    assert_int_eq(json_parse(many, len, &doc, &err), -ERR_INVALID);
    assert_str_has(err.text, "values");
}

TEST(separators_in_strings_are_no_values)
{
    memset(many, ',', sizeof(many));
    many[0] = many[sizeof(many) - 1] = '"';
    assert_int_eq(parse(many, sizeof(many)), 0);
}

TEST(depth_is_limited)
{
    char text[4 * JSON_DEPTH_MAX];

    nest(text, JSON_DEPTH_MAX);
    assert_int_eq(parse(text, strlen(text)), 0);
    nest(text, JSON_DEPTH_MAX + 1);
    assert_int_eq(parse(text, strlen(text)), -ERR_INVALID);
}

TEST(brackets_in_strings_are_text)
{
    char text[512];

    memset(text, '[', sizeof(text));
    text[0] = text[511] = '"';
    assert_int_eq(parse(text, sizeof(text)), 0);
    assert_int_eq(parse("\"\\\"[[\"", 6), 0);
}

TEST(members_have_fallbacks)
{
    static const char text[] = "{\"s\":\"x\",\"b\":true,\"n\":1}";
    auto_json yyjson_doc *doc = NULL;
    struct error err;
    yyjson_val *root;

    assert_ok(json_parse(text, strlen(text), &doc, &err), err);
    root = yyjson_doc_get_root(doc);
    assert_str_eq(json_get_str(root, "s", "f"), "x");
    assert_str_eq(json_get_str(root, "n", "f"), "f");
    assert_str_eq(json_get_str(root, "none", "f"), "f");
    assert_true(json_get_bool(root, "b", false));
    assert_true(json_get_bool(root, "s", true));
    assert_str_eq(json_get_str(NULL, "s", "f"), "f");
}

TEST(writing_stops_at_the_limit)
{
    static const char text[] = "{\"a\":[1,2,3]}";
    auto_json yyjson_doc *doc = NULL;
    auto_buf struct buf small, large;
    struct error err;

    buf_init(&small, 5);
    buf_init(&large, 100);
    assert_ok(json_parse(text, strlen(text), &doc, &err), err);
    assert_int_eq(json_write(yyjson_doc_get_root(doc), &small, &err), -ERR_LIMIT);
    assert_ok(json_write(yyjson_doc_get_root(doc), &large, &err), err);
    assert_str_eq(buf_str(&large), text);
}

TEST(quotes_a_text)
{
    auto_buf struct buf b;

    buf_init(&b, 100);
    assert_int_eq(json_quote(&b, "a\"\\\n\x01\x7f\xc3\xa9", 8), 0);
    assert_str_eq(buf_str(&b), "\"a\\\"\\\\\\n\\u0001\x7f\xc3\xa9\"");
    buf_clear(&b);
    assert_int_eq(json_quote(&b, "", 0), 0);
    assert_str_eq(buf_str(&b), "\"\"");
}
