/* SPDX-License-Identifier: MIT */
/* Pixels to sixels: the exact body of small pictures, and what a palette does to large ones. */
#include "base/str.h"
#include "picture/palette.h"
#include "picture/sixel.h"
#include "tests/lib/test.h"

static void written(const struct picture *p, struct buf *ret)
{
    struct error err;

    buf_init(ret, 16 << 20);
    if (sixel_write(p, ret, &err) < 0) {
        buf_done(ret);
        test_skip("%s", err.text);
    }
}

TEST(a_small_picture_is_known_to_the_byte)
{
    /* Red, blue; below them nothing, which is white, and red. */
    unsigned char pixels[] = {255, 0, 0, 255, 0, 0, 255, 255, 9, 9, 9, 0, 255, 0, 0, 255};
    const struct picture p = {.width = 2, .height = 2, .pixels = pixels};
    auto_buf struct buf b = {};

    written(&p, &b);
    assert_true(str_starts(buf_str(&b), "\"1;1;2;2#0;2;"));
    assert_true(str_ends(buf_str(&b), "-"));
    assert_str_has(buf_str(&b), ";2;100;0;0");
    assert_str_has(buf_str(&b), ";2;0;0;100");
    assert_str_has(buf_str(&b), ";2;100;100;100");
    assert_str_has(buf_str(&b), "@A"); /* red: above at the left, below at the right */
}

TEST(runs_and_bands_are_short)
{
    auto_free unsigned char *pixels = malloc(4 * 100 * 13);
    struct picture p = {.width = 100, .height = 13, .pixels = pixels};
    auto_buf struct buf b = {};

    assert_not_null(pixels);
    memset(pixels, 255, 4 * 100 * 13);
    written(&p, &b);
    assert_str_eq(buf_str(&b), "\"1;1;100;13#0;2;100;100;100#0!100~-#0!100~-#0!100@-");
}

TEST(a_palette_keeps_what_is_few_and_spreads_over_what_is_many)
{
    enum { COUNT = 4096 };
    auto_free unsigned char *pixels = malloc(3 * COUNT);
    auto_free struct palette *palette = malloc(sizeof(*palette));
    struct error err;

    assert_not_null(pixels);
    assert_not_null(palette);
    for (unsigned i = 0; i < COUNT; i++) {
        pixels[3 * i] = (unsigned char)(i % 16 * 17);
        pixels[3 * i + 1] = (unsigned char)(i / 16 % 16 * 17);
        pixels[3 * i + 2] = (unsigned char)(i / 256 * 17);
    }
    if (palette_make(pixels, 16, palette, &err) < 0 || palette->count != 16)
        test_skip("no memory");
    for (unsigned i = 0; i < 16; i++)
        assert_mem_eq(palette->rgb[palette->number[palette_cell(pixels + 3 * i)]], pixels + 3 * i,
                      3);
    if (palette_make(pixels, COUNT, palette, &err) < 0)
        test_skip("no memory");
    assert_uint_eq(palette->count, PALETTE_COLORS);
    for (unsigned i = 0; i < COUNT; i++) {
        const unsigned char *got = palette->rgb[palette->number[palette_cell(pixels + 3 * i)]];

        for (int c = 0; c < 3; c++)
            assert_true(abs(got[c] - pixels[3 * i + (unsigned)c]) < 64);
    }
    assert_int_eq(palette_make(pixels, 0, palette, &err) < 0 ? 0 : (int)palette->count, 0);
}
