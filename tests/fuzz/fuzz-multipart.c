/* SPDX-License-Identifier: MIT */
/*
 * A form of any bytes, whole and in pieces: the same parts and the same verdict. The first two
 * bytes choose the size of the pieces and whether the boundary is taken from the input's first
 * line.
 */
#include "base/buf.h"
#include "base/str.h"
#include "wire/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_begin(void *user, const struct multipart_part *part, struct error *reterr)
{
    if (!part->name[0] || strpbrk(part->name, "\r\n") || strpbrk(part->filename, "\r\n"))
        __builtin_trap();
    return buf_printf(user, "[%s|%s|%s]", part->name, part->filename, part->content_type) < 0
               ? error_no_memory(reterr)
               : 0;
}

static int on_data(void *user, const char *data, size_t len, struct error *reterr)
{
    if (len == 0)
        __builtin_trap();
    return buf_append(user, data, len) < 0 ? error_no_memory(reterr) : 0;
}

static int on_end(void *user, struct error *reterr)
{
    return buf_append_byte(user, 0) < 0 ? error_no_memory(reterr) : 0;
}

static int parse(const char *type, const char *data, size_t len, size_t step, struct buf *ret)
{
    struct multipart_sink sink = {on_begin, on_data, on_end, ret};
    auto_multipart struct multipart *m = NULL;
    int r = multipart_new(type, &sink, &m, NULL);

    for (size_t i = 0; r == 0 && i < len; i += step)
        r = multipart_feed(m, data + i, MIN(step, len - i), NULL);
    return r == 0 ? multipart_finish(m, NULL) : r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf whole = {.max = 1 << 20}, pieces = {.max = 1 << 20};
    char type[256] = "multipart/form-data; boundary=b";
    const char *text = (const char *)data + 2;
    size_t len, step;
    int r;

    if (size < 2)
        return 0;
    len = size - 2;
    step = 1 + data[0] % 32;
    if (data[1] & 1) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? MIN((size_t)(end - text), sizeof(type) - 1) : 0;

        memcpy(type, text, n);
        type[n] = 0;
        text += end ? (size_t)(end - text) + 1 : 0;
        len = size - (size_t)(text - (const char *)data);
    }
    r = parse(type, text, len, len + 1, &whole);
    if (parse(type, text, len, step, &pieces) != r || whole.len != pieces.len ||
        (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0))
        __builtin_trap();
    return 0;
}
