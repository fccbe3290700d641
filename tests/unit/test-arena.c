/* SPDX-License-Identifier: MIT */
/* Arenas: alignment, zeroes, blocks of their own size, and the maximum. */
#include "base/arena.h"

#include "tests/lib/test.h"

#include <stdint.h>

TEST(memory_is_zeroed_and_aligned)
{
    auto_arena struct arena a;

    arena_init(&a, 1 << 20);
    for (size_t size = 1; size < 200; size++) {
        char *p = arena_alloc(&a, size);

        assert_not_null(p);
        assert_uint_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_eq(p[i], 0);
        memset(p, 0xff, size);
    }
}

TEST(a_large_request_gets_its_own_block)
{
    auto_arena struct arena a;
    char *small, *large;

    arena_init(&a, 1 << 20);
    small = arena_strdup(&a, "small");
    large = arena_alloc(&a, 100000);
    assert_not_null(large);
    memset(large, 1, 100000);
    assert_str_eq(small, "small");
}

TEST(the_maximum_holds)
{
    auto_arena struct arena a;
    size_t got = 0;

    arena_init(&a, 50000);
    while (arena_alloc(&a, 1000))
        got += 1000;
    assert_true(got >= 30000 && got <= 50000);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
    assert_null(arena_memdup(&a, "x", SIZE_MAX));
}

TEST(copies_and_formats)
{
    auto_arena struct arena a;
    char *copy;

    arena_init(&a, 1 << 20);
    copy = arena_memdup(&a, "a\0b", 3);
    assert_mem_eq(copy, "a\0b", 4);
    assert_str_eq(arena_printf(&a, "%s-%d", "x", 7), "x-7");
    assert_str_eq(arena_strdup(&a, ""), "");
}
