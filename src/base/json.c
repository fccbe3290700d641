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

static int key_compare(const void *a, const void *b)
{
    yyjson_val *x = *(yyjson_val *const *)a, *y = *(yyjson_val *const *)b;
    size_t x_len = yyjson_get_len(x), y_len = yyjson_get_len(y);
    int order = memcmp(yyjson_get_str(x), yyjson_get_str(y), MIN(x_len, y_len));

    return order ? order : (x_len > y_len) - (x_len < y_len);
}

/* By sorting: a hash table could be made slow by keys that were chosen for it. */
static int object_keys_check(yyjson_val *object, struct error *reterr)
{
    size_t count = yyjson_obj_size(object), i, max;
    auto_free yyjson_val **keys = calloc(count, sizeof(yyjson_val *));
    yyjson_val *key, *value;

    if (!keys)
        return error_no_memory(reterr);
    yyjson_obj_foreach(object, i, max, key, value) keys[i] = key;
    qsort(keys, count, sizeof(*keys), key_compare);
    for (i = 1; i < count; i++) {
        if (key_compare(&keys[i - 1], &keys[i]) == 0)
            return error_set(reterr, ERR_INVALID, "the key '%.40s' is there twice",
                             yyjson_get_str(keys[i]));
    }
    return 0;
}

int json_keys_check(yyjson_doc *doc, struct error *reterr)
{
    yyjson_val *value = yyjson_doc_get_root(doc);
    int r = 0;

    /* The values of a document are one array. */
    for (size_t n = yyjson_doc_get_val_count(doc); n && r == 0; n--) {
        if (yyjson_is_obj(value) && yyjson_obj_size(value) > 1)
            r = object_keys_check(value, reterr);
        value++;
    }
    return r;
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

/* What a byte has to be written as, or NULL for itself. */
static const char *escape_of(unsigned char c, char ret[7])
{
    static const char digits[] = "0123456789abcdef";
    static const char named[] = "\bb\tt\nn\ff\rr\"\"\\\\";

    for (const char *n = named; *n; n += 2) {
        if ((unsigned char)*n == c) {
            memcpy(ret, (char[]){'\\', n[1], 0}, 3);
            return ret;
        }
    }
    if (c >= 0x20)
        return NULL;
    memcpy(ret, "\\u00", 4);
    ret[4] = digits[c >> 4];
    ret[5] = digits[c & 15];
    ret[6] = 0;
    return ret;
}

int json_quote(struct buf *ret, const char *text, size_t len)
{
    size_t plain = 0;
    char escape[7];

    if (buf_reserve(ret, len + 2) < 0 || buf_append_byte(ret, '"') < 0)
        return -1;
    for (size_t i = 0; i < len; i++) {
        const char *e = escape_of((unsigned char)text[i], escape);

        if (e && (buf_append(ret, text + plain, i - plain) < 0 || buf_append_str(ret, e) < 0))
            return -1;
        if (e)
            plain = i + 1;
    }
    if (buf_append(ret, text + plain, len - plain) < 0)
        return -1;
    return buf_append_byte(ret, '"');
}
