/* SPDX-License-Identifier: MIT */
/* Path helpers. What is opened below a directory descriptor goes through openat2, so a planted link
 * cannot lead out. */
#include "base/path.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { OPENAT2_TRIES = 128 };

int path_join(char *ret, size_t size, const char *dir, const char *name, struct error *reterr)
{
    const char *slash = dir[0] && str_ends(dir, "/") ? "" : "/";
    int len = snprintf(ret, size, "%s%s%s", dir, slash, name);

    if (len < 0 || (size_t)len >= size)
        return error_set(reterr, ERR_INVALID, "path '%s/%s' is too long", dir, name);
    return 0;
}

int path_open_beneath(int dirfd, const char *path, int flags, unsigned mode, struct error *reterr)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd = -1;

    /* EAGAIN: something was renamed while the kernel walked; it asks us to try again. */
    for (int i = 0; i < OPENAT2_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    if (fd < 0)
        return error_sys(reterr, errno, "cannot open '%s'", path);
    return fd;
}

static int dir_make(const char *path, unsigned mode, struct error *reterr)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return error_sys(reterr, errno, "cannot make directory '%s'", path);
}

int path_make_dirs(const char *path, unsigned mode, struct error *reterr)
{
    char part[4096];

    if (str_copy(part, sizeof(part), path) < 0)
        return error_set(reterr, ERR_INVALID, "path '%s' is too long", path);
    for (char *p = part + 1; (p = strchr(p, '/')); p++) {
        struct stat st;
        int r = 0;

        *p = 0;
        if (stat(part, &st) < 0)
            r = dir_make(part, 0755, reterr);
        *p = '/';
        if (r < 0)
            return r;
    }
    return dir_make(path, mode, reterr);
}

int path_open_dir(int dirfd, const char *path, struct error *reterr)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_sys(reterr, errno, "cannot open directory '%s'", path);
    return fd;
}

static int entry_remove(FTSENT *e, struct error *reterr)
{
    int flag = e->fts_info == FTS_DP || e->fts_info == FTS_DNR ? AT_REMOVEDIR : 0;

    if (e->fts_info == FTS_D)
        return 0;
    if (unlinkat(AT_FDCWD, e->fts_accpath, flag) < 0 && errno != ENOENT)
        return error_sys(reterr, errno, "cannot remove '%s'", e->fts_path);
    return 0;
}

int path_remove_tree(int dirfd, const char *name, struct error *reterr)
{
    char root[64 + PATH_LEN];
    char *roots[] = {root, NULL};
    FTS *fts;
    FTSENT *e;
    int r = 0;

    if (!path_is_name(name))
        return error_set(reterr, ERR_INVALID, "'%s' is no single name", name);
    snprintf(root, sizeof(root), "/proc/self/fd/%d/%s", dirfd, name);
    fts = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    if (!fts)
        return error_sys(reterr, errno, "cannot remove '%s'", name);
    while ((e = fts_read(fts))) {
        if (e->fts_info == FTS_NS && e->fts_errno == ENOENT)
            continue;
        if (entry_remove(e, r == 0 ? reterr : NULL) < 0 && r == 0)
            r = -ERR_SYSTEM;
    }
    fts_close(fts);
    return r;
}

bool path_is_name(const char *s)
{
    return *s && strlen(s) < 256 && !strchr(s, '/') && !str_eq(s, ".") && !str_eq(s, "..");
}
