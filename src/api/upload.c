/* SPDX-License-Identifier: MIT */
/*
 * Uploads. Each has a folder below <storage>/.staging, which no thread's id can name, and holds a
 * lock on it: what is not locked belongs to nobody any more. Folders are walked one component at a
 * time by descriptors, and no link is followed.
 */
#include "api/upload.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/str.h"
#include "wire/multipart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define STAGING ".staging"
/* Between the making of a folder and its lock passes less than this. */
enum { STAGED_AGE_S = 60, PART_MAX = 255, STAGED_NAME = 24 };

struct upload {
    int storage, staging, dir; /* the storage, its .staging, and our folder there */
    char id[ID_LEN + 1];
    int out; /* the file that comes now, or -1 */
    struct multipart *form;
    uint64_t bytes, bytes_max;
    struct upload_file *files;
    size_t count, room;
};

/* ---- names ---- */

static int part_check(const char *part, size_t len, struct error *reterr)
{
    if (len > PART_MAX)
        return error_set(reterr, ERR_INVALID, "a part of a file's name is above %d bytes",
                         PART_MAX);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)part[i] < 0x20 || part[i] == 0x7f)
            return error_set(reterr, ERR_INVALID, "a file's name holds a control character");
    }
    return 0;
}

static bool part_is_dropped(const char *part, size_t len)
{
    return len == 0 || (len == 1 && part[0] == '.') ||
           (len == 2 && part[0] == '.' && part[1] == '.');
}

int upload_name(const char *given, char ret[UPLOAD_NAME_MAX], struct error *reterr)
{
    size_t used = 0, depth = 0;
    int r = 0;

    for (const char *p = given; *p && r == 0;) {
        size_t len = strcspn(p, "/");

        if (!part_is_dropped(p, len)) {
            r = part_check(p, len, reterr);
            if (r == 0 && (++depth > UPLOAD_DEPTH_MAX || used + len + 2 > UPLOAD_NAME_MAX))
                r = error_set(reterr, ERR_INVALID, "a file's name is too long or too deep");
            if (r < 0)
                return r;
            if (used)
                ret[used++] = '/';
            memcpy(ret + used, p, len);
            used += len;
        }
        p += len + (p[len] == '/');
    }
    ret[used] = 0;
    return used ? 0 : error_set(reterr, ERR_INVALID, "a file has no name");
}

/* ---- folders ---- */

static int folder_enter(int at, const char *name, struct error *reterr)
{
    return path_open_beneath(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, reterr);
}

/* The folder of this name, made when it is missing. */
static int folder_make(int at, const char *name, struct error *reterr)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return error_sys(reterr, errno, "cannot make the folder '%s'", name);
    return folder_enter(at, name, reterr);
}

static int storage_open(const char *path, struct error *reterr)
{
    int r = path_make_dirs(path, 0700, reterr);

    return r < 0 ? r : path_open_dir(AT_FDCWD, path, reterr);
}

static int staging_open(struct upload *u, const char *storage, struct error *reterr)
{
    int r = id_new(u->id, reterr);

    if (r < 0 || (r = u->storage = storage_open(storage, reterr)) < 0 ||
        (r = u->staging = folder_make(u->storage, STAGING, reterr)) < 0)
        return r;
    if (mkdirat(u->staging, u->id, 0700) < 0)
        return error_sys(reterr, errno, "cannot make a folder for the upload");
    u->dir = folder_enter(u->staging, u->id, reterr);
    if (u->dir < 0)
        return u->dir;
    if (flock(u->dir, LOCK_EX | LOCK_NB) < 0)
        return error_sys(reterr, errno, "cannot lock the upload's folder");
    return 0;
}

/* ---- the form ---- */

static void staged_name(size_t index, char ret[STAGED_NAME])
{
    snprintf(ret, STAGED_NAME, "%zu", index);
}

static int file_add(struct upload *u, const char *name, struct error *reterr)
{
    if (u->count == UPLOAD_FILES_MAX)
        return error_set(reterr, ERR_LIMIT, "more than %d files", UPLOAD_FILES_MAX);
    if (u->count == u->room) {
        size_t room = MAX(2 * u->room, 8);
        struct upload_file *more = realloc(u->files, room * sizeof(*more));

        if (!more)
            return error_no_memory(reterr);
        u->files = more;
        u->room = room;
    }
    u->files[u->count] = (struct upload_file){.name = strdup(name)};
    if (!u->files[u->count].name)
        return error_no_memory(reterr);
    u->count++;
    return 0;
}

/* Parts that are no files are passed over, but count. */
static int on_part(void *user, const struct multipart_part *part, struct error *reterr)
{
    struct upload *u = user;
    char name[UPLOAD_NAME_MAX], staged[STAGED_NAME];
    int r;

    if (!str_eq(part->name, "files") || !part->filename[0])
        return 0;
    r = upload_name(part->filename, name, reterr);
    if (r < 0)
        return r;
    staged_name(u->count, staged);
    r = file_add(u, name, reterr);
    if (r < 0)
        return r;
    u->out =
        path_open_beneath(u->dir, staged, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, reterr);
    return MIN(u->out, 0);
}

static int on_data(void *user, const char *data, size_t len, struct error *reterr)
{
    struct upload *u = user;

    if (len > u->bytes_max - u->bytes)
        return error_set(reterr, ERR_LIMIT, "the upload is above UPLOAD_MAX_SIZE (%llu bytes)",
                         (unsigned long long)u->bytes_max);
    u->bytes += len;
    if (u->out < 0)
        return 0;
    u->files[u->count - 1].size += len;
    return fd_write_full(u->out, data, len, reterr);
}

static int on_part_end(void *user, struct error *reterr)
{
    struct upload *u = user;
    int out = TAKE_FD(u->out);

    /* A file system may tell only now that there was no room. */
    if (out >= 0 && close(out) < 0 && errno != EINTR)
        return error_sys(reterr, errno, "cannot write the upload");
    return 0;
}

int upload_new(const char *storage, const char *content_type, uint64_t bytes_max,
               struct upload **ret, struct error *reterr)
{
    struct upload *u = calloc(1, sizeof(*u));
    int r;

    if (!u)
        return error_no_memory(reterr);
    u->storage = u->staging = u->dir = u->out = -1;
    u->bytes_max = bytes_max;
    r = multipart_new(
        content_type,
        &(struct multipart_sink){.begin = on_part, .data = on_data, .end = on_part_end, .user = u},
        &u->form, reterr);
    if (r == 0)
        r = staging_open(u, storage, reterr);
    if (r < 0) {
        upload_free(u);
        return r;
    }
    *ret = u;
    return 0;
}

void upload_free(struct upload *u)
{
    if (!u)
        return;
    multipart_free(u->form);
    if (u->out >= 0)
        close(u->out);
    if (u->dir >= 0)
        (void)!path_remove_tree(u->staging, u->id, NULL);
    fd_close_all((int[]){u->dir, u->staging, u->storage}, 3);
    for (size_t i = 0; i < u->count; i++)
        free(u->files[i].name);
    free(u->files);
    free(u);
}

int upload_feed(struct upload *u, const char *data, size_t len, struct error *reterr)
{
    return multipart_feed(u->form, data, len, reterr);
}

const struct upload_file *upload_files(const struct upload *u, size_t *ret_count)
{
    *ret_count = u->count;
    return u->files;
}

/* ---- at their names ---- */

/* One component of a name; what follows it, or NULL at the last one. */
static const char *component_next(const char *name, char ret[PART_MAX + 1])
{
    size_t len = strcspn(name, "/");

    memcpy(ret, name, len);
    ret[len] = 0;
    return name[len] ? name + len + 1 : NULL;
}

/* Whether what stands at this name now is of the right kind: folders on the way, a file at its end,
 * or nothing. */
static int place_check(int uploads, const char *name, struct error *reterr)
{
    char part[PART_MAX + 1];
    auto_fd int dir = fcntl(uploads, F_DUPFD_CLOEXEC, 0);
    const char *rest = name;

    while (dir >= 0 && rest) {
        struct stat st;
        int next;

        rest = component_next(rest, part);
        if (fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return 0;
        if (rest ? !S_ISDIR(st.st_mode) : S_ISDIR(st.st_mode))
            return error_set(reterr, ERR_EXISTS, "'%.200s' is %s already", name,
                             rest ? "below a file" : "a folder");
        if (!rest)
            return 0;
        next = folder_enter(dir, part, reterr);
        if (next < 0)
            return next;
        close(dir);
        dir = next;
    }
    return dir < 0 ? error_sys(reterr, errno, "cannot look at the uploads") : 0;
}

static int file_place(struct upload *u, int uploads, size_t index, struct error *reterr)
{
    char part[PART_MAX + 1], staged[STAGED_NAME];
    auto_fd int dir = fcntl(uploads, F_DUPFD_CLOEXEC, 0);
    const char *rest = u->files[index].name;

    while (dir >= 0 && (rest = component_next(rest, part))) {
        int next = folder_make(dir, part, reterr);

        if (next < 0)
            return next;
        close(dir);
        dir = next;
    }
    staged_name(index, staged);
    if (dir < 0 || renameat(u->dir, staged, dir, part) < 0)
        return error_sys(reterr, errno, "cannot place '%.200s'", u->files[index].name);
    return 0;
}

int upload_commit(struct upload *u, const char *thread_id, struct error *reterr)
{
    auto_fd int thread = -1, uploads = -1;
    int r = multipart_finish(u->form, reterr);

    if (r == 0 && u->count == 0)
        r = error_set(reterr, ERR_INVALID, "the form has no file in a field 'files'");
    if (r < 0)
        return r;
    thread = folder_make(u->storage, thread_id, reterr);
    if (thread < 0)
        return thread;
    uploads = folder_make(thread, "uploads", reterr);
    if (uploads < 0)
        return uploads;
    for (size_t i = 0; i < u->count && r == 0; i++)
        r = place_check(uploads, u->files[i].name, reterr);
    for (size_t i = 0; i < u->count && r == 0; i++)
        r = file_place(u, uploads, i, reterr);
    return r;
}

/* ---- what is there ---- */

struct walk {
    upload_found_fn *each;
    void *user;
    size_t count;
    char name[UPLOAD_NAME_MAX];
};

static void folder_list(struct walk *w, int dir, size_t len, int depth);

static void entry_list(struct walk *w, int dir, const char *entry, size_t len, int depth)
{
    int n = snprintf(w->name + len, sizeof(w->name) - len, "%s%s", len ? "/" : "", entry);
    struct stat st;

    if (n < 0 || (size_t)n >= sizeof(w->name) - len || w->count == UPLOAD_LISTED_MAX ||
        fstatat(dir, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISREG(st.st_mode)) {
        w->each(w->user, &(struct upload_found){.name = w->name,
                                                .size = (uint64_t)st.st_size,
                                                .modified_us = (int64_t)st.st_mtime * 1000000});
        w->count++;
    } else if (S_ISDIR(st.st_mode) && depth < UPLOAD_DEPTH_MAX) {
        auto_fd int inner = folder_enter(dir, entry, NULL);

        if (inner >= 0)
            folder_list(w, inner, len + (size_t)n, depth + 1);
    }
}

static void folder_list(struct walk *w, int dir, size_t len, int depth)
{
    struct dirent **list = NULL;
    int count = scandirat(dir, ".", &list, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        if (path_is_name(list[i]->d_name))
            entry_list(w, dir, list[i]->d_name, len, depth);
        free(list[i]);
    }
    free(list);
}

void upload_list(const char *storage, const char *thread_id, upload_found_fn *each, void *user)
{
    struct walk w = {.each = each, .user = user};
    auto_fd int at = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_fd int thread = at >= 0 ? folder_enter(at, thread_id, NULL) : -1;
    auto_fd int uploads = thread >= 0 ? folder_enter(thread, "uploads", NULL) : -1;

    if (uploads >= 0)
        folder_list(&w, uploads, 0, 0);
}

/* ---- what was left ---- */

static void staged_remove(int staging, const char *name)
{
    auto_fd int dir = path_is_name(name) ? folder_enter(staging, name, NULL) : -1;
    struct stat st;

    if (dir >= 0 && fstat(dir, &st) == 0 && time(NULL) - st.st_mtime > STAGED_AGE_S &&
        flock(dir, LOCK_EX | LOCK_NB) == 0)
        (void)!path_remove_tree(staging, name, NULL);
}

void upload_sweep(const char *storage)
{
    auto_fd int at = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int staging = at >= 0 ? folder_enter(at, STAGING, NULL) : -1;
    DIR *list = staging >= 0 ? fdopendir(staging) : NULL;
    const struct dirent *e;

    if (!list && staging >= 0)
        close(staging);
    while (list && (e = readdir(list)))
        staged_remove(dirfd(list), e->d_name);
    if (list)
        closedir(list);
}
