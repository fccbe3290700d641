/* SPDX-License-Identifier: MIT */
/*
 * Texts of an answer: base64 is taken out of them, and they are cut to what the message may hold.
 * Walks recurse as deep as the value, which json_parse() has limited.
 */
#include "mcp/content-internal.h"

#include "session/text.h"

#include <stdio.h>
#include <string.h>

enum { BASE64_RUN_MAX = 10000, CUT_TEXT_ROOM = 64, CUT_ROUNDS = 40, ESCAPE_MAX = 6 };

#define BASE64_MARK ";base64,"
#define CUT_BEGIN "\n... ["
#define CUT_END "] ...\n"

size_t content_escaped_len(const char *text, size_t len)
{
    size_t extra = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\' || (c < 0x20 && strchr("\b\f\n\r\t", c) && c))
            extra += 1;
        else if (c < 0x20)
            extra += 5;
    }
    return len + extra;
}

/* ---- walking ---- */

typedef void string_fn(yyjson_mut_doc *doc, yyjson_mut_val *string, size_t limit);

static void strings_walk(yyjson_mut_doc *doc, yyjson_mut_val *value, string_fn *each, size_t limit)
{
    size_t i, max;
    yyjson_mut_val *key, *item;

    if (yyjson_mut_is_str(value)) {
        each(doc, value, limit);
    } else if (yyjson_mut_is_arr(value)) {
        yyjson_mut_arr_foreach(value, i, max, item)
        {
            strings_walk(doc, item, each, limit);
        }
    } else if (yyjson_mut_is_obj(value)) {
        yyjson_mut_obj_foreach(value, i, max, key, item)
        {
            strings_walk(doc, item, each, limit);
        }
    }
}

/* Gives a string another text, in the document's memory. Without memory it becomes empty. */
static void string_set(yyjson_mut_doc *doc, yyjson_mut_val *string, const struct buf *text)
{
    yyjson_mut_val *copy = json_mut_text(doc, buf_str(text), text->len);

    if (copy)
        yyjson_mut_set_strn(string, yyjson_mut_get_str(copy), yyjson_mut_get_len(copy));
    else
        yyjson_mut_set_strn(string, "", 0);
}

/* ---- base64 ---- */

static bool is_base64(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("+/=_-", c));
}

static const char *run_end(const char *at, const char *end)
{
    while (at < end && is_base64(*at))
        at++;
    return at;
}

/* The end of the base64 at `at`, which goes on behind the note where a long text was cut. */
static const char *base64_end(const char *at, const char *end)
{
    const char *stop = run_end(at, end), *more;

    if ((size_t)(end - stop) < strlen(CUT_BEGIN) || memcmp(stop, CUT_BEGIN, strlen(CUT_BEGIN)) != 0)
        return stop;
    more = memmem(stop, MIN((size_t)(end - stop), (size_t)CUT_TEXT_ROOM), CUT_END, strlen(CUT_END));
    return more ? run_end(more + strlen(CUT_END), end) : stop;
}

/* Appends up to the end of the next base64; its end, or NULL when there is no more of it. */
static const char *base64_next(const char *at, const char *end, size_t limit, struct buf *ret,
                               bool *ret_failed)
{
    const char *run = memmem(at, (size_t)(end - at), BASE64_MARK, strlen(BASE64_MARK)), *stop;
    size_t n;

    if (!run)
        return NULL;
    run += strlen(BASE64_MARK);
    stop = base64_end(run, end);
    n = (size_t)(stop - run);
    *ret_failed |= buf_append(ret, at, (size_t)((n > limit ? run : stop) - at)) < 0;
    if (n > limit)
        *ret_failed |= buf_printf(ret, "[%zu characters of base64 left out]", n) < 0;
    return stop;
}

static void base64_strip(yyjson_mut_doc *doc, yyjson_mut_val *string, size_t limit)
{
    const char *at = yyjson_mut_get_str(string), *end = at + yyjson_mut_get_len(string), *next;
    auto_buf struct buf text;
    bool failed = false;

    buf_init(&text, (size_t)(end - at) + CUT_TEXT_ROOM);
    while ((next = base64_next(at, end, limit, &text, &failed)))
        at = next;
    failed |= buf_append(&text, at, (size_t)(end - at)) < 0;
    if (failed)
        buf_clear(&text);
    if (failed || text.len != yyjson_mut_get_len(string))
        string_set(doc, string, &text);
}

void content_strip_base64(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    strings_walk(doc, root, base64_strip, BASE64_RUN_MAX);
}

/* ---- cutting ---- */

static void string_cut(yyjson_mut_doc *doc, yyjson_mut_val *string, size_t limit)
{
    size_t len = yyjson_mut_get_len(string);
    auto_buf struct buf text;

    if (len <= limit)
        return;
    buf_init(&text, limit * 4 + CUT_TEXT_ROOM + len);
    if (text_cut(yyjson_mut_get_str(string), len, limit, &text))
        string_set(doc, string, &text);
}

void content_cut_strings(yyjson_mut_doc *doc, yyjson_mut_val *root, size_t limit_chars)
{
    strings_walk(doc, root, string_cut, limit_chars);
}

yyjson_mut_val *content_fit_text(yyjson_mut_doc *doc, const char *text, size_t len, size_t max)
{
    size_t limit = max;
    auto_buf struct buf cut;

    /* The usual text is short, and need not be looked at. */
    if (len < max / ESCAPE_MAX || content_escaped_len(text, len) + 2 <= max)
        return json_mut_text(doc, text, len);
    buf_init(&cut, max * 4 + CUT_TEXT_ROOM);
    for (int i = 0; i < CUT_ROUNDS && limit; i++, limit = limit / 4 * 3) {
        buf_clear(&cut);
        (void)text_cut(text, len, limit, &cut);
        if (content_escaped_len(buf_str(&cut), cut.len) + 2 <= max)
            return json_mut_text(doc, buf_str(&cut), cut.len);
    }
    return json_mut_text(doc, "", 0);
}
