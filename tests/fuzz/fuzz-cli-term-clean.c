/* SPDX-License-Identifier: MIT */
/*
 * Any bytes, whole and cut in two: what comes out is the same, is UTF-8, and has no control but
 * '\n', '\t' and, in one mode, colour sequences of the one form that we write.
 */
#include "base/str.h"
#include "cli/term/clean.h"
#include "cli/term/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_bad(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

static void check(const struct buf *b, enum clean_mode mode)
{
    bool is_plain = true;

    for (size_t at = 0, n; at < b->len; at += n) {
        size_t sequence = text_sequence(b->data + at, b->len - at);

        if (sequence) {
            if (mode == CLEAN_STRIP || b->data[at + 2] != '0')
                __builtin_trap();
            is_plain = sequence == 4;
            n = sequence;
            continue;
        }
        if (is_bad(text_char(b->data + at, b->len - at, &n)))
            __builtin_trap();
        if (b->data[at] == '\n' && !is_plain)
            __builtin_trap();
    }
    if (!is_plain)
        __builtin_trap();
}

static void clean_cut(enum clean_mode mode, const uint8_t *data, size_t size, size_t cut,
                      struct buf *ret)
{
    struct clean c = {.mode = mode, .color = TERM_COLOR_256};

    buf_init(ret, 8 << 20);
    if (clean_feed(&c, data, cut, ret) < 0 || clean_feed(&c, data + cut, size - cut, ret) < 0 ||
        clean_finish(&c, ret) < 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 65536)
        return 0;
    for (int mode = CLEAN_STRIP; mode <= CLEAN_VISIBLE; mode++) {
        struct buf whole, cut;

        clean_cut((enum clean_mode)mode, data, size, 0, &whole);
        clean_cut((enum clean_mode)mode, data, size, size / 2, &cut);
        check(&whole, (enum clean_mode)mode);
        if (whole.len != cut.len || memcmp(buf_str(&whole), buf_str(&cut), whole.len) != 0)
            __builtin_trap();
        buf_done(&whole);
        buf_done(&cut);
    }
    return 0;
}
