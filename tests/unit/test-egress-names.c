/* SPDX-License-Identifier: MIT */
/* The table of names: fixed addresses, its bounds, its rate. */
#include "egress/bucket.h"
#include "egress/names.h"
#include "tests/lib/test.h"

#include <stdio.h>

static void names_done_cleanup(struct names *n)
{
    names_done(n);
}

#define auto_names __attribute__((cleanup(names_done_cleanup)))

TEST(a_name_keeps_its_address)
{
    auto_names struct names n;
    struct name *a, *b;
    uint8_t addr[4], again[4];

    names_init(&n, 1, 70000);
    a = names_add(&n, "a.example", 0);
    b = names_add(&n, "b.example", 0);
    if (!a || !b)
        test_skip("no memory");
    assert_ptr_eq(names_find(&n, "a.example"), a);
    assert_ptr_eq(names_find(&n, "b.example"), b);
    assert_null(names_find(&n, "c.example"));
    names_addr(&n, a, addr);
    names_addr(&n, b, again);
    assert_true(memcmp(addr, again, 4) != 0);
    assert_true(addr[0] == 198 && (addr[1] & 0xfe) == 18);
    assert_ptr_eq(names_by_addr(&n, addr), a);
    assert_ptr_eq(names_by_addr(&n, again), b);
}

TEST(other_addresses_stand_for_nothing)
{
    static const uint8_t others[][4] = {
        {198, 17, 255, 255}, {198, 20, 0, 0}, {198, 18, 0, 2}, {0, 0, 0, 0}, {255, 255, 255, 255}};
    auto_names struct names n;

    names_init(&n, 1, 0);
    assert_null(names_by_addr(&n, (const uint8_t[]){198, 18, 0, 0}));
    if (!names_add(&n, "a", 0))
        test_skip("no memory");
    assert_not_null(names_by_addr(&n, (const uint8_t[]){198, 18, 0, 0}));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_null(names_by_addr(&n, others[i]));
}

TEST(the_range_is_walked_round_its_end)
{
    auto_names struct names n;
    uint8_t addr[4];
    struct name *a, *b;

    names_init(&n, 1, NAMES_RANGE - 1);
    a = names_add(&n, "a", 0);
    b = names_add(&n, "b", 0);
    if (!a || !b)
        test_skip("no memory");
    names_addr(&n, a, addr);
    assert_mem_eq(addr, "\xc6\x13\xff\xff", 4);
    names_addr(&n, b, addr);
    assert_mem_eq(addr, "\xc6\x12\0\0", 4);
    assert_ptr_eq(names_by_addr(&n, addr), b);
}

TEST(twenty_new_names_in_any_second)
{
    auto_names struct names n;
    char text[32];
    int added = 0;

    names_init(&n, 1, 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "n%d", i);
        added += names_add(&n, text, 5000 + i) != NULL;
    }
    if (test_is_torture())
        test_skip("counts allocations that fail");
    assert_int_eq(added, NAMES_PER_SECOND);
    assert_null(names_add(&n, "x", 5000 + 999));
    assert_not_null(names_add(&n, "x", 5000 + 1000));
    assert_not_null(names_find(&n, "n3"));
}

TEST(the_table_is_bounded_by_count)
{
    auto_names struct names n;
    char text[32];
    int added = 0;

    if (test_is_torture())
        test_skip("thousands of allocations");
    names_init(&n, 7, 123456);
    for (int i = 0; i < NAMES_MAX + 100; i++) {
        snprintf(text, sizeof(text), "name-%d.example", i);
        added += names_add(&n, text, i * 1000LL) != NULL;
    }
    assert_int_eq(added, NAMES_MAX);
    for (int i = 0; i < NAMES_MAX; i++) {
        uint8_t addr[4];
        struct name *name;

        snprintf(text, sizeof(text), "name-%d.example", i);
        name = names_find(&n, text);
        assert_not_null(name);
        names_addr(&n, name, addr);
        assert_ptr_eq(names_by_addr(&n, addr), name);
    }
}

TEST(the_table_is_bounded_by_bytes)
{
    auto_names struct names n;
    char text[254];
    int added = 0;

    if (test_is_torture())
        test_skip("thousands of allocations");
    names_init(&n, 7, 0);
    for (int i = 0; i < NAMES_MAX; i++) {
        memset(text, 'a', sizeof(text) - 1);
        text[253] = 0;
        snprintf(text, 8, "%07d", i);
        text[7] = 'a';
        added += names_add(&n, text, i * 1000LL) != NULL;
    }
    assert_int_eq(added, NAMES_TEXT_MAX / 254);
}

TEST(a_bucket_gives_its_rate)
{
    struct bucket b;
    int taken = 0;

    bucket_init(&b, 10, 5, 1000);
    for (int64_t now = 1000; now < 3000; now++) {
        if (bucket_has(&b, now)) {
            bucket_take(&b);
            taken++;
        }
    }
    assert_true(taken >= 24 && taken <= 25);
    assert_true(bucket_has(&b, INT64_MAX / 2));
}
