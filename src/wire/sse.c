/* SPDX-License-Identifier: MIT */
/* The writer of server-sent events. A failed event leaves the buffer as it was. */
#include "wire/sse.h"

#include <string.h>

static int field_add(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return 0;
    if (strpbrk(value, "\r\n"))
        return -1;
    return buf_printf(b, "%s: %s\n", name, value);
}

static int data_add(struct buf *b, const char *data, size_t len)
{
    const char *end = data + len, *s = data;

    for (;;) {
        const char *stop = s;

        while (stop < end && *stop != '\r' && *stop != '\n')
            stop++;
        if (buf_append_str(b, "data: ") < 0 || buf_append(b, s, (size_t)(stop - s)) < 0 ||
            buf_append_byte(b, '\n') < 0)
            return -1;
        if (stop == end)
            return 0;
        s = stop + (end - stop > 1 && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1);
    }
}

static int event_add(struct buf *b, const struct sse_event *e)
{
    if (field_add(b, "event", e->event) < 0 || field_add(b, "id", e->id) < 0)
        return -1;
    if (e->retry_ms > 0 && buf_printf(b, "retry: %ld\n", e->retry_ms) < 0)
        return -1;
    if (e->data && data_add(b, e->data, e->len) < 0)
        return -1;
    return buf_append_byte(b, '\n');
}

int sse_format(const struct sse_event *event, struct buf *ret)
{
    size_t before = ret->len;

    if (event_add(ret, event) == 0)
        return 0;
    ret->len = before;
    return -1;
}

int sse_comment_format(const char *text, struct buf *ret)
{
    if (strpbrk(text, "\r\n"))
        return -1;
    return buf_printf(ret, ": %s\n\n", text);
}
