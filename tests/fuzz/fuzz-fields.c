/* SPDX-License-Identifier: MIT */
/* The fields payload: what was read can be written again and is the same. */
#include "wire/fields.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void field_use(const struct fields *fields, const struct field *f)
{
    char key[FIELDS_KEY_MAX + 1];
    auto_free char *text = NULL;
    auto_free char **vector = NULL;
    struct field first;
    size_t count = 0;
    int64_t number;

    memcpy(key, f->key, f->key_len);
    key[f->key_len] = 0;
    if (strlen(key) != f->key_len)
        return; /* a key with a NUL byte cannot be asked for */
    if (!fields_find(fields, key, &first) || !field_is(&first, key))
        abort();
    if (fields_get_int(fields, key, -1, &number, NULL) < 0 && first.len > 0 && first.len < 19 &&
        first.value[0] >= '1' && first.value[0] <= '9' && first.len == 1)
        abort();
    if (fields_get_str(fields, key, &text, NULL) == 0 && strlen(text) != first.len)
        abort();
    if (fields_get_strv(fields, key, &vector, &count, NULL) == 0 && (count == 0 || vector[count]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields fields = {.data = (const char *)data, .len = size};
    auto_buf struct buf again;
    struct field f;
    size_t pos = 0;
    int r;

    buf_init(&again, size + 1);
    while ((r = fields_next(&fields, &pos, &f, NULL)) > 0) {
        char key[FIELDS_KEY_MAX + 1] = "";

        memcpy(key, f.key, f.key_len);
        if (strlen(key) == f.key_len && fields_add(&again, key, f.value, f.len) < 0)
            abort();
    }
    if (fields_check(&fields, NULL) != r)
        abort();
    if (r == 0 && again.len == size && size && memcmp(again.data, data, size) != 0)
        abort();
    pos = 0;
    while (r == 0 && fields_next(&fields, &pos, &f, NULL) > 0)
        field_use(&fields, &f);
    return 0;
}
