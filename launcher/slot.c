/* SPDX-License-Identifier: MIT */
/* Slot locks: see slot.h. F_OFD_GETLK names the conflicting range, so a search skips over it. */
#include "launcher/slot.h"

#include "base/failpoint.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* The variable may be left over from another user's session. */
static int runtime_dir_open(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    auto_fd int fd = -1;
    struct stat st;

    if (!runtime || runtime[0] != '/')
        return -1;
    fd = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ? -1 : TAKE_FD(fd);
}

static int slot_parent_open(int instance_fd, const char **ret_name)
{
    int fd;

    *ret_name = "sandbox-agent";
    if (geteuid() == 0)
        return open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = runtime_dir_open();
    if (fd >= 0)
        return fd;
    *ret_name = ".slots";
    return openat(instance_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int slot_dir_open(int instance_fd, struct error *reterr)
{
    const char *name;
    auto_fd int parent = slot_parent_open(instance_fd, &name);
    auto_fd int dir = -1;
    struct stat st;

    if (parent < 0)
        return error_sys(reterr, errno, "cannot open the directory for the id slots");
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return error_sys(reterr, errno, "cannot make the directory for the id slots");
    dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0 || fstat(dir, &st) < 0)
        return error_sys(reterr, errno, "cannot open the directory of the id slots");
    if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return error_set(reterr, ERR_DENIED, "the directory of the id slots is not ours alone");
    return TAKE_FD(dir);
}

/* Locks one byte; 1 taken, 0 somebody has it and *next is behind their range, -1 errno. */
static int slot_try(int fd, uint32_t number, uint32_t *next)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1};

    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 1;
    if (errno != EAGAIN && errno != EACCES)
        return -1;
    *next = number + 1;
    if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_len > 0 &&
        lock.l_start + lock.l_len > (off_t)*next)
        *next = (uint32_t)(lock.l_start + lock.l_len);
    return 0;
}

int slot_open(int dirfd, uint32_t limit, struct slot *ret, struct error *reterr)
{
    auto_fd int fd = openat(dirfd, "slots", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = failpoint("slot-alloc");

    if (r < 0)
        return error_sys(reterr, -r, "cannot take an id slot");
    if (fd < 0)
        return error_sys(reterr, errno, "cannot open the id slots");
    for (uint32_t n = 1, next = 1; n < limit; n = next) {
        r = slot_try(fd, n, &next);
        if (r < 0)
            return error_sys(reterr, errno, "cannot lock an id slot");
        if (r > 0) {
            *ret = (struct slot){.fd = TAKE_FD(fd), .number = n};
            return 0;
        }
    }
    return error_set(reterr, ERR_LIMIT, "all %u id slots of this host are in use", limit - 1);
}

void slot_close(struct slot *slot)
{
    if (slot->fd >= 0) {
        (void)failpoint("slot-free");
        close(slot->fd);
    }
    slot->fd = -1;
}
