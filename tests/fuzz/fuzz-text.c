/* SPDX-License-Identifier: MIT */
/* Output text: the pieces it comes in make no difference, and what is kept is valid UTF-8. The
 * first two bytes are the limit and the size of the pieces. */
#include "session/text.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep(const uint8_t *data, size_t size, size_t limit, size_t piece, struct buf *ret)
{
    struct text_keep t;

    text_keep_init(&t, limit);
    for (size_t at = 0; at < size; at += piece)
        text_keep_feed(&t, data + at, MIN(piece, size - at));
    text_keep_format(&t, ret);
    text_keep_done(&t);
}

static void utf8_expect(const struct buf *b)
{
    struct utf8_repair u = {};
    auto_buf struct buf again;

    buf_init(&again, 3 * b->len + 16);
    if (utf8_repair_feed(&u, buf_str(b), b->len, &again) < 0 || utf8_repair_finish(&u, &again) < 0)
        abort();
    if (again.len != b->len || (b->len && memcmp(again.data, b->data, b->len) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf whole, pieces;

    buf_init(&whole, MIB);
    buf_init(&pieces, MIB);
    if (size < 3 || size > 64 * KIB)
        return 0;
    keep(data + 2, size - 2, data[0], size, &whole);
    keep(data + 2, size - 2, data[0], (size_t)data[1] + 1, &pieces);
    utf8_expect(&whole);
    if (whole.len != pieces.len || memcmp(buf_str(&whole), buf_str(&pieces), whole.len) != 0)
        abort();
    return 0;
}
