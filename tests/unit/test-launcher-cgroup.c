/* SPDX-License-Identifier: MIT */
/*
 * Where control groups are, from texts of hosts of every kind; and the use of version 2 on a tree
 * of plain files, because not every host that builds this has its controllers there.
 */
#include "launcher/cgroup.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

static struct cgroup_layout layout;

static const char *place(enum cgroup_controller c)
{
    return layout.v1[c].path;
}

TEST(a_hybrid_host)
{
    cgroup_layout_parse(
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
        "9:name=systemd:/\n8:pids:/\n4:memory:/jobs/1\n1:cpu:/\n0::/x\n", &layout);
    assert_str_eq(place(CGROUP_MEMORY), "/sys/fs/cgroup/memory/jobs/1");
    assert_str_eq(place(CGROUP_PIDS), "/sys/fs/cgroup/pids");
    assert_str_eq(place(CGROUP_CPU), "/sys/fs/cgroup/cpu");
    assert_str_eq(place(CGROUP_FREEZER), "");
    assert_str_eq(layout.v2.path, "/sys/fs/cgroup/unified/x");
}

TEST(version_2_alone)
{
    cgroup_layout_parse("24 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
                        "0::/user.slice/user-1000.slice/session-2.scope\n", &layout);
    assert_str_eq(layout.v2.path, "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope");
    assert_str_eq(layout.v2.mount, "/sys/fs/cgroup");
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        assert_str_eq(layout.v1[c].path, "");
}

TEST(controllers_that_share_a_mount)
{
    cgroup_layout_parse("1 1 0:2 / /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                        "2 1 0:3 / /c/cpuset rw - cgroup cgroup rw,cpuset\n",
                        "3:cpu,cpuacct:/a\n2:cpuset:/b\n", &layout);
    assert_str_eq(place(CGROUP_CPU), "/c/cpu,cpuacct/a");
}

TEST(a_container_sees_a_part)
{
    cgroup_layout_parse("1 1 0:2 /docker/x /c/memory ro - cgroup cgroup rw,memory\n",
                        "3:memory:/docker/x\n", &layout);
    assert_str_eq(place(CGROUP_MEMORY), "/c/memory");
    cgroup_layout_parse("1 1 0:2 /docker/x /c/memory ro - cgroup cgroup rw,memory\n",
                        "3:memory:/docker/x/y\n", &layout);
    assert_str_eq(place(CGROUP_MEMORY), "/c/memory/y");
    /* Another subtree, or one that only begins alike, is not ours. */
    cgroup_layout_parse("1 1 0:2 /docker/x /c/memory ro - cgroup cgroup rw,memory\n",
                        "3:memory:/docker/xy\n", &layout);
    assert_str_eq(place(CGROUP_MEMORY), "");
    cgroup_layout_parse("1 1 0:2 /docker/x /c/memory ro - cgroup cgroup rw,memory\n",
                        "3:memory:/other\n", &layout);
    assert_str_eq(place(CGROUP_MEMORY), "");
}

TEST(escaped_paths_and_broken_lines)
{
    cgroup_layout_parse("1 1 0:2 / /c\\040d\\134 rw - cgroup cgroup rw,pids\n"
                        "garbage\n\n1 2 3\n1 1 0:2 / /x rw no dash here\n1 1 0:2 / /x rw -\n",
                        "2:pids:/\n:\n::\n5\n", &layout);
    assert_str_eq(place(CGROUP_PIDS), "/c d\\");
    assert_str_eq(layout.v2.path, "");
}

TEST(words_of_a_list)
{
    assert_true(cgroup_list_has("cpu memory pids\n", "memory"));
    assert_true(cgroup_list_has("cpu,cpuacct", "cpuacct"));
    assert_false(cgroup_list_has("cpuset cpuacct", "cpu"));
    assert_false(cgroup_list_has("", "cpu"));
}

/* ---- a tree of plain files ---- */

#define OWN "/slice/own"
#define ID "0123456789abcdef0123456789abcdef"

static void write_at(const char *text, const char *format, ...)
{
    char path[1024];
    va_list args;
    FILE *file;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    file = fopen(path, "we");
    assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void read_at(char *ret, size_t size, const char *format, ...)
{
    char path[1024];
    va_list args;
    int fd;
    ssize_t n;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    n = read(fd, ret, size - 1);
    close(fd);
    assert_true(n >= 0);
    ret[n] = 0;
}

/* Plain files keep what is behind a shorter write, so the words lie behind room for one. */
#define HANDED_DOWN "........ cpu memory pids\n"

/* A directory of version 2 as the kernel would fill it. */
static void group_make(const char *path, const char *subtree)
{
    static const char *const files[] = {"cgroup.kill",      "memory.max", "memory.swap.max",
                                        "memory.oom.group", "pids.max",   "cpu.max"};

    assert_true(mkdir(path, 0755) == 0);
    write_at("cpu memory pids\n", "%s/cgroup.controllers", path);
    write_at(subtree, "%s/cgroup.subtree_control", path);
    write_at("", "%s/cgroup.procs", path);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        write_at("", "%s/%s", path, files[i]);
    write_at("low 0\noom 1\noom_kill 3\n", "%s/memory.events", path);
}

static void tree_make(char *root, size_t size)
{
    static const char *const dirs[] = {"/slice", OWN, OWN "/sandbox-agent",
                                       OWN "/sandbox-agent/name", OWN "/sandbox-agent/name/" ID};
    char path[1024];

    snprintf(root, size, "%s/cg", test_dir());
    group_make(root, HANDED_DOWN);
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", root, dirs[i]);
        group_make(path, HANDED_DOWN);
    }
    layout = (struct cgroup_layout){0};
    snprintf(layout.v2.path, sizeof(layout.v2.path), "%s" OWN, root);
    snprintf(layout.v2.mount, sizeof(layout.v2.mount), "%s", root);
}

TEST(limits_of_version_2)
{
    const struct launch_job job = {
        .memory_bytes = 1000, .pids = 7, .cpu_quota_us = 5000, .cpu_period_us = 10000};
    struct cgroup_set base, set;
    struct keeper_event event = {0};
    char root[512], text[256];
    struct error err;
    short events;
    int fd;

    tree_make(root, sizeof(root));
    cgroup_base_open(&layout, "name", &base);
    assert_uint_eq(base.count, 1);
    assert_int_eq(base.dirs[0].version, 2);
    assert_not_null(cgroup_find(&base, CGROUP_MEMORY));
    assert_not_null(cgroup_find(&base, CGROUP_CPU));
    assert_null(cgroup_find(&base, CGROUP_FREEZER));
    assert_ok(cgroup_create(&base, ID, &set, &err), err);
    assert_ok(cgroup_limit(&set, &job, &err), err);
    read_at(text, sizeof(text), "%s/memory.max", set.dirs[0].path);
    assert_str_eq(text, "1000");
    read_at(text, sizeof(text), "%s/memory.swap.max", set.dirs[0].path);
    assert_str_eq(text, "0");
    read_at(text, sizeof(text), "%s/memory.oom.group", set.dirs[0].path);
    assert_str_eq(text, "1");
    read_at(text, sizeof(text), "%s/pids.max", set.dirs[0].path);
    assert_str_eq(text, "7");
    read_at(text, sizeof(text), "%s/cpu.max", set.dirs[0].path);
    assert_str_eq(text, "5000 10000");
    assert_uint_eq(cgroup_oom_count(&set), 3);
    fd = cgroup_oom_open(&set, &events);
    assert_true(fd >= 0);
    close(fd);
    fd = cgroup_clone_fd(&set);
    assert_true(fd >= 0);
    close(fd);
    cgroup_event_paths(&set, &event);
    assert_true(str_ends(event.memory_events, ID "/memory.events"));
    assert_true(str_ends(event.pids_events, ID "/pids.events"));
    assert_true(cgroup_kill(&set));
    read_at(text, sizeof(text), "%s/cgroup.kill", set.dirs[0].path);
    assert_str_eq(text, "1");
}

TEST(a_group_with_others_in_it_hands_nothing_down)
{
    struct cgroup_set base;
    char root[512], path[1024];

    tree_make(root, sizeof(root));
    /* Our own group cannot: as if writing had failed, nothing is handed down there. */
    write_at("1\n", "%s" OWN "/cgroup.procs", root);
    snprintf(path, sizeof(path), "%s" OWN "/cgroup.subtree_control", root);
    assert_int_eq(unlink(path), 0);
    assert_int_eq(symlink("/proc/sys/kernel/ostype", path), 0);
    snprintf(path, sizeof(path), "%s/slice/sandbox-agent", root);
    group_make(path, HANDED_DOWN);
    snprintf(path, sizeof(path), "%s/slice/sandbox-agent/name", root);
    group_make(path, HANDED_DOWN);
    cgroup_base_open(&layout, "name", &base);
    assert_uint_eq(base.count, 1);
    snprintf(path, sizeof(path), "%s/slice/sandbox-agent/name", root);
    assert_str_eq(base.dirs[0].path, path);
    assert_not_null(cgroup_find(&base, CGROUP_PIDS));
}

TEST(without_controllers_version_2_still_kills)
{
    struct cgroup_set base;
    char root[512], path[1024];
    static const char *const dirs[] = {"", "/slice", OWN, OWN "/sandbox-agent",
                                       OWN "/sandbox-agent/name"};

    tree_make(root, sizeof(root));
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s%s/cgroup.subtree_control", root, dirs[i]);
        assert_int_eq(unlink(path), 0);
    }
    cgroup_base_open(&layout, "name", &base);
    assert_uint_eq(base.count, 1);
    assert_null(cgroup_find(&base, CGROUP_MEMORY));
    assert_null(cgroup_find(&base, CGROUP_PIDS));
}

TEST(version_1_directories_are_made_and_shared)
{
    struct cgroup_set base, set;
    char dir[512];
    struct error err;

    snprintf(dir, sizeof(dir), "%s", test_dir());
    layout = (struct cgroup_layout){0};
    snprintf(layout.v1[CGROUP_CPU].path, JOB_PATH, "%s", dir);
    snprintf(layout.v1[CGROUP_PIDS].path, JOB_PATH, "%s", dir);
    cgroup_base_open(&layout, "name", &base);
    assert_uint_eq(base.count, 1);
    assert_ptr_eq(cgroup_find(&base, CGROUP_CPU), cgroup_find(&base, CGROUP_PIDS));
    assert_ok(cgroup_create(&base, ID, &set, &err), err);
    assert_int_eq(access(set.dirs[0].path, F_OK), 0);
    assert_int_eq(cgroup_remove(&set), 0);
    assert_int_eq(cgroup_remove(&set), 0);
    cgroup_base_close(&base);
    assert_true(access(base.dirs[0].path, F_OK) < 0);
}

TEST(what_we_may_not_use_is_left_out)
{
    struct cgroup_set base;

    layout = (struct cgroup_layout){0};
    snprintf(layout.v1[CGROUP_MEMORY].path, JOB_PATH, "%s/missing", test_dir());
    cgroup_base_open(&layout, "name", &base);
    assert_uint_eq(base.count, 0);
}
