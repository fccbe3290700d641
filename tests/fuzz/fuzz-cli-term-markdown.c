/* SPDX-License-Identifier: MIT */
/*
 * Markdown to lines: of control characters there are only '\n' and colour sequences of ours, each
 * line ends in plain style, and no line is wider than it may be unless a single character is.
 */
#include "base/str.h"
#include "cli/term/markdown.h"
#include "cli/term/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_bad(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || (c >= 0xe0000 && c <= 0xe0fff);
}

static void line_check(const char *line, size_t len, bool is_colored)
{
    bool is_plain = true;

    for (size_t at = 0, n; at < len; at += n) {
        n = text_sequence(line + at, len - at);
        if (n && (!is_colored || line[at + 2] != '0'))
            __builtin_trap();
        if (n)
            is_plain = n == 4;
        else if (is_bad(text_char(line + at, len - at, &n)))
            __builtin_trap();
    }
    if (!is_plain)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct markdown_layout layouts[] = {
        {200, TERM_COLOR_16}, {0, TERM_COLOR_NONE}, {1, TERM_COLOR_TRUE}};

    if (size > 65536)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        auto_buf struct buf out;
        size_t at = 0;

        buf_init(&out, 256 << 20);
        if (markdown_render((const char *)data, size, &layouts[i], &out, NULL) < 0)
            __builtin_trap();
        while (at < out.len) {
            const char *end = memchr(out.data + at, '\n', out.len - at);

            if (!end)
                __builtin_trap();
            line_check(out.data + at, (size_t)(end - out.data) - at, i != 1);
            if (i == 0 && text_width(out.data + at, (size_t)(end - out.data) - at) > 200)
                __builtin_trap();
            at = (size_t)(end - out.data) + 1;
        }
    }
    return 0;
}
