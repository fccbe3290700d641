/* SPDX-License-Identifier: MIT */
/*
 * The page's files: in a table that the build has made, or below a directory. The directory is
 * opened anew each time, because a build may replace it, and nothing in it leads out.
 */
#include "api/page.h"

#include "api/inflate.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { DISK_FILE_MAX = 64 << 20, BLOCK = 16384 };

static int not_found(struct error *reterr)
{
    return error_set(reterr, ERR_NOT_FOUND, "there is nothing at this path");
}

static int table_find(const struct page_file *files, const char *path, struct page_content *ret,
                      struct error *reterr)
{
    for (; files && files->path; files++) {
        if (!str_eq(files->path, path))
            continue;
        *ret = (struct page_content){
            .bytes = files->bytes, .len = files->len, .size = files->size, .gzip = files->gzip};
        return str_copy(ret->etag, sizeof(ret->etag), files->etag) < 0
                   ? error_set(reterr, ERR_INTERNAL, "an entity tag is too long")
                   : 0;
    }
    return not_found(reterr);
}

static int disk_read(int fd, size_t size, struct page_content *ret, struct error *reterr)
{
    auto_free char *bytes = malloc(size + 1);
    struct sha256 sha;
    ssize_t len;

    if (!bytes)
        return error_no_memory(reterr);
    len = fd_read_full(fd, bytes, size, reterr);
    if (len < 0)
        return (int)len;
    *ret = (struct page_content){.len = (size_t)len, .size = (uint64_t)len};
    sha256_init(&sha);
    sha256_update(&sha, bytes, (size_t)len);
    sha256_finish_hex(&sha, ret->etag);
    ret->bytes = ret->owned = TAKE_PTR(bytes);
    return 0;
}

static int disk_find(const char *dir, const char *path, struct page_content *ret,
                     struct error *reterr)
{
    auto_fd int root = path_open_dir(AT_FDCWD, dir, reterr);
    auto_fd int fd = -1;
    struct stat st;

    if (root < 0)
        return not_found(reterr);
    fd = path_open_beneath(root, path + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, reterr);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > DISK_FILE_MAX)
        return not_found(reterr);
    return disk_read(fd, (size_t)st.st_size, ret, reterr);
}

int page_content_open(const struct page_source *s, const char *path, struct page_content *ret,
                      struct error *reterr)
{
    *ret = (struct page_content){};
    return s->dir ? disk_find(s->dir, path, ret, reterr) : table_find(s->files, path, ret, reterr);
}

void page_content_done(struct page_content *c)
{
    free(TAKE_PTR(c->owned));
}

static int unpack(struct inflate *z, struct buf *ret, struct error *reterr)
{
    char block[BLOCK];
    ssize_t n;

    while ((n = inflate_read(z, block, sizeof(block))) > 0) {
        if (buf_append(ret, block, (size_t)n) < 0)
            return error_no_memory(reterr);
    }
    return n < 0 ? error_set(reterr, ERR_INTERNAL, "a file of the page is damaged") : 0;
}

int page_content_text(const struct page_content *c, struct buf *ret, struct error *reterr)
{
    struct inflate *z;
    int r;

    if (!c->gzip)
        return buf_append(ret, c->bytes, c->len) < 0 ? error_no_memory(reterr) : 0;
    r = inflate_new(c->bytes, c->len, &z, reterr);
    if (r < 0)
        return r;
    r = unpack(z, ret, reterr);
    inflate_free(z);
    return r;
}

/* ---- names ---- */

static int table_names(const struct page_file *files, page_name_fn *add, void *user,
                       struct error *reterr)
{
    int r = 0;

    for (; files && files->path && r == 0; files++) {
        size_t len = strcspn(files->path + 1, "/");

        r = add(user, files->path + 1, len, files->path[1 + len] == '/', reterr);
    }
    return r;
}

static int disk_names(int fd, page_name_fn *add, void *user, struct error *reterr)
{
    DIR *list = fdopendir(fd);
    struct dirent *e;
    struct stat st;
    int r = 0;

    if (!list) {
        r = error_sys(reterr, errno, "cannot read the page's directory");
        close(fd);
        return r;
    }
    while (r == 0 && (e = readdir(list))) {
        if (e->d_name[0] != '.' && fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
            r = add(user, e->d_name, strlen(e->d_name), S_ISDIR(st.st_mode), reterr);
    }
    closedir(list);
    return r;
}

int page_source_names(const struct page_source *s, page_name_fn *add, void *user,
                      struct error *reterr)
{
    int fd;

    if (!s->dir)
        return table_names(s->files, add, user, reterr);
    fd = path_open_dir(AT_FDCWD, s->dir, NULL);
    return fd < 0 ? 0 : disk_names(fd, add, user, reterr);
}
