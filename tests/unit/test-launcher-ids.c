/* SPDX-License-Identifier: MIT */
/* Id plans: what is mapped, and that the host's root never is. */
#include "launcher/ids.h"

#include "launcher/slot.h"
#include "tests/lib/test.h"

#include <fcntl.h>

static uint32_t start, count;

TEST(subordinate_ids_by_name_and_number)
{
    const char *text = "root:100000:65536\nann:165536:1000\n1002:7:8\n";

    assert_true(id_subordinate_parse(text, "ann", 5, &start, &count));
    assert_uint_eq(start, 165536);
    assert_uint_eq(count, 1000);
    assert_true(id_subordinate_parse(text, "", 1002, &start, &count));
    assert_uint_eq(start, 7);
    assert_false(id_subordinate_parse(text, "an", 5, &start, &count));
    assert_false(id_subordinate_parse("", "ann", 5, &start, &count));
}

TEST(subordinate_ids_that_make_no_sense)
{
    static const char *const texts[] = {"ann:0:10\n", "ann:10:0\n",          "ann:10\n",
                                        "ann:x:10\n", "ann:4294967290:10\n", "ann:-1:10\n",
                                        ":1:10\n",    "ann: 1:10\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(id_subordinate_parse(texts[i], "ann", 5, &start, &count));
}

TEST(slots_of_root_do_not_overlap)
{
    const struct id_pool pool = {.root = true};
    struct id_plan a, b, last;

    id_plan_make(&pool, 1, false, true, &a);
    id_plan_make(&pool, 2, false, true, &b);
    id_plan_make(&pool, SLOT_MAX - 1, false, true, &last);
    assert_uint_eq(a.range_count, 1);
    assert_uint_eq(a.ranges[0].uid, 0x70010000u);
    assert_uint_eq(a.ranges[0].uid + a.ranges[0].count, b.ranges[0].uid);
    assert_uint_eq(last.ranges[0].uid + (uint32_t)SLOT_IDS, 0x80000000u);
    assert_uint_eq(a.host_user, 0x70010000u + ID_SANDBOX);
    assert_uint_eq(a.init, 0);
    assert_uint_eq(a.user, ID_SANDBOX);
}

TEST(user_code_as_root_is_not_init)
{
    const struct id_pool pools[] = {
        {.root = true}, {.subordinate = true, .uid_start = 1000, .gid_start = 1000, .half = 100}};

    for (size_t i = 0; i < 2; i++) {
        struct id_plan plan;

        id_plan_make(&pools[i], 3, true, true, &plan);
        assert_uint_eq(plan.root, 0);
        assert_uint_eq(plan.init, ID_INIT);
        assert_false(plan.one_uid);
    }
}

TEST(rootless_plans)
{
    const struct id_pool two = {
        .subordinate = true, .uid_start = 100000, .gid_start = 200000, .half = 500};
    const struct id_pool one = {0};
    struct id_plan plan;

    id_plan_make(&two, 3, false, true, &plan);
    assert_uint_eq(plan.range_count, 2);
    assert_uint_eq(plan.ranges[0].inside, 0);
    assert_uint_eq(plan.ranges[0].uid, geteuid());
    assert_uint_eq(plan.ranges[1].inside, ID_SANDBOX);
    assert_uint_eq(plan.ranges[1].uid, 100003);
    assert_uint_eq(plan.ranges[1].gid, 200003);
    assert_true(plan.programs);
    id_plan_make(&two, 3, true, true, &plan);
    assert_uint_eq(plan.range_count, 3);
    assert_uint_eq(plan.ranges[0].uid, 100503);
    id_plan_make(&one, 1, false, true, &plan);
    assert_true(plan.one_uid);
    assert_uint_eq(plan.range_count, 1);
    assert_uint_eq(plan.ranges[0].inside, ID_SANDBOX);
    assert_uint_eq(plan.init, plan.user);
}

TEST(without_a_user_namespace_the_numbers_are_the_hosts)
{
    const struct id_pool pool = {.root = true};
    struct id_plan plan;

    id_plan_make(&pool, 1, false, false, &plan);
    assert_uint_eq(plan.init, 0x70010000u);
    assert_uint_eq(plan.user, 0x70010000u + ID_SANDBOX);
    id_plan_make(&pool, 1, true, false, &plan);
    assert_uint_eq(plan.root, 0x70010000u);
    assert_true(plan.init != plan.root && plan.init != 0);
}

TEST(slots_are_exclusive)
{
    struct slot a, b, c;
    struct error err;
    int dir;

    assert_not_null(test_dir());
    dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_ok(slot_open(dir, 3, &a, &err), err);
    assert_ok(slot_open(dir, 3, &b, &err), err);
    assert_uint_eq(a.number, 1);
    assert_uint_eq(b.number, 2);
    assert_int_eq(slot_open(dir, 3, &c, &err), -ERR_LIMIT);
    slot_close(&a);
    slot_close(&a);
    assert_ok(slot_open(dir, 3, &c, &err), err);
    assert_uint_eq(c.number, 1);
    slot_close(&b);
    slot_close(&c);
    close(dir);
}
