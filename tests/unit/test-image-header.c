/* SPDX-License-Identifier: MIT */
/* Image headers: what real encoders write, what is cut off, and what lies. */
#include "tests/lib/test.h"
#include "wire/image_header.h"

#include <stdlib.h>

static const unsigned char png[] = "\x89PNG\r\n\x1a\n"
                                   "\0\0\0\rIHDR\0\0\1\2\0\0\0\3\x08\x06\0\0\0crc."
                                   "\0\0\0\2IDATxxcrc."
                                   "\0\0\0\0IENDcrc.";

/* A 3 x 2 canvas with a frame of 2 x 2 at 4, 5: it becomes 6 x 7. */
static const unsigned char gif[] = "GIF89a\3\0\2\0\x80\0\0aaabbb"
                                   "!\xf9\4....\0"
                                   ",\4\0\5\0\2\0\2\0\0\2\1x\0"
                                   ",\0\0\0\0\1\0\1\0\x80"
                                   "aaabbb\2\1x\0;";

static const unsigned char jpeg[] = "\xff\xd8\xff\xe0\0\4JF\xff\xff\xff\xc2\0\x0b\x08\1\2\3\4\1abc"
                                    "\xff\xda\0\2data\xff\xd9trailing";

static const unsigned char webp_lossy[] = "RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0\0..\x9d\1\x2a\3\0\4\0";
static const unsigned char webp_lossless[] = "RIFF\x12\0\0\0WEBPVP8L\5\0\0\0\x2f\2\xc0\0\0\0";
static const unsigned char webp_animated[] =
    "RIFF\x28\0\0\0WEBPVP8X\x0a\0\0\0\2...\4\0\0\5\0\0ANMF\0\0\0\0ANMF\1\0\0\0x\0";

#define BYTES(a) (a), sizeof(a) - 1

static struct image_header parsed(const unsigned char *data, size_t len)
{
    struct image_header h;
    struct error err = {};

    assert_ok(image_header_parse(data, len, &h, &err), err);
    return h;
}

static const char *refused(const void *data, size_t len)
{
    static struct error err;
    struct image_header h;

    assert_int_eq(image_header_parse(data, len, &h, &err), -ERR_INVALID);
    return err.text;
}

TEST(each_kind_tells_its_size)
{
    static const struct {
        const unsigned char *data;
        size_t len;
        struct image_header want;
    } cases[] = {
        {BYTES(png), {IMAGE_PNG, 258, 3, 1, false, true}},
        {BYTES(gif), {IMAGE_GIF, 6, 7, 2, false, true}},
        {BYTES(jpeg), {IMAGE_JPEG, 772, 258, 1, false, true}},
        {BYTES(webp_lossy), {IMAGE_WEBP, 3, 4, 1, false, true}},
        {BYTES(webp_lossless), {IMAGE_WEBP, 3, 4, 1, false, true}},
        {BYTES(webp_animated), {IMAGE_WEBP, 5, 6, 2, false, true}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct image_header h = parsed(cases[i].data, cases[i].len);

        test_note("%s %u x %u, %u frames", image_mime(h.kind), h.width, h.height, h.frames);
        assert_int_eq(h.kind, cases[i].want.kind);
        assert_uint_eq(h.width, cases[i].want.width);
        assert_uint_eq(h.height, cases[i].want.height);
        assert_uint_eq(h.frames, cases[i].want.frames);
        assert_true(h.whole);
    }
}

/* Every shorter piece is refused or not whole, and no byte behind it is read. */
TEST(a_cut_image_is_never_whole)
{
    static const struct {
        const unsigned char *data;
        size_t len;
    } cases[] = {{BYTES(png)},
                 {BYTES(gif)},
                 {BYTES(webp_lossy)},
                 {BYTES(webp_animated)},
                 {jpeg, sizeof(jpeg) - 1 - strlen("trailing")}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t len = 0; len < cases[i].len; len++) {
            auto_free unsigned char *copy = malloc(len + 1);
            struct image_header h;

            assert_not_null(copy);
            memcpy(copy, cases[i].data, len);
            if (image_header_parse(copy, len, &h, NULL) == 0)
                assert_false(h.whole);
        }
    }
}

TEST(a_size_that_lies_is_told_as_it_is)
{
    unsigned char data[sizeof(png)];
    struct image_header h;

    memcpy(data, png, sizeof(png));
    memcpy(data + 16, "\0\1\x86\xa0\0\1\x86\xa0", 8);
    h = parsed(data, sizeof(png) - 1);
    assert_uint_eq(image_pixels(&h), 10000000000ull);
    memcpy(data + 16, "\x80\0\0\0", 4);
    assert_str_has(refused(data, sizeof(png) - 1), "impossible size");
    memset(data + 16, 0, 4);
    assert_str_has(refused(data, sizeof(png) - 1), "without a size");
}

TEST(what_no_decoder_takes_is_refused)
{
    unsigned char data[sizeof(png)];

    /* depth and colour type, compression, filter, interlace */
    static const unsigned char bad[][5] = {{3, 0},  {16, 3},   {4, 2},       {8, 1},
                                           {8, 7},  {8, 6, 1}, {8, 6, 0, 1}, {8, 6, 0, 0, 2},
                                           {64, 0}, {255, 255}};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        memcpy(data, png, sizeof(png));
        memcpy(data + 24, bad[i], 5);
        assert_str_has(refused(data, sizeof(png) - 1), "pixel format");
    }
    assert_str_has(refused("", 0), "no image");
    assert_str_has(refused("<svg></svg>", 11), "no image");
    assert_str_has(refused("RIFX\0\0\0\0WEBP", 12), "no image");
    assert_str_has(refused("\xff\xd8\xff\xc0\0\x0b\x0c\1\2\3\4\1abc", 15), "pixel format");
    assert_str_has(refused("\xff\xd8\xff\xc9\0\x0b\x08\1\2\3\4\1abc", 15), "rare kind");
    assert_str_has(refused("\xff\xd8\xff\xda\0\2", 6), "without a size");
}

/* FIL-24: a walk over the frames, and nothing else. */
TEST(frames_are_counted_not_decoded)
{
    enum { FRAMES = 100000 };
    static const char head[] = "GIF89a\1\0\1\0\0\0\0", frame[] = ",\0\0\0\0\1\0\1\0\0\2\1x\0";
    size_t len = sizeof(head) - 1, one = sizeof(frame) - 1;
    auto_free unsigned char *data = malloc(len + FRAMES * one + 1);

    assert_not_null(data);
    memcpy(data, head, len);
    for (int i = 0; i < FRAMES; i++, len += one)
        memcpy(data + len, frame, one);
    data[len++] = ';';
    assert_uint_eq(parsed(data, len).frames, FRAMES);
}

/* FIL-24: metadata of any size is stepped over. */
TEST(a_jpeg_with_much_metadata)
{
    enum { SEGMENTS = 500, SEGMENT = 65535 + 2 };
    size_t len = 2;
    auto_free unsigned char *data = calloc(1, (size_t)SEGMENTS * SEGMENT + sizeof(jpeg));

    assert_not_null(data);
    memcpy(data, jpeg, 2);
    for (int i = 0; i < SEGMENTS; i++, len += SEGMENT)
        memcpy(data + len, "\xff\xe1\xff\xff", 4);
    memcpy(data + len, jpeg + 2, sizeof(jpeg) - 3);
    assert_uint_eq(parsed(data, len + sizeof(jpeg) - 3).width, 772);
}
