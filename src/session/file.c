/* SPDX-License-Identifier: MIT */
/*
 * Files of a session. Everything goes through init, which opens paths as the sandbox user inside
 * the sandbox's root: no path of the guest is ever walked on the host.
 */
#include "session/transfer-internal.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>

int file_payload_begin(struct buf *payload, const char *path, struct error *reterr)
{
    buf_init(payload, 64 * KIB);
    if (!path[0])
        return error_set(reterr, ERR_INVALID, "the path is empty");
    return fields_add_str(payload, "path", path) < 0
               ? error_set(reterr, ERR_INVALID, "the path is too long")
               : 0;
}

int file_call_begin(struct session_manager *m, const struct session_path *at, enum call_kind kind,
                    struct session **ret, struct error *reterr)
{
    struct session *s = session_find(m, at->id, at->owner, reterr);
    int r;

    if (!s)
        return -ERR_NOT_FOUND;
    r = session_call_begin(s, kind, reterr);
    if (r < 0)
        session_unref(s);
    else
        *ret = s;
    return r;
}

void file_call_end(struct session *s, enum call_kind kind)
{
    session_call_end(s, kind);
    session_unref(s);
}

/* Of the calls below: one question and its answer. */
static int ask_begin(struct session_manager *m, const struct session_path *at, struct session **ret,
                     struct buf *payload, struct error *reterr)
{
    int r = file_payload_begin(payload, at->path, reterr);

    return r < 0 ? r : file_call_begin(m, at, CALL_ASK, ret, reterr);
}

static void ask_end(struct session *s)
{
    file_call_end(s, CALL_ASK);
}

DEFINE_CLEANUP(struct session *, ask_end)
#define auto_call __attribute__((cleanup(ask_end_cleanup)))

int file_explain(const struct session *s, struct error *reterr)
{
    struct error why;

    if (!reterr || reterr->code != ERR_DISK)
        return reterr ? -(int)reterr->code : -ERR_SYSTEM;
    why = *reterr;
    error_set(reterr, ERR_DISK, "%.280s (CONTAINER_TMPFS_SIZE gives each file system %llu MiB)",
              why.text, (unsigned long long)(s->tmpfs_bytes / MIB));
    reterr->sys = why.sys;
    return -ERR_DISK;
}

void file_info_parse(const struct frame *f, struct session_file_info *ret,
                     struct file_strings *ret_strings)
{
    struct fields fields = {.data = f->payload, .len = f->len};
    auto_free char *type = NULL, *mode = NULL;
    int64_t n;

    *ret = (struct session_file_info){.type = 'o'};
    if (fields_check(&fields, NULL) < 0)
        return;
    if (fields_get_str(&fields, "type", &type, NULL) == 0)
        ret->type = str_eq(type, "file")   ? 'f'
                    : str_eq(type, "dir")  ? 'd'
                    : str_eq(type, "link") ? 'l'
                                           : 'o';
    if (fields_get_int(&fields, "size", 0, &n, NULL) == 0 && n > 0)
        ret->size = (uint64_t)n;
    if (fields_get_int(&fields, "mtime_ms", 0, &n, NULL) == 0)
        ret->mtime_ms = n;
    if (fields_get_str(&fields, "mode", &mode, NULL) == 0)
        ret->mode = (unsigned)strtoul(mode, NULL, 8);
    if (!ret_strings)
        return;
    if (fields_get_str(&fields, "name", &ret_strings->name, NULL) < 0)
        ret_strings->name = NULL;
    if (fields_get_str(&fields, "target", &ret_strings->target, NULL) < 0)
        ret_strings->target = NULL;
    ret->target = ret_strings->target;
}

/* ---- reading ---- */

struct file_reader {
    struct buf *ret;
    bool full;
};

static bool read_frame(void *user, const struct frame *f)
{
    struct file_reader *reader = user;

    if (f->type == FRAME_DATA && buf_append(reader->ret, f->payload, f->len) < 0)
        reader->full = true;
    return !reader->full;
}

static int simple_call(struct session *s, uint8_t type, const struct buf *payload,
                       bool (*on_frame)(void *, const struct frame *), void *user,
                       struct error *reterr)
{
    return control_call(s->sandbox->control,
                        &(struct control_request){.type = type,
                                                  .payload = payload,
                                                  .on_frame = on_frame,
                                                  .user = user,
                                                  .deadline = clock_deadline(FILE_MS)},
                        reterr);
}

int session_file_read(struct session_manager *m, const struct session_path *at, struct buf *ret,
                      struct error *reterr)
{
    auto_call struct session *s = NULL;
    struct file_reader reader = {.ret = ret};
    auto_buf struct buf payload;
    int r;

    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    r = simple_call(s, FRAME_FILE_READ, &payload, read_frame, &reader, reterr);
    if (reader.full)
        return error_set(reterr, ERR_LIMIT, "'%s' is larger than %zu bytes", at->path, ret->max);
    return r;
}

/* ---- writing ---- */

struct file_writer {
    const char *data;
    size_t len;
};

static int write_feed(struct control *c, uint32_t stream, void *user, struct error *reterr)
{
    struct file_writer *w = user;
    size_t done = 0;

    while (done < w->len) {
        size_t n = MIN(w->len - done, (size_t)FRAME_BULK_MAX);
        int r = control_send(c, FRAME_WRITE_DATA, stream, w->data + done, n, reterr);

        if (r < 0)
            return r;
        done += n;
    }
    return control_send(c, FRAME_WRITE_DATA, stream, NULL, 0, reterr);
}

int session_file_write(struct session_manager *m, const struct session_path *at, const void *data,
                       size_t len, struct error *reterr)
{
    auto_call struct session *s = NULL;
    struct file_writer writer = {.data = data, .len = len};
    auto_buf struct buf payload;
    int r;

    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    if (fields_add_int(&payload, "size", (int64_t)len) < 0 ||
        fields_add_int(&payload, "mkdirs", 1) < 0)
        return error_no_memory(reterr);
    r = control_call(s->sandbox->control,
                     &(struct control_request){.type = FRAME_FILE_WRITE,
                                               .payload = &payload,
                                               .feed = write_feed,
                                               .user = &writer,
                                               .deadline = clock_deadline(FILE_MS)},
                     reterr);
    return r < 0 ? file_explain(s, reterr) : 0;
}

/* ---- looking and removing ---- */

static bool stat_frame(void *user, const struct frame *f)
{
    if (f->type == FRAME_REPORT)
        file_info_parse(f, user, NULL);
    return true;
}

int session_file_stat(struct session_manager *m, const struct session_path *at,
                      struct session_file_info *ret, struct error *reterr)
{
    auto_call struct session *s = NULL;
    auto_buf struct buf payload;
    int r;

    *ret = (struct session_file_info){.type = 'o'};
    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    return simple_call(s, FRAME_FILE_STAT, &payload, stat_frame, ret, reterr);
}

struct file_lister {
    session_file_fn *each;
    void *user;
};

static bool list_frame(void *user, const struct frame *f)
{
    struct file_lister *lister = user;
    struct file_strings strings = {};
    struct session_file_info info;

    if (f->type != FRAME_REPORT)
        return true;
    file_info_parse(f, &info, &strings);
    if (strings.name)
        lister->each(lister->user, strings.name, &info);
    free(strings.name);
    free(strings.target);
    return true;
}

int session_file_list(struct session_manager *m, const struct session_path *at,
                      session_file_fn *each, void *user, struct error *reterr)
{
    auto_call struct session *s = NULL;
    struct file_lister lister = {.each = each, .user = user};
    auto_buf struct buf payload;
    int r;

    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    return simple_call(s, FRAME_FILE_LIST, &payload, list_frame, &lister, reterr);
}

int session_file_remove(struct session_manager *m, const struct session_path *at, bool recursive,
                        struct error *reterr)
{
    auto_call struct session *s = NULL;
    auto_buf struct buf payload;
    int r;

    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    if (fields_add_int(&payload, "recursive", recursive) < 0)
        return error_no_memory(reterr);
    return simple_call(s, FRAME_FILE_REMOVE, &payload, NULL, NULL, reterr);
}

/* ---- for trees ---- */

/* A call with one more field than the path, which may be absent. */
static int changing_call(struct session_manager *m, const struct session_path *at, uint8_t type,
                         const char *const field[2], struct error *reterr)
{
    auto_call struct session *s = NULL;
    auto_buf struct buf payload;
    int r;

    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    if (field[0] && fields_add_str(&payload, field[0], field[1]) < 0)
        return error_set(reterr, ERR_INVALID, "the path is too long");
    r = simple_call(s, type, &payload, NULL, NULL, reterr);
    return r < 0 ? file_explain(s, reterr) : 0;
}

int session_file_mkdir(struct session_manager *m, const struct session_path *at,
                       struct error *reterr)
{
    return changing_call(m, at, FRAME_FILE_MKDIR, (const char *const[]){NULL, NULL}, reterr);
}

int session_file_rename(struct session_manager *m, const struct session_path *at, const char *to,
                        struct error *reterr)
{
    return changing_call(m, at, FRAME_FILE_RENAME, (const char *const[]){"to", to}, reterr);
}

int session_file_link(struct session_manager *m, const struct session_path *at, const char *target,
                      struct error *reterr)
{
    return changing_call(m, at, FRAME_FILE_LINK, (const char *const[]){"target", target}, reterr);
}

/* A read of nothing: init opens it, and tells a folder from what is neither that nor a file. */
int session_file_look(struct session_manager *m, const struct session_path *at,
                      struct session_file_info *ret, struct error *reterr)
{
    auto_call struct session *s = NULL;
    struct session_file_info info = {.type = 'o'};
    auto_buf struct buf payload;
    struct error why;
    int r;

    if ((r = ask_begin(m, at, &s, &payload, reterr)) < 0)
        return r;
    if (fields_add_int(&payload, "length", 0) < 0)
        return error_no_memory(reterr);
    r = simple_call(s, FRAME_FILE_READ, &payload, stat_frame, &info, &why);
    if (r < 0 && why.sys == EISDIR) {
        info.type = 'd';
    } else if (r < 0 && (why.sys == EINVAL || why.sys == ENXIO)) {
        return error_set(reterr, ERR_INVALID, "'%.200s' is neither a file nor a folder", at->path);
    } else if (r < 0) {
        if (reterr)
            *reterr = why;
        return r;
    }
    *ret = info;
    return 0;
}
