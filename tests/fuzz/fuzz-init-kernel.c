/* SPDX-License-Identifier: MIT */
/*
 * What a kernel sends to init. The same bytes are read twice, in pieces and by the plain parser of
 * the wire, which must agree; the first byte chooses the size of the pieces.
 */
#include "init/kframe.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frame_compare(const struct kframe *got, const uint8_t *data, size_t size, size_t *at)
{
    struct frame frame;
    ssize_t used = frame_next(data + *at, size - *at, FRAME_FROM_KERNEL, &frame, NULL);

    if (used <= 0 || frame.type != got->type || frame.stream != got->stream ||
        frame.len != got->len + KERNEL_TOKEN ||
        memcmp(frame.payload + KERNEL_TOKEN, got->json, got->len) != 0)
        abort();
    *at += (size_t)used;
}

static void frame_use(struct kreader *r, const struct kframe *frame)
{
    struct log_block *block;

    (void)kframe_status(frame);
    block = kreader_take(r, frame);
    if (block)
        log_block_unref(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kreader r = {};
    size_t step = size ? 1 + (size_t)data[0] * 16 : 1, fed = 1, at = 1;
    struct kframe frame;
    int e = 0;

    while (fed < size && e >= 0) {
        char *room;
        size_t n;

        if (kreader_room(&r, &room, &n) < 0 || n == 0)
            break;
        n = MIN(MIN(n, step), size - fed);
        memcpy(room, data + fed, n);
        kreader_filled(&r, n);
        fed += n;
        while ((e = kreader_next(&r, &frame, NULL)) > 0) {
            frame_compare(&frame, data, size, &at);
            frame_use(&r, &frame);
        }
    }
    kreader_done(&r);
    return 0;
}
