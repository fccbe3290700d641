/* SPDX-License-Identifier: MIT */
/* Base64 and JSON strings. Escaping runs twice, once to count, so that the result is allocated by R
 * in its right size and nothing of ours is lost when R has no memory for it.
 */

#include "text.h"

#include <stdint.h>
#include <string.h>

static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const unsigned char *from, size_t length, unsigned char *ret)
{
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t bits = (uint32_t)from[i] << 16;

        if (left > 1)
            bits |= (uint32_t)from[i + 1] << 8;
        if (left > 2)
            bits |= from[i + 2];
        *ret++ = (unsigned char)BASE64[bits >> 18];
        *ret++ = (unsigned char)BASE64[bits >> 12 & 63];
        *ret++ = left > 1 ? (unsigned char)BASE64[bits >> 6 & 63] : '=';
        *ret++ = left > 2 ? (unsigned char)BASE64[bits & 63] : '=';
    }
}

/* How long a character is by its first byte; 0: no character begins so. */
static size_t utf8_expected(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The length of the character at p, 0 where there is none. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = utf8_expected(p[0]);
    uint32_t code = p[0];

    if (length < 2)
        return length;
    if (length > left)
        return 0;
    code &= 0x7fU >> length;
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < smallest[length] || code > 0x10ffff || code >> 11 == 0x1b)
        return 0;
    return length;
}

static size_t ascii_escape(unsigned char c, unsigned char *ret)
{
    static const char hex[] = "0123456789abcdef";
    const char *found = c ? strchr("\nn\tt\rr\"\"\\\\", c) : NULL;

    if (found) {
        ret[0] = '\\';
        ret[1] = (unsigned char)found[1];
        return 2;
    }
    memcpy(ret, "\\u00", 4);
    ret[4] = (unsigned char)hex[c >> 4];
    ret[5] = (unsigned char)hex[c & 15];
    return 6;
}

size_t json_escape(const unsigned char *text, size_t length, unsigned char *ret)
{
    unsigned char one[8];
    size_t size = 0, step, n;

    for (size_t i = 0; i < length; i += step) {
        step = n = utf8_length(text + i, length - i);
        if (n == 0) {
            step = 1;
            n = 3;
            memcpy(one, "\xef\xbf\xbd", n);
        } else if (n == 1 && (text[i] < 0x20 || text[i] == '"' || text[i] == '\\')) {
            n = ascii_escape(text[i], one);
        } else {
            memcpy(one, text + i, n);
        }
        if (ret)
            memcpy(ret + size, one, n);
        size += n;
    }
    return size;
}
