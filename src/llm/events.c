/* SPDX-License-Identifier: MIT */
/*
 * From the bytes of an answer to its documents: event streams, lines of JSON, and texts that were
 * cut in the middle of a character. Programs whose strings are UTF-16 cut a character beyond the
 * basic plane into two escapes that are no characters by themselves. Such a half is read as a
 * character of a private plane, and text_join() puts the two together again.
 */
#include "llm/llm-internal.h"
#include "wire/utf8.h"

#include <stdio.h>

/* U+D800 to U+DFFF as U+10D800 to U+10DFFF: the first two bytes of all of them, in UTF-8. */
static const char half_mark[] = "\xf4\x8d";
static const char replacement[] = "\xef\xbf\xbd";

/* ---- half characters ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of "\uXXXX", or 0. */
static unsigned escape_unit(const char *s, const char *end)
{
    unsigned unit = 0;

    if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
        return 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(s[i]);

        if (digit < 0)
            return 0;
        unit = unit << 4 | (unsigned)digit;
    }
    return unit;
}

static bool is_high(unsigned unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(unsigned unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

static int append_utf8(struct buf *b, unsigned c)
{
    char s[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
                 (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))};

    return buf_append(b, s, sizeof(s));
}

/* One character or escape of JSON text; returns its length, or -1. */
static int escape_copy(const char *s, const char *end, bool *halves, struct buf *ret)
{
    unsigned unit = escape_unit(s, end);
    int len = *s != '\\' ? 1 : unit ? 6 : (int)MIN(end - s, 2);

    if (is_high(unit) && is_low(escape_unit(s + 6, end)))
        len = 12;
    else if (is_high(unit) || is_low(unit)) {
        *halves = true;
        return append_utf8(ret, 0x100000 + unit) < 0 ? -1 : len;
    }
    return buf_append(ret, s, (size_t)len) < 0 ? -1 : len;
}

static int halves_mark(const struct buf *text, bool *halves, struct buf *ret)
{
    const char *s = text->data, *end = text->data + text->len;

    while (s < end) {
        int len = escape_copy(s, end, halves, ret);

        if (len < 0)
            return -1;
        s += len;
    }
    return 0;
}

/* The half at `s`, as stream_json() has written it; 0 for none. */
static unsigned half_at(const char *s, const char *end)
{
    const unsigned char *u = (const unsigned char *)s;

    if (end - s < 4 || memcmp(s, half_mark, 2) != 0 || u[2] < 0xa0)
        return 0;
    return 0xd000 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
}

static int half_join(unsigned *held, unsigned half, struct buf *ret)
{
    unsigned first = *held;

    *held = is_high(half) ? half : 0;
    if (first && is_low(half))
        return append_utf8(ret, 0x10000 + ((first - 0xd800) << 10) + (half - 0xdc00));
    if (first && buf_append_str(ret, replacement) < 0)
        return -1;
    return is_low(half) ? buf_append_str(ret, replacement) : 0;
}

int text_join(unsigned *held, const char *text, size_t len, struct buf *ret)
{
    const char *s = text, *end = text + len;

    while (s < end) {
        unsigned half = half_at(s, end);

        if (half) {
            if (half_join(held, half, ret) < 0)
                return -1;
            s += 4;
            continue;
        }
        if (*held && buf_append_str(ret, replacement) < 0)
            return -1;
        *held = 0;
        if ((*s ? buf_append(ret, s, 1) : buf_append_str(ret, replacement)) < 0)
            return -1;
        s++;
    }
    return 0;
}

/* ---- documents ---- */

static int json_repair(struct llm_stream *s, const char *data, size_t len, yyjson_doc **ret,
                       struct error *reterr)
{
    auto_buf struct buf valid = {.max = 3 * LLM_EVENT_BYTES}, marked = {.max = 3 * LLM_EVENT_BYTES};
    struct utf8_repair u = {0};

    if (utf8_repair_feed(&u, data, len, &valid) < 0 || utf8_repair_finish(&u, &valid) < 0 ||
        halves_mark(&valid, &s->halves, &marked) < 0)
        return error_no_memory(reterr);
    return json_parse(buf_str(&marked), marked.len, ret, reterr);
}

int stream_json(struct llm_stream *s, const char *data, size_t len, yyjson_doc **ret,
                struct error *reterr)
{
    struct error why = {0}; /* an error that was mended is none, so the caller must not see it */
    int r = json_parse(data, len, ret, &why);

    if (r == -(int)ERR_INVALID)
        r = json_repair(s, data, len, ret, &why);
    if (r == 0)
        return 0;
    if (r == -(int)ERR_NO_MEMORY)
        return error_no_memory(reterr);
    s->again = true;
    return error_set(reterr, ERR_UPSTREAM, "%s sent what is not JSON", s->provider->title);
}

static bool is_blank(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!strchr(" \t\r\n", data[i]))
            return false;
    }
    return true;
}

struct event_feed {
    struct llm_stream *s;
    stream_event_fn *each;
};

static int event_take(void *user, const char *event, const char *data, size_t len,
                      struct error *reterr)
{
    struct event_feed *feed = user;
    struct llm_stream *s = feed->s;
    auto_json yyjson_doc *doc = NULL;
    int r;

    if (s->finished || is_blank(data, len))
        return 0;
    if (len == 6 && memcmp(data, "[DONE]", len) == 0) {
        s->finished = true;
        return 0;
    }
    r = stream_json(s, data, len, &doc, reterr);
    return r < 0 ? r : feed->each(s, event, yyjson_doc_get_root(doc), reterr);
}

int stream_events(struct llm_stream *s, const char *data, size_t len, stream_event_fn *each,
                  struct error *reterr)
{
    struct event_feed feed = {.s = s, .each = each};

    return data ? sse_parser_feed(&s->sse, data, len, event_take, &feed, reterr) : 0;
}

static int line_take(struct llm_stream *s, const char *line, size_t len, stream_line_fn *each,
                     struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    int r;

    if (s->finished || is_blank(line, len))
        return 0;
    r = stream_json(s, line, len, &doc, reterr);
    return r < 0 ? r : each(s, yyjson_doc_get_root(doc), reterr);
}

/* The rest of the line that an earlier piece began. */
static int line_end(struct llm_stream *s, const char *data, size_t len, stream_line_fn *each,
                    struct error *reterr)
{
    int r;

    if (s->line.len == 0)
        return line_take(s, data, len, each, reterr);
    if (buf_append(&s->line, data, len) < 0)
        return error_set(reterr, ERR_LIMIT, "a line of the answer is above %llu bytes",
                         LLM_EVENT_BYTES);
    r = line_take(s, s->line.data, s->line.len, each, reterr);
    buf_clear(&s->line);
    return r;
}

int stream_lines(struct llm_stream *s, const char *data, size_t len, stream_line_fn *each,
                 struct error *reterr)
{
    const char *end, *stop;
    int r;

    if (!data) /* what has no line end may have been cut */
        return s->line.len ? line_end(s, "", 0, each, reterr) : 0;
    end = data + len;
    while (data < end && (stop = memchr(data, '\n', (size_t)(end - data)))) {
        r = line_end(s, data, (size_t)(stop - data), each, reterr);
        if (r < 0)
            return r;
        data = stop + 1;
    }
    if (buf_append(&s->line, data, (size_t)(end - data)) < 0)
        return error_set(reterr, ERR_LIMIT, "a line of the answer is above %llu bytes",
                         LLM_EVENT_BYTES);
    return 0;
}
