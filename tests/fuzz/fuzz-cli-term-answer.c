/* SPDX-License-Identifier: MIT */
/*
 * What a terminal sends, whole and byte by byte: the same is understood, and all that was typed
 * comes out once and in its order.
 */
#include "base/str.h"
#include "cli/term/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct answer *a, const char *data, size_t size, size_t step, struct buf *typed)
{
    buf_init(typed, 1 << 20);
    for (size_t at = 0; at < size; at += step) {
        if (answer_feed(a, data + at, MIN(step, size - at), typed) < 0)
            __builtin_trap();
    }
    if (answer_finish(a, typed) < 0)
        __builtin_trap();
}

/* Whether `part` is `whole` with pieces left out. */
static bool is_part(const struct buf *part, const char *whole, size_t len)
{
    size_t at = 0;

    for (size_t i = 0; i < len && at < part->len; i++)
        at += part->data[at] == whole[i];
    return at == part->len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer a = {}, b = {};
    struct buf whole, bytes;

    if (size > 65536)
        return 0;
    take(&a, (const char *)data, size, MAX(size, 1u), &whole);
    take(&b, (const char *)data, size, 1, &bytes);
    if (whole.len != bytes.len || memcmp(buf_str(&whole), buf_str(&bytes), whole.len) != 0 ||
        a.is_complete != b.is_complete || a.has_sixel != b.has_sixel ||
        a.cell_width != b.cell_width || a.cell_width > 200 || a.cell_height > 200)
        __builtin_trap();
    if (!is_part(&whole, (const char *)data, size) ||
        (size && !memchr(data, 033, size) && whole.len != size))
        __builtin_trap();
    buf_done(&whole);
    buf_done(&bytes);
    return 0;
}
