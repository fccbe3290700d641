/* SPDX-License-Identifier: MIT */
/* The checker of arguments: each row is a schema, a value, and what becomes of it. */
#include "tools/schema.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <stdio.h>

/* `want` begins with '!' for errors, "type@loc" joined by blanks; else it is the converted value.
 */
struct row {
    const char *schema, *value, *want;
};

static const struct row scalars[] = {
    {"{\"type\":\"string\"}", "\"x\"", "\"x\""},
    {"{\"type\":\"string\"}", "5", "!string_type@"},
    {"{\"type\":\"string\"}", "5.5", "!string_type@"},
    {"{\"type\":\"string\"}", "true", "!string_type@"},
    {"{\"type\":\"string\"}", "null", "!string_type@"},
    {"{\"type\":\"string\"}", "[\"x\"]", "!string_type@"},
    {"{\"type\":\"string\"}", "{}", "!string_type@"},
    {"{\"type\":\"string\",\"minLength\":1}", "\"\"", "!string_too_short@"},
    {"{\"type\":\"string\",\"minLength\":2}", "\"\xc3\xa4\"", "!string_too_short@"},
    {"{\"type\":\"string\",\"minLength\":1}", "\"\xc3\xa4\"", "\"\xc3\xa4\""},
    {"{\"type\":\"string\",\"maxLength\":2}", "\"\xc3\xa4\xc3\xa4\"", "\"\xc3\xa4\xc3\xa4\""},
    {"{\"type\":\"string\",\"maxLength\":2}", "\"abc\"", "!string_too_long@"},
    {"{\"type\":\"string\",\"pattern\":\"^[0-9]+m$\"}", "\"512m\"", "\"512m\""},
    {"{\"type\":\"string\",\"pattern\":\"^[0-9]+m$\"}", "\"m\"", "!string_pattern_mismatch@"},
    {"{\"type\":\"string\",\"pattern\":\"^[0-9]+m$\"}", "\"5m\\u0000\"",
     "!string_pattern_mismatch@"},
    {"{\"type\":\"string\",\"minLength\":3,\"pattern\":\"^x\"}", "\"a\"",
     "!string_too_short@ string_pattern_mismatch@"},
    {"{\"type\":\"integer\"}", "30", "30"},
    {"{\"type\":\"integer\"}", "-30", "-30"},
    {"{\"type\":\"integer\"}", "30.0", "30"},
    {"{\"type\":\"integer\"}", "1e2", "100"},
    {"{\"type\":\"integer\"}", "30.5", "!int_from_float@"},
    {"{\"type\":\"integer\"}", "1e300", "!int_from_float@"},
    {"{\"type\":\"integer\"}", "\"30\"", "30"},
    {"{\"type\":\"integer\"}", "\" 30 \"", "30"},
    {"{\"type\":\"integer\"}", "\"+30\"", "30"},
    {"{\"type\":\"integer\"}", "\"-30\"", "-30"},
    {"{\"type\":\"integer\"}", "\"30.0\"", "30"},
    {"{\"type\":\"integer\"}", "\"30.5\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\"30.\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\"+-3\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\"\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\" \"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\"thirty\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\"3\\u00000\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "\"99999999999999999999\"", "!int_parsing@"},
    {"{\"type\":\"integer\"}", "true", "!int_type@"},
    {"{\"type\":\"integer\"}", "null", "!int_type@"},
    {"{\"type\":\"integer\"}", "[1]", "!int_type@"},
    {"{\"type\":\"integer\"}", "{}", "!int_type@"},
    {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":300}", "1", "1"},
    {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":300}", "300", "300"},
    {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":300}", "0", "!greater_than_equal@"},
    {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":300}", "301", "!less_than_equal@"},
    {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":300}", "\"301\"", "!less_than_equal@"},
    {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":300}", "18446744073709551615",
     "!less_than_equal@"},
    {"{\"type\":[\"integer\",\"null\"]}", "null", "null"},
    {"{\"type\":[\"integer\",\"null\"]}", "\"7\"", "7"},
    {"{\"type\":[\"integer\",\"null\"]}", "\"x\"", "!int_parsing@"},
    {"{\"type\":[\"string\",\"number\",\"boolean\",\"null\"]}", "1.5", "1.5"},
    {"{\"type\":[\"string\",\"number\",\"boolean\",\"null\"]}", "true", "true"},
    {"{\"type\":[\"string\",\"number\",\"boolean\",\"null\"]}", "null", "null"},
    {"{\"type\":[\"string\",\"number\",\"boolean\",\"null\"]}", "[]", "!string_type@"},
    {"{\"type\":\"number\"}", "3", "3"},
    {"{\"type\":\"number\"}", "\"3.5\"", "3.5"},
    {"{\"type\":\"number\"}", "\"1e3\"", "1000.0"},
    {"{\"type\":\"number\"}", "\"0x10\"", "!float_parsing@"},
    {"{\"type\":\"number\"}", "\"nan\"", "!float_parsing@"},
    {"{\"type\":\"number\"}", "\"1e999\"", "!float_parsing@"},
    {"{\"type\":\"number\"}", "true", "!float_type@"},
    {"{\"type\":\"number\"}", "null", "!float_type@"},
    {"{\"type\":\"number\",\"maximum\":2}", "2.5", "!less_than_equal@"},
    {"{\"type\":\"boolean\"}", "true", "true"},
    {"{\"type\":\"boolean\"}", "\"true\"", "true"},
    {"{\"type\":\"boolean\"}", "\"False\"", "false"},
    {"{\"type\":\"boolean\"}", "\"yes\"", "true"},
    {"{\"type\":\"boolean\"}", "\"OFF\"", "false"},
    {"{\"type\":\"boolean\"}", "\"t\"", "true"},
    {"{\"type\":\"boolean\"}", "\"n\"", "false"},
    {"{\"type\":\"boolean\"}", "1", "true"},
    {"{\"type\":\"boolean\"}", "0.0", "false"},
    {"{\"type\":\"boolean\"}", "2", "!bool_parsing@"},
    {"{\"type\":\"boolean\"}", "\"maybe\"", "!bool_parsing@"},
    {"{\"type\":\"boolean\"}", "null", "!bool_type@"},
    {"{\"type\":\"boolean\"}", "[]", "!bool_type@"},
    {"{\"type\":\"null\"}", "null", "null"},
    {"{\"type\":\"null\"}", "0", "!none_required@"},
    {"{\"enum\":[\"a\",\"b\",null]}", "\"b\"", "\"b\""},
    {"{\"enum\":[\"a\",\"b\",null]}", "null", "null"},
    {"{\"enum\":[\"a\",\"b\"]}", "\"c\"", "!enum@"},
    {"{\"enum\":[\"a\",\"b\"]}", "\"A\"", "!enum@"},
    {"{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}", "5", "!enum@"},
    {"{}", "5", "5"},
    {"{}", "[1,\"x\"]", "[1,\"x\"]"},
};

#define PAIR \
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":" \
    "\"integer\",\"default\":5}},\"required\":[\"a\"]}"
#define CLOSED "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":false}"
#define MAP \
    "{\"type\":\"object\",\"maxProperties\":2,\"minProperties\":1,\"additionalProperties\":" \
    "{\"type\":\"integer\"}}"
#define LIST "{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,\"items\":{\"type\":\"integer\"}}"
#define NESTED \
    "{\"type\":\"object\",\"properties\":{\"files\":{\"type\":\"array\",\"items\":" PAIR "}}}"
#define EITHER \
    "{\"type\":\"object\",\"description\":\"give x or y\",\"properties\":{\"x\":{\"type\":[" \
    "\"string\",\"null\"]},\"y\":{\"type\":\"string\"}},\"anyOf\":[{\"required\":[\"x\"]," \
    "\"properties\":{\"x\":{\"type\":\"string\"}}},{\"required\":[\"y\"]}]}"
#define TREE \
    "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{" \
    "\"n\":{\"$ref\":\"#/$defs/node\"}}}}}"

static const struct row containers[] = {
    {PAIR, "{\"a\":\"x\"}", "{\"a\":\"x\",\"b\":5}"},
    {PAIR, "{\"b\":\"6\",\"a\":\"x\"}", "{\"a\":\"x\",\"b\":6}"},
    {PAIR, "{\"a\":\"x\",\"other\":[1,2]}", "{\"a\":\"x\",\"b\":5}"},
    {PAIR, "{}", "!missing@a"},
    {PAIR, "{\"a\":1,\"b\":\"q\"}", "!string_type@a int_parsing@b"},
    {PAIR, "{\"b\":null}", "!missing@a int_type@b"},
    {PAIR, "[]", "!dict_type@"},
    {PAIR, "null", "!dict_type@"},
    {PAIR, "\"{}\"", "!dict_type@"},
    {CLOSED, "{\"a\":1}", "{\"a\":1}"},
    {CLOSED, "{\"a\":1,\"z\":2}", "!extra_forbidden@z"},
    {MAP, "{\"p\":\"1\",\"q\":2}", "{\"p\":1,\"q\":2}"},
    {MAP, "{\"p\":\"x\"}", "!int_parsing@p"},
    {MAP, "{}", "!too_short@"},
    {MAP, "{\"p\":1,\"q\":2,\"r\":3}", "!too_long@"},
    {MAP, "{\"p\":1,\"p\":2}", "{\"p\":2}"},
    {LIST, "[1,\"2\",3.0]", "[1,2,3]"},
    {LIST, "[]", "!too_short@"},
    {LIST, "[1,2,3,4]", "!too_long@"},
    {LIST, "[1,\"x\",[]]", "!int_parsing@1 int_type@2"},
    {LIST, "\"1\"", "!list_type@"},
    {LIST, "{\"0\":1}", "!list_type@"},
    {NESTED, "{\"files\":[{\"a\":\"x\"},{\"b\":1},5]}", "!missing@files.1.a dict_type@files.2"},
    {NESTED, "{\"files\":null}", "!list_type@files"},
    {EITHER, "{\"x\":\"1\"}", "{\"x\":\"1\"}"},
    {EITHER, "{\"y\":\"1\",\"x\":null}", "{\"x\":null,\"y\":\"1\"}"},
    {EITHER, "{\"x\":null}", "!value_error@"},
    {EITHER, "{}", "!value_error@"},
    {EITHER, "{\"x\":5}", "!string_type@x"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "\"5\"", "5"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "null", "null"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "\"x\"", "!value_error@"},
    {TREE, "{\"n\":{\"n\":{}}}", "{\"n\":{\"n\":{}}}"},
    {TREE, "{\"n\":{\"n\":5}}", "!dict_type@n.n"},
    {"{\"$ref\":\"https://example.com/schema\"}", "5", "!definition_error@"},
    {"{\"$ref\":\"#/$defs/none\"}", "5", "!definition_error@"},
    {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}}}", "5",
     "!recursion_loop@"},
    {"{\"type\":\"object\",\"properties\":{\"a\":false}}", "{\"a\":1}", "!value_error@a"},
    {"{\"type\":\"object\",\"properties\":{\"a\":true}}", "{\"a\":[1]}", "{\"a\":[1]}"},
};

static struct schema *schema_make(const char *text)
{
    struct schema *s = NULL;
    struct error err;

    assert_ok(schema_new(text, strlen(text), &s, &err), err);
    return s;
}

/* "type@loc type@loc" of a list of details. */
static void details_shorten(const struct buf *details, char *ret, size_t size)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *item, *part;
    size_t used = 0, i, max, j, parts;

    *ret = 0;
    if (json_parse(buf_str(details), details->len, &doc, NULL) < 0)
        return;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, max, item)
    {
        used += (size_t)snprintf(ret + used, size - used, "%s%s@", i ? " " : "",
                                 json_get_str(item, "type", "?"));
        yyjson_arr_foreach(yyjson_obj_get(item, "loc"), j, parts, part)
        {
            if (yyjson_is_str(part))
                used += (size_t)snprintf(ret + used, size - used, "%s%s", j ? "." : "",
                                         yyjson_get_str(part));
            else
                used += (size_t)snprintf(ret + used, size - used, "%s%d", j ? "." : "",
                                         (int)yyjson_get_sint(part));
        }
    }
}

static void row_check(const struct row *row)
{
    auto_schema struct schema *s = schema_make(row->schema);
    auto_json yyjson_doc *value = NULL, *checked = NULL;
    auto_buf struct buf details, text;
    char got[1024] = "";
    struct error err;
    int r;

    buf_init(&details, MIB);
    buf_init(&text, MIB);
    assert_ok(json_parse(row->value, strlen(row->value), &value, &err), err);
    r = schema_check(s, yyjson_doc_get_root(value), &checked, &details, &err);
    if (r < 0) {
        got[0] = '!';
        details_shorten(&details, got + 1, sizeof(got) - 1);
    } else {
        assert_ok(json_write(yyjson_doc_get_root(checked), &text, &err), err);
        snprintf(got, sizeof(got), "%s", buf_str(&text));
    }
    if (!str_eq(got, row->want))
        test_fail(__FILE__, __LINE__, "%s of %s is %s, not %s", row->value, row->schema, got,
                  row->want);
}

TEST(scalars_are_converted_as_pydantic_does_but_booleans)
{
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++)
        row_check(&scalars[i]);
}

TEST(objects_and_lists_are_checked_whole)
{
    for (size_t i = 0; i < ARRAY_LEN(containers); i++)
        row_check(&containers[i]);
}

/* The details of a failed check, as text. */
static void details_of(const char *schema, const char *value, struct buf *ret)
{
    auto_schema struct schema *s = schema_make(schema);
    auto_json yyjson_doc *doc = NULL, *checked = NULL;
    struct error err;

    assert_ok(json_parse(value, strlen(value), &doc, &err), err);
    assert_int_eq(schema_check(s, yyjson_doc_get_root(doc), &checked, ret, &err), -ERR_INVALID);
}

static void assert_details(const char *schema, const char *value, const char *want)
{
    auto_buf struct buf details;

    buf_init(&details, MIB);
    details_of(schema, value, &details);
    assert_str_eq(buf_str(&details), want);
}

TEST(details_have_pydantics_shape)
{
    assert_details("{\"properties\":{\"timeout\":{\"type\":\"integer\",\"maximum\":300}}}",
                   "{\"timeout\":301}",
                   "[{\"type\":\"less_than_equal\",\"loc\":[\"timeout\"],\"msg\":\"Input should be "
                   "less than or equal to 300\",\"input\":301,\"ctx\":{\"le\":300}}]");
    assert_details(PAIR, "{\"b\":1}",
                   "[{\"type\":\"missing\",\"loc\":[\"a\"],\"msg\":\"Field required\",\"input\":{"
                   "\"b\":1}}]");
    assert_details("{\"enum\":[\"python\",\"node\",\"r\"]}", "\"ruby\"",
                   "[{\"type\":\"enum\",\"loc\":[],\"msg\":\"Input should be 'python', 'node' or "
                   "'r'\",\"input\":\"ruby\",\"ctx\":{\"expected\":\"'python', 'node' or 'r'\"}}]");
    assert_details(LIST, "[]",
                   "[{\"type\":\"too_short\",\"loc\":[],\"msg\":\"List should have at least 1 item "
                   "after validation, not 0\",\"input\":[],\"ctx\":{\"field_type\":\"List\","
                   "\"min_length\":1,\"actual_length\":0}}]");
    assert_details("{\"type\":\"string\",\"minLength\":1}", "\"\"",
                   "[{\"type\":\"string_too_short\",\"loc\":[],\"msg\":\"String should have at "
                   "least 1 character\",\"input\":\"\",\"ctx\":{\"min_length\":1}}]");
    assert_details(EITHER, "{}",
                   "[{\"type\":\"value_error\",\"loc\":[],\"msg\":\"Value error, give x or y\","
                   "\"input\":{},\"ctx\":{\"error\":\"give x or y\"}}]");
}

TEST(a_long_input_is_not_quoted_whole)
{
    auto_buf struct buf value, details;

    buf_init(&value, MIB);
    buf_init(&details, MIB);
    assert_int_eq(buf_append_byte(&value, '"'), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_eq(buf_append_str(&value, "\xc3\xa4"), 0);
    assert_int_eq(buf_append_byte(&value, '"'), 0);
    details_of("{\"type\":\"integer\"}", buf_str(&value), &details);
    assert_true(details.len < 1000);
    assert_str_has(buf_str(&details), "... (200000 bytes)");
    buf_clear(&details);
    buf_clear(&value);
    assert_int_eq(buf_append_byte(&value, '['), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_eq(buf_printf(&value, "%s%d", i ? "," : "", i), 0);
    assert_int_eq(buf_append_byte(&value, ']'), 0);
    details_of("{\"type\":\"integer\"}", buf_str(&value), &details);
    assert_str_has(buf_str(&details), "\"input\":\"(a list of 1000)\"");
}

TEST(a_long_name_is_not_quoted_whole)
{
    auto_buf struct buf value, details;

    buf_init(&value, MIB);
    buf_init(&details, 64 * KIB);
    assert_int_eq(buf_append_str(&value, "{\""), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_eq(buf_append_str(&value, "\xc3\xa4"), 0);
    assert_int_eq(buf_append_str(&value, "\":[]}"), 0);
    details_of("{\"additionalProperties\":{\"type\":\"string\"}}", buf_str(&value), &details);
    assert_true(details.len < 1000);
    assert_str_has(buf_str(&details), "\"type\":\"string_type\",\"loc\":[\"\xc3\xa4");
}

TEST(errors_are_counted_but_not_all_listed)
{
    auto_buf struct buf value, details;
    auto_json yyjson_doc *doc = NULL;

    buf_init(&value, MIB);
    buf_init(&details, MIB);
    assert_int_eq(buf_append_str(&value, "[null"), 0);
    for (int i = 0; i < 5000; i++)
        assert_int_eq(buf_append_str(&value, ",null"), 0);
    assert_int_eq(buf_append_byte(&value, ']'), 0);
    details_of("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", buf_str(&value), &details);
    assert_int_eq(json_parse(details.data, details.len, &doc, NULL), 0);
    assert_uint_eq(yyjson_arr_size(yyjson_doc_get_root(doc)), SCHEMA_ERRORS_MAX);
}

/* Each level asks both alternatives: without a bound that is 2^60 steps. */
TEST(nested_alternatives_end)
{
    static const char schema[] =
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":"
        "\"#/$defs/a\"}]}}}";
    auto_buf struct buf details;

    buf_init(&details, MIB);
    details_of(schema, "5", &details);
    assert_str_has(buf_str(&details), "value_error");
}

TEST(what_is_no_schema_is_refused)
{
    struct schema *s = NULL;
    struct error err;

    assert_int_eq(schema_new("[]", 2, &s, &err), -ERR_INVALID);
    assert_int_eq(schema_new("{", 1, &s, &err), -ERR_INVALID);
    assert_null(s);
    schema_free(NULL);
}

TEST(nothing_given_is_an_empty_object)
{
    auto_schema struct schema *s = schema_make("{\"properties\":{\"a\":{\"default\":[1]}}}");
    auto_json yyjson_doc *checked = NULL;
    auto_buf struct buf details;
    struct error err;

    buf_init(&details, MIB);
    assert_ok(schema_check(s, NULL, &checked, &details, &err), err);
    assert_uint_eq(yyjson_arr_size(yyjson_obj_get(yyjson_doc_get_root(checked), "a")), 1);
}
