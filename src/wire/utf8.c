/* SPDX-License-Identifier: MIT */
/* UTF-8 repair. The range of the second byte depends on the first (no overlongs, surrogates or
 * values past U+10FFFF). */
#include "wire/utf8.h"

#include <stdbool.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Length that a first byte announces; 0 when it cannot start a character. */
static size_t lead_length(unsigned char c)
{
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef)
        return 3;
    return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

static bool second_fits(unsigned char lead, unsigned char c)
{
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;

    return c >= low && c <= high;
}

/* Whether `c` may follow the `have` bytes of an unfinished character. */
static bool continues(const unsigned char *start, size_t have, unsigned char c)
{
    return have == 1 ? second_fits(start[0], c) : (c & 0xc0) == 0x80;
}

/* Length of the run of ASCII at the start, so that plain output is copied in one go. */
static size_t ascii_span(const unsigned char *p, size_t len)
{
    size_t n = 0;

    while (n < len && p[n] < 0x80)
        n++;
    return n;
}

/* Takes plain text and the byte behind it, the first of a character or none; how many bytes. */
static ssize_t first_feed(struct utf8_repair *u, const unsigned char *p, size_t len,
                          struct buf *ret)
{
    size_t plain = ascii_span(p, len);

    if (plain && buf_append(ret, p, plain) < 0)
        return -1;
    if (plain == len)
        return (ssize_t)plain;
    if (lead_length(p[plain]) > 0)
        u->pending[u->pending_len++] = p[plain];
    else if (buf_append_str(ret, REPLACEMENT) < 0)
        return -1;
    return (ssize_t)plain + 1;
}

/* Takes a further byte of a character, or none where it is not of it. */
static ssize_t further_feed(struct utf8_repair *u, unsigned char byte, struct buf *ret)
{
    size_t whole = u->pending_len + 1;

    if (!continues(u->pending, u->pending_len, byte)) {
        u->pending_len = 0;
        return buf_append_str(ret, REPLACEMENT) < 0 ? -1 : 0;
    }
    u->pending[u->pending_len++] = byte;
    if (whole < lead_length(u->pending[0]))
        return 1;
    u->pending_len = 0; /* also when there is no room: pending has none for a fifth byte */
    return buf_append(ret, u->pending, whole) < 0 ? -1 : 1;
}

int utf8_repair_feed(struct utf8_repair *u, const void *data, size_t len, struct buf *ret)
{
    const unsigned char *p = data;
    size_t i = 0;

    while (i < len) {
        ssize_t taken =
            u->pending_len == 0 ? first_feed(u, p + i, len - i, ret) : further_feed(u, p[i], ret);

        if (taken < 0)
            return -1;
        i += (size_t)taken;
    }
    return 0;
}

int utf8_repair_finish(struct utf8_repair *u, struct buf *ret)
{
    size_t pending = u->pending_len;

    u->pending_len = 0;
    return pending ? buf_append_str(ret, REPLACEMENT) : 0;
}

size_t utf8_count(const char *text, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

size_t utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}
