/* SPDX-License-Identifier: MIT */
/*
 * Image headers. Each format is a sequence of lengths and blocks, walked by a cursor that cannot
 * leave the data. A cut file is not an error as long as its size is known: the header then says
 * that it is not whole.
 */
#include "wire/image_header.h"

#include <string.h>

struct cursor {
    const unsigned char *at;
    size_t left;
};

/* The next `len` bytes, or NULL when there are not so many; then nothing is left either. */
static const unsigned char *take(struct cursor *c, size_t len)
{
    const unsigned char *at = c->at;

    if (len > c->left) {
        c->left = 0;
        return NULL;
    }
    c->at += len;
    c->left -= len;
    return at;
}

static uint32_t big_16(const unsigned char *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t big_32(const unsigned char *p)
{
    return big_16(p) << 16 | big_16(p + 2);
}

static uint32_t little_16(const unsigned char *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static uint32_t little_24(const unsigned char *p)
{
    return (uint32_t)p[2] << 16 | little_16(p);
}

static uint32_t little_32(const unsigned char *p)
{
    return little_16(p + 2) << 16 | little_16(p);
}

/* ---- PNG ---- */

enum { PNG_SIDE_MAX = 0x7fffffff };

static int ihdr_parse(const unsigned char *p, struct image_header *ret, struct error *reterr)
{
    /* Allowed bit depths by colour type, as sets of bits. */
    static const uint32_t depths[7] = {[0] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
                                       [2] = 1 << 8 | 1 << 16,
                                       [3] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
                                       [4] = 1 << 8 | 1 << 16,
                                       [6] = 1 << 8 | 1 << 16};

    ret->width = big_32(p);
    ret->height = big_32(p + 4);
    if (ret->width > PNG_SIDE_MAX || ret->height > PNG_SIDE_MAX)
        return error_set(reterr, ERR_INVALID, "a PNG of an impossible size");
    if (p[8] > 16 || p[9] > 6 || !(depths[p[9]] >> p[8] & 1) || p[10] || p[11] || p[12] > 1)
        return error_set(reterr, ERR_INVALID, "a PNG of an unknown pixel format");
    ret->interlaced = p[12];
    return 0;
}

static int png_parse(struct cursor c, struct image_header *ret, struct error *reterr)
{
    const unsigned char *head, *body;
    bool data = false;

    (void)take(&c, 8);
    head = take(&c, 8);
    body = take(&c, 13 + 4);
    if (!body || big_32(head) != 13 || memcmp(head + 4, "IHDR", 4) != 0)
        return error_set(reterr, ERR_INVALID, "a PNG without a header");
    if (ihdr_parse(body, ret, reterr) < 0)
        return -ERR_INVALID;
    while ((head = take(&c, 8)) && (body = take(&c, (size_t)big_32(head) + 4))) {
        if (memcmp(head + 4, "acTL", 4) == 0 && big_32(head) == 8)
            ret->frames = big_32(body);
        data |= memcmp(head + 4, "IDAT", 4) == 0;
        if (memcmp(head + 4, "IEND", 4) == 0) {
            ret->whole = data;
            break;
        }
    }
    return 0;
}

/* ---- GIF ---- */

static bool sub_blocks_skip(struct cursor *c)
{
    const unsigned char *len;

    while ((len = take(c, 1)) && *len) {
        if (!take(c, *len))
            return false;
    }
    return len != NULL;
}

static bool color_table_skip(struct cursor *c, unsigned char flags)
{
    return !(flags & 0x80) || take(c, (size_t)3 << ((flags & 7) + 1));
}

/* One frame: decoders enlarge the canvas to what a frame needs. */
static bool gif_frame(struct cursor *c, struct image_header *ret)
{
    const unsigned char *p = take(c, 9);

    if (!p)
        return false;
    ret->width = MAX(ret->width, little_16(p) + little_16(p + 4));
    ret->height = MAX(ret->height, little_16(p + 2) + little_16(p + 6));
    ret->frames++;
    return color_table_skip(c, p[8]) && take(c, 1) && sub_blocks_skip(c);
}

static int gif_parse(struct cursor c, struct image_header *ret, struct error *reterr)
{
    const unsigned char *p;
    bool good = true;

    (void)take(&c, 6);
    p = take(&c, 7);
    if (!p)
        return error_set(reterr, ERR_INVALID, "a GIF without a header");
    ret->width = little_16(p);
    ret->height = little_16(p + 2);
    ret->frames = 0;
    good = color_table_skip(&c, p[4]);
    while (good && (p = take(&c, 1)) && *p != 0x3b) {
        if (*p == 0x2c)
            good = gif_frame(&c, ret);
        else
            good = *p == 0x21 && take(&c, 1) && sub_blocks_skip(&c);
    }
    ret->whole = good && p && ret->frames > 0;
    ret->frames = MAX(ret->frames, 1u);
    return 0;
}

/* ---- JPEG ---- */

enum { JPEG_SOF0 = 0xc0, JPEG_SOF2 = 0xc2, JPEG_SOF15 = 0xcf, JPEG_SOS = 0xda, JPEG_EOI = 0xd9 };

static bool is_frame_mark(unsigned mark)
{
    return mark >= JPEG_SOF0 && mark <= JPEG_SOF15 && mark != 0xc4 && mark != 0xc8 && mark != 0xcc;
}

/* The next marker, which any number of 0xff may precede; 0 when there is none. */
static unsigned mark_next(struct cursor *c)
{
    const unsigned char *p = take(c, 1);

    if (!p || *p != 0xff)
        return 0;
    while (p && *p == 0xff)
        p = take(c, 1);
    return p ? *p : 0;
}

static int frame_parse(const unsigned char *p, size_t len, struct image_header *ret,
                       struct error *reterr)
{
    if (len < 6 || len != 6 + 3 * (size_t)p[5] || p[0] != 8)
        return error_set(reterr, ERR_INVALID, "a JPEG of an unknown pixel format");
    ret->height = big_16(p + 1);
    ret->width = big_16(p + 3);
    return 0;
}

/* Goes on to the first scan; only what baseline and progressive decoders read is an image. */
static int jpeg_parse(struct cursor c, struct image_header *ret, struct error *reterr)
{
    const unsigned char *p, *body;
    unsigned mark = 0;
    size_t len;

    (void)take(&c, 2);
    while (mark != JPEG_SOS && (mark = mark_next(&c)) && (p = take(&c, 2))) {
        len = big_16(p);
        if (len < 2 || !(body = take(&c, len - 2)))
            break;
        if (is_frame_mark(mark) && (mark > JPEG_SOF2 || ret->width))
            return error_set(reterr, ERR_INVALID, "a JPEG of a rare kind");
        if (is_frame_mark(mark) && frame_parse(body, len - 2, ret, reterr) < 0)
            return -ERR_INVALID;
    }
    ret->whole = mark == JPEG_SOS && memmem(c.at, c.left, "\xff\xd9", 2);
    return 0;
}

/* ---- WebP ---- */

static void webp_chunk(const unsigned char *name, const unsigned char *body, size_t len,
                       struct image_header *ret, bool *has_data)
{
    uint32_t width = 0, height = 0;

    if (memcmp(name, "VP8X", 4) == 0 && len >= 10) {
        width = little_24(body + 4) + 1;
        height = little_24(body + 7) + 1;
    } else if (memcmp(name, "VP8L", 4) == 0 && len >= 5 && body[0] == 0x2f) {
        width = (little_32(body + 1) & 0x3fff) + 1;
        height = (little_32(body + 1) >> 14 & 0x3fff) + 1;
        *has_data = true;
    } else if (memcmp(name, "VP8 ", 4) == 0 && len >= 10 && !(body[0] & 1) &&
               memcmp(body + 3, "\x9d\x01\x2a", 3) == 0) {
        width = little_16(body + 6) & 0x3fff;
        height = little_16(body + 8) & 0x3fff;
        *has_data = true;
    } else if (memcmp(name, "ANMF", 4) == 0) {
        ret->frames++;
        *has_data = true;
    }
    ret->width = MAX(ret->width, width);
    ret->height = MAX(ret->height, height);
}

static int webp_parse(struct cursor c, struct image_header *ret, struct error *reterr)
{
    const unsigned char *head = take(&c, 12), *body;
    bool has_data = false, cut = !head || little_32(head + 4) > c.left + 4;

    ret->frames = 0;
    if (!cut && little_32(head + 4) >= 4)
        c.left = little_32(head + 4) - 4;
    while (!cut && c.left && (head = take(&c, 8))) {
        size_t len = little_32(head + 4);

        body = take(&c, len);
        cut = !body;
        if (body)
            webp_chunk(head, body, len, ret, &has_data);
        /* Chunks begin at even places; some writers leave the last byte out. */
        if (len & 1 && c.left)
            (void)take(&c, 1);
    }
    ret->frames = MAX(ret->frames, 1u);
    ret->whole = !cut && has_data;
    return 0;
}

/* ---- all ---- */

static const struct format {
    enum image_kind kind;
    const char *mime;
    size_t at;
    const char *magic;
    int (*parse)(struct cursor c, struct image_header *ret, struct error *reterr);
} formats[] = {
    {IMAGE_PNG, "image/png", 0, "\x89PNG\r\n\x1a\n", png_parse},
    {IMAGE_JPEG, "image/jpeg", 0, "\xff\xd8\xff", jpeg_parse},
    {IMAGE_GIF, "image/gif", 0, "GIF87a", gif_parse},
    {IMAGE_GIF, "image/gif", 0, "GIF89a", gif_parse},
    {IMAGE_WEBP, "image/webp", 8, "WEBP", webp_parse},
};

const char *image_mime(enum image_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (formats[i].kind == kind)
            return formats[i].mime;
    }
    return "application/octet-stream";
}

static const struct format *format_find(const void *data, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        size_t magic = strlen(formats[i].magic);

        if (len >= formats[i].at + magic &&
            memcmp((const char *)data + formats[i].at, formats[i].magic, magic) == 0)
            return &formats[i];
    }
    return NULL;
}

int image_header_parse(const void *data, size_t len, struct image_header *ret, struct error *reterr)
{
    const struct format *format = format_find(data, len);

    if (!format || (format->kind == IMAGE_WEBP && memcmp(data, "RIFF", 4) != 0))
        return error_set(reterr, ERR_INVALID, "no image of a known kind");
    *ret = (struct image_header){.kind = format->kind, .frames = 1};
    if (format->parse((struct cursor){.at = data, .left = len}, ret, reterr) < 0)
        return -ERR_INVALID;
    if (ret->width == 0 || ret->height == 0)
        return error_set(reterr, ERR_INVALID, "an image without a size");
    ret->frames = MAX(ret->frames, 1u);
    return 0;
}
