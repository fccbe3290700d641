/* SPDX-License-Identifier: MIT */
/* Parser and writer of the fields payload. Lengths are checked against what is left, never added
 * first. */
#include "wire/fields.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static uint32_t read_u32(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;

    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int fields_next(const struct fields *f, size_t *pos, struct field *ret, struct error *reterr)
{
    const char *p = f->data + *pos;
    size_t left = f->len - *pos, key_len;
    uint32_t len;

    if (left == 0)
        return 0;
    key_len = (unsigned char)p[0];
    if (key_len == 0 || key_len > FIELDS_KEY_MAX || left < 1 + key_len + 4)
        return error_set(reterr, ERR_PROTOCOL, "malformed field key");
    len = read_u32(p + 1 + key_len);
    left -= 1 + key_len + 4;
    if (len > left)
        return error_set(reterr, ERR_PROTOCOL, "a field value ends behind its frame");
    *ret =
        (struct field){.key = p + 1, .key_len = key_len, .value = p + 1 + key_len + 4, .len = len};
    *pos += 1 + key_len + 4 + len;
    return 1;
}

int fields_check(const struct fields *f, struct error *reterr)
{
    struct field field = {};
    size_t pos = 0;
    int r;

    do
        r = fields_next(f, &pos, &field, reterr);
    while (r > 0);
    return r;
}

bool field_is(const struct field *f, const char *key)
{
    return strlen(key) == f->key_len && memcmp(f->key, key, f->key_len) == 0;
}

bool fields_find(const struct fields *f, const char *key, struct field *ret)
{
    size_t pos = 0;

    while (fields_next(f, &pos, ret, NULL) > 0) {
        if (field_is(ret, key))
            return true;
    }
    return false;
}

int fields_get_int(const struct fields *f, const char *key, int64_t fallback, int64_t *ret,
                   struct error *reterr)
{
    struct field field = {};
    char text[24];

    *ret = fallback;
    if (!fields_find(f, key, &field))
        return 0;
    if (field.len == 0 || field.len >= sizeof(text))
        return error_set(reterr, ERR_PROTOCOL, "field '%s' is no number", key);
    memcpy(text, field.value, field.len);
    text[field.len] = 0;
    if (str_parse_int(text, INT64_MIN, INT64_MAX, ret) < 0)
        return error_set(reterr, ERR_PROTOCOL, "field '%s' is no number", key);
    return 0;
}

int fields_get_str(const struct fields *f, const char *key, char **ret, struct error *reterr)
{
    struct field field = {};
    char *copy;

    if (!fields_find(f, key, &field))
        return error_set(reterr, ERR_NOT_FOUND, "field '%s' is missing", key);
    if (memchr(field.value, 0, field.len))
        return error_set(reterr, ERR_PROTOCOL, "field '%s' holds a NUL byte", key);
    copy = malloc(field.len + 1);
    if (!copy)
        return error_no_memory(reterr);
    memcpy(copy, field.value, field.len);
    copy[field.len] = 0;
    *ret = copy;
    return 0;
}

static int strv_measure(const struct fields *f, const char *key, size_t *ret_count,
                        size_t *ret_bytes, struct error *reterr)
{
    struct field field = {};
    size_t pos = 0;
    int r;

    *ret_count = *ret_bytes = 0;
    while ((r = fields_next(f, &pos, &field, reterr)) > 0) {
        if (!field_is(&field, key))
            continue;
        if (memchr(field.value, 0, field.len))
            return error_set(reterr, ERR_PROTOCOL, "field '%s' holds a NUL byte", key);
        *ret_count += 1;
        *ret_bytes += field.len + 1;
    }
    return r;
}

int fields_get_strv(const struct fields *f, const char *key, char ***ret, size_t *ret_count,
                    struct error *reterr)
{
    size_t count, bytes, pos = 0, i = 0;
    struct field field = {};
    char **vector, *text;
    int r = strv_measure(f, key, &count, &bytes, reterr);

    if (r < 0)
        return r;
    vector = malloc((count + 1) * sizeof(*vector) + bytes);
    if (!vector)
        return error_no_memory(reterr);
    text = (char *)(vector + count + 1);
    while (fields_next(f, &pos, &field, NULL) > 0) {
        if (!field_is(&field, key))
            continue;
        vector[i++] = text;
        memcpy(text, field.value, field.len);
        text[field.len] = 0;
        text += field.len + 1;
    }
    vector[i] = NULL;
    *ret = vector;
    if (ret_count)
        *ret_count = count;
    return 0;
}

int fields_add(struct buf *b, const char *key, const void *value, size_t len)
{
    size_t key_len = strlen(key);
    unsigned char size[4];

    if (key_len == 0 || key_len > FIELDS_KEY_MAX || len > UINT32_MAX ||
        buf_reserve(b, 1 + key_len + 4 + len) < 0)
        return -1;
    for (int i = 0; i < 4; i++)
        size[i] = (unsigned char)(len >> (8 * i) & 0xff);
    if (buf_append_byte(b, (unsigned char)key_len) < 0 || buf_append(b, key, key_len) < 0 ||
        buf_append(b, size, sizeof(size)) < 0)
        return -1;
    return buf_append(b, value, len);
}

int fields_add_str(struct buf *b, const char *key, const char *value)
{
    return fields_add(b, key, value, strlen(value));
}

int fields_add_int(struct buf *b, const char *key, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%lld", (long long)value);

    return fields_add(b, key, text, (size_t)len);
}
