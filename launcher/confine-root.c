/* SPDX-License-Identifier: MIT */
/*
 * The new root: an overlay over the image. Its inodes are the sandbox's own, where a plain mount of
 * the image would let sandboxes watch (inotify) and lock each other's files; and what it tells of
 * itself inside names no path of the host. Nothing of the image is trusted: a target is reached
 * without following links, and a link in its place refuses the start.
 */
#include "launcher/confine-internal.h"

#include "base/str.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Directories that every image must have, or that an overlay gives it. */
static const char *const needed_dirs[] = {"dev", "proc", "tmp", "workspace", "home/sandbox"};

int confine_image_open(const char *path, int userns_fd)
{
    auto_fd int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int fd = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

    if (dir < 0)
        return -1;
    fd = open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0)
        return -1;
    if (userns_fd >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)userns_fd;
    }
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return -1;
    return TAKE_FD(fd);
}

int confine_mount_open(const struct job_mount *mount)
{
    /* No link anywhere on the way: who may write to a folder of it could lead us elsewhere. */
    auto_fd int source =
        sys_openat2(AT_FDCWD, mount->source, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    auto_fd int fd =
        source < 0 ? -1
                   : open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          (mount->writable ? 0 : MOUNT_ATTR_RDONLY)};

    if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return -1;
    return TAKE_FD(fd);
}

static int target_error(const char *path, int sys, struct error *reterr)
{
    if (sys == ELOOP || sys == ENOTDIR)
        return error_set(reterr, ERR_INVALID,
                         "the image is refused: '/%s' is not a plain directory", path);
    return error_sys(reterr, sys, "cannot open '/%s' of the image", path);
}

int confine_target(const struct confine *c, const char *path, struct error *reterr)
{
    int fd = sys_open_beneath(c->root_fd, path, O_PATH | O_DIRECTORY);

    return fd < 0 ? target_error(path, errno, reterr) : fd;
}

/* Whether a path is below a tmpfs of ours, where targets can always be made. */
static bool path_is_ours(const char *path)
{
    return str_starts(path, "/workspace/") || str_starts(path, "/tmp/") ||
           str_starts(path, "/home/sandbox/");
}

/* 1: a directory or target is missing and wants an overlay; 0: all there. */
static int image_lacks(const struct confine *c, struct error *reterr)
{
    bool missing = false;

    for (size_t i = 0; i < ARRAY_LEN(needed_dirs); i++) {
        auto_fd int fd = sys_open_beneath(c->image_fd, needed_dirs[i], O_PATH | O_DIRECTORY);

        if (fd < 0 && errno != ENOENT)
            return target_error(needed_dirs[i], errno, reterr);
        missing |= fd < 0;
    }
    for (uint32_t i = 0; i < c->job->mount_count; i++) {
        const char *target = c->job->mounts[i].target;
        auto_fd int fd = -1;

        if (path_is_ours(target))
            continue;
        fd = sys_open_beneath(c->image_fd, target + 1, O_PATH);
        if (fd < 0 && errno != ENOENT)
            return target_error(target + 1, errno, reterr);
        missing |= fd < 0;
    }
    return missing;
}

/* One component below `parent`: opened, made first when it is missing. Returns an O_PATH fd. */
static int component_open(int parent, const char *name, bool is_dir)
{
    int fd = sys_open_beneath(parent, name, O_PATH | (is_dir ? O_DIRECTORY : 0));

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (is_dir ? mkdirat(parent, name, 0755) : mknodat(parent, name, S_IFREG | 0644, 0))
        return -1;
    return sys_open_beneath(parent, name, O_PATH | (is_dir ? O_DIRECTORY : 0));
}

/* Makes what is missing of a path relative to `root`; an O_PATH fd of its end. */
static int path_make(int root, const char *path, bool is_dir)
{
    auto_fd int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    char name[256];

    while (at >= 0 && *path) {
        size_t len = strcspn(path, "/");
        bool last = !path[len];
        int next;

        if (len >= sizeof(name)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, len);
        name[len] = 0;
        next = component_open(at, name, !last || is_dir);
        if (next < 0)
            return -1;
        close(at);
        at = next;
        path += len + !last;
    }
    return TAKE_FD(at);
}

static int staging_make(struct confine *c, struct error *reterr)
{
    static const char *const dirs[] = {"lower", "upper", "work", "root", "empty"};
    const struct tmpfs_options options = {
        .size = c->job->flags & JOB_OVERLAY_ROOT ? c->job->tmpfs_bytes : MIB,
        .mode = 0755,
        .owner = c->ids->setup,
        .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    auto_fd int fd = confine_tmpfs(&options, reterr);
    int r;

    if (fd < 0)
        return fd;
    if ((r = confine_attach(fd, c->anchor_fd, "overlay", reterr)) < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        if (mkdirat(fd, dirs[i], 0755) < 0)
            return error_sys(reterr, errno, "cannot prepare the overlay");
    }
    if (c->ids->as_root && fchownat(fd, "upper", c->ids->root, c->ids->root, 0) < 0)
        return error_sys(reterr, errno, "cannot prepare the overlay");
    return TAKE_FD(fd);
}

/* 1; or 0 where this host has no overlay for us and the image does as it is. */
static int overlay_mount(struct confine *c, bool needed, struct error *reterr)
{
    auto_fd int lower = -1;
    int r;

    c->stage_fd = staging_make(c, reterr);
    if (c->stage_fd < 0)
        return c->stage_fd;
    lower = openat(c->stage_fd, "lower", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (lower < 0)
        return error_sys(reterr, errno, "cannot prepare the overlay");
    if ((r = confine_attach(c->image_fd, lower, "image", reterr)) < 0)
        return r;
    c->root_fd = c->image_fd;
    /* Relative, so that the paths that mountinfo shows inside say nothing about the host. */
    if (fchdir(c->stage_fd) < 0 ||
        mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV,
              "lowerdir=lower,upperdir=upper,workdir=work,userxattr") < 0)
        return needed ? error_sys(reterr, errno, "cannot mount an overlay over the image") : 0;
    c->root_fd = openat(c->stage_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return c->root_fd < 0 ? error_sys(reterr, errno, "cannot open the overlay") : 1;
}

/* An overlay of one layer, because an empty second one is what the kernel asks for. */
static int layer_mount(const char *name)
{
    auto_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
    char layers[32];

    snprintf(layers, sizeof(layers), "%s:empty", name);
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", layers, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* Our own directories get inodes and a neutral name in the same way, where that can be. */
static void mounts_cover(struct confine *c)
{
    for (uint32_t i = 0; i < c->job->mount_count; i++) {
        auto_fd int at = -1;
        struct stat st;
        char name[16];
        int fd;

        if (c->job->mounts[i].writable ||
            fstatat(c->mount_fds[i], "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        snprintf(name, sizeof(name), "mount%u", i);
        if (mkdirat(c->stage_fd, name, 0755) < 0 ||
            (at = openat(c->stage_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 ||
            confine_attach(c->mount_fds[i], at, name, NULL) < 0 || (fd = layer_mount(name)) < 0)
            continue;
        close(c->mount_fds[i]);
        c->mount_fds[i] = fd;
    }
}

/* Fills the holes of the image, then shuts the overlay if nobody asked for a writable root. */
static int overlay_complete(struct confine *c, struct error *reterr)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    for (size_t i = 0; i < ARRAY_LEN(needed_dirs); i++) {
        auto_fd int fd = path_make(c->root_fd, needed_dirs[i], true);

        if (fd < 0)
            return target_error(needed_dirs[i], errno, reterr);
    }
    for (uint32_t i = 0; i < c->job->mount_count; i++) {
        const char *target = c->job->mounts[i].target;
        struct stat st;
        auto_fd int fd = -1;

        if (path_is_ours(target) ||
            fstatat(c->mount_fds[i], "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        fd = path_make(c->root_fd, target + 1, S_ISDIR(st.st_mode));
        if (fd < 0)
            return target_error(target + 1, errno, reterr);
    }
    if (!(c->job->flags & JOB_OVERLAY_ROOT) &&
        mount_setattr(c->root_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot make the root read-only");
    return 0;
}

/* An unprivileged launcher's mounts are made here, while the ids are still the launcher's. */
static int sources_open(struct confine *c, struct error *reterr)
{
    if (c->image_fd < 0)
        c->image_fd = confine_image_open(c->job->rootfs, -1);
    if (c->image_fd < 0)
        return error_sys(reterr, errno, "cannot mount the image '%s'", c->job->rootfs);
    for (uint32_t i = 0; i < c->job->mount_count; i++) {
        if (c->mount_fds[i] < 0)
            c->mount_fds[i] = confine_mount_open(&c->job->mounts[i]);
        if (c->mount_fds[i] < 0)
            return error_sys(reterr, errno, "cannot mount '%s'", c->job->mounts[i].source);
    }
    return 0;
}

bool confine_overlays(const struct features *features, const struct id_plan *ids,
                      const struct launch_job *job)
{
    bool shifted = !ids->programs && !ids->one_uid;

    return (job->flags & JOB_OVERLAY_ROOT) || !shifted || features->overlay_idmap;
}

int confine_root(struct confine *c, struct error *reterr)
{
    bool needed;
    int r = confine_failpoint("mount-root");

    if (r < 0)
        return error_sys(reterr, -r, "cannot mount the root");
    c->anchor_fd = open(c->job->rootfs, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->anchor_fd < 0)
        return error_sys(reterr, errno, "cannot open the image '%s'", c->job->rootfs);
    if ((r = sources_open(c, reterr)) < 0 || (r = confine_identity(c, reterr)) < 0)
        return r;
    if ((r = image_lacks(c, reterr)) < 0)
        return r;
    needed = r > 0 || (c->job->flags & JOB_OVERLAY_ROOT);
    if (!needed && !confine_overlays(c->features, c->ids, c->job)) {
        c->root_fd = c->image_fd;
        return confine_attach(c->image_fd, c->anchor_fd, "image", reterr);
    }
    if ((r = overlay_mount(c, needed, reterr)) <= 0)
        return r;
    mounts_cover(c);
    return overlay_complete(c, reterr);
}

/* The job's own mounts come after ours, so that their targets may lie below a tmpfs. */
int confine_extra_mounts(struct confine *c, struct error *reterr)
{
    for (uint32_t i = 0; i < c->job->mount_count; i++) {
        const char *target = c->job->mounts[i].target;
        struct stat st;
        auto_fd int fd = -1;
        int r;

        if (fstatat(c->mount_fds[i], "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(reterr, errno, "cannot look at '%s'", c->job->mounts[i].source);
        if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
            return error_set(reterr, ERR_INVALID, "'%s' is neither a file nor a directory",
                             c->job->mounts[i].source);
        if (path_is_ours(target))
            fd = path_make(c->root_fd, target + 1, S_ISDIR(st.st_mode));
        else
            fd = sys_open_beneath(c->root_fd, target + 1, O_PATH);
        if (fd < 0)
            return target_error(target + 1, errno, reterr);
        if ((r = confine_attach(c->mount_fds[i], fd, target, reterr)) < 0)
            return r;
    }
    return 0;
}

int confine_pivot(struct confine *c, struct error *reterr)
{
    int r = confine_failpoint("pivot");

    if (r < 0)
        return error_sys(reterr, -r, "cannot change the root");
    if (fchdir(c->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return error_sys(reterr, errno, "cannot change the root");
    /* The old root now lies on top of the new one, at the same place. */
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return error_sys(reterr, errno, "cannot detach the old root");
    return 0;
}
