/* SPDX-License-Identifier: MIT */
/*
 * Arguments against schemas. The first line is the schema, '@' and a tool's name for one of ours,
 * the rest the value. What comes out is JSON; a value that was converted once fits as it is.
 */
#include "tools/schema.h"

#include "tools/tool.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void json_expect(const struct buf *b)
{
    auto_json yyjson_doc *doc = NULL;

    if (json_parse(buf_str(b), b->len, &doc, NULL) < 0 || !yyjson_is_arr(yyjson_doc_get_root(doc)))
        abort();
}

/* Of a hostile schema anything may come, but of ours what fits itself. */
static void again_expect(const struct schema *s, yyjson_doc *checked)
{
    auto_json yyjson_doc *again = NULL;
    auto_buf struct buf details;

    buf_init(&details, MIB);
    if (schema_check(s, yyjson_doc_get_root(checked), &again, &details, NULL) < 0 ||
        !yyjson_equals(yyjson_doc_get_root(checked), yyjson_doc_get_root(again)))
        abort();
}

static int schema_choose(const char *text, size_t len, struct schema **ret)
{
    char name[64] = "";
    const struct tool_entry *tool;

    if (len == 0 || text[0] != '@' || len > sizeof(name))
        return schema_new(text, len, ret, NULL);
    memcpy(name, text + 1, len - 1);
    tool = tool_find(name);
    return tool ? schema_new(tool->input_schema, strlen(tool->input_schema), ret, NULL) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    auto_json yyjson_doc *value = NULL, *checked = NULL;
    auto_schema struct schema *s = NULL;
    auto_buf struct buf details;
    int r;

    buf_init(&details, MIB);
    if (!line || schema_choose(text, (size_t)(line - text), &s) < 0 ||
        json_parse(line + 1, size - (size_t)(line + 1 - text), &value, NULL) < 0)
        return 0;
    r = schema_check(s, yyjson_doc_get_root(value), &checked, &details, NULL);
    if (r == -ERR_INVALID)
        json_expect(&details);
    else if (r == 0 && text[0] == '@')
        again_expect(s, checked);
    return 0;
}
