/* SPDX-License-Identifier: MIT */
/*
 * Files into sessions. A source of each kind is opened first, then the destination is settled, then
 * the bytes flow through this process in pieces: a file into a writer, a folder or an archive's
 * content into a tree that is staged in the session.
 */
#include "session/transfer-internal.h"

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "session/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define WORKSPACE "/workspace"

/* A source that is open: what it is, and what it is called. */
struct source {
    const struct import_source *from;
    struct session_manager *manager;
    bool is_dir;
    uint64_t size;
    bool executable;
    const char *name; /* "" where it has none */

    struct host_source host;
    struct session_path at; /* in its session */
    char path[TREE_PATH_MAX];
    struct session_reader *reader;
};

/* ---- sources ---- */

static void source_close(struct source *s)
{
    host_source_close(&s->host);
    session_reader_close(TAKE_PTR(s->reader));
}

static int host_open(struct source *s, const struct import_roots *roots, struct error *reterr)
{
    int r = host_source_open(roots, s->from->path, &s->host, reterr);

    s->is_dir = s->host.is_dir;
    s->size = s->host.size;
    s->executable = s->host.executable;
    s->name = s->host.name;
    return r;
}

static int other_look(struct source *s, struct error *reterr)
{
    struct session_file_info info;
    int r = place_normalize(WORKSPACE, s->from->path, s->path, reterr);

    if (r == 0)
        r = session_export_check(s->manager, &s->at, reterr);
    if (r == 0)
        r = session_file_look(s->manager, &s->at, &info, reterr);
    if (r < 0)
        return r;
    s->is_dir = info.type == 'd';
    s->name = place_name(s->path);
    if (s->is_dir)
        return 0;
    if (place_is_folder(s->from->path))
        return error_set(reterr, ERR_INVALID, "'%.200s' is no folder", s->path);
    r = session_reader_open(s->manager, &s->at, &info, &s->reader, reterr);
    s->size = info.size;
    s->executable = info.mode & 0111;
    return r;
}

/* Its errors say that they are the source's: the other session has a name, too. */
static int other_open(struct source *s, struct error *reterr)
{
    int r = other_look(s, reterr);

    return r < 0 ? error_wrap(reterr, "source session %.64s", s->from->session_id) : 0;
}

static int source_open(struct source *s, const struct session_path *to,
                       const struct import_roots *roots, struct error *reterr)
{
    const struct import_source *from = s->from;

    if (from->kind == IMPORT_CONTENT) {
        s->size = from->len;
        return 0;
    }
    if (!from->path || (from->kind == IMPORT_SESSION && !from->session_id))
        return error_set(reterr, ERR_INVALID, "the source is missing");
    if (from->kind == IMPORT_HOST)
        return host_open(s, roots, reterr);
    s->at = (struct session_path){from->session_id, to->owner, s->path};
    return other_open(s, reterr);
}

/* ---- the destination ---- */

/* What an archive's content is called: the archive's name without its suffix. */
static void suffix_cut(char *name)
{
    static const char *const suffixes[] = {".tar.gz", ".tar.zst", ".tgz", ".tzst", ".tar", ".zip"};

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t len = strlen(name), cut = strlen(suffixes[i]);

        if (len > cut && strcasecmp(name + len - cut, suffixes[i]) == 0) {
            name[len - cut] = 0;
            return;
        }
    }
}

static int name_needed(const char *name, struct error *reterr)
{
    return name[0] ? 0 : error_set(reterr, ERR_INVALID, "the destination is missing");
}

/*
 * Whether the destination is a folder that the source goes into by its own name, or the source's
 * new name itself. A folder's content goes into a folder where both are written with a slash, and
 * so does an archive's.
 */
static bool goes_into(const struct source *s, const char *to, const char *normal)
{
    if (s->from->extract)
        return false;
    if (s->is_dir)
        return place_is_folder(to) && !place_is_folder(s->from->path);
    return place_is_folder(to) || str_eq(normal, WORKSPACE);
}

static int destination_settle(const struct source *s, const char *to, char ret[TREE_PATH_MAX],
                              struct error *reterr)
{
    bool named = to && to[0];
    char name[NAME_MAX + 1], folder[TREE_PATH_MAX];
    int r;

    if (str_copy(name, sizeof(name), s->name) < 0)
        return error_set(reterr, ERR_INVALID, "the source's name is too long");
    if (s->from->extract)
        suffix_cut(name);
    r = place_normalize(WORKSPACE, named ? to : WORKSPACE, folder, reterr);
    if (r < 0)
        return r;
    if (named ? goes_into(s, to, folder) : !s->from->extract || name[0]) {
        r = name_needed(name, reterr);
        return r < 0 ? r : place_join(folder, name, ret, reterr);
    }
    memcpy(ret, folder, sizeof(folder));
    return 0;
}

/* A folder copied into itself would never be whole. */
static int overlap_check(const struct source *s, const struct session_path *to,
                         struct error *reterr)
{
    if (s->from->kind != IMPORT_SESSION || !s->is_dir || !str_eq(s->at.id, to->id) ||
        !place_is_below(to->path, s->path))
        return 0;
    return error_set(reterr, ERR_INVALID, "a folder cannot be copied into itself");
}

/* ---- a file ---- */

static int source_pump(struct source *s, copy_fn *put, void *user, struct error *reterr)
{
    if (s->from->kind == IMPORT_CONTENT)
        return put(user, s->from->content, s->from->len, reterr);
    return s->reader ? copy_from_reader(s->reader, put, user, reterr)
                     : copy_from_fd(s->host.fd, s->size, put, user, reterr);
}

/* Which end failed: an error of the writer is the destination's. */
struct file_target {
    struct session_writer *writer;
    bool failed;
};

static int target_put(void *user, const void *data, size_t len, struct error *reterr)
{
    struct file_target *t = user;
    int r = session_writer_write(t->writer, data, len, reterr);

    t->failed = r < 0;
    return r;
}

static int source_wrap(const struct source *s, struct error *reterr)
{
    return s->from->kind == IMPORT_SESSION
               ? error_wrap(reterr, "source session %.64s", s->from->session_id)
               : error_wrap(reterr, "source");
}

static int file_import(struct source *s, const struct session_path *to, struct error *reterr)
{
    auto_session_writer struct session_writer *w = NULL;
    struct file_target target;
    int r = session_writer_open(s->manager, to, (int64_t)s->size, s->executable ? 0755 : 0644, &w,
                                reterr);

    if (r < 0)
        return r;
    target = (struct file_target){.writer = w};
    r = source_pump(s, target_put, &target, reterr);
    if (r < 0)
        return target.failed ? r : source_wrap(s, reterr);
    return session_writer_commit(w, reterr);
}

/* ---- a tree ---- */

static int spool_put(void *user, const void *data, size_t len, struct error *reterr)
{
    return fd_write_full(*(int *)user, data, len, reterr);
}

/* A file without a name, in two steps, because not every file system has it in one. */
static int spool_open(const char *dir, struct error *reterr)
{
    char name[PATH_LEN];
    int fd;

    if (path_join(name, sizeof(name), dir, ".spool-XXXXXX", reterr) < 0)
        return -ERR_INVALID;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return error_sys(reterr, errno, "cannot keep a copy of the archive");
    unlink(name);
    return fd;
}

/* An archive is looked at more than once, so a copy is: what changes meanwhile changes nothing. */
static int spool_make(struct source *s, struct error *reterr)
{
    auto_fd int fd = -1;
    int r;

    if (s->size > ARCHIVE_BYTES_MAX)
        return error_set(reterr, ERR_LIMIT, "the archive has %llu bytes, the limit is %llu",
                         (unsigned long long)s->size, ARCHIVE_BYTES_MAX);
    fd = spool_open(manager_settings(s->manager)->state_dir, reterr);
    if (fd < 0)
        return fd;
    r = source_pump(s, spool_put, &fd, reterr);
    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_sys(reterr, errno, "cannot read the copy of the archive");
    return TAKE_FD(fd);
}

static int extract(struct source *s, struct tree_sink *sink, struct error *reterr)
{
    auto_fd int fd = spool_make(s, reterr);

    return fd < 0 ? fd : archive_extract(fd, sink, reterr);
}

static int tree_pump(struct source *s, struct session_sink *sink, struct error *reterr)
{
    if (s->from->extract)
        return extract(s, &sink->sink, reterr);
    return s->from->kind == IMPORT_HOST
               ? host_walk_push(&s->host, &sink->sink, reterr)
               : session_walk_push(s->manager, &s->at, &sink->sink, reterr);
}

static int tree_import(struct source *s, const struct session_path *to, struct import_result *ret,
                       struct error *reterr)
{
    auto_free struct session_sink *sink = calloc(1, sizeof(*sink));
    int r;

    if (!sink)
        return error_no_memory(reterr);
    r = session_sink_open(sink, s->manager, to, reterr);
    if (r == 0) {
        r = tree_pump(s, sink, reterr);
        if (r < 0 && !sink->failed)
            r = source_wrap(s, reterr);
    }
    if (r == 0)
        r = session_sink_finish(sink, reterr);
    ret->files = sink->files;
    ret->size = sink->bytes;
    session_sink_close(sink);
    return r;
}

/* ---- all ---- */

static int source_import(struct source *s, const struct session_path *to, struct import_result *ret,
                         struct error *reterr)
{
    struct session_path place = {to->id, to->owner, ret->destination};
    int r;

    if (s->is_dir && s->from->extract)
        return error_set(reterr, ERR_INVALID, "the source is a folder, not an archive");
    r = destination_settle(s, to->path, ret->destination, reterr);
    if (r == 0)
        r = overlap_check(s, &place, reterr);
    if (r < 0)
        return r;
    if (s->is_dir || s->from->extract)
        return tree_import(s, &place, ret, reterr);
    ret->files = 1;
    ret->size = s->size;
    return file_import(s, &place, reterr);
}

/* The destination is asked for first: without its session nothing of the source is looked at. */
int session_import(struct session_manager *m, const struct session_path *to,
                   const struct import_source *from, const struct import_roots *roots,
                   struct import_result *ret, struct error *reterr)
{
    struct source s = {.from = from, .manager = m, .name = "", .host = {.fd = -1}};
    struct session_info info;
    struct error why;
    int r = session_get_info(m, to->id, to->owner, &info, &why);

    *ret = (struct import_result){};
    if (r == 0)
        r = source_open(&s, to, roots, &why);
    if (r == 0)
        r = source_import(&s, to, ret, &why);
    source_close(&s);
    if (r < 0 && reterr)
        *reterr = why;
    return r;
}
