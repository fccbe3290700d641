/* SPDX-License-Identifier: MIT */
/* Paths below a directory: links and dots must not lead out, and a tree is removed without
 * following. */
#include "base/path.h"

#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int open_root(void)
{
    struct error err;
    int fd = path_open_dir(AT_FDCWD, test_dir(), &err);

    assert_ok(fd, err);
    return fd;
}

TEST(join_has_one_slash)
{
    char path[8];
    struct error err;

    assert_ok(path_join(path, sizeof(path), "/a", "b", &err), err);
    assert_str_eq(path, "/a/b");
    assert_ok(path_join(path, sizeof(path), "/a/", "b", &err), err);
    assert_str_eq(path, "/a/b");
    assert_int_eq(path_join(path, sizeof(path), "/aaaaa", "b", &err), -ERR_INVALID);
}

TEST(nothing_leads_out)
{
    static const char *const out[] = {"../x", "/etc/passwd", "up/passwd", "abs", "sub/../../x"};
    auto_fd int root = open_root();
    auto_fd int good = -1;
    struct error err;

    assert_int_eq(mkdirat(root, "sub", 0700), 0);
    assert_int_eq(symlinkat("/etc", root, "up"), 0);
    assert_int_eq(symlinkat("/etc/passwd", root, "abs"), 0);
    for (size_t i = 0; i < ARRAY_LEN(out); i++) {
        auto_fd int fd = path_open_beneath(root, out[i], O_RDONLY, 0, &err);

        if (fd >= 0)
            test_fail(__FILE__, __LINE__, "'%s' was opened", out[i]);
    }
    good = path_open_beneath(root, "sub/../sub/f", O_WRONLY | O_CREAT, 0600, &err);
    assert_ok(good, err);
    assert_true(fcntl(good, F_GETFD) & FD_CLOEXEC);
}

TEST(directories_are_made_with_their_parents)
{
    auto_fd int root = open_root();
    char path[200];
    struct error err;
    struct stat st;

    snprintf(path, sizeof(path), "%s/a/b/c", test_dir());
    assert_ok(path_make_dirs(path, 0700, &err), err);
    assert_ok(path_make_dirs(path, 0700, &err), err);
    assert_int_eq(fstatat(root, "a/b/c", &st, 0), 0);
    assert_int_eq(st.st_mode & 0777, 0700);
    assert_int_eq(symlinkat("nowhere", root, "file"), 0);
    snprintf(path, sizeof(path), "%s/file/x", test_dir());
    assert_true(path_make_dirs(path, 0700, &err) < 0);
}

TEST(a_tree_is_removed_and_links_are_not_followed)
{
    auto_fd int root = open_root();
    struct error err;
    struct stat st;

    assert_int_eq(mkdirat(root, "keep", 0700), 0);
    assert_int_eq(mkdirat(root, "keep/inner", 0700), 0);
    assert_int_eq(mkdirat(root, "tree", 0700), 0);
    assert_int_eq(mkdirat(root, "tree/deep", 0700), 0);
    assert_int_eq(symlinkat("../keep", root, "tree/link"), 0);
    assert_int_eq(mkfifoat(root, "tree/deep/fifo", 0600), 0);
    assert_ok(path_remove_tree(root, "tree", &err), err);
    assert_int_eq(fstatat(root, "tree", &st, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_eq(fstatat(root, "keep/inner", &st, 0), 0);
    assert_ok(path_remove_tree(root, "tree", &err), err);
    assert_int_eq(path_remove_tree(root, "../keep", &err), -ERR_INVALID);
}

TEST(names_are_single_components)
{
    assert_true(path_is_name("a.b"));
    assert_true(path_is_name("..."));
    assert_false(path_is_name(""));
    assert_false(path_is_name("."));
    assert_false(path_is_name(".."));
    assert_false(path_is_name("a/b"));
}
