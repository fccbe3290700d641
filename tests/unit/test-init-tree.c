/* SPDX-License-Identifier: MIT */
/* Removing trees: deep, closed, linked, and in small steps. */
#include "init/tree.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int top_open(void)
{
    int fd = open(test_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* The number of steps, or -1 with errno. */
static int tree_remove(int top, const char *base, int budget)
{
    struct tree t;
    int r, steps = 0;

    tree_init(&t, top, base);
    do {
        r = tree_step(&t, budget);
        steps++;
    } while (r == 0);
    tree_done(&t);
    return r < 0 ? -1 : steps;
}

static void file_make(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(int top, const char *name)
{
    return faccessat(top, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(tree_removes_a_file_and_misses_nothing)
{
    auto_fd int top = top_open();

    file_make(top, "f");
    assert_int_eq(tree_remove(top, "f", 10), 1);
    assert_false(is_there(top, "f"));
    assert_int_eq(tree_remove(top, "f", 10), 1);
}

TEST(tree_removes_depth_without_recursion)
{
    const int depth = test_is_torture() ? 5 : 500;
    auto_fd int top = top_open();
    int at = dup(top), steps;

    for (int i = 0; i < depth; i++) {
        int next;

        assert_int_eq(mkdirat(at, "d", 0700), 0);
        next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        file_make(next, "f");
        close(at);
        at = next;
    }
    close(at);
    steps = tree_remove(top, "d", 16);
    if (steps < 0 && test_is_torture())
        return;
    assert_true(steps > depth / 16);
    assert_false(is_there(top, "d"));
}

TEST(tree_leaves_what_a_link_points_to)
{
    auto_fd int top = top_open();

    assert_int_eq(mkdirat(top, "keep", 0700), 0);
    file_make(top, "keep/f");
    assert_int_eq(mkdirat(top, "d", 0700), 0);
    assert_int_eq(symlinkat("../keep", top, "d/link"), 0);
    assert_int_eq(symlinkat("keep", top, "link"), 0);
    if (tree_remove(top, "d", 10) < 0 && test_is_torture())
        return;
    assert_int_eq(tree_remove(top, "link", 10), 1);
    assert_true(is_there(top, "keep/f") && !is_there(top, "link") && !is_there(top, "d"));
}

TEST(tree_goes_on_after_entries_were_added)
{
    auto_fd int top = top_open();
    struct tree t;
    int r = 0;

    assert_int_eq(mkdirat(top, "d", 0700), 0);
    assert_int_eq(mkdirat(top, "d/e", 0700), 0);
    file_make(top, "d/e/f");
    tree_init(&t, top, "d");
    for (int i = 0; r == 0; i++) {
        r = tree_step(&t, 1);
        if (i < 20 && is_there(top, "d"))
            file_make(top, i % 2 ? "d/x" : "d/y");
    }
    tree_done(&t);
    assert_true(r == 1 || test_is_torture());
}

TEST(tree_tells_why_it_failed)
{
    auto_fd int top = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_int_eq(tree_remove(top, "self", 10), -1);
    assert_true(errno == EPERM || errno == EACCES || test_is_torture());
}
