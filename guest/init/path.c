/* SPDX-License-Identifier: MIT */
/*
 * Paths. The kernel resolves them (openat2, RESOLVE_IN_ROOT), so a link that points up or is
 * swapped while we look can lead nowhere but into the sandbox, where the file system ids of the
 * sandbox user decide.
 */
#include "init/path.h"

#include "init/config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { OPEN_RETRIES = 128, DIR_MODE = 0755 };

static int root_fd = -1;

int path_setup(struct error *reterr)
{
    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return error_sys(reterr, errno, "cannot open '/'");
    return 0;
}

static int open_in_root(const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd;

    /* EAGAIN: something on the way was renamed meanwhile. */
    for (int i = 0; i < OPEN_RETRIES; i++) {
        fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return fd;
    }
    return -1;
}

/* The path from the root on; free() it. */
/* With RESOLVE_IN_ROOT a leading slash and ".." at the top mean the root of the sandbox. */
static char *path_absolute(const char *path)
{
    char *full = NULL;

    if (path[0] == '/')
        return strdup(path);
    if (!path[0]) {
        errno = ENOENT;
        return NULL;
    }
    return asprintf(&full, "%s/%s", config.workspace, path) < 0 ? NULL : full;
}

int path_open(const char *path, int flags)
{
    auto_free char *full = path_absolute(path);

    return full ? open_in_root(full, flags) : -1;
}

static int open_dir(const char *path)
{
    return open_in_root(path, O_PATH | O_DIRECTORY);
}

/* Makes one component below `parent` and opens the path up to and with it. */
static int dir_enter(int parent, const char *name, const char *path)
{
    int fd = open_dir(path);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(parent, name, DIR_MODE) < 0 && errno != EEXIST)
        return -1;
    return open_dir(path);
}

/* Cuts `full` behind each component in turn; it is whole again at the end. */
static int make_dirs(char *full)
{
    auto_fd int at = open_dir("/");
    char *p = full;

    while (at >= 0) {
        size_t len;
        char cut;
        int next;

        p += strspn(p, "/");
        len = strcspn(p, "/");
        if (len == 0)
            break;
        cut = p[len];
        p[len] = 0;
        next = dir_enter(at, p, full);
        p[len] = cut;
        close(at);
        at = next;
        p += len;
    }
    return TAKE_FD(at);
}

int path_make_dirs(const char *path)
{
    auto_free char *full = path_absolute(path);
    int fd;

    if (!full)
        return -1;
    fd = open_dir(full);
    return fd >= 0 || errno != ENOENT ? fd : make_dirs(full);
}

int path_open_parent(const char *path, bool make, char base[NAME_MAX + 1])
{
    auto_free char *full = path_absolute(path);
    size_t len;
    char *name;
    int fd;

    if (!full)
        return -1;
    len = strlen(full);
    while (len > 1 && full[len - 1] == '/')
        full[--len] = 0;
    name = strrchr(full, '/') + 1;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        errno = EINVAL;
        return -1;
    }
    if (strlen(name) > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(base, name, strlen(name) + 1);
    *name = 0;
    fd = open_dir(full);
    return fd >= 0 || errno != ENOENT || !make ? fd : make_dirs(full);
}
