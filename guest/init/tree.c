/* SPDX-License-Identifier: MIT */
/*
 * Removing a tree. Code in the sandbox may change the tree meanwhile; since all happens with its
 * own rights and names are never followed through links, it can only make the removal fail.
 */
#include "init/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

enum { TREE_PASSES = 100000, TREE_DIR_MODE = 0700 };

void tree_init(struct tree *t, int parent, const char *base)
{
    *t = (struct tree){.parent = parent};
    snprintf(t->base, sizeof(t->base), "%s", base);
    if (getrandom(&t->salt, sizeof(t->salt), 0) < 0)
        t->salt = 0;
}

void tree_done(struct tree *t)
{
    if (t->top)
        closedir(t->top);
    if (t->sub)
        closedir(t->sub);
    t->top = t->sub = NULL;
}

/* Opens a directory to list and empty it, also where its mode forbids that to its owner. */
static DIR *dir_open(int at, const char *name, int *ret_fd)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    int fd = openat(at, name, flags);
    DIR *dir;

    if (fd < 0 && errno == EACCES && fchmodat(at, name, TREE_DIR_MODE, 0) == 0)
        fd = openat(at, name, flags);
    if (fd < 0)
        return NULL;
    dir = fdopendir(fd);
    if (!dir)
        close(fd);
    *ret_fd = fd;
    return dir;
}

/* 1 it is gone, 0 it is a directory with content, -1 errno. */
static int entry_remove(int at, const char *name)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 1;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 1;
    if (errno == ENOTDIR)
        errno = EPERM;
    return errno == ENOTEMPTY || errno == EEXIST ? 0 : -1;
}

/* The same, after making the directory that holds it writable, should that be what is missing. */
static int entry_remove_hard(int at, const char *name)
{
    int r = entry_remove(at, name);

    if (r >= 0 || errno != EACCES)
        return r;
    if (fchmod(at, TREE_DIR_MODE) == 0)
        return entry_remove(at, name);
    errno = EACCES;
    return -1;
}

static int entry_lift(struct tree *t, const char *name)
{
    int from = t->sub_fd, to = t->top_fd;
    char unique[64];

    snprintf(unique, sizeof(unique), ".%lx-%u", t->salt, t->moved++);
    t->again = true;
    if (renameat(from, name, to, unique) == 0 || errno == ENOENT)
        return 0;
    if (errno != EACCES)
        return -1;
    /* The entry ".." of the directory changes too, so it has to be writable itself. */
    if (fchmodat(from, name, TREE_DIR_MODE, 0) < 0 || fchmod(to, TREE_DIR_MODE) < 0)
        return -1;
    return renameat(from, name, to, unique);
}

static struct dirent *dir_next(DIR *dir)
{
    struct dirent *e;

    do
        e = readdir(dir);
    while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    return e;
}

static int sub_step(struct tree *t)
{
    struct dirent *e = dir_next(t->sub);
    int r;

    if (e) {
        r = entry_remove_hard(t->sub_fd, e->d_name);
        return r == 0 ? entry_lift(t, e->d_name) : MIN(r, 0);
    }
    closedir(t->sub);
    t->sub = NULL;
    r = entry_remove_hard(t->top_fd, t->sub_name);
    t->again |= r == 0;
    return MIN(r, 0);
}

static int top_step(struct tree *t)
{
    struct dirent *e = dir_next(t->top);
    int r;

    if (!e) {
        if (t->again && t->passes++ < TREE_PASSES) {
            t->again = false;
            rewinddir(t->top);
            return 0;
        }
        r = entry_remove_hard(t->parent, t->base);
        t->again = true;
        if (r == 0 && t->passes >= TREE_PASSES)
            errno = ENOTEMPTY;
        return r == 0 && t->passes >= TREE_PASSES ? -1 : r;
    }
    r = entry_remove_hard(t->top_fd, e->d_name);
    if (r != 0)
        return MIN(r, 0);
    snprintf(t->sub_name, sizeof(t->sub_name), "%s", e->d_name);
    t->sub = dir_open(t->top_fd, t->sub_name, &t->sub_fd);
    return t->sub ? 0 : -1;
}

static int first_step(struct tree *t)
{
    int r = entry_remove(t->parent, t->base);

    t->begun = true;
    if (r != 0)
        return r;
    t->top = dir_open(t->parent, t->base, &t->top_fd);
    return t->top ? 0 : -1;
}

int tree_step(struct tree *t, int budget)
{
    int r = 0;

    while (budget-- > 0 && r == 0) {
        if (!t->begun)
            r = first_step(t);
        else
            r = t->sub ? sub_step(t) : top_step(t);
    }
    return r;
}
