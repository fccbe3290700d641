/* SPDX-License-Identifier: MIT */
/*
 * An event of any text, read again as a browser does: there is exactly one, with the same lines.
 * The input is name, id and data, each up to a NUL.
 */
#include "base/str.h"
#include "wire/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The events that a reader of text/event-stream finds, and the data of the last one. */
static size_t events_read(const char *s, struct buf *ret)
{
    size_t events = 0;
    bool data = false;

    while (*s) {
        size_t len = strcspn(s, "\r\n");

        if (len >= 6 && memcmp(s, "data: ", 6) == 0) {
            if ((data && buf_append_byte(ret, '\n') < 0) || buf_append(ret, s + 6, len - 6) < 0)
                return 0;
            data = true;
        }
        events += len == 0 && data;
        data = data && len > 0;
        s += len;
        s += s[0] == '\r' && s[1] == '\n' ? 2 : *s != 0;
    }
    return events;
}

/* The data as it must arrive. */
static int lines_join(const char *s, struct buf *ret)
{
    for (; *s; s++) {
        if (s[0] == '\r' && s[1] == '\n')
            continue;
        if (buf_append_byte(ret, *s == '\r' ? '\n' : (unsigned char)*s) < 0)
            return -1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf text = {.max = 1 << 20}, got = {.max = 1 << 20}, want = {.max = 1 << 20};
    char parts[3][1024] = {0};
    struct sse_event e = {.event = parts[0], .id = parts[1], .data = parts[2]};

    for (size_t i = 0, part = 0, at = 0; i < size && part < 3; i++) {
        if (data[i] == 0)
            part++, at = 0;
        else if (at + 1 < sizeof(parts[0]))
            parts[part][at++] = (char)data[i];
    }
    e.len = strlen(parts[2]);
    if (sse_format(&e, &text) < 0)
        return 0;
    if (events_read(text.data, &got) != 1 || lines_join(parts[2], &want) < 0 ||
        !str_eq(buf_str(&got), buf_str(&want)))
        __builtin_trap();
    return 0;
}
