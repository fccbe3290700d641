/* SPDX-License-Identifier: MIT */
/* A packed file comes out whole, or not at all: whatever is cut or damaged is told. */
#include "api/inflate.h"

#include "base/buf.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

/* What plain_fill() gives, as gzip packs it. */
static const unsigned char packed[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x3d, 0x91, 0x3b, 0x0e, 0xc3, 0x30,
    0x0c, 0x43, 0xf7, 0x9e, 0xa2, 0x47, 0xd0, 0xcf, 0xb2, 0x7d, 0xa0, 0x0e, 0x05, 0x82, 0xdc, 0x7f,
    0x6c, 0x0a, 0xeb, 0x69, 0x12, 0xc2, 0x50, 0x24, 0x45, 0x5f, 0xdf, 0xfb, 0xf3, 0x96, 0xd7, 0xf5,
    0x1f, 0x7a, 0x46, 0x9c, 0xb1, 0x0b, 0xcc, 0x33, 0x6d, 0x9c, 0xe9, 0xf5, 0x1d, 0xf5, 0x3f, 0x8b,
    0xbe, 0x6a, 0x5b, 0x05, 0x35, 0x03, 0x89, 0x40, 0x0a, 0xcd, 0x8d, 0x28, 0xaa, 0x36, 0x40, 0x56,
    0x71, 0xdc, 0x02, 0x43, 0x72, 0xa1, 0x1c, 0x01, 0xb2, 0x8a, 0x33, 0xac, 0xb6, 0xc6, 0x2c, 0x9d,
    0x44, 0x39, 0x41, 0x26, 0x9c, 0xc9, 0xd6, 0x42, 0x67, 0xa3, 0xbc, 0xb3, 0xaf, 0xc0, 0x5e, 0x85,
    0x44, 0xaa, 0x84, 0xd4, 0xce, 0xad, 0xc6, 0x29, 0xea, 0x7d, 0x5d, 0xf4, 0xc1, 0xa3, 0x3b, 0xc8,
    0xae, 0x25, 0xbb, 0xa9, 0x49, 0x77, 0xba, 0xa2, 0x9b, 0xa1, 0x5f, 0x93, 0xee, 0x46, 0xfb, 0x0d,
    0x4c, 0x8a, 0x67, 0x2e, 0xb5, 0x6b, 0x21, 0x4a, 0x87, 0x78, 0x58, 0x36, 0x36, 0x9b, 0xb7, 0x7a,
    0x77, 0xa3, 0xe7, 0xed, 0xe1, 0x8a, 0xef, 0xd3, 0x3b, 0x2f, 0xe0, 0xe4, 0xf3, 0x78, 0x32, 0xff,
    0x00, 0xb5, 0xb6, 0x1f, 0xac, 0x2a, 0x02, 0x00, 0x00};

enum { LINES = 60, METHOD_AT = 2, SUM_AT = 8, SIZE_AT = 4 };

static void plain_fill(struct buf *ret)
{
    char line[32];

    buf_init(ret, MIB);
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof(line), "line %d\n", i * i);
        assert_int_eq(buf_append_str(ret, line), 0);
    }
}

/* Reads by pieces of `step`; the last answer, and what came before it. */
static ssize_t unpack(const unsigned char *data, size_t len, size_t step, struct buf *ret)
{
    struct inflate *z = NULL;
    struct error error;
    char piece[4096];
    ssize_t n;

    buf_init(ret, MIB);
    assert_ok(inflate_new(data, len, &z, &error), error);
    while ((n = inflate_read(z, piece, step)) > 0)
        assert_int_eq(buf_append(ret, piece, (size_t)n), 0);
    assert_int_eq(inflate_read(z, piece, step), n);
    inflate_free(z);
    return n;
}

TEST(a_file_is_unpacked_by_pieces_of_any_size)
{
    auto_buf struct buf plain;

    if (test_is_torture())
        test_skip("zlib's own allocations");
    plain_fill(&plain);
    for (size_t step = 1; step <= 1024; step = step * 2 + 1) {
        auto_buf struct buf got;

        assert_int_eq(unpack(packed, sizeof(packed), step, &got), 0);
        assert_uint_eq(got.len, plain.len);
        assert_mem_eq(buf_str(&got), buf_str(&plain), plain.len);
    }
}

TEST(a_file_that_is_cut_anywhere_is_damaged)
{
    auto_buf struct buf plain;

    if (test_is_torture())
        test_skip("zlib's own allocations");
    plain_fill(&plain);
    for (size_t len = 0; len < sizeof(packed); len++) {
        auto_buf struct buf got;

        assert_int_eq(unpack(packed, len, 64, &got), -1);
        assert_true(got.len <= plain.len);
        assert_mem_eq(buf_str(&got), buf_str(&plain), got.len);
    }
}

TEST(a_file_that_is_damaged_says_so)
{
    static const size_t places[] = {0, METHOD_AT, sizeof(packed) - SUM_AT,
                                    sizeof(packed) - SIZE_AT};
    unsigned char bad[sizeof(packed)];

    if (test_is_torture())
        test_skip("zlib's own allocations");
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        auto_buf struct buf got;

        memcpy(bad, packed, sizeof(bad));
        bad[places[i]] ^= 0x5a;
        assert_int_eq(unpack(bad, sizeof(bad), 64, &got), -1);
    }
}

TEST(no_damage_of_the_content_passes_its_sum)
{
    auto_buf struct buf plain;
    unsigned char bad[sizeof(packed)];

    if (test_is_torture())
        test_skip("zlib's own allocations");
    plain_fill(&plain);
    for (size_t at = 10; at < sizeof(packed); at++) {
        auto_buf struct buf got;

        memcpy(bad, packed, sizeof(bad));
        bad[at] ^= 0x10;
        if (unpack(bad, sizeof(bad), 64, &got) == 0)
            assert_mem_eq(buf_str(&got), buf_str(&plain), plain.len);
    }
}
