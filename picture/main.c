/* SPDX-License-Identifier: MIT */
/*
 * sandbox-picture: decodes a hostile picture for the terminal client, and can do nothing else. A
 * PNG or JPEG on descriptor 0; `sixel SIDE`: the body of a sixel sequence on 1; `png SIDE`: a PNG.
 * SIDE is the longest side of the result in pixels.
 */
#include "archive/confine.h"
#include "base/fd.h"
#include "base/str.h"
#include "picture/sixel.h"
#include "shrink/jpeg_codec.h"
#include "shrink/png_codec.h"
#include "wire/image_header.h"

#include <stdio.h>

enum {
    IN_MAX = 16 * 1024 * 1024,
    OUT_MAX = 16 * 1024 * 1024,
    SIDE_MAX = 4096,
    READ_PIECE = 256 * 1024,
    CPU_SECONDS = 10,
};

static int input_read(struct buf *ret, struct error *reterr)
{
    ssize_t n;

    do {
        if (ret->max - ret->len < READ_PIECE)
            return error_set(reterr, ERR_LIMIT, "the picture is too large");
        if (buf_reserve(ret, READ_PIECE) < 0)
            return error_no_memory(reterr);
        n = fd_read_full(STDIN_FILENO, ret->data + ret->len, READ_PIECE, reterr);
        if (n < 0)
            return -ERR_SYSTEM;
        ret->len += (size_t)n;
    } while (n > 0);
    return 0;
}

static int decode(const struct buf *in, uint32_t side, struct picture *ret, struct error *reterr)
{
    struct image_header h;
    int r = image_header_parse(buf_str(in), in->len, &h, reterr);

    if (r < 0)
        return r;
    if (image_pixels(&h) > IMAGE_PIXELS_MAX)
        return error_set(reterr, ERR_LIMIT, "too many pixels");
    if (h.kind == IMAGE_PNG)
        return png_codec_read(buf_str(in), in->len, side, ret, reterr);
    if (h.kind == IMAGE_JPEG)
        return jpeg_codec_read(buf_str(in), in->len, side, ret, reterr);
    return error_set(reterr, ERR_INVALID, "%s is not decoded", image_mime(h.kind));
}

static int convert(int (*encode)(const struct picture *, struct buf *, struct error *),
                   uint32_t side, struct error *reterr)
{
    auto_picture struct picture p = {0};
    auto_buf struct buf in, out;
    int r;

    buf_init(&in, IN_MAX);
    buf_init(&out, OUT_MAX);
    if ((r = input_read(&in, reterr)) < 0 || (r = decode(&in, side, &p, reterr)) < 0 ||
        (r = encode(&p, &out, reterr)) < 0)
        return r;
    return fd_write_full(STDOUT_FILENO, buf_str(&out), out.len, reterr);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*encode)(const struct picture *, struct buf *, struct error *);
    } modes[] = {{"sixel", sixel_write}, {"png", png_codec_write}};
    struct error error = {0};
    int64_t side;

    if (argc != 3 || str_parse_int(argv[2], 1, SIDE_MAX, &side) < 0)
        return 2;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (!str_eq(argv[1], modes[i].name))
            continue;
        if (confine(CPU_SECONDS, &error) == 0 &&
            convert(modes[i].encode, (uint32_t)side, &error) == 0)
            return 0;
        fprintf(stderr, "sandbox-picture: %s\n", error.text);
        return 1;
    }
    return 2;
}
