/* SPDX-License-Identifier: MIT */
/* For tests of what a model is shown: conversations from JSON, pictures, and views as one line. */
#pragma once

#include "agent/view.h"
#include "base/base64.h"
#include "tests/lib/test.h"

#include <string.h>

/* A conversation of a JSON list. */
static inline void viewtest_load(struct transcript *t, const char *json)
{
    auto_json yyjson_doc *doc = NULL;
    struct error err = {0};

    assert_ok(json_parse(json, strlen(json), &doc, &err), err);
    assert_ok(transcript_apply(t, yyjson_doc_get_root(doc), &err), err);
}

static inline void viewtest_big_32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* A PNG in base64, whole as far as its structure goes; `size` bytes of picture data. */
static inline void viewtest_png(struct buf *ret, uint32_t width, uint32_t height, size_t size)
{
    static const char begin[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    static const char end[] = "\0\0\0\0IEND\0\0\0\0";
    unsigned char head[17] = {0}, data_head[8] = "    IDAT";
    auto_buf struct buf bytes;

    buf_init(&bytes, 64 * MIB);
    viewtest_big_32(head, width);
    viewtest_big_32(head + 4, height);
    head[8] = 8;
    head[9] = 2;
    viewtest_big_32(data_head, (uint32_t)size);
    assert_int_eq(buf_append(&bytes, begin, sizeof(begin) - 1), 0);
    assert_int_eq(buf_append(&bytes, head, sizeof(head)), 0);
    assert_int_eq(buf_append(&bytes, data_head, sizeof(data_head)), 0);
    assert_int_eq(buf_reserve(&bytes, size + 4), 0);
    memset(bytes.data + bytes.len, 'x', size + 4);
    bytes.len += size + 4;
    assert_int_eq(buf_append(&bytes, end, sizeof(end) - 1), 0);
    assert_int_eq(base64_encode(ret, bytes.data, bytes.len), 0);
}

static inline void viewtest_part(struct buf *ret, const struct llm_part *part)
{
    static const char *const names[] = {"", "image ", "file ", "thought "};
    int r = buf_printf(ret, "[%s%s", names[part->kind], part->mime ? part->mime : "");

    if (part->kind == LLM_IMAGE && part->data)
        r |= buf_printf(ret, " %zu", strlen(part->data));
    if (part->url)
        r |= buf_printf(ret, " %s", part->url);
    if (part->text)
        r |= buf_append_str(ret, part->text);
    if (part->raw)
        r |= buf_printf(ret, " raw %s", part->raw);
    r |= buf_append_byte(ret, ']');
    assert_int_eq(r, 0);
}

/* "U[text] A[text]{id name args} T(id)[text]" and so on. */
static inline void viewtest_render(struct buf *ret, const struct llm_message *m, size_t count)
{
    for (size_t i = 0; i < count; i++, m++) {
        assert_int_eq(buf_printf(ret, "%s%c", i ? " " : "", "SUAT"[m->role]), 0);
        if (m->role == LLM_TOOL)
            assert_int_eq(buf_printf(ret, "%s(%s)", m->is_error ? "!" : "", m->tool_call_id), 0);
        for (size_t n = 0; n < m->part_count; n++)
            viewtest_part(ret, &m->parts[n]);
        for (size_t n = 0; n < m->call_count; n++)
            assert_int_eq(buf_printf(ret, "{%s %s %s%s}", m->calls[n].id, m->calls[n].name,
                                     m->calls[n].valid ? "" : "!", m->calls[n].arguments),
                          0);
    }
}
