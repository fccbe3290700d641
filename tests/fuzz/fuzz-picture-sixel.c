/* SPDX-License-Identifier: MIT */
/* Pixels to sixels: only characters that the client lets pass. Two bytes of size, then pixels. */
#include "base/str.h"
#include "picture/sixel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char pixels[64 * 64 * 4];
    struct picture p = {.pixels = pixels};
    struct buf out;

    if (size < 2)
        return 0;
    p.width = data[0] % 64u + 1;
    p.height = data[1] % 64u + 1;
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = size > 2 ? data[2 + i % (size - 2)] : 0;
    buf_init(&out, 16 << 20);
    if (sixel_write(&p, &out, NULL) < 0)
        __builtin_trap();
    for (size_t i = 0; i < out.len; i++) {
        char c = out.data[i];

        if (!(c >= '?' && c <= '~') && !(c && strchr("0123456789;#!$-\"", c)))
            __builtin_trap();
    }
    buf_done(&out);
    return 0;
}
