/* SPDX-License-Identifier: MIT */
/*
 * Head-and-tail text. The tail keeps a slack of older bytes in front of its official start: there
 * one can see whether the cut falls into an escape sequence, whose end must then be skipped too.
 */
#include "session/text.h"

#include <string.h>

enum {
    TAIL_SLACK_CHARS = 256, /* longest escape sequence that is recognised */
    CHAR_MAX_BYTES = 4,
    ESC = 27,
};

void text_keep_init(struct text_keep *t, size_t limit_chars)
{
    size_t half = limit_chars / 2;

    *t = (struct text_keep){.limit = limit_chars};
    buf_init(&t->head, half * CHAR_MAX_BYTES);
    /* Twice what is kept, so that cutting happens once per so many characters. */
    buf_init(&t->tail, ((limit_chars - half) * 2 + TAIL_SLACK_CHARS * 2) * CHAR_MAX_BYTES + 4096);
}

void text_keep_done(struct text_keep *t)
{
    buf_done(&t->head);
    buf_done(&t->tail);
}

/* Byte length of the first `chars` characters. */
static size_t chars_span(const char *text, size_t len, size_t chars)
{
    size_t i = 0;

    while (i < len && chars) {
        i++;
        while (i < len && ((unsigned char)text[i] & 0xc0) == 0x80)
            i++;
        chars--;
    }
    return i;
}

static size_t tail_limit(const struct text_keep *t)
{
    return t->limit - t->limit / 2;
}

static void tail_cut(struct text_keep *t)
{
    size_t keep = tail_limit(t) + TAIL_SLACK_CHARS, drop;

    if (t->tail_chars <= keep)
        return;
    drop = t->tail_chars - keep;
    buf_consume(&t->tail, chars_span(t->tail.data, t->tail.len, drop));
    t->tail_chars -= drop;
    t->dropped_chars += drop;
}

/* Valid UTF-8 of at most a few KiB. */
static void keep_text(struct text_keep *t, const char *text, size_t len)
{
    size_t half = t->limit / 2, n;

    if (t->head_chars < half) {
        n = chars_span(text, len, half - t->head_chars);
        t->head_chars += utf8_count(text, n);
        if (buf_append(&t->head, text, n) < 0)
            t->failed = true;
        text += n;
        len -= n;
    }
    if (!len)
        return;
    if (t->tail.max - t->tail.len < len)
        tail_cut(t);
    if (buf_append(&t->tail, text, len) < 0)
        t->failed = true;
    else
        t->tail_chars += utf8_count(text, len);
}

void text_keep_feed(struct text_keep *t, const void *data, size_t len)
{
    enum { PIECE = 1024 };
    const char *p = data;
    auto_buf struct buf fixed;

    buf_init(&fixed, PIECE * 3 + 16);
    t->bytes += len;
    while (len) {
        size_t n = MIN(len, (size_t)PIECE);

        buf_clear(&fixed);
        if (utf8_repair_feed(&t->repair, p, n, &fixed) < 0)
            t->failed = true;
        keep_text(t, buf_str(&fixed), fixed.len);
        p += n;
        len -= n;
    }
}

/* Length of a control string (OSC, DCS and the like): BEL or ESC \ ends it, another ESC breaks it
 * off. */
static size_t string_length(const char *p, size_t len)
{
    for (size_t i = 2; i < len; i++) {
        if (p[i] == 7)
            return i + 1;
        if (p[i] == ESC && i + 1 < len)
            return p[i + 1] == '\\' ? i + 2 : i;
    }
    return 0;
}

/* Length of the escape sequence at `p` (ESC first) by ECMA-48; 0 when its end is not there. A byte
 * that may not be in one is not part of it. */
static size_t escape_length(const char *p, size_t len)
{
    size_t i = 1;
    unsigned char above; /* where the bytes before the last one end */

    if (len < 2)
        return 0;
    if (memchr("]PX^_", p[1], 5))
        return string_length(p, len);
    above = p[1] == '[' ? 0x40 : 0x30;
    i += p[1] == '[';
    while (i < len && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < above)
        i++;
    if (i == len)
        return 0;
    return (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x7f ? i + 1 : i;
}

/* Where the head must end so that it holds no unfinished sequence. What is longer than any we know
 * is none. */
static size_t head_end(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        const char *esc = memchr(text + at, ESC, len - at);
        size_t length;

        if (!esc)
            break;
        at = (size_t)(esc - text);
        length = escape_length(esc, MIN(len - at, (size_t)TAIL_SLACK_CHARS));
        if (length == 0 && len - at < TAIL_SLACK_CHARS)
            return at;
        at += MAX(length, 1u);
    }
    return len;
}

/* Where the tail may start: at `at`, or behind the sequence that `at` is inside of. */
static size_t tail_start(const char *text, size_t len, size_t at)
{
    const char *esc = at ? memrchr(text, ESC, at) : NULL;
    size_t start, length;

    if (!esc)
        return at;
    start = (size_t)(esc - text);
    length = escape_length(esc, len - start);
    return length && start + length > at ? start + length : at;
}

static void cut_format(const char *head, size_t head_len, const char *tail, size_t tail_len,
                       uint64_t missing, struct buf *ret)
{
    if (buf_append(ret, head, head_len) < 0 ||
        buf_printf(ret, "\n... [%llu characters left out] ...\n", (unsigned long long)missing) <
            0 ||
        buf_append(ret, tail, tail_len) < 0)
        return; /* a full buffer: the caller's limit is smaller than ours, what fits is there */
}

bool text_keep_format(struct text_keep *t, struct buf *ret)
{
    struct utf8_repair rest = t->repair;
    auto_buf struct buf last;
    size_t end, at, start;
    uint64_t missing;

    buf_init(&last, 16);
    if (utf8_repair_finish(&rest, &last) == 0 && last.len) {
        keep_text(t, last.data, last.len);
        t->repair = rest;
    }
    if (t->dropped_chars == 0 && t->tail_chars <= tail_limit(t)) {
        if (buf_append(ret, buf_str(&t->head), t->head.len) < 0 ||
            buf_append(ret, buf_str(&t->tail), t->tail.len) < 0)
            return true;
        return t->failed;
    }
    end = head_end(buf_str(&t->head), t->head.len);
    at = chars_span(t->tail.data, t->tail.len, t->tail_chars - MIN(t->tail_chars, tail_limit(t)));
    start = tail_start(t->tail.data, t->tail.len, at);
    missing = t->dropped_chars + utf8_count(t->tail.data, start) +
              utf8_count(buf_str(&t->head) + end, t->head.len - end);
    cut_format(buf_str(&t->head), end, t->tail.data + start, t->tail.len - start, missing, ret);
    return true;
}

bool text_cut(const char *text, size_t len, size_t limit_chars, struct buf *ret)
{
    struct text_keep t;
    bool cut;

    text_keep_init(&t, limit_chars);
    text_keep_feed(&t, text, len);
    cut = text_keep_format(&t, ret);
    text_keep_done(&t);
    return cut;
}
