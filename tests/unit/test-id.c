/* SPDX-License-Identifier: MIT */
/* Identifiers: their form, and that two are never the same. */
#include "base/id.h"

#include "tests/lib/test.h"

TEST(new_ids_are_whole_and_differ)
{
    char a[ID_LEN + 1], b[ID_LEN + 1];
    struct error err;

    assert_ok(id_new(a, &err), err);
    assert_ok(id_new(b, &err), err);
    assert_true(id_check(a));
    assert_true(id_check(b));
    assert_true(strcmp(a, b) != 0);
}

TEST(other_texts_are_no_ids)
{
    assert_true(id_check("0123456789abcdef0123456789abcdef"));
    assert_false(id_check("0123456789abcdef0123456789abcde"));
    assert_false(id_check("0123456789abcdef0123456789abcdeff"));
    assert_false(id_check("0123456789ABCDEF0123456789abcdef"));
    assert_false(id_check("../3456789abcdef0123456789abcdef"));
    assert_false(id_check(""));
}

TEST(prefixes_are_long_enough_to_mean_something)
{
    assert_true(id_prefix_check("0123"));
    assert_true(id_prefix_check("0123456789abcdef0123456789abcdef"));
    assert_false(id_prefix_check("012"));
    assert_false(id_prefix_check("012g"));
    assert_false(id_prefix_check("0123456789abcdef0123456789abcdef0"));
}
