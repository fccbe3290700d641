/* SPDX-License-Identifier: MIT */
/* Raw system calls and small files of the kernel. */
#include "launcher/sys.h"

#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

pid_t sys_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
    int fd = -1;

    for (int i = 0; i < 128; i++) {
        fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

int sys_capset(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)effective,
         .permitted = (uint32_t)permitted,
         .inheritable = (uint32_t)inheritable},
        {.effective = (uint32_t)(effective >> 32),
         .permitted = (uint32_t)(permitted >> 32),
         .inheritable = (uint32_t)(inheritable >> 32)},
    };

    return (int)syscall(SYS_capset, &head, data);
}

int sys_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (int)abi : 0;
}

int sys_fd_place(int fd, int want)
{
    if (fd == want)
        return fcntl(fd, F_SETFD, 0);
    return dup2(fd, want);
}

int sys_write_text(int dirfd, const char *path, const char *text)
{
    auto_fd int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = strlen(text);
    ssize_t n;

    if (fd < 0)
        return -1;
    do
        n = write(fd, text, len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    if ((size_t)n != len) {
        errno = EIO;
        return -1;
    }
    return 0;
}

ssize_t sys_read_text(int dirfd, const char *path, char *ret, size_t size)
{
    auto_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = fd_read_full(fd, ret, size - 1, NULL);
    if (n < 0)
        return -1;
    ret[n] = 0;
    return n;
}

uint64_t sys_start_time(pid_t pid)
{
    char path[64], text[1024], *p;
    uint64_t value = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (sys_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;
    /* The name in field 2 may hold anything, also ')' and spaces. */
    p = strrchr(text, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (!p)
        return 0;
    for (p++; *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    return value;
}

int sys_remove_files(int dirfd)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    int r = 0;

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            continue;
        if (unlinkat(dirfd, e->d_name, 0) < 0 && errno != ENOENT)
            r = -1;
    }
    closedir(dir);
    return r;
}

bool sys_line_next(const char **text, char *line, size_t size)
{
    size_t len = strcspn(*text, "\n"), keep = MIN(len, size - 1);

    if (!**text)
        return false;
    memcpy(line, *text, keep);
    line[keep] = 0;
    *text += len + ((*text)[len] == '\n');
    return true;
}
