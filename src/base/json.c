/* SPDX-License-Identifier: MIT */
/* JSON helpers. Depth and number of values are found by scanning the text before it is parsed:
 * brackets, commas and colons outside strings. */
#include "base/json.h"

#include <string.h>

/* Each of these begins a value; with the root, there are never more than that. */
static bool begins_value(char c)
{
    return c == '{' || c == '[' || c == ',' || c == ':';
}

static int shape_check(const char *data, size_t len, struct error *reterr)
{
    size_t depth = 0, values = 1;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        char c = data[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        in_string = c == '"';
        if (begins_value(c) && ++values > JSON_VALUES_MAX)
            return error_set(reterr, ERR_INVALID, "JSON of more than %d values", JSON_VALUES_MAX);
        if ((c == '{' || c == '[') && ++depth > JSON_DEPTH_MAX)
            return error_set(reterr, ERR_INVALID, "JSON is nested deeper than %d", JSON_DEPTH_MAX);
        if ((c == '}' || c == ']') && depth)
            depth--;
    }
    return 0;
}

int json_parse(const char *data, size_t len, yyjson_doc **ret, struct error *reterr)
{
    yyjson_read_err err;
    yyjson_doc *doc;
    int r = shape_check(data, len, reterr);

    if (r < 0)
        return r;
    doc = yyjson_read_opts((char *)(uintptr_t)data, len, 0, NULL, &err);
    if (!doc && err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return error_no_memory(reterr);
    if (!doc)
        return error_set(reterr, ERR_INVALID, "bad JSON at byte %zu: %s", err.pos, err.msg);
    *ret = doc;
    return 0;
}

const char *json_get_str(yyjson_val *object, const char *key, const char *fallback)
{
    const char *s = yyjson_get_str(yyjson_obj_get(object, key));

    return s ? s : fallback;
}

bool json_get_bool(yyjson_val *object, const char *key, bool fallback)
{
    yyjson_val *v = yyjson_obj_get(object, key);

    return yyjson_is_bool(v) ? yyjson_get_bool(v) : fallback;
}

static int text_append(char *text, size_t len, struct buf *ret, struct error *reterr)
{
    auto_free char *owned = text;

    if (!owned)
        return error_no_memory(reterr);
    if (buf_append(ret, owned, len) < 0)
        return error_set(reterr, ERR_LIMIT, "JSON text is above its limit");
    return 0;
}

int json_write(yyjson_val *value, struct buf *ret, struct error *reterr)
{
    size_t len = 0;
    char *text = yyjson_val_write(value, YYJSON_WRITE_NOFLAG, &len);

    return text_append(text, len, ret, reterr);
}

int json_mut_write(const yyjson_mut_doc *doc, struct buf *ret, struct error *reterr)
{
    size_t len = 0;
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, &len);

    return text_append(text, len, ret, reterr);
}

yyjson_mut_val *json_mut_text(yyjson_mut_doc *doc, const char *text, size_t len)
{
    return yyjson_mut_strncpy(doc, text ? text : "", len);
}
