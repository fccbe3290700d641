/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648). Decoding refuses what encoding would not have written, so that a text has one
 * meaning. */
#include "base/base64.h"

#include <stdint.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(struct buf *ret, const void *data, size_t len)
{
    const unsigned char *p = data;

    if (len > ret->max || buf_reserve(ret, (len + 2) / 3 * 4) < 0)
        return -1;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < len ? p[i + 2] : 0);
        char out[4] = {base64_digits[v >> 18], base64_digits[v >> 12 & 63],
                       i + 1 < len ? base64_digits[v >> 6 & 63] : '=',
                       i + 2 < len ? base64_digits[v & 63] : '='};

        if (buf_append(ret, out, sizeof(out)) < 0)
            return -1;
    }
    return 0;
}

static int digit_value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes the four characters at `text`; the last group of a text may be padded. */
static int group_decode(const char *text, size_t pad, struct buf *ret)
{
    uint32_t v = 0;
    char out[3];

    for (size_t i = 0; i < 4; i++) {
        int d = i < 4 - pad ? digit_value((unsigned char)text[i]) : 0;

        if (d < 0)
            return -1;
        v = v << 6 | (uint32_t)d;
    }
    if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
        return -1;
    for (size_t i = 0; i < 3; i++)
        out[i] = (char)(v >> (16 - 8 * i) & 0xff);
    return buf_append(ret, out, 3 - pad);
}

int base64_decode(struct buf *ret, const char *text, size_t len)
{
    if (len % 4)
        return -1;
    for (size_t i = 0; i < len; i += 4) {
        size_t pad = 0;

        if (i + 4 == len)
            pad = text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        if (group_decode(text + i, pad, ret) < 0)
            return -1;
    }
    return 0;
}
