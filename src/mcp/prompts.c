/* SPDX-License-Identifier: MIT */
/*
 * prompts/list, prompts/get and completion/complete. The server has no prompts of its own: only the
 * conformance fixture brings some, and without it these methods do not exist.
 */
#include "base/str.h"
#include "mcp/fixture.h"

int mcp_prompts_list(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                     struct error *reterr)
{
    mcp_fixture_prompts_list(doc, yyjson_mut_obj_add_arr(doc, result, "prompts"));
    return MCP_DONE;
}

/* Every argument of a prompt is required, and a string. */
static int arguments_check(const struct mcp_request *r, const struct fixture_entry *entry,
                           struct error *reterr)
{
    yyjson_val *given = yyjson_obj_get(r->message.params, "arguments"), *wanted;
    auto_json yyjson_doc *doc = NULL;
    size_t i, max;

    if (!entry->schema)
        return 0;
    if (json_parse(entry->schema, strlen(entry->schema), &doc, reterr) < 0)
        return -ERR_INTERNAL;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, max, wanted)
    {
        const char *name = json_get_str(wanted, "name", "");

        if (!yyjson_is_str(yyjson_obj_get(given, name)))
            return error_set(reterr, ERR_INVALID, "the argument \"%s\" is missing or no string",
                             name);
    }
    return 0;
}

int mcp_prompts_get(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                    struct error *reterr)
{
    const char *name = mcp_request_param(r, "name", reterr);
    const struct fixture_entry *entry = name ? fixture_prompt_find(name) : NULL;
    int n;

    if (!name)
        return -ERR_INVALID;
    if (!entry)
        return error_set(reterr, ERR_NOT_FOUND, "unknown prompt: %.128s", name);
    n = arguments_check(r, entry, reterr);
    return n < 0 ? n : mcp_fixture_run(r, entry, doc, result, reterr);
}

/* Whether the reference is to something that has arguments to complete. */
static bool reference_is_known(yyjson_val *ref)
{
    const char *type = json_get_str(ref, "type", "");

    if (str_eq(type, "ref/prompt"))
        return fixture_prompt_find(json_get_str(ref, "name", ""));
    return str_eq(type, "ref/resource") && json_get_str(ref, "uri", NULL);
}

int mcp_complete(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                 struct error *reterr)
{
    static const char *const words[] = {"paris", "park", "party", "test", "testing"};
    yyjson_val *argument = yyjson_obj_get(r->message.params, "argument");
    const char *start = json_get_str(argument, "value", NULL);
    yyjson_mut_val *completion, *values;

    if (!reference_is_known(yyjson_obj_get(r->message.params, "ref")))
        return error_set(reterr, ERR_INVALID, "\"ref\" is to no prompt or template of this server");
    if (!start || !json_get_str(argument, "name", NULL))
        return error_set(reterr, ERR_INVALID, "\"argument\" has no name or no value");
    completion = yyjson_mut_obj_add_obj(doc, result, "completion");
    values = yyjson_mut_obj_add_arr(doc, completion, "values");
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_starts(words[i], start))
            yyjson_mut_arr_add_str(doc, values, words[i]);
    }
    yyjson_mut_obj_add_uint(doc, completion, "total", yyjson_mut_arr_size(values));
    yyjson_mut_obj_add_bool(doc, completion, "hasMore", false);
    return MCP_DONE;
}
