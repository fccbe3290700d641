/* SPDX-License-Identifier: MIT */
/* Image headers. What is accepted has a size, a frame and a name. */
#include "wire/image_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_header h;

    if (image_header_parse(data, size, &h, NULL) < 0)
        return 0;
    if (image_pixels(&h) == 0 || h.frames == 0 || image_mime(h.kind)[0] != 'i')
        __builtin_trap();
    return 0;
}
