/* SPDX-License-Identifier: MIT */
/*
 * The reduction and its codecs. Pictures are made here and read back with the same codecs, so what
 * is looked at is pixels and sizes; that real files work is shown by the integration test.
 */
#include "shrink/jpeg_codec.h"
#include "shrink/png_codec.h"
#include "shrink/shrink.h"
#include "tests/lib/test.h"
#include "wire/image_header.h"

static struct picture painted(uint32_t width, uint32_t height,
                              void (*paint)(uint32_t x, uint32_t y, unsigned char *rgba))
{
    struct picture p = {width, height, malloc((size_t)width * height * 4)};

    assert_not_null(p.pixels);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++)
            paint(x, y, p.pixels + ((size_t)y * width + x) * 4);
    }
    return p;
}

static void paint_noise(uint32_t x, uint32_t y, unsigned char *rgba)
{
    uint32_t n = (x * 2654435761u) ^ (y * 2246822519u);

    for (int i = 0; i < 3; i++, n = n * 1664525u + 1013904223u)
        rgba[i] = (unsigned char)(n >> 24);
    rgba[3] = 255;
}

static void paint_lines(uint32_t x, uint32_t y, unsigned char *rgba)
{
    memset(rgba, x % 100 == 50 ? 0 : 255, 3);
    rgba[3] = 255;
}

static void paint_clear_lines(uint32_t x, uint32_t y, unsigned char *rgba)
{
    memset(rgba, 0, 4);
    rgba[3] = x % 100 == 50 ? 255 : 0;
}

static struct picture copy_of(const struct picture *p)
{
    struct picture copy = {p->width, p->height, malloc((size_t)p->width * p->height * 4)};

    assert_not_null(copy.pixels);
    memcpy(copy.pixels, p->pixels, (size_t)p->width * p->height * 4);
    return copy;
}

static void reduce(struct picture *p, uint32_t side)
{
    struct error err;

    assert_ok(picture_reduce(p, side, &err), err);
}

TEST(a_picture_of_the_right_size_stays_as_it_is)
{
    auto_picture struct picture p = painted(37, 23, paint_noise);
    auto_picture struct picture before = copy_of(&p);

    reduce(&p, 37);
    assert_uint_eq(p.width, 37);
    assert_uint_eq(p.height, 23);
    assert_mem_eq(p.pixels, before.pixels, (size_t)37 * 23 * 4);
}

TEST(a_pixel_is_the_mean_of_what_it_covers)
{
    static const unsigned char values[] = {0, 100, 200, 60};
    auto_picture struct picture reduced = {4, 1, malloc(16)};

    assert_not_null(reduced.pixels);
    for (int i = 0; i < 4; i++) {
        memset(reduced.pixels + i * 4, values[i], 3);
        reduced.pixels[i * 4 + 3] = 255;
    }
    reduce(&reduced, 3);
    /* 4 pixels to 3: each covers one and a third. */
    assert_uint_eq(reduced.width, 3);
    assert_uint_eq(reduced.pixels[0], 25);
    assert_uint_eq(reduced.pixels[4], 150);
    assert_uint_eq(reduced.pixels[8], 95);
}

TEST(what_is_transparent_gives_no_colour)
{
    auto_picture struct picture p = {2, 1, malloc(8)};

    assert_not_null(p.pixels);
    memcpy(p.pixels, "\xff\0\0\0\0\0\xff\xff", 8);
    reduce(&p, 1);
    assert_mem_eq(p.pixels, "\0\0\xff\x80", 4);
}

TEST(thin_lines_stay_to_be_seen)
{
    auto_picture struct picture p = painted(4000, 100, paint_lines);
    unsigned dark = 0;

    reduce(&p, 1568);
    assert_uint_eq(p.width, 1568);
    assert_uint_eq(p.height, 39);
    for (uint32_t x = 0; x < p.width; x++)
        dark += p.pixels[(size_t)x * 4] < 216;
    assert_true(dark >= 40 && dark <= 80);
}

TEST(very_long_pictures_keep_one_row)
{
    auto_picture struct picture p = painted(40000, 1, paint_noise);

    reduce(&p, 64);
    assert_uint_eq(p.width, 64);
    assert_uint_eq(p.height, 1);
}

/* ---- codecs ---- */

/* Out of the scope that would release it. */
static struct buf buf_move(struct buf *b)
{
    struct buf moved = *b;

    buf_init(b, 0);
    return moved;
}

static struct buf png_of(const struct picture *p)
{
    auto_buf struct buf b;
    struct error err;

    buf_init(&b, 64 * MIB);
    assert_ok(png_codec_write(p, &b, &err), err);
    return buf_move(&b);
}

static struct buf jpeg_of(const struct picture *p, int quality)
{
    auto_buf struct buf b;
    struct error err;

    buf_init(&b, 64 * MIB);
    assert_ok(jpeg_codec_write(p, quality, &b, &err), err);
    return buf_move(&b);
}

static struct image_header shrunk(const struct buf *in, uint32_t side, size_t bytes,
                                  struct buf *ret)
{
    struct image_header h;
    struct error err;

    buf_init(ret, bytes);
    assert_ok(shrink_picture(in->data, in->len, side, ret, &err), err);
    assert_ok(image_header_parse(ret->data, ret->len, &h, &err), err);
    assert_true(h.whole && ret->len <= bytes && MAX(h.width, h.height) <= side);
    return h;
}

TEST(png_brings_back_what_it_was_given)
{
    static void (*const paints[])(uint32_t x, uint32_t y, unsigned char *rgba) = {
        paint_noise, paint_lines, paint_clear_lines};

    for (size_t i = 0; i < ARRAY_LEN(paints); i++) {
        auto_picture struct picture p = painted(101, 57, paints[i]), back = {};
        auto_buf struct buf b = png_of(&p);
        struct error err;

        assert_ok(png_codec_read(b.data, b.len, 101, &back, &err), err);
        assert_mem_eq(back.pixels, p.pixels, (size_t)101 * 57 * 4);
    }
}

TEST(jpeg_puts_white_behind_what_is_transparent)
{
    auto_picture struct picture p = painted(64, 64, paint_clear_lines), back = {};
    auto_buf struct buf b = jpeg_of(&p, 90);
    struct error err;

    assert_ok(jpeg_codec_read(b.data, b.len, 64, &back, &err), err);
    assert_true(back.pixels[0] > 250 && back.pixels[3] == 255);
    assert_true(back.pixels[50 * 4] < 40);
}

TEST(a_plot_stays_png_and_noise_becomes_jpeg)
{
    auto_picture struct picture plot = painted(2000, 1000, paint_lines);
    auto_picture struct picture noise = painted(600, 600, paint_noise);
    auto_buf struct buf plot_png = png_of(&plot), noise_png = png_of(&noise);
    auto_buf struct buf a, b, c;

    assert_int_eq(shrunk(&plot_png, 1568, 500000, &a).kind, IMAGE_PNG);
    assert_uint_eq(shrunk(&noise_png, 1568, 400000, &b).kind, IMAGE_JPEG);
    assert_uint_eq(shrunk(&noise_png, 1568, 5000, &c).kind, IMAGE_JPEG);
}

TEST(a_jpeg_stays_one)
{
    auto_picture struct picture p = painted(1200, 800, paint_lines);
    auto_buf struct buf in = jpeg_of(&p, 95), out;
    struct image_header h = shrunk(&in, 500, 100000, &out);

    assert_int_eq(h.kind, IMAGE_JPEG);
    assert_uint_eq(h.width, 500);
    assert_uint_eq(h.height, 333);
}

static const char *failed(const void *data, size_t len, size_t bytes)
{
    static struct error err;
    auto_buf struct buf out;

    buf_init(&out, bytes);
    assert_true(shrink_picture(data, len, 100, &out, &err) < 0);
    assert_uint_eq(out.len, 0);
    return err.text;
}

TEST(what_is_broken_has_a_reason)
{
    auto_picture struct picture p = painted(300, 300, paint_noise);
    auto_buf struct buf png = png_of(&p), jpeg = jpeg_of(&p, 80);

    assert_str_has(failed("hello", 5, 1000), "no image");
    assert_str_has(failed(png.data, png.len / 2, 10000), "ends too early");
    assert_str_has(failed(jpeg.data, jpeg.len / 2, 10000), "damaged");
    assert_str_has(failed(png.data, png.len, 10), "does not fit");
    png.data[png.len / 2] ^= 1;
    assert_str_has(failed(png.data, png.len, 10000), "PNG: ");
    memcpy(png.data + 16, "\0\1\x86\xa0\0\1\x86\xa0", 8);
    assert_str_has(failed(png.data, png.len, 10000), "more than 40 million");
}
