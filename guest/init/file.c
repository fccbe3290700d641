/* SPDX-License-Identifier: MIT */
/*
 * File operations. Each kind is a row of a table: how it begins, how it goes on. Files are written
 * beside their target and renamed, so that nobody sees half of one; the name of the stage does not
 * depend on the target, which may have a name of full length.
 */
#include "init/file.h"

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/str.h"
#include "init/ids.h"
#include "init/path.h"
#include "init/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum {
    FILE_MODE = 0644,
    FILE_MODE_MAX = 07777,
    LIST_BUDGET = 256, /* entries in a step */
    REMOVE_BUDGET = 256,
    STAGE_NAME = 48,
    REPORT_MAX = 16384, /* a name and a target of a link are in it */
};

struct file_kind {
    uint8_t type;
    const char *verb;
    /* 1 done, 0 goes on, <0 failed */
    int (*begin)(struct file_op *op, const struct fields *f, struct outq *out,
                 struct error *reterr);
    int (*step)(struct file_op *op, struct outq *out, struct error *reterr);
};

struct file_op {
    const struct file_kind *kind;
    uint32_t stream;
    int64_t outstanding; /* payload that the client has not taken */
    char *path;
    int fd, dirfd;
    DIR *dir;
    int listed; /* the descriptor of `dir` */
    struct tree tree;
    char base[NAME_MAX + 1];
    char stage[STAGE_NAME]; /* "" when there is none */
    int64_t size, left;     /* -1: not known, to the end */
    mode_t mode;
};

/* ---- answers ---- */

int reply_fields(struct outq *out, uint8_t type, uint32_t stream, const struct buf *f)
{
    struct buf *b = outq_room(out, FRAME_HEADER + f->len);

    return b ? frame_append(b, type, stream, f->data, f->len) : -1;
}

static int end_format(struct buf *f, const struct error *why)
{
    if (!why)
        return fields_add_str(f, "status", "ok");
    if (fields_add_str(f, "status", why->code == ERR_CANCELLED ? "interrupted" : "error") < 0)
        return -1;
    if (why->code == ERR_DISK && fields_add_str(f, "cause", "disk") < 0)
        return -1;
    if (why->code == ERR_CANCELLED)
        return fields_add_str(f, "cause", "user");
    if (why->sys > 0 && fields_add_int(f, "errno", why->sys) < 0)
        return -1;
    return fields_add_str(f, "message", why->text);
}

int reply_end(struct outq *out, uint32_t stream, const struct error *why)
{
    auto_buf struct buf f;

    buf_init(&f, 1024);
    return end_format(&f, why) < 0 ? -1 : reply_fields(out, FRAME_END, stream, &f);
}

static const char *mode_name(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "dir";
    return S_ISLNK(mode) ? "link" : "other";
}

/* What a report is about: an entry of a directory; the descriptor itself where `name` is NULL. */
struct subject {
    struct stat st;
    const char *name;
    char target[PATH_MAX]; /* of a link; "" where it is not known */
};

/* The links of /proc are not looked at: there init could look at its own, the sandbox's user not.
 */
static void target_read(int at, struct subject *s)
{
    struct statfs fs;
    ssize_t n = 0;

    if (S_ISLNK(s->st.st_mode) && fstatfs(at, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC)
        n = readlinkat(at, s->name ? s->name : "", s->target, sizeof(s->target) - 1);
    s->target[MAX(n, (ssize_t)0)] = 0;
}

static int stat_format(struct buf *f, const struct subject *s)
{
    const struct stat *st = &s->st;
    char mode[8];

    snprintf(mode, sizeof(mode), "%o", st->st_mode & FILE_MODE_MAX);
    if (fields_add_str(f, "type", mode_name(st->st_mode)) < 0 ||
        fields_add_int(f, "size", st->st_size) < 0 || fields_add_str(f, "mode", mode) < 0 ||
        fields_add_int(f, "mtime_ms", st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000) <
            0)
        return -1;
    if (s->target[0] && fields_add_str(f, "target", s->target) < 0)
        return -1;
    return s->name ? fields_add_str(f, "name", s->name) : 0;
}

static int reply_stat(struct file_op *op, struct outq *out, const struct subject *s)
{
    auto_buf struct buf f;

    buf_init(&f, REPORT_MAX);
    if (stat_format(&f, s) < 0 || reply_fields(out, FRAME_REPORT, op->stream, &f) < 0)
        return -1;
    op->outstanding += (int64_t)f.len;
    return 0;
}

/* A file system that is full of small files has space left. */
static int fail(const struct file_op *op, struct error *reterr)
{
    int sys = errno;
    struct statfs fs;

    if (sys == ENOSPC && fstatfs(op->dirfd, &fs) == 0 && fs.f_files && !fs.f_ffree)
        return error_sys(reterr, sys, "cannot %s '%.200s', no more than %llu files fit there",
                         op->kind->verb, op->path, (unsigned long long)fs.f_files);
    errno = sys;
    return error_sys(reterr, errno, "cannot %s '%.200s'", op->kind->verb, op->path);
}

/* What a failpoint() said. */
static int point_check(const struct file_op *op, int point, struct error *reterr)
{
    errno = -point;
    return point < 0 ? fail(op, reterr) : 0;
}

/* ---- reading ---- */

/* Links are followed, inside the root; what is at their end has to be a regular file. */
static int read_begin(struct file_op *op, const struct fields *f, struct outq *out,
                      struct error *reterr)
{
    struct subject s = {};
    struct statfs fs;
    int64_t offset;
    int r;

    if (fields_get_int(f, "offset", 0, &offset, reterr) < 0 ||
        fields_get_int(f, "length", -1, &op->left, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    /* O_NONBLOCK: a FIFO must not hold us before we know that it is one. */
    op->fd = path_open(op->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (op->fd < 0 || fstat(op->fd, &s.st) < 0 || fstatfs(op->fd, &fs) < 0)
        return fail(op, reterr);
    if (!S_ISREG(s.st.st_mode)) {
        errno = S_ISDIR(s.st.st_mode) ? EISDIR : EINVAL;
        return fail(op, reterr);
    }
    if ((r = point_check(op, failpoint("export-open"), reterr)) < 0)
        return r;
    /* There init would show itself: its memory holds the tokens of the kernel. */
    if (fs.f_type == PROC_SUPER_MAGIC) {
        errno = EACCES;
        return fail(op, reterr);
    }
    if (offset < 0 || lseek(op->fd, offset, SEEK_SET) < 0) {
        errno = EINVAL;
        return fail(op, reterr);
    }
    return reply_stat(op, out, &s) < 0 ? error_no_memory(reterr) : 0;
}

static int read_step(struct file_op *op, struct outq *out, struct error *reterr)
{
    static char data[FRAME_BULK_MAX];
    size_t want = sizeof(data);
    struct buf *b;
    ssize_t n;

    if (op->left >= 0 && op->left < (int64_t)want)
        want = (size_t)op->left;
    n = fd_read_full(op->fd, data, want, reterr);
    if (n < 0)
        return error_wrap(reterr, "'%.200s'", op->path);
    if (n == 0)
        return 1;
    b = outq_room(out, FRAME_HEADER + (size_t)n);
    if (!b || frame_append(b, FRAME_DATA, op->stream, data, (size_t)n) < 0)
        return error_no_memory(reterr);
    op->outstanding += n;
    if (op->left >= 0)
        op->left -= n;
    return 0;
}

/* A link itself: it may point nowhere, or to what cannot be opened. */
static int stat_begin(struct file_op *op, const struct fields *f, struct outq *out,
                      struct error *reterr)
{
    struct subject s = {};

    op->fd = path_open(op->path, O_PATH | O_NOFOLLOW);
    if (op->fd < 0 || fstat(op->fd, &s.st) < 0)
        return fail(op, reterr);
    target_read(op->fd, &s);
    return reply_stat(op, out, &s) < 0 ? error_no_memory(reterr) : 1;
}

static int list_begin(struct file_op *op, const struct fields *f, struct outq *out,
                      struct error *reterr)
{
    int fd = path_open(op->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

    op->dir = fd < 0 ? NULL : fdopendir(fd);
    op->listed = fd;
    if (!op->dir) {
        if (fd >= 0)
            close(fd);
        return fail(op, reterr);
    }
    return 0;
}

static int list_step(struct file_op *op, struct outq *out, struct error *reterr)
{
    for (int i = 0; i < LIST_BUDGET; i++) {
        struct subject s;
        struct dirent *e;

        errno = 0;
        e = readdir(op->dir);
        if (!e)
            return errno ? fail(op, reterr) : 1;
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            continue;
        /* What is gone meanwhile is no entry any more. */
        s.name = e->d_name;
        if (fstatat(op->listed, s.name, &s.st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        target_read(op->listed, &s);
        if (reply_stat(op, out, &s) < 0)
            return error_no_memory(reterr);
    }
    return 0;
}

/* ---- writing ---- */

static int mode_parse(const struct fields *f, mode_t *ret, struct error *reterr)
{
    auto_free char *text = NULL;
    struct field field;
    mode_t mode = 0;

    if (!fields_find(f, "mode", &field))
        return 0;
    if (fields_get_str(f, "mode", &text, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '7' || mode > (FILE_MODE_MAX >> 3))
            return error_set(reterr, ERR_INVALID, "'%.20s' is no mode in octal", text);
        mode = mode << 3 | (mode_t)(*p - '0');
    }
    *ret = mode;
    return 1;
}

/* Says early that it cannot fit; a write finds out anyway. */
static int space_check(const struct file_op *op)
{
    struct statfs fs;

    if (op->size < 0 || fstatfs(op->dirfd, &fs) < 0 || fs.f_blocks == 0)
        return 0;
    if ((uint64_t)op->size <= (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize)
        return 0;
    errno = ENOSPC;
    return -1;
}

static int stage_open(struct file_op *op)
{
    unsigned long salt[2];

    if (getrandom(salt, sizeof(salt), 0) != sizeof(salt))
        return -1;
    snprintf(op->stage, sizeof(op->stage), ".stage-%016lx%08lx", salt[0], salt[1] & 0xffffffff);
    op->fd =
        openat(op->dirfd, op->stage, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (op->fd >= 0)
        return 0;
    op->stage[0] = 0;
    return -1;
}

/* A link in the place of the target is replaced, never written through. */
static int write_begin(struct file_op *op, const struct fields *f, struct outq *out,
                       struct error *reterr)
{
    struct stat st;
    int64_t make;
    int has_mode = mode_parse(f, &op->mode, reterr);

    if (has_mode < 0 || fields_get_int(f, "size", -1, &op->size, reterr) < 0 ||
        fields_get_int(f, "mkdirs", 0, &make, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    op->left = op->size;
    op->dirfd = path_open_parent(op->path, make == 1, op->base);
    if (op->dirfd < 0)
        return fail(op, reterr);
    if (fstatat(op->dirfd, op->base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(st.st_mode)) {
            errno = EISDIR;
            return fail(op, reterr);
        }
        if (!has_mode && S_ISREG(st.st_mode))
            op->mode = st.st_mode & FILE_MODE_MAX;
    }
    if (space_check(op) < 0 || stage_open(op) < 0)
        return fail(op, reterr);
    return point_check(op, failpoint("import-open"), reterr);
}

/* Written at once: the client is held back by its socket while the disk is slow. */
static int write_data(struct file_op *op, const char *data, size_t len, struct error *reterr)
{
    int r = point_check(op, failpoint("import-half"), reterr);

    if (r < 0)
        return r;
    if (op->size >= 0 && (int64_t)len > op->left)
        return error_set(reterr, ERR_INVALID, "'%.200s' is longer than was announced", op->path);
    if (fd_write_full(op->fd, data, len, reterr) < 0)
        return error_wrap(reterr, "'%.200s'", op->path);
    if (op->size >= 0)
        op->left -= (int64_t)len;
    return 0;
}

/* The name appears here, with all of its content. */
static int write_end(struct file_op *op, struct error *reterr)
{
    int r = point_check(op, failpoint("import-rename"), reterr);

    if (r < 0)
        return r;
    if (op->size >= 0 && op->left > 0)
        return error_set(reterr, ERR_INVALID, "'%.200s' is shorter than was announced", op->path);
    if (fchmod(op->fd, op->mode) < 0 || renameat(op->dirfd, op->stage, op->dirfd, op->base) < 0)
        return fail(op, reterr);
    op->stage[0] = 0;
    return 1;
}

/* ---- changing ---- */

static int remove_begin(struct file_op *op, const struct fields *f, struct outq *out,
                        struct error *reterr)
{
    struct stat st;
    int64_t recursive;

    if (fields_get_int(f, "recursive", 0, &recursive, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    op->dirfd = path_open_parent(op->path, false, op->base);
    if (op->dirfd < 0 || fstatat(op->dirfd, op->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(op, reterr);
    if (recursive == 1) {
        tree_init(&op->tree, op->dirfd, op->base);
        return 0;
    }
    if (unlinkat(op->dirfd, op->base, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        return fail(op, reterr);
    return 1;
}

static int remove_step(struct file_op *op, struct outq *out, struct error *reterr)
{
    int r = tree_step(&op->tree, REMOVE_BUDGET);

    return r < 0 ? fail(op, reterr) : r;
}

static int mkdir_begin(struct file_op *op, const struct fields *f, struct outq *out,
                       struct error *reterr)
{
    op->fd = path_make_dirs(op->path);
    return op->fd < 0 ? fail(op, reterr) : 1;
}

static int rename_begin(struct file_op *op, const struct fields *f, struct outq *out,
                        struct error *reterr)
{
    char base[NAME_MAX + 1];
    auto_free char *to = NULL;

    if (fields_get_str(f, "to", &to, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    op->dirfd = path_open_parent(op->path, false, op->base);
    op->fd = op->dirfd < 0 ? -1 : path_open_parent(to, false, base);
    if (op->fd < 0 || renameat(op->dirfd, op->base, op->fd, base) < 0)
        return fail(op, reterr);
    return 1;
}

/* What it points to is only text here: whoever follows it is inside the root. */
static int link_begin(struct file_op *op, const struct fields *f, struct outq *out,
                      struct error *reterr)
{
    auto_free char *target = NULL;

    if (fields_get_str(f, "target", &target, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    op->dirfd = path_open_parent(op->path, false, op->base);
    if (op->dirfd < 0 || symlinkat(target, op->dirfd, op->base) < 0)
        return fail(op, reterr);
    return 1;
}

static const struct file_kind kinds[] = {
    {FRAME_FILE_READ, "read", read_begin, read_step},
    {FRAME_FILE_WRITE, "write", write_begin, NULL},
    {FRAME_FILE_STAT, "find", stat_begin, NULL},
    {FRAME_FILE_LIST, "list", list_begin, list_step},
    {FRAME_FILE_REMOVE, "remove", remove_begin, remove_step},
    {FRAME_FILE_MKDIR, "make", mkdir_begin, NULL},
    {FRAME_FILE_RENAME, "rename", rename_begin, NULL},
    {FRAME_FILE_LINK, "link", link_begin, NULL},
};

/* ---- the life of an operation ---- */

static struct file_op *file_new(const struct frame *frame)
{
    struct file_op *op = calloc(1, sizeof(*op));

    if (!op)
        return NULL;
    op->stream = frame->stream;
    op->fd = op->dirfd = -1;
    op->size = op->left = -1;
    op->mode = FILE_MODE;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].type == frame->type)
            op->kind = &kinds[i];
    }
    return op;
}

/* A stage that was not renamed is half a file, and goes. */
void file_close(struct file_op *op)
{
    if (op->stage[0] && ids_enter(IDS_SANDBOX)) {
        unlinkat(op->dirfd, op->stage, 0);
        ids_leave();
    }
    tree_done(&op->tree);
    if (op->dir)
        closedir(op->dir);
    if (op->fd >= 0)
        close(op->fd);
    if (op->dirfd >= 0)
        close(op->dirfd);
    free(op->path);
    free(op);
}

uint32_t file_stream(const struct file_op *op)
{
    return op->stream;
}

/* Tells the end, when it is one. True when the operation is over. */
static bool file_settle(struct file_op *op, int r, const struct error *why, struct outq *out)
{
    if (r == 0)
        return false;
    /* An answer is lost only where there is no memory at all. */
    (void)!reply_end(out, op->stream, r < 0 ? why : NULL);
    return true;
}

static int file_begin(struct file_op *op, const struct frame *frame, struct outq *out,
                      struct error *reterr)
{
    struct fields f = {.data = frame->payload, .len = frame->len};
    int r = fields_get_str(&f, "path", &op->path, reterr);

    if (r < 0)
        return r;
    if (!ids_enter(IDS_SANDBOX))
        return error_sys(reterr, errno, "cannot act as the sandbox user");
    r = op->kind->begin(op, &f, out, reterr);
    ids_leave();
    return r;
}

struct file_op *file_open(const struct frame *frame, struct outq *out)
{
    struct file_op *op = file_new(frame);
    struct error err = {};
    int r;

    if (!op) {
        error_no_memory(&err);
        (void)!reply_end(out, frame->stream, &err);
        return NULL;
    }
    r = file_begin(op, frame, out, &err);
    if (!file_settle(op, r, &err, out))
        return op;
    file_close(op);
    return NULL;
}

bool file_is_ready(const struct file_op *op, const struct outq *out)
{
    return op->kind->step && op->outstanding < FRAME_WINDOW && outq_len(out) < FILE_STEP_ROOM;
}

bool file_step(struct file_op *op, struct outq *out)
{
    struct error err = {};
    int r;

    if (!file_is_ready(op, out))
        return false;
    if (ids_enter(IDS_SANDBOX)) {
        r = op->kind->step(op, out, &err);
        ids_leave();
    } else {
        r = error_sys(&err, errno, "cannot act as the sandbox user");
    }
    return file_settle(op, r, &err, out);
}

bool file_data(struct file_op *op, const char *data, size_t len, struct outq *out)
{
    struct error err = {};
    int r;

    if (op->kind->type != FRAME_FILE_WRITE)
        return false;
    if (len > 0) {
        r = write_data(op, data, len, &err);
    } else if (ids_enter(IDS_SANDBOX)) {
        r = write_end(op, &err);
        ids_leave();
    } else {
        r = error_sys(&err, errno, "cannot act as the sandbox user");
    }
    return file_settle(op, r, &err, out);
}

void file_credit(struct file_op *op, int64_t bytes)
{
    op->outstanding = MAX(op->outstanding - bytes, (int64_t)0);
}

void file_abort(struct file_op *op, struct outq *out)
{
    struct error err;

    (void)error_set(&err, ERR_CANCELLED, "interrupted");
    file_settle(op, -1, &err, out);
}
