/* SPDX-License-Identifier: MIT */
/*
 * Numbers are stricter than POSIX readers are: a sign, other characters, or a base-256 number that
 * is cut off by the width of our integers each give two readers two different files.
 */
#include "archive/tar-header.h"

#include "base/str.h"

#include <limits.h>

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "one block");

enum { EXTENDED_TEXT_MAX = 16 * 1024, MS = 1000, FRACTION_DIGITS = 3 };
#define SECONDS_MAX (INT64_MAX / (2 * MS))

void tar_extended_init(struct tar_extended *x)
{
    *x = (struct tar_extended){.path = {.max = EXTENDED_TEXT_MAX},
                               .target = {.max = EXTENDED_TEXT_MAX}};
}

void tar_extended_done(struct tar_extended *x)
{
    buf_done(&x->path);
    buf_done(&x->target);
}

bool tar_header_is_zero(const struct tar_header *h)
{
    static const struct tar_header zero;

    return memcmp(h, &zero, sizeof(zero)) == 0;
}

bool tar_header_check_sum(const struct tar_header *h)
{
    const unsigned char *p = (const unsigned char *)h;
    const size_t at = offsetof(struct tar_header, checksum);
    int64_t sum = 0, said;

    for (size_t i = 0; i < sizeof(*h); i++)
        sum += i >= at && i < at + sizeof(h->checksum) ? ' ' : p[i];
    return tar_number_parse(h->checksum, sizeof(h->checksum), &said) && said == sum;
}

/* The first bit says that it is one; the rest is big-endian two's complement. */
static bool base256_parse(const unsigned char *p, size_t len, int64_t *ret)
{
    const unsigned char fill = p[0] & 0x40 ? 0xff : 0;
    uint64_t value = 0;

    if (p[0] != (fill | 0x80))
        return false;
    for (size_t i = 1; i + sizeof(value) < len; i++)
        if (p[i] != fill)
            return false;
    for (size_t i = len > sizeof(value) ? len - sizeof(value) : 1; i < len; i++)
        value = value << 8 | p[i];
    if (len <= sizeof(value) && fill)
        return false; /* fields of seven bytes hold nothing that may be negative */
    *ret = (int64_t)value;
    return (*ret < 0) == (fill != 0);
}

bool tar_number_parse(const char *field, size_t len, int64_t *ret)
{
    size_t i = 0, first;
    int64_t value = 0;

    if ((unsigned char)field[0] & 0x80)
        return base256_parse((const unsigned char *)field, len, ret);
    while (i < len && field[i] == ' ')
        i++;
    for (first = i; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        value = value * 8 + (field[i] - '0');
    if (i < len && field[i] != ' ' && field[i] != 0)
        return false;
    *ret = value;
    return i > first || (first == 0 && field[0] == 0); /* some writers leave a field empty */
}

/* ---- PAX ---- */

static int text_set(struct buf *b, const char *key, const char *value, size_t len,
                    struct error *reterr)
{
    if (b->len > 0)
        return error_set(reterr, ERR_INVALID, "a PAX header has '%s' twice", key);
    if (len == 0 || memchr(value, 0, len))
        return error_set(reterr, ERR_INVALID, "a PAX header has an empty '%s', or a NUL in it",
                         key);
    if (buf_append(b, value, len) < 0)
        return error_set(reterr, ERR_LIMIT, "a PAX header has a '%s' of %zu bytes", key, len);
    return 0;
}

static int size_set(struct tar_extended *x, const char *value, size_t len, struct error *reterr)
{
    char text[24] = "";
    int64_t size;

    if (x->has_size || len >= sizeof(text))
        return error_set(reterr, ERR_INVALID, "a PAX header has a malformed 'size'");
    memcpy(text, value, len);
    if (strlen(text) != len || str_parse_int(text, 0, INT64_MAX, &size) < 0)
        return error_set(reterr, ERR_INVALID, "a PAX header has a malformed 'size'");
    x->has_size = true;
    x->size = (uint64_t)size;
    return 0;
}

/* Seconds, with a sign and any number of decimals. */
static int mtime_set(struct tar_extended *x, const char *value, size_t len, struct error *reterr)
{
    const bool negative = len > 0 && value[0] == '-';
    size_t i = negative, decimals = 0;
    bool dot = false;
    int64_t ms = 0;

    for (; i < len; i++) {
        if (value[i] == '.' && !dot && i > negative) {
            dot = true;
        } else if (value[i] < '0' || value[i] > '9' || ms > SECONDS_MAX / 10) {
            break;
        } else if (decimals < FRACTION_DIGITS) {
            ms = ms * 10 + (value[i] - '0');
            decimals += dot;
        }
    }
    if (i < len || len <= negative || x->has_mtime)
        return error_set(reterr, ERR_INVALID, "a PAX header has a malformed 'mtime'");
    for (; decimals < FRACTION_DIGITS; decimals++)
        ms *= 10;
    x->has_mtime = true;
    x->mtime_ms = negative ? -ms : ms;
    return 0;
}

static bool key_is(const char *key, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(key, name, len) == 0;
}

static bool key_is_sparse(const char *key, size_t len)
{
    static const char gnu[] = "GNU.sparse.";

    return (len >= sizeof(gnu) - 1 && memcmp(key, gnu, sizeof(gnu) - 1) == 0) ||
           key_is(key, len, "SCHILY.realsize");
}

/* Owners, times and attributes that a session has no use for are passed over. */
static int pair_set(struct tar_extended *x, const char *key, size_t key_len, const char *value,
                    size_t len, struct error *reterr)
{
    if (key_is(key, key_len, "path"))
        return text_set(&x->path, "path", value, len, reterr);
    if (key_is(key, key_len, "linkpath"))
        return text_set(&x->target, "linkpath", value, len, reterr);
    if (key_is(key, key_len, "size"))
        return size_set(x, value, len, reterr);
    if (key_is(key, key_len, "mtime"))
        return mtime_set(x, value, len, reterr);
    x->sparse |= key_is_sparse(key, key_len);
    return 0;
}

/* The decimal length in front of a record: of the whole record, itself and its newline counted. */
static size_t record_length(const char *data, size_t len, size_t *ret_digits)
{
    size_t value = 0, i = 0;

    for (; i < len && data[i] >= '0' && data[i] <= '9' && value < INT_MAX / 10; i++)
        value = value * 10 + (size_t)(data[i] - '0');
    *ret_digits = i;
    return i > 0 && i < len && data[i] == ' ' && value > i + 2 && value <= len &&
                   data[value - 1] == '\n'
               ? value
               : 0;
}

int tar_pax_parse(struct tar_extended *x, bool global, const char *data, size_t len,
                  struct error *reterr)
{
    struct tar_extended seen;
    int r = 0;

    tar_extended_init(&seen);
    while (r == 0 && len > 0) {
        size_t digits, whole = record_length(data, len, &digits);
        const char *key = data + digits + 1;
        const char *equal = whole ? memchr(key, '=', whole - digits - 2) : NULL;

        if (!equal || equal == key) {
            r = error_set(reterr, ERR_INVALID, "a PAX header is malformed");
            break;
        }
        r = pair_set(&seen, key, (size_t)(equal - key), equal + 1,
                     (size_t)(data + whole - 1 - (equal + 1)), reterr);
        data += whole;
        len -= whole;
    }
    if (r == 0 && global && (seen.path.len || seen.target.len || seen.has_size || seen.sparse))
        r = error_set(reterr, ERR_INVALID, "a global PAX header names a path, a link or a size");
    if (r < 0 || global) {
        tar_extended_done(&seen);
        return r;
    }
    seen.pax = seen.any = true;
    *x = seen;
    return 0;
}
