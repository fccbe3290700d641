/* SPDX-License-Identifier: MIT */
/* JSON-RPC messages: what is accepted, and with which code the rest is refused. */
#include "wire/jsonrpc.h"

#include "tests/lib/test.h"

static const struct {
    const char *text;
    int code; /* 0: accepted */
    enum jsonrpc_kind kind;
    bool has_id;
} messages[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, JSONRPC_REQUEST, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}", 0, JSONRPC_REQUEST,
     true},
    {"{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"x\"}", 0, JSONRPC_REQUEST,
     true},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", 0, JSONRPC_NOTIFICATION, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", 0, JSONRPC_RESPONSE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"\"}}", 0, JSONRPC_RESPONSE,
     true},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}", 0, JSONRPC_RESPONSE, false},
    {"", JSONRPC_PARSE_ERROR, 0, false},
    {"{", JSONRPC_PARSE_ERROR, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"} x", JSONRPC_PARSE_ERROR, 0, false},
    {"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", JSONRPC_PARSE_ERROR, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", JSONRPC_PARSE_ERROR, 0, false},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", JSONRPC_INVALID_REQUEST, 0, false},
    {"1", JSONRPC_INVALID_REQUEST, 0, false},
    {"{\"id\":1,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST, 0, true},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST, 0, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", JSONRPC_INVALID_REQUEST, 0, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", JSONRPC_INVALID_REQUEST, 0, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", JSONRPC_INVALID_REQUEST, 0, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}", JSONRPC_INVALID_REQUEST, 0, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}", JSONRPC_INVALID_PARAMS, 0,
     true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"a\"}", JSONRPC_INVALID_REQUEST, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"x\":[{\"b\":1,\"b\":2}]}}",
     JSONRPC_INVALID_REQUEST, 0, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"x\":1,\"\\u0078\":2}}",
     JSONRPC_INVALID_REQUEST, 0, false},
};

TEST(messages_are_told_apart)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        auto_json yyjson_doc *doc = NULL;
        struct jsonrpc_message m;
        struct error error;
        int code, r;

        r = jsonrpc_parse(messages[i].text, strlen(messages[i].text), &doc, &m, &code, &error);
        assert_int_eq(r == 0 ? 0 : code, messages[i].code);
        assert_int_eq(m.id != NULL, messages[i].has_id);
        if (r == 0)
            assert_int_eq(m.kind, messages[i].kind);
    }
}

TEST(deep_and_wide_messages_are_bounded)
{
    enum { DEEP = 100000 };
    auto_free char *text = malloc(DEEP);
    auto_json yyjson_doc *doc = NULL;
    struct jsonrpc_message m;
    struct error error;
    int code;

    assert_not_null(text);
    memset(text, '[', DEEP);
    assert_true(jsonrpc_parse(text, DEEP, &doc, &m, &code, &error) < 0);
    assert_int_eq(code, JSONRPC_PARSE_ERROR);
}

TEST(an_error_is_one_line_with_its_id)
{
    auto_json yyjson_doc *doc = NULL;
    struct jsonrpc_message m;
    auto_buf struct buf text;
    const char *request = "{\"jsonrpc\":\"2.0\",\"id\":\"7\\n\",\"method\":\"a\"}";
    int code;

    buf_init(&text, 1000);
    assert_true(jsonrpc_parse(request, strlen(request), &doc, &m, &code, NULL) == 0);
    assert_true(jsonrpc_format_error(m.id, &(struct jsonrpc_fault){-32601, "no \"a\"\n", NULL},
                                     &text) == 0);
    assert_str_eq(buf_str(&text), "{\"jsonrpc\":\"2.0\",\"id\":\"7\\n\",\"error\":{\"code\":-32601,"
                                  "\"message\":\"no \\\"a\\\"\\n\"}}");
    buf_clear(&text);
    assert_true(jsonrpc_format_error(NULL, &(struct jsonrpc_fault){-32700, "bad", NULL}, &text) ==
                0);
    assert_str_eq(
        buf_str(&text),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"bad\"}}");
}
