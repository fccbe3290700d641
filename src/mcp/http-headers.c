/* SPDX-License-Identifier: MIT */
/*
 * What a modern client has to say twice, in headers and in the body, so that proxies may decide by
 * the headers: a difference between them is refused (SEP-2243).
 */
#include "mcp/http-internal.h"

#include "base/base64.h"
#include "base/str.h"
#include "mcp/call-internal.h"

#include <stdio.h>
#include <strings.h>

enum { NAME_MAX_LEN = 8192, PARAM_NAME_SIZE = 128 };

/* In a tool's schema: the parameter is said in a header "Mcp-Param-..." of this name, too. */
#define MIRRORED "x-mcp-header"

/* One media range of an Accept header, without its parameters. */
static bool range_has(const char *range, size_t len, const char *type)
{
    const char *slash = strchr(type, '/');
    size_t major = (size_t)(slash - type);

    while (len > 0 && strchr(" \t", range[len - 1]))
        len--;
    if (len == 3 && memcmp(range, "*/*", 3) == 0)
        return true;
    if (len == major + 2 && strncasecmp(range, type, major + 1) == 0 && range[major + 1] == '*')
        return true;
    return len == strlen(type) && strncasecmp(range, type, len) == 0;
}

bool mcp_accept_has(const char *accept, const char *type)
{
    if (!accept)
        return true;
    while (*accept) {
        size_t whole, part;

        accept += strspn(accept, " \t,");
        whole = strcspn(accept, ",");
        part = strcspn(accept, ",;");
        if (range_has(accept, part, type))
            return true;
        accept += whole;
    }
    return false;
}

/* Undoes "=?base64?...?="; other values are what they are. -1 for one that is malformed. */
static int value_decode(const char *value, struct buf *ret)
{
    static const char begin[] = "=?base64?", end[] = "?=";
    size_t len = strlen(value), around = sizeof(begin) + sizeof(end) - 2;

    if (len < around || strncasecmp(value, begin, sizeof(begin) - 1) != 0 || !str_ends(value, end))
        return buf_append_str(ret, value);
    if (base64_decode(ret, value + sizeof(begin) - 1, len - around) < 0)
        return -1;
    return strlen(buf_str(ret)) == ret->len ? 0 : -1;
}

/* What the only header of the name says. */
static int header_value(const struct http_request *req, const char *name, struct buf *ret,
                        struct error *reterr)
{
    const char *value = http_header(req, name);

    if (!value)
        return error_set(reterr, ERR_INVALID, "the header %s is missing", name);
    if (http_header_repeats(req, name))
        return error_set(reterr, ERR_INVALID, "there are several headers %s", name);
    if (value_decode(value, ret) < 0)
        return error_set(reterr, ERR_INVALID, "the header %s is malformed", name);
    return 0;
}

static int header_differs(const char *name, struct error *reterr)
{
    return error_set(reterr, ERR_INVALID, "the header %s differs from the body", name);
}

static int header_check(const struct http_request *req, const char *name, const char *want,
                        struct error *reterr)
{
    auto_buf struct buf plain;

    buf_init(&plain, NAME_MAX_LEN);
    if (header_value(req, name, &plain, reterr) < 0)
        return -ERR_INVALID;
    return str_eq(buf_str(&plain), want) ? 0 : header_differs(name, reterr);
}

/* Methods whose requests name something, and where. */
static const struct {
    const char *method, *param;
    bool optional; /* of the header */
} named[] = {
    {"tools/call", "name", false},    {"prompts/get", "name", false},
    {"resources/read", "uri", false}, {"tasks/get", "taskId", true},
    {"tasks/update", "taskId", true}, {"tasks/cancel", "taskId", true},
};

static int name_check(const struct http_request *req, const struct jsonrpc_message *m,
                      struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        const char *value;

        if (!str_eq(named[i].method, m->method))
            continue;
        value = json_get_str(m->params, named[i].param, NULL);
        /* One that is missing in the body is for the method to complain of. */
        if (!value || (named[i].optional && !http_header(req, "Mcp-Name")))
            return 0;
        return header_check(req, "Mcp-Name", value, reterr);
    }
    return 0;
}

/* ---- parameters of tools ---- */

/* Numbers are compared as such: 42 is 42.0. */
static bool param_equals(yyjson_val *value, const struct buf *text)
{
    auto_json yyjson_doc *doc = NULL;

    if (yyjson_is_bool(value))
        return str_eq(buf_str(text), yyjson_is_true(value) ? "true" : "false");
    if (!yyjson_is_num(value))
        return yyjson_equals_strn(value, buf_str(text), text->len);
    return json_parse(buf_str(text), text->len, &doc, NULL) == 0 &&
           yyjson_is_num(yyjson_doc_get_root(doc)) &&
           yyjson_get_num(yyjson_doc_get_root(doc)) == yyjson_get_num(value);
}

static int param_check(const struct http_request *req, const char *suffix, yyjson_val *value,
                       struct error *reterr)
{
    char name[PARAM_NAME_SIZE];
    auto_buf struct buf text;

    snprintf(name, sizeof(name), "Mcp-Param-%s", suffix);
    if (!value || yyjson_is_null(value))
        return http_header(req, name) ? header_differs(name, reterr) : 0;
    buf_init(&text, NAME_MAX_LEN);
    if (header_value(req, name, &text, reterr) < 0)
        return -ERR_INVALID;
    return param_equals(value, &text) ? 0 : header_differs(name, reterr);
}

/* Whatever `properties` lead to, which is as deep as our own schemas are. */
static int params_check(const struct http_request *req, yyjson_val *schema, yyjson_val *arguments,
                        struct error *reterr)
{
    yyjson_val *properties = yyjson_obj_get(schema, "properties"), *key, *property;
    size_t i, max;

    yyjson_obj_foreach(properties, i, max, key, property)
    {
        const char *suffix = json_get_str(property, MIRRORED, NULL);
        yyjson_val *value = yyjson_obj_get(arguments, yyjson_get_str(key));

        if ((suffix && param_check(req, suffix, value, reterr) < 0) ||
            params_check(req, property, value, reterr) < 0)
            return -ERR_INVALID;
    }
    return 0;
}

static int call_check(const struct mcp_http *h, const struct http_request *req,
                      const struct jsonrpc_message *m, struct error *reterr)
{
    const char *schema;
    auto_json yyjson_doc *doc = NULL;

    if (!str_eq(m->method, "tools/call"))
        return 0;
    schema = mcp_tool_schema(h->server, json_get_str(m->params, "name", ""));
    if (!schema || !strstr(schema, MIRRORED))
        return 0;
    if (json_parse(schema, strlen(schema), &doc, reterr) < 0)
        return -ERR_INVALID;
    return params_check(req, yyjson_doc_get_root(doc), yyjson_obj_get(m->params, "arguments"),
                        reterr);
}

/* ---- all of it ---- */

int mcp_headers_check(const struct mcp_http *h, const struct http_request *req,
                      const struct jsonrpc_message *m, struct error *reterr)
{
    yyjson_val *meta = yyjson_obj_get(m->params, "_meta");
    const char *version = json_get_str(meta, "io.modelcontextprotocol/protocolVersion", NULL);

    /* Without a version in the body there is nothing to compare, and the request fails for that. */
    if (!version)
        return 0;
    if (header_check(req, "MCP-Protocol-Version", version, reterr) < 0 ||
        header_check(req, "Mcp-Method", m->method, reterr) < 0 || name_check(req, m, reterr) < 0)
        return -ERR_INVALID;
    return call_check(h, req, m, reterr);
}
