/* SPDX-License-Identifier: MIT */
/* The image store with small definitions of the test's own, whose build is a shell script. */
#include "engine/image.h"

#include "base/fd.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD_BUILD \
    "#!/bin/sh\nset -e\ncd \"$2\"\nmkdir rootfs\n" \
    "echo '0 upgraded, 2 newly installed, 0 to remove'\n" \
    "echo 'Setting up a'\necho 'Setting up b'\n" \
    "printf 'bytes 123\\npackages 2\\nversion demo 4.5\\nversion other 1\\n' >facts\n"

static struct image_store store;
static struct error err;
static char told[4096];

static void file_write(const char *name, const char *text, mode_t mode)
{
    char path[PATH_LEN];

    snprintf(path, sizeof(path), "%s/libexec/images/%s", test_dir(), name);
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_ok(fd_write_full(fd, text, strlen(text), &err), err);
    assert_int_eq(fchmod(fd, mode), 0);
}

static void dir_make(const char *name)
{
    char path[PATH_LEN];

    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    assert_ok(path_make_dirs(path, 0755, &err), err);
}

/* A store whose one runtime "demo" is built by `script`. */
static void store_make(const char *script)
{
    char path[PATH_LEN];

    if (test_is_torture())
        test_skip("a build is another program, which torture does not follow");
    dir_make("libexec/images/common");
    dir_make("libexec/images/demo");
    file_write("common/suite", "trixie\n", 0644);
    file_write("demo/packages", "a\n", 0644);
    file_write("build", script, 0755);
    snprintf(path, sizeof(path), "%s/libexec", test_dir());
    setenv("SANDBOX_AGENT_LIBEXEC", path, 1);
    snprintf(path, sizeof(path), "%s/images", test_dir());
    assert_ok(image_store_init(&store, path, &err), err);
    told[0] = 0;
}

static void progress_note(void *user, const char *line)
{
    size_t len = strlen(told);

    snprintf(told + len, sizeof(told) - len, "%s\n", line);
}

static int demo_build(bool rebuild, int cancel_fd)
{
    const struct image_build_options options = {.size = sizeof(options),
                                                .progress = progress_note,
                                                .cancel_fd = cancel_fd,
                                                .rebuild = rebuild};

    return image_build(&store, "demo", &options, &err);
}

/* The names in the runtime's directory, hidden ones too, joined by spaces. */
static const char *demo_names(void)
{
    static char text[1024];
    struct dirent **names;
    char path[PATH_LEN];
    size_t used = 0;
    int n;

    snprintf(path, sizeof(path), "%s/images/demo", test_dir());
    n = scandir(path, &names, NULL, alphasort);
    assert_true(n >= 0);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        if (!str_eq(names[i]->d_name, ".") && !str_eq(names[i]->d_name, ".."))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%.100s ", names[i]->d_name);
        assert_true(used < sizeof(text));
        free(names[i]);
    }
    free(names);
    return text;
}

TEST(image_digest_follows_content_and_mode)
{
    char one[IMAGE_DIGEST + 1], two[IMAGE_DIGEST + 1];

    store_make(GOOD_BUILD);
    assert_ok(image_digest(&store, "demo", one, &err), err);
    file_write("demo/packages", "b\n", 0644);
    assert_ok(image_digest(&store, "demo", two, &err), err);
    assert_false(str_eq(one, two));
    file_write("demo/packages", "a\n", 0600);
    assert_ok(image_digest(&store, "demo", two, &err), err);
    assert_str_eq(two, one);
    file_write("demo/packages", "a\n", 0755);
    assert_ok(image_digest(&store, "demo", two, &err), err);
    assert_false(str_eq(one, two));
}

TEST(image_names_the_known_runtimes)
{
    static const char *const bad[] = {"nope", "common", "", "..", "demo/../demo", "Demo"};
    char digest[IMAGE_DIGEST + 1];

    store_make(GOOD_BUILD);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_eq(image_digest(&store, bad[i], digest, &err), -ERR_INVALID);
        assert_str_has(err.text, "known are: demo");
    }
}

TEST(image_is_found_once_it_is_built)
{
    char rootfs[PATH_LEN], want[2 * PATH_LEN], digest[IMAGE_DIGEST + 1];

    store_make(GOOD_BUILD);
    assert_int_eq(image_find(&store, "demo", rootfs, sizeof(rootfs), &err), -ERR_NOT_FOUND);
    assert_str_has(err.text, "sandbox-agent image build demo");
    assert_ok(demo_build(false, -1), err);
    assert_str_has(told, "demo: setting up 1 of 2 packages\n");
    assert_ok(image_find(&store, "demo", rootfs, sizeof(rootfs), &err), err);
    assert_ok(image_digest(&store, "demo", digest, &err), err);
    snprintf(want, sizeof(want), "%s/images/demo/%s/rootfs", test_dir(), digest);
    assert_str_eq(rootfs, want);
    told[0] = 0;
    assert_ok(demo_build(false, -1), err);
    assert_str_eq(told, "demo: is ready\n");
    file_write("demo/packages", "b\n", 0644);
    assert_int_eq(image_find(&store, "demo", rootfs, sizeof(rootfs), &err), -ERR_NOT_FOUND);
}

TEST(image_list_tells_what_image_json_holds)
{
    struct image_info *list;
    size_t count;

    store_make(GOOD_BUILD);
    assert_ok(image_list(&store, &list, &count, &err), err);
    assert_uint_eq(count, 0);
    assert_ok(demo_build(false, -1), err);
    assert_ok(image_list(&store, &list, &count, &err), err);
    assert_uint_eq(count, 1);
    assert_str_eq(list[0].runtime, "demo");
    assert_str_eq(list[0].version, "4.5");
    assert_uint_eq(list[0].bytes, 123);
    assert_int_eq(list[0].packages, 2);
    assert_true(list[0].current);
    image_list_free(list, count);
}

TEST(image_rebuild_keeps_the_old_one_until_it_is_removed)
{
    struct image_info *list;
    char old[IMAGE_NAME];
    size_t count;

    store_make(GOOD_BUILD);
    assert_ok(demo_build(false, -1), err);
    assert_ok(demo_build(true, -1), err);
    assert_ok(image_list(&store, &list, &count, &err), err);
    assert_uint_eq(count, 2);
    snprintf(old, sizeof(old), "%s", list[list[0].current].name);
    assert_true(list[0].current != list[1].current);
    image_list_free(list, count);
    assert_ok(image_remove(&store, "demo", old, &err), err);
    assert_int_eq(image_remove(&store, "demo", old, &err), -ERR_NOT_FOUND);
    assert_int_eq(image_remove(&store, "demo", "../demo", &err), -ERR_NOT_FOUND);
    assert_ok(image_list(&store, &list, &count, &err), err);
    assert_uint_eq(count, 1);
    image_list_free(list, count);
}

TEST(image_build_that_fails_leaves_its_log_only)
{
    static const struct {
        const char *script;
        int code;
        const char *text;
    } cases[] = {
        {"#!/bin/sh\necho 'error: mmdebstrap is needed'\nexit 1\n", ERR_UNAVAILABLE,
         "build.log): mmdebstrap is needed"},
        {"#!/bin/sh\nmkdir \"$2/rootfs\"\necho 'E: x: No space left on device'\nexit 1\n", ERR_DISK,
         "No space left on device; an image needs"},
        {"#!/bin/sh\necho 'E: Could not resolve host'\necho 'E: later'\nexit 1\n", ERR_UPSTREAM,
         "Could not resolve host; check the network"},
        {"#!/bin/sh\nexit 7\n", ERR_UNAVAILABLE, "exit status 7"},
        {"#!/bin/sh\nkill -9 $$\n", ERR_UNAVAILABLE, "killed by signal 9"},
        {"#!/bin/sh\nmkdir \"$2/rootfs\"\n", ERR_SYSTEM, "facts"},
    };

    store_make(GOOD_BUILD);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        file_write("build", cases[i].script, 0755);
        assert_int_eq(demo_build(false, -1), -cases[i].code);
        assert_str_has(err.text, cases[i].text);
        assert_str_eq(demo_names(), "build.log lock ");
    }
}

TEST(image_build_is_stopped_by_its_cancel_descriptor)
{
    auto_fd int cancel = eventfd(1, EFD_CLOEXEC);

    store_make("#!/bin/sh\nmkdir \"$2/rootfs\"\nexec sleep 60\n");
    assert_int_eq(demo_build(false, cancel), -ERR_CANCELLED);
    assert_str_eq(demo_names(), "build.log lock ");
}

TEST(image_build_waits_for_another_builder)
{
    auto_fd int cancel = eventfd(1, EFD_CLOEXEC);
    char path[PATH_LEN];

    store_make(GOOD_BUILD);
    dir_make("images/demo");
    snprintf(path, sizeof(path), "%s/images/demo/lock", test_dir());
    auto_fd int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_eq(flock(lock, LOCK_EX), 0);
    assert_int_eq(demo_build(false, cancel), -ERR_CANCELLED);
    assert_str_eq(told, "demo: waiting for another build\n");
    assert_int_eq(flock(lock, LOCK_UN), 0);
    assert_ok(demo_build(false, -1), err);
}

TEST(image_build_takes_away_what_a_killed_one_left)
{
    store_make(GOOD_BUILD);
    dir_make("images/demo/.build/rootfs/usr");
    dir_make("images/demo/.removed-0123/rootfs");
    assert_ok(demo_build(false, -1), err);
    assert_null(strstr(demo_names(), "."));
}
