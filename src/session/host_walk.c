/* SPDX-License-Identifier: MIT */
/*
 * Files of the host. A path is taken apart as text once, the kernel opens what is below the allowed
 * directory without following any link, and from then on only descriptors are used: what is swapped
 * meanwhile can change what is found, but never lead out. Other file systems that are mounted below
 * an allowed directory belong to it; /proc and /sys are never read.
 */
#include "session/transfer-internal.h"

#include "base/fd.h"
#include "base/str.h"
#include "wire/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum { OPEN_TRIES = 128, SHOWN_MAX = 200 };

struct shown {
    char text[SHOWN_MAX];
};

static struct shown shown_make(const char *path)
{
    struct shown s;

    record_show(s.text, sizeof(s.text), path, strlen(path));
    return s;
}

/* ---- opening ---- */

/* Without following anything at all; only a place, nothing is opened for reading yet. */
static int place_open(int root, const char *rel)
{
    struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = -1;

    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, root, rel, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd;
}

static bool is_kernel_fs(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC;
}

/*
 * Opens a place for reading, when it is a file or a folder: opening a device may do something by
 * itself, so what it is is looked at first.
 */
static int place_read(int place, struct stat *ret, struct error *reterr)
{
    char self[32];
    int fd;

    if (fstat(place, ret) < 0)
        return error_sys(reterr, errno, "cannot look at it");
    if (S_ISLNK(ret->st_mode))
        return error_set(reterr, ERR_DENIED, "it is a link, and none is followed");
    if (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode))
        return error_set(reterr, ERR_DENIED, "it is neither a file nor a folder");
    if (is_kernel_fs(place))
        return error_set(reterr, ERR_DENIED, "it is no file of a disk");
    snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
    fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? error_sys(reterr, errno, "cannot open it") : fd;
}

/* The place below the first directory that holds it. */
static int rooted_open(const struct import_roots *roots, const char *path, struct error *reterr)
{
    char dir[TREE_PATH_MAX];

    for (size_t i = 0; i < roots->count; i++) {
        auto_fd int root = -1;
        const char *rel;
        int fd;

        if (roots->dirs[i][0] != '/' || place_normalize("/", roots->dirs[i], dir, NULL) < 0 ||
            !place_is_below(path, dir))
            continue;
        rel = path + strlen(dir);
        rel += strspn(rel, "/");
        root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd = root < 0 ? -1 : place_open(root, *rel ? rel : ".");
        if (fd < 0 && (errno == ELOOP || errno == EXDEV))
            return error_set(reterr, ERR_DENIED, "a link is on the way, and none is followed");
        return fd < 0 ? error_sys(reterr, errno, "cannot find it") : fd;
    }
    return error_set(reterr, ERR_DENIED,
                     "it is not below a folder that the operator allows (IMPORT_ALLOWED_DIRS)");
}

static int source_place(const struct import_roots *roots, const char *path, const char *normal,
                        struct error *reterr)
{
    int fd;

    if (!roots->everything)
        return rooted_open(roots, normal, reterr);
    fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? error_sys(reterr, errno, "cannot find it") : fd;
}

static int source_open(const struct import_roots *roots, const char *path, struct host_source *ret,
                       struct error *reterr)
{
    char normal[TREE_PATH_MAX];
    auto_fd int place = -1;
    struct stat st;
    int r;

    if (path[0] != '/')
        return error_set(reterr, ERR_INVALID, "the path is not absolute");
    r = place_normalize("/", path, normal, reterr);
    if (r < 0)
        return r;
    place = source_place(roots, path, normal, reterr);
    if (place < 0)
        return place;
    r = place_read(place, &st, reterr);
    if (r < 0)
        return r;
    *ret = (struct host_source){.fd = r,
                                .is_dir = S_ISDIR(st.st_mode),
                                .size = (uint64_t)st.st_size,
                                .executable = st.st_mode & 0111};
    if (str_copy(ret->name, sizeof(ret->name), place_name(normal)) < 0)
        ret->name[0] = 0;
    if (ret->is_dir || !place_is_folder(path))
        return 0;
    host_source_close(ret);
    return error_set(reterr, ERR_INVALID, "it is no folder");
}

int host_source_open(const struct import_roots *roots, const char *path, struct host_source *ret,
                     struct error *reterr)
{
    struct error why;
    int r = source_open(roots, path, ret, &why);

    if (r < 0) {
        error_set(reterr, why.code, "cannot import '%s': %s", shown_make(path).text, why.text);
        if (reterr)
            reterr->sys = why.sys;
    }
    return r;
}

void host_source_close(struct host_source *h)
{
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
}

/* ---- copying ---- */

int copy_from_fd(int fd, uint64_t size, copy_fn *put, void *user, struct error *reterr)
{
    auto_free char *data = malloc(COPY_CHUNK);

    if (!data)
        return error_no_memory(reterr);
    while (size) {
        size_t want = (size_t)MIN(size, (uint64_t)COPY_CHUNK);
        ssize_t n = fd_read_full(fd, data, want, reterr);
        int r;

        if (n < 0)
            return (int)n;
        if ((size_t)n < want)
            return error_set(reterr, ERR_SYSTEM, "the file was cut short while it was read");
        r = put(user, data, (size_t)n, reterr);
        if (r < 0)
            return r;
        size -= (uint64_t)n;
    }
    return 0;
}

/* ---- walking ---- */

/* The folders that are open, the innermost last, and the path down to there. */
struct level {
    DIR *dir;
    int fd;     /* of `dir` */
    size_t len; /* of the path */
};

struct walk {
    struct level levels[TREE_DEPTH_MAX];
    size_t depth;
    char path[TREE_PATH_MAX];
    struct tree_sink *sink;
};

/* Takes the descriptor over. */
static int level_enter(struct walk *w, int fd, size_t len, struct error *reterr)
{
    DIR *dir = w->depth < TREE_DEPTH_MAX ? fdopendir(fd) : NULL;

    if (!dir) {
        int sys = errno;

        close(fd);
        return w->depth < TREE_DEPTH_MAX
                   ? error_sys(reterr, sys, "cannot list it")
                   : error_set(reterr, ERR_LIMIT,
                               "what is in it has more than %d components of path", TREE_DEPTH_MAX);
    }
    w->levels[w->depth++] = (struct level){.dir = dir, .fd = fd, .len = len};
    return 0;
}

static void level_leave(struct walk *w)
{
    closedir(w->levels[--w->depth].dir);
}

static int data_put(void *user, const void *data, size_t len, struct error *reterr)
{
    struct tree_sink *sink = user;

    return sink->data(sink, data, len, reterr);
}

/* `entry` with its size; what is read is exactly that. */
static int file_push(struct walk *w, int fd, const struct tree_entry *entry, struct error *reterr)
{
    int r = w->sink->entry(w->sink, entry, reterr);

    return r < 0 ? r : copy_from_fd(fd, entry->size, data_put, w->sink, reterr);
}

static int link_push(struct walk *w, int place, const struct tree_entry *entry,
                     struct error *reterr)
{
    char target[TREE_PATH_MAX];
    struct tree_entry e = *entry;
    ssize_t n = readlinkat(place, "", target, sizeof(target) - 1);

    if (n < 0)
        return error_sys(reterr, errno, "cannot read the link");
    target[n] = 0;
    e.type = TREE_LINK;
    e.target = target;
    return w->sink->entry(w->sink, &e, reterr);
}

/* The entry at a place; `w->path` is its path. */
static int place_push(struct walk *w, int place, size_t len, struct error *reterr)
{
    struct tree_entry e = {.type = TREE_DIR, .path = w->path};
    auto_fd int fd = -1;
    struct stat st;
    int r;

    if (fstat(place, &st) < 0)
        return error_sys(reterr, errno, "cannot look at it");
    e.mtime_ms = st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    if (S_ISLNK(st.st_mode))
        return link_push(w, place, &e, reterr);
    fd = place_read(place, &st, reterr);
    if (fd < 0)
        return fd;
    if (S_ISREG(st.st_mode)) {
        e.type = TREE_FILE;
        e.size = (uint64_t)st.st_size;
        e.executable = st.st_mode & 0111;
        return file_push(w, fd, &e, reterr);
    }
    r = w->sink->entry(w->sink, &e, reterr);
    return r < 0 ? r : level_enter(w, TAKE_FD(fd), len, reterr);
}

/* Appends a name to the path of a level; its new length, or -1. */
static ssize_t path_extend(struct walk *w, const struct level *l, const char *name)
{
    size_t n = strlen(name), at = l->len;

    if (at + 1 + n >= sizeof(w->path))
        return -1;
    if (at)
        w->path[at++] = '/';
    memcpy(w->path + at, name, n + 1);
    return (ssize_t)(at + n);
}

static int name_push(struct walk *w, const char *name, struct error *reterr)
{
    const struct level *l = &w->levels[w->depth - 1];
    ssize_t len = path_extend(w, l, name);
    auto_fd int place = -1;
    struct error why;
    int r;

    if (len < 0)
        return error_set(reterr, ERR_LIMIT, "a path in the folder has more than %d bytes",
                         TREE_PATH_MAX - 1);
    place = openat(l->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    /* What is gone since it was listed is no entry any more. */
    if (place < 0 && errno == ENOENT)
        return 0;
    r = place < 0 ? error_sys(&why, errno, "cannot open it")
                  : place_push(w, place, (size_t)len, &why);
    if (r < 0) {
        w->path[len] = 0;
        error_set(reterr, why.code, "'%s': %s", shown_make(w->path).text, why.text);
    }
    return r;
}

static int level_step(struct walk *w, struct error *reterr)
{
    struct dirent *e;

    errno = 0;
    e = readdir(w->levels[w->depth - 1].dir);
    if (!e && errno)
        return error_sys(reterr, errno, "cannot list a folder");
    if (!e)
        level_leave(w);
    else if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
        return name_push(w, e->d_name, reterr);
    return 0;
}

int host_walk_push(const struct host_source *h, struct tree_sink *sink, struct error *reterr)
{
    auto_free struct walk *w = calloc(1, sizeof(*w));
    int fd = w ? fcntl(h->fd, F_DUPFD_CLOEXEC, 0) : -1;
    int r;

    if (!w)
        return error_no_memory(reterr);
    if (fd < 0)
        return error_sys(reterr, errno, "cannot list a folder");
    w->sink = sink;
    r = level_enter(w, fd, 0, reterr);
    while (r == 0 && w->depth)
        r = level_step(w, reterr);
    while (w->depth)
        level_leave(w);
    return r;
}
