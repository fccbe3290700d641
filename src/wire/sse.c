/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events. A failed event of the writer leaves the buffer as it was. The parser copies
 * only what a piece's end has cut: a line that came whole is read where it lies.
 */
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
    if (ret->data)
        ret->data[before] = 0;
    return -1;
}

int sse_comment_format(const char *text, struct buf *ret)
{
    if (strpbrk(text, "\r\n"))
        return -1;
    return buf_printf(ret, ": %s\n\n", text);
}

/* ---- the parser ---- */

/* A line may hold as much as an event, and a field's name. */
enum { SSE_NAME_MAX = 16 };

void sse_parser_init(struct sse_parser *p, size_t data_max)
{
    *p = (struct sse_parser){0};
    buf_init(&p->line, data_max + SSE_NAME_MAX);
    buf_init(&p->data, data_max);
}

void sse_parser_done(struct sse_parser *p)
{
    buf_done(&p->line);
    buf_done(&p->data);
}

static int parser_full(const struct sse_parser *p, struct error *reterr)
{
    return error_set(reterr, ERR_LIMIT, "an event of the stream is larger than %zu bytes",
                     p->data.max);
}

static int field_data(struct sse_parser *p, const char *value, size_t len)
{
    if (p->has_data && buf_append_byte(&p->data, '\n') < 0)
        return -1;
    p->has_data = true;
    return buf_append(&p->data, value, len);
}

static int field_copy(char *ret, size_t size, const char *value, size_t len)
{
    if (len >= size)
        return -1;
    memcpy(ret, value, len);
    ret[len] = 0;
    return 0;
}

static int field_event(struct sse_parser *p, const char *value, size_t len)
{
    return field_copy(p->event, sizeof(p->event), value, len);
}

static int field_id(struct sse_parser *p, const char *value, size_t len)
{
    return memchr(value, 0, len) ? 0 : field_copy(p->id, sizeof(p->id), value, len);
}

static const struct {
    const char *name;
    int (*take)(struct sse_parser *p, const char *value, size_t len);
} parser_fields[] = {{"data", field_data}, {"event", field_event}, {"id", field_id}};

/* Comments have no name; fields that are not known are passed over, as the standard wants. */
static int parser_field(struct sse_parser *p, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len), *value = colon ? colon + 1 : line + len;
    size_t name_len = colon ? (size_t)(colon - line) : len;

    if (value < line + len && *value == ' ')
        value++;
    for (size_t i = 0; i < ARRAY_LEN(parser_fields); i++) {
        const char *name = parser_fields[i].name;

        if (strlen(name) == name_len && memcmp(line, name, name_len) == 0)
            return parser_fields[i].take(p, value, (size_t)(line + len - value));
    }
    return 0;
}

static int parser_dispatch(struct sse_parser *p, sse_event_fn *each, void *user,
                           struct error *reterr)
{
    int r = 0;

    if (p->has_data)
        r = each(user, p->event[0] ? p->event : "message", buf_str(&p->data), p->data.len, reterr);
    p->has_data = false;
    p->event[0] = 0;
    buf_clear(&p->data);
    return r;
}

static int parser_line(struct sse_parser *p, const char *line, size_t len, sse_event_fn *each,
                       void *user, struct error *reterr)
{
    if (len > p->line.max) /* as it would be refused in pieces */
        return parser_full(p, reterr);
    if (!p->started && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    p->started = true;
    if (len == 0)
        return parser_dispatch(p, each, user, reterr);
    return parser_field(p, line, len) < 0 ? parser_full(p, reterr) : 0;
}

static const char *line_end(const char *s, const char *end)
{
    while (s < end && *s != '\n' && *s != '\r')
        s++;
    return s;
}

int sse_parser_feed(struct sse_parser *p, const char *data, size_t len, sse_event_fn *each,
                    void *user, struct error *reterr)
{
    const char *end = data + len, *s = data;

    while (s < end) {
        const char *stop;
        int r;

        /* The LF of a CR LF whose CR ended a line already, maybe in the piece before. */
        if (p->had_cr && *s == '\n')
            s++;
        p->had_cr = false;
        stop = line_end(s, end);
        if (stop == end || p->line.len > 0) {
            if (buf_append(&p->line, s, (size_t)(stop - s)) < 0)
                return parser_full(p, reterr);
        }
        if (stop == end)
            break;
        p->had_cr = *stop == '\r';
        if (p->line.len > 0)
            r = parser_line(p, p->line.data, p->line.len, each, user, reterr);
        else
            r = parser_line(p, s, (size_t)(stop - s), each, user, reterr);
        buf_clear(&p->line);
        if (r < 0)
            return r;
        s = stop + 1;
    }
    return 0;
}
