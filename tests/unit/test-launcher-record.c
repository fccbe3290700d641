/* SPDX-License-Identifier: MIT */
/* Records of sandboxes, whole, torn and foreign; lines of the probe; start times. */
#include "launcher/record.h"

#include "base/fd.h"
#include "launcher/probe.h"
#include "launcher/sys.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define BOOT "boot-1"

static struct record record;

TEST(a_record_is_read_as_it_was_written)
{
    struct record written = {.pid = 4711, .start_time = 99, .slot = 5, .loop = 3};
    struct launch_job job = {.memory_bytes = 1, .pids = 2};
    auto_free char *text = NULL;
    char boot[64];
    struct error err;
    auto_fd int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(dir >= 0);
    written.groups.count = 1;
    written.groups.dirs[0] = (struct cgroup_dir){
        .path = "/sys/fs/cgroup/memory/sandbox-agent/x/y z", .version = 1, .controllers = 1};
    assert_ok(record_write(dir, &written, &job, &err), err);
    assert_ok(fd_read_file(dir, RECORD_FILE, 10000, &text, NULL, &err), err);
    assert_true(sys_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) > 0);
    boot[strcspn(boot, "\n")] = 0;
    record_parse(text, boot, &record);
    assert_int_eq(record.pid, 4711);
    assert_uint_eq(record.start_time, 99);
    assert_uint_eq(record.slot, 5);
    assert_int_eq(record.loop, 3);
    assert_uint_eq(record.groups.count, 1);
    assert_str_eq(record.groups.dirs[0].path, written.groups.dirs[0].path);
}

TEST(a_record_of_another_boot_names_no_process)
{
    record_parse("boot other\npid 10\nstart 1\nloop 1\ncgroup 1 1 /c/sandbox-agent/i/d\n", BOOT,
                 &record);
    assert_int_eq(record.pid, 0);
    assert_int_eq(record.loop, -1);
    assert_uint_eq(record.groups.count, 1);
}

TEST(torn_and_senseless_records)
{
    static const char *const texts[] = {
        "",
        "boot " BOOT,
        "pid\n",
        "boot " BOOT "\npid 1\n",
        "boot " BOOT "\npid -5\nstart x\nloop 99999999999\n",
        "boot " BOOT "\npid 55",
        "boot " BOOT "\ncgroup\ncgroup 1\ncgroup 1 1\ncgroup 3 1 /sandbox-agent/\n",
        "boot " BOOT "\ncgroup 1 1 /etc\ncgroup 1 1 /a/sandbox-agent/../../etc\n",
        "boot " BOOT "\ncgroup 2 0 /sys/fs/cgroup/system.slice/sandbox-agent/..\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        record_parse(texts[i], BOOT, &record);
        assert_int_eq(record.pid, 0);
        assert_int_eq(record.loop, -1);
        assert_uint_eq(record.groups.count, 0);
    }
}

TEST(a_start_time_names_one_process)
{
    uint64_t now = sys_start_time(getpid());

    assert_true(now > 0);
    assert_uint_eq(sys_start_time(getpid()), now);
    assert_uint_eq(sys_start_time(0x7ffffff0), 0);
}

TEST(lines_of_the_probe)
{
    struct finding f;

    assert_true(finding_parse("seccomp\tok\tgood\t\n", &f));
    assert_str_eq(f.name, "seccomp");
    assert_int_eq(f.result, FINDING_OK);
    assert_str_eq(f.detail, "good");
    assert_true(finding_parse("x\tmissing\ta b\tc d", &f));
    assert_str_eq(f.fix, "c d");
    assert_int_eq(f.result, FINDING_MISSING);
    assert_false(finding_parse("x\twhat\ta\tb", &f));
    assert_false(finding_parse("", &f));
    assert_false(finding_parse("\tok\t\t", &f));
}

TEST(files_are_removed_and_directories_are_not)
{
    int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(dir >= 0);
    assert_int_eq(mknodat(dir, "fifo", S_IFIFO | 0600, 0), 0);
    assert_int_eq(mknodat(dir, "file", S_IFREG | 0600, 0), 0);
    assert_int_eq(sys_remove_files(dir), 0);
    assert_true(faccessat(dir, "file", F_OK, 0) < 0);
    assert_int_eq(mkdirat(dir, "below", 0700), 0);
    assert_int_eq(sys_remove_files(dir), -1);
    close(dir);
}

TEST(links_are_not_followed)
{
    int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

    assert_true(dir >= 0);
    assert_int_eq(mkdirat(dir, "real", 0700), 0);
    assert_int_eq(symlinkat("real", dir, "link"), 0);
    fd = sys_open_beneath(dir, "real", O_PATH);
    assert_true(fd >= 0);
    close(fd);
    assert_true(sys_open_beneath(dir, "link", O_PATH) < 0);
    assert_int_eq(errno, ELOOP);
    assert_true(sys_open_beneath(dir, "real/../../etc", O_PATH) < 0);
    assert_int_eq(errno, EXDEV);
    close(dir);
}
