/* SPDX-License-Identifier: MIT */
/*
 * What is given up first: nothing (PNG), then quality, then size. A picture that came as JPEG stays
 * one: as PNG it would only be larger.
 */
#include "shrink/shrink.h"

#include "shrink/jpeg_codec.h"
#include "shrink/png_codec.h"
#include "wire/image_header.h"

static int picture_read(const void *data, size_t len, uint32_t side, struct picture *ret,
                        struct error *reterr)
{
    struct image_header h;
    int r = image_header_parse(data, len, &h, reterr);

    if (r < 0)
        return r;
    if (image_pixels(&h) > IMAGE_PIXELS_MAX)
        return error_set(reterr, ERR_LIMIT, "%u x %u pixels are more than %d million", h.width,
                         h.height, IMAGE_PIXELS_MAX / 1000000);
    if (h.kind == IMAGE_PNG)
        return png_codec_read(data, len, side, ret, reterr);
    if (h.kind == IMAGE_JPEG)
        return jpeg_codec_read(data, len, side, ret, reterr);
    return error_set(reterr, ERR_INVALID, "%s cannot be reduced", image_mime(h.kind));
}

/* 0, or ERR_LIMIT when no quality is low enough. */
static int jpeg_fit(const struct picture *p, struct buf *ret, struct error *reterr)
{
    static const int qualities[] = {88, 75, 60, 45};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(qualities); i++) {
        r = jpeg_codec_write(p, qualities[i], ret, reterr);
        if (r != -ERR_LIMIT)
            return r;
    }
    return r;
}

int shrink_picture(const void *data, size_t len, uint32_t side, struct buf *ret,
                   struct error *reterr)
{
    auto_picture struct picture p = {};
    int r = picture_read(data, len, side, &p, reterr);

    if (r < 0)
        return r;
    r = len && *(const unsigned char *)data == 0xff ? -ERR_LIMIT : png_codec_write(&p, ret, reterr);
    side = MAX(p.width, p.height);
    while (r == -ERR_LIMIT && (r = jpeg_fit(&p, ret, reterr)) == -ERR_LIMIT) {
        side = side / 4 * 3;
        if (side < SHRINK_SIDE_MIN)
            return error_set(reterr, ERR_LIMIT, "it does not fit into %zu bytes", ret->max);
        if (picture_reduce(&p, side, reterr) < 0)
            return -ERR_NO_MEMORY;
    }
    return r;
}
