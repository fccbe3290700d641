/* SPDX-License-Identifier: MIT */
/*
 * Loop devices are shared by the whole host: the kernel names a free one, somebody else may take it
 * before us (EBUSY, another try), and a device is let go only while it still has our file. It is
 * bound with autoclear, so the end of the sandbox's mounts frees it.
 */
#include "launcher/disk.h"

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LOOP_TRIES = 32 };

static int file_make(int dirfd, uint64_t bytes, struct error *reterr)
{
    auto_fd int fd =
        openat(dirfd, DISK_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return error_sys(reterr, errno, "cannot make the disk image");
    return TAKE_FD(fd);
}

static int mkfs_run(const char *path, uint32_t owner, struct error *reterr)
{
    static const char *const programs[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};
    char options[96];
    char *const envp[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    char *argv[] = {
        (char *)"mkfs.ext4",    (char *)"-q", (char *)"-F", (char *)"-m", (char *)"0", (char *)"-O",
        (char *)"^has_journal", (char *)"-E", options,      (char *)path, NULL};
    int status = 0, r = ENOENT;
    pid_t pid;

    snprintf(options, sizeof(options), "root_owner=%u:%u,lazy_itable_init=1,nodiscard", owner,
             owner);
    for (size_t i = 0; i < ARRAY_LEN(programs) && r == ENOENT; i++)
        r = posix_spawn(&pid, programs[i], NULL, NULL, argv, envp);
    if (r != 0)
        return error_sys(reterr, r, "cannot run mkfs.ext4 (package e2fsprogs)");
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return error_sys(reterr, errno, "cannot wait for mkfs.ext4");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(reterr, ERR_SYSTEM, "mkfs.ext4 failed; is the disk size too small?");
    return 0;
}

static int loop_bind(int file, int *ret_number, struct error *reterr)
{
    auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config config = {.fd = (uint32_t)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
    char path[32];

    if (control < 0)
        return error_sys(reterr, errno, "cannot open /dev/loop-control");
    for (int i = 0; i < LOOP_TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        auto_fd int loop = -1;

        if (number < 0)
            return error_sys(reterr, errno, "this host has no free loop device");
        snprintf(path, sizeof(path), "/dev/loop%d", number);
        loop = open(path, O_RDWR | O_CLOEXEC);
        if (loop < 0)
            return error_sys(reterr, errno, "cannot open '%s'", path);
        if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
            *ret_number = number;
            return TAKE_FD(loop);
        }
        if (errno != EBUSY)
            return error_sys(reterr, errno, "cannot bind '%s'", path);
    }
    return error_set(reterr, ERR_BUSY, "every loop device was taken by somebody else");
}

static int ext4_mount(int number, struct error *reterr)
{
    auto_fd int fs = fsopen("ext4", FSOPEN_CLOEXEC);
    char path[32];
    int fd = -1;

    snprintf(path, sizeof(path), "/dev/loop%d", number);
    if (fs >= 0 && fsconfig(fs, FSCONFIG_SET_STRING, "source", path, 0) == 0 &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return fd < 0 ? error_sys(reterr, errno, "cannot mount the disk image") : fd;
}

int disk_open(int dirfd, const char *dir_path, uint64_t bytes, uint32_t owner, int *ret_loop,
              struct error *reterr)
{
    auto_fd int file = file_make(dirfd, bytes, reterr);
    auto_fd int loop = -1;
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/" DISK_FILE, dir_path), r;

    *ret_loop = -1;
    if (file < 0)
        return file;
    if (n < 0 || (size_t)n >= sizeof(path))
        return error_set(reterr, ERR_INVALID, "the state directory's path is too long");
    if ((r = mkfs_run(path, owner, reterr)) < 0)
        return r;
    loop = loop_bind(file, ret_loop, reterr);
    return loop < 0 ? loop : ext4_mount(*ret_loop, reterr);
}

bool disk_close(int dirfd, int loop)
{
    struct loop_info64 info;
    char path[32];
    struct stat st;
    auto_fd int fd = -1;

    (void)failpoint("unmount");
    if (loop < 0 || fstatat(dirfd, DISK_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    snprintf(path, sizeof(path), "/dev/loop%d", loop);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    /* Inode numbers alone are not unique: another file system's image must not lose its device. */
    if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0 || info.lo_device != st.st_dev ||
        info.lo_inode != st.st_ino)
        return true;
    (void)ioctl(fd, LOOP_CLR_FD, 0);
    return ioctl(fd, LOOP_GET_STATUS64, &info) < 0;
}
