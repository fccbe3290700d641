/* SPDX-License-Identifier: MIT */
/* Control and kernel frames, read by every side, and the fields of their payloads. */
#include "wire/fields.h"
#include "wire/frame.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void payload_read(const struct frame *frame)
{
    struct fields fields = {.data = frame->payload, .len = frame->len};
    struct field field;
    size_t position = 0;
    int64_t number;
    auto_free char *text = NULL;
    auto_free char **vector = NULL;
    size_t count;

    while (fields_next(&fields, &position, &field, NULL) > 0)
        continue;
    if (fields_check(&fields, NULL) < 0)
        return;
    (void)fields_find(&fields, "id", &field);
    if (fields_get_int(&fields, "id", 0, &number, NULL) < 0 ||
        fields_get_str(&fields, "cwd", &text, NULL) < 0 ||
        fields_get_strv(&fields, "argv", &vector, &count, NULL) < 0)
        return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned side = 0; side < 4; side++) {
        size_t position = 0;
        struct frame frame;
        ssize_t used;

        while ((used = frame_next(data + position, size - position, 1u << side, &frame, NULL)) >
               0) {
            payload_read(&frame);
            position += (size_t)used;
        }
    }
    return 0;
}
