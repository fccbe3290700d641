/* SPDX-License-Identifier: MIT */
/*
 * The reduction over hostile pictures: whatever comes, what goes out is whole and within its
 * limits. Check sums of PNG chunks are made right first, or no change would pass them.
 */
#include "shrink/shrink.h"
#include "wire/image_header.h"

#include <string.h>

enum { OUT_MAX = 20000, SIDE = 64, PIXELS_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t crc_of(const uint8_t *p, size_t len)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void crcs_set(uint8_t *p, size_t len)
{
    size_t at = 8;

    while (len >= 12 && at <= len - 12) {
        size_t n = (size_t)p[at] << 24 | p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3];
        uint32_t crc;

        if (n > len - at - 12)
            return;
        crc = crc_of(p + at + 4, n + 4);
        for (int i = 0; i < 4; i++)
            p[at + 8 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free uint8_t *copy = malloc(size + 1);
    struct image_header h;
    auto_buf struct buf out;

    buf_init(&out, OUT_MAX);
    if (!copy || image_header_parse(data, size, &h, NULL) < 0 || image_pixels(&h) > PIXELS_MAX)
        return 0;
    memcpy(copy, data, size);
    if (h.kind == IMAGE_PNG)
        crcs_set(copy, size);
    if (shrink_picture(copy, size, SIDE, &out, NULL) < 0)
        return 0;
    if (image_header_parse(out.data, out.len, &h, NULL) < 0 || !h.whole || h.width > SIDE ||
        h.height > SIDE)
        __builtin_trap();
    return 0;
}
