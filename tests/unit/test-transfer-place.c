/* SPDX-License-Identifier: MIT */
/* Paths as text: FIL-01, FIL-17. */
#include "session/transfer-internal.h"

#include "tests/lib/test.h"

static const char *normal(const char *path)
{
    static char ret[TREE_PATH_MAX];
    struct error err;

    return place_normalize("/workspace", path, ret, &err) < 0 ? "refused" : ret;
}

TEST(fil_01_one_normal_path_for_every_spelling)
{
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"a", "/workspace/a"},
        {"a/b/", "/workspace/a/b"},
        {"./a//b/.", "/workspace/a/b"},
        {"/srv//in///x", "/srv/in/x"},
        {"/srv/in/../etc", "/srv/etc"},
        {"a/../b", "/workspace/b"},
        {"..", "/"},
        {"../etc", "/etc"},
        {"/", "/"},
        {"///.", "/"},
        {"...", "/workspace/..."},
        {"..a/.b", "/workspace/..a/.b"},
        {"%2e%2e/x", "/workspace/%2e%2e/x"}, /* decoding is the doors' own, and once */
        {"a;b", "/workspace/a;b"},
        {"\xc0\xae\xc0\xae/x", "/workspace/\xc0\xae\xc0\xae/x"},
        {"", "refused"},
        {"/..", "refused"},
        {"../..", "refused"},
        {"/a/../../b", "refused"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_str_eq(normal(cases[i].path), cases[i].want);
}

TEST(what_is_too_long_is_refused)
{
    static char path[TREE_PATH_MAX + 2];
    static char ret[TREE_PATH_MAX];
    struct error err;

    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    assert_int_eq(place_normalize("/", path, ret, &err), -ERR_INVALID);
    path[TREE_PATH_MAX - 1] = 0;
    assert_ok(place_normalize("/", path, ret, &err), err);
    assert_uint_eq(strlen(ret), TREE_PATH_MAX - 1);
    assert_int_eq(place_join(ret, "y", path, &err), -ERR_INVALID);
}

TEST(fil_17_below_is_by_whole_components)
{
    assert_true(place_is_below("/workspace/a", "/workspace/a"));
    assert_true(place_is_below("/workspace/a/b", "/workspace/a"));
    assert_true(place_is_below("/x", "/"));
    assert_true(place_is_below("/", "/"));
    assert_false(place_is_below("/workspace/ab", "/workspace/a"));
    assert_false(place_is_below("/workspace", "/workspace/a"));
    assert_false(place_is_below("/srv/in2", "/srv/in"));
    assert_false(place_is_below("/srv", "/srv/in"));
}

TEST(names_and_folders)
{
    char ret[TREE_PATH_MAX];
    struct error err;

    assert_str_eq(place_name("/a/b"), "b");
    assert_str_eq(place_name("/"), "");
    assert_true(place_is_folder("a/"));
    assert_true(place_is_folder("a/."));
    assert_true(place_is_folder(".."));
    assert_true(place_is_folder("/"));
    assert_false(place_is_folder("a/b"));
    assert_false(place_is_folder("a/.b"));
    assert_ok(place_join("/", "x", ret, &err), err);
    assert_str_eq(ret, "/x");
    assert_ok(place_join("/a", "", ret, &err), err);
    assert_str_eq(ret, "/a");
    assert_ok(place_join("/a", "b", ret, &err), err);
    assert_str_eq(ret, "/a/b");
}
