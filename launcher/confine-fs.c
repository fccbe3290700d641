/* SPDX-License-Identifier: MIT */
/*
 * The file systems of our own inside a sandbox: /dev, /proc with its masks, the writable tmpfs, and
 * the three files of /etc that say where names come from. All are made detached and attached by
 * descriptor, so no path of the image is ever followed by the mount.
 */
#include "launcher/confine-internal.h"

#include "base/fd.h"
#include "base/str.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MASK_DIR ".mask-dir"
#define MASK_FILE ".mask-file"

enum { PAGE = 4096, INODES_LEAST = 64, PTYS_MAX = 64 };

static int config_number(int fs, const char *key, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

static int config_mode(int fs, unsigned int mode)
{
    char text[16];

    snprintf(text, sizeof(text), "%o", mode);
    return fsconfig(fs, FSCONFIG_SET_STRING, "mode", text, 0);
}

int confine_tmpfs(const struct tmpfs_options *options, struct error *reterr)
{
    auto_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int fd = -1;

    if (fs >= 0 && fsconfig(fs, FSCONFIG_SET_STRING, "source", "sandbox", 0) == 0 &&
        config_number(fs, "size", options->size) == 0 &&
        config_number(fs, "nr_inodes", MAX(options->size / PAGE, INODES_LEAST)) == 0 &&
        config_mode(fs, options->mode) == 0 && config_number(fs, "uid", options->owner) == 0 &&
        config_number(fs, "gid", options->owner) == 0 &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = fsmount(fs, FSMOUNT_CLOEXEC, options->flags);
    return fd < 0 ? error_sys(reterr, errno, "cannot make a tmpfs") : fd;
}

int confine_attach(int mount_fd, int target_fd, const char *name, struct error *reterr)
{
    if (move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
        0)
        return error_sys(reterr, errno, "cannot attach '%s'", name);
    return 0;
}

/* At a name directly below a directory of ours. */
static int attach_below(int dir, const char *name, int mount_fd, struct error *reterr)
{
    auto_fd int target = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (target < 0)
        return error_sys(reterr, errno, "cannot open '%s'", name);
    return confine_attach(mount_fd, target, name, reterr);
}

static int attach_at(const struct confine *c, int mount_fd, const char *path, struct error *reterr)
{
    auto_fd int target = confine_target(c, path, reterr);

    return target < 0 ? target : confine_attach(mount_fd, target, path, reterr);
}

/* ---- /dev ---- */

static const struct {
    const char *name;
    unsigned int major, minor;
} devices[] = {
    {"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
    {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
};

/* The host's own node, checked to be what its name says, as a detached mount. */
static int device_open(size_t i, struct error *reterr)
{
    struct mount_attr attr = {.attr_set =
                                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
    auto_fd int fd = -1;
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/dev/%s", devices[i].name);
    fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (fd < 0 || fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
        return error_sys(reterr, errno, "cannot take '%s' from the host", path);
    if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(devices[i].major, devices[i].minor))
        return error_set(reterr, ERR_UNAVAILABLE, "'%s' of the host is not that device", path);
    /* Read-only is for the node's own attributes; the device is written all the same. */
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot restrict '%s'", path);
    return TAKE_FD(fd);
}

static int devices_attach(int dev, struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        auto_fd int node = device_open(i, reterr);
        auto_fd int target = -1;
        int r;

        if (node < 0)
            return node;
        if (mknodat(dev, devices[i].name, S_IFREG | 0666, 0) < 0 ||
            (target = openat(dev, devices[i].name, O_PATH | O_NOFOLLOW | O_CLOEXEC)) < 0)
            return error_sys(reterr, errno, "cannot make '/dev/%s'", devices[i].name);
        if ((r = confine_attach(node, target, devices[i].name, reterr)) < 0)
            return r;
    }
    return 0;
}

static int links_make(int dev, struct error *reterr)
{
    static const char *const links[][2] = {
        {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
        {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
    };

    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        if (symlinkat(links[i][1], dev, links[i][0]) < 0)
            return error_sys(reterr, errno, "cannot make '/dev/%s'", links[i][0]);
    }
    return 0;
}

/* The host has one number of terminals for all, so a sandbox has a part of it. */
static int devpts_attach(int dev, struct error *reterr)
{
    auto_fd int fs = fsopen("devpts", FSOPEN_CLOEXEC);
    auto_fd int mount_fd = -1, target = -1;

    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0 ||
        config_number(fs, "max", PTYS_MAX) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
        (mount_fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)) < 0)
        return error_sys(reterr, errno, "cannot make a devpts");
    if (mkdirat(dev, "pts", 0755) < 0 ||
        (target = openat(dev, "pts", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_sys(reterr, errno, "cannot make '/dev/pts'");
    return confine_attach(mount_fd, target, "/dev/pts", reterr);
}

static int shm_attach(struct confine *c, int dev, struct error *reterr)
{
    const struct tmpfs_options options = {.size = c->job->tmpfs_bytes,
                                          .mode = 01777,
                                          .owner = c->ids->setup,
                                          .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                   MOUNT_ATTR_NOEXEC};
    auto_fd int mount_fd = confine_tmpfs(&options, reterr);
    auto_fd int target = -1;

    if (mount_fd < 0)
        return mount_fd;
    if (mkdirat(dev, "shm", 01777) < 0 ||
        (target = openat(dev, "shm", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_sys(reterr, errno, "cannot make '/dev/shm'");
    return confine_attach(mount_fd, target, "/dev/shm", reterr);
}

int confine_dev(struct confine *c, struct error *reterr)
{
    /* nodev does not reach the nodes, which are mounts of their own. */
    const struct tmpfs_options options = {.size = 64 * KIB,
                                          .mode = 0755,
                                          .owner = c->ids->setup,
                                          .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                   MOUNT_ATTR_NOEXEC};
    auto_fd int dev = confine_tmpfs(&options, reterr);
    int r;

    if (dev < 0)
        return dev;
    if ((r = attach_at(c, dev, "dev", reterr)) < 0 || (r = devices_attach(dev, reterr)) < 0 ||
        (r = links_make(dev, reterr)) < 0 || (r = devpts_attach(dev, reterr)) < 0)
        return r;
    return shm_attach(c, dev, reterr);
}

int confine_dev_seal(struct confine *c, struct error *reterr)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    auto_fd int dev = confine_target(c, "dev", reterr);

    if (dev < 0)
        return dev;
    if (mount_setattr(dev, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot make '/dev' read-only");
    return 0;
}

/* ---- /proc ---- */

/* Init has no CAP_SYS_PTRACE, so it sees the processes of user code by its group alone. */
int confine_proc(struct confine *c, struct error *reterr)
{
    auto_fd int fs = fsopen("proc", FSOPEN_CLOEXEC);
    auto_fd int proc = -1;
    int r = confine_failpoint("mount-proc");

    if (r < 0)
        return error_sys(reterr, -r, "cannot mount /proc");
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", "proc", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) < 0 ||
        config_number(fs, "gid", c->ids->init) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
        (proc = fsmount(fs, FSMOUNT_CLOEXEC,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)) < 0)
        return error_sys(reterr, errno,
                         "cannot mount /proc (inside a container it must be unmasked)");
    return attach_at(c, proc, "proc", reterr);
}

/* Empty to the reader. Which of them exist depends on the kernel. */
static const char *const masked[] = {
    "acpi",          "asound",      "buddyinfo",     "bus",        "cmdline",       "config.gz",
    "diskstats",     "driver",      "dynamic_debug", "fs",         "interrupts",    "iomem",
    "ioports",       "irq",         "kallsyms",      "kcore",      "key-users",     "keys",
    "kmsg",          "kpagecgroup", "kpagecount",    "kpageflags", "latency_stats", "modules",
    "pagetypeinfo",  "pressure",    "sched_debug",   "schedstat",  "scsi",          "slabinfo",
    "sysrq-trigger", "timer_list",  "timer_stats",   "tty",        "vmallocinfo",   "zoneinfo",
};

/* A further mount of an attached one. */
static int mount_copy(int fd)
{
    return open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* What covers: an empty directory and an empty file, both read-only. */
struct covers {
    int dir, file;
};

static int covers_make(const struct confine *c, int dev, struct covers *ret, struct error *reterr)
{
    const struct tmpfs_options options = {.size = PAGE,
                                          .mode = 0555,
                                          .owner = c->ids->setup,
                                          .flags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                                   MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
    int r;

    /* Both lie on /dev at first, because only what is attached can be mounted once more. */
    ret->dir = confine_tmpfs(&options, reterr);
    if (ret->dir < 0)
        return ret->dir;
    if (mkdirat(dev, MASK_DIR, 0555) < 0 || mknodat(dev, MASK_FILE, S_IFREG | 0444, 0) < 0)
        return error_sys(reterr, errno, "cannot prepare the masks");
    if ((r = attach_below(dev, MASK_DIR, ret->dir, reterr)) < 0)
        return r;
    ret->file = openat(dev, MASK_FILE, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return ret->file < 0 ? error_sys(reterr, errno, "cannot prepare the masks") : 0;
}

/* The directory's own mount goes with its mount point; the copies stay. */
static int covers_remove(int dev, struct error *reterr)
{
    auto_fd int at = openat(dev, MASK_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (at < 0 || fchdir(at) < 0 || umount2(".", MNT_DETACH) < 0 ||
        unlinkat(dev, MASK_DIR, AT_REMOVEDIR) < 0 || unlinkat(dev, MASK_FILE, 0) < 0)
        return error_sys(reterr, errno, "cannot remove what the masks were made from");
    return 0;
}

static int mask_one(const struct covers *covers, int proc, const char *name, struct error *reterr)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    auto_fd int target = sys_open_beneath(proc, name, O_PATH);
    auto_fd int cover = -1;
    struct stat st;

    if (target < 0 && errno == ENOENT)
        return 0;
    if (target < 0 || fstat(target, &st) < 0)
        return error_sys(reterr, errno, "cannot mask '/proc/%s'", name);
    cover = mount_copy(S_ISDIR(st.st_mode) ? covers->dir : covers->file);
    if (cover < 0 || mount_setattr(cover, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot mask '/proc/%s'", name);
    return confine_attach(cover, target, name, reterr);
}

static int sys_read_only(int proc, struct error *reterr)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    auto_fd int target = sys_open_beneath(proc, "sys", O_PATH | O_DIRECTORY);
    auto_fd int copy = target < 0 ? -1 : mount_copy(target);

    if (copy < 0 || mount_setattr(copy, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot make '/proc/sys' read-only");
    return confine_attach(copy, target, "/proc/sys", reterr);
}

static int masks_attach(int proc, const struct covers *covers, struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(masked); i++) {
        int r = mask_one(covers, proc, masked[i], reterr);

        if (r < 0)
            return r;
    }
    return sys_read_only(proc, reterr);
}

int confine_masks(struct confine *c, struct error *reterr)
{
    auto_fd int proc = -1, dev = sys_open_beneath(c->root_fd, "dev", O_RDONLY | O_DIRECTORY);
    struct covers covers = {.dir = -1, .file = -1};
    int r = confine_failpoint("mask");

    if (r < 0)
        return error_sys(reterr, -r, "cannot mask /proc");
    if (dev < 0)
        return error_sys(reterr, errno, "cannot open /dev");
    proc = confine_target(c, "proc", reterr);
    if (proc < 0)
        return proc;
    if ((r = covers_make(c, dev, &covers, reterr)) == 0 &&
        (r = masks_attach(proc, &covers, reterr)) == 0)
        r = covers_remove(dev, reterr);
    fd_close_all((int[]){covers.dir, covers.file}, 2);
    return r;
}

/* ---- what user code may write ---- */

/* Where terminal and installers are root they have no capability to write into the user's
 * directory. */
static unsigned int writable_mode(const struct confine *c)
{
    return c->ids->as_root ? 0777 : 0755;
}

static int writable_tmpfs(struct confine *c, const char *path, uint64_t size, unsigned int mode,
                          struct error *reterr)
{
    const struct tmpfs_options options = {.size = size,
                                          .mode = mode,
                                          .owner = c->ids->user,
                                          .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    auto_fd int fd = confine_tmpfs(&options, reterr);

    return fd < 0 ? fd : attach_at(c, fd, path, reterr);
}

static int disk_part(struct confine *c, const char *name, const char *path, struct error *reterr)
{
    uint32_t owner = c->ids->user;
    auto_fd int part = -1;

    if (mkdirat(c->disk_fd, name, 0755) < 0 ||
        fchmodat(c->disk_fd, name, writable_mode(c), 0) < 0 ||
        fchownat(c->disk_fd, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(reterr, errno, "cannot prepare the disk image");
    part = open_tree(c->disk_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (part < 0)
        return error_sys(reterr, errno, "cannot prepare the disk image");
    return attach_at(c, part, path, reterr);
}

/* The image's own root stays covered by /workspace; what is cloned must be attached first. */
static int disk_attach(struct confine *c, struct error *reterr)
{
    int r;

    if ((r = attach_at(c, c->disk_fd, "workspace", reterr)) < 0 ||
        (r = disk_part(c, "home", "home/sandbox", reterr)) < 0)
        return r;
    return disk_part(c, "workspace", "workspace", reterr);
}

int confine_writable(struct confine *c, struct error *reterr)
{
    const struct launch_job *job = c->job;
    int r = writable_tmpfs(c, "tmp", job->tmpfs_bytes, 01777, reterr);

    if (r < 0)
        return r;
    if (c->disk_fd >= 0)
        return disk_attach(c, reterr);
    r = writable_tmpfs(c, "workspace", job->disk_bytes ? job->disk_bytes : job->tmpfs_bytes,
                       writable_mode(c), reterr);
    if (r < 0)
        return r;
    return writable_tmpfs(c, "home/sandbox", job->disk_bytes ? job->disk_bytes : job->home_bytes,
                          writable_mode(c), reterr);
}

/* ---- /etc ---- */

/*
 * Covers one file of the image, where it has that file. The text lies on /dev's tmpfs and loses its
 * name there at once. Links are followed, but only inside the image itself.
 */
static int etc_cover(struct confine *c, const char *path, const char *text, struct error *reterr)
{
    auto_fd int dev = -1, target = -1, copy = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    struct stat st;
    int r;

    target = sys_openat2(c->root_fd, path, O_PATH,
                         RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
    if (target < 0 || fstat(target, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    dev = sys_open_beneath(c->root_fd, "dev", O_RDONLY | O_DIRECTORY);
    if (dev < 0 || mknodat(dev, ".etc", S_IFREG | 0644, 0) < 0 ||
        sys_write_text(dev, ".etc", text) < 0 ||
        (copy = open_tree(dev, ".etc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) < 0 ||
        mount_setattr(copy, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot prepare '/%s'", path);
    if ((r = confine_attach(copy, target, path, reterr)) < 0)
        return r;
    /* Only now: what has no name any more cannot be attached. */
    return unlinkat(dev, ".etc", 0) < 0 ? error_sys(reterr, errno, "cannot prepare '/%s'", path)
                                        : 0;
}

int confine_etc(struct confine *c, struct error *reterr)
{
    const char *name = c->job->hostname[0] ? c->job->hostname : "sandbox";
    char hosts[256], hostname[80];
    int r;

    snprintf(hosts, sizeof(hosts), "127.0.0.1 localhost %s\n::1 localhost\n", name);
    snprintf(hostname, sizeof(hostname), "%s\n", name);
    if ((r = etc_cover(c, "etc/hosts", hosts, reterr)) < 0 ||
        (r = etc_cover(c, "etc/hostname", hostname, reterr)) < 0)
        return r;
    /* Without a network an empty file would still make the resolver ask 127.0.0.1; it is refused.
     */
    return etc_cover(c, "etc/resolv.conf", "nameserver 127.0.0.1\n", reterr);
}
