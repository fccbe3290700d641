/* SPDX-License-Identifier: MIT */
/*
 * /files, /upload and /download. A file's name that comes from a session is only ever a name in the
 * directory that the person chose, and nothing that is there is overwritten.
 */
#include "cli/chat_command.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/uuid.h"
#include "cli/chat_result.h"
#include "cli/term/clean.h"
#include "wire/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    ATTACHED_LINE = 2 * PATH_LEN,
    TRANSFER_MS = 600000,
    NAME_COLUMNS = 1000,
    FORM_MAX = 3 * PATH_LEN + 1024, /* what stands around a file */
};

/* ---- listing ---- */

static int files_get(struct chat *c, yyjson_doc **ret, struct error *reterr)
{
    char path[CHAT_THREAD_SIZE + 32];

    snprintf(path, sizeof(path), "/threads/%s/files", c->thread_id);
    return chat_api_json(&c->api, "GET", path, NULL, ret, reterr);
}

static void list_show(struct chat *c, const char *title, yyjson_val *list, const char *name)
{
    size_t i, max;
    yyjson_val *file;
    char size[32];

    if (yyjson_arr_size(list) > 0)
        chat_say(c, STYLE_HEADING, "%s", title);
    yyjson_arr_foreach(list, i, max, file)
    {
        bool folder = str_eq(json_get_str(file, "type", ""), "directory");
        auto_buf struct buf clean;

        buf_init(&clean, 4 * ATTACHED_LINE);
        if (clean_line(json_get_str(file, name, ""), NAME_COLUMNS, &clean) < 0)
            continue;
        chat_size_format(yyjson_get_uint(yyjson_obj_get(file, "size")), size, sizeof(size));
        chat_say(c, STYLE_PLAIN, "  %s%s  (%s)", buf_str(&clean), folder ? "/" : "", size);
    }
}

void chat_files_command(struct chat *c, char **words, size_t count)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *uploads, *exports;
    struct error error;

    if (files_get(c, &doc, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return;
    }
    uploads = yyjson_obj_get(yyjson_doc_get_root(doc), "uploads");
    exports = yyjson_obj_get(yyjson_doc_get_root(doc), "exports");
    list_show(c, "uploaded", uploads, "name");
    list_show(c, "exported", exports, "path");
    if (yyjson_arr_size(uploads) + yyjson_arr_size(exports) == 0)
        chat_say(c, STYLE_FAINT, "this conversation has no files; /upload PATH gives it some");
    else if (yyjson_arr_size(exports) > 0)
        chat_say(c, STYLE_FAINT, "/download PATH keeps an exported one");
}

/* ---- uploads ---- */

/* "~/x" is the home's; everything else is as it stands. */
static int path_expand(const char *word, char ret[PATH_LEN], struct error *reterr)
{
    const char *home = getenv("HOME");
    int len = str_starts(word, "~/") && home ? snprintf(ret, PATH_LEN, "%s%s", home, word + 1)
                                             : snprintf(ret, PATH_LEN, "%s", word);

    return len < PATH_LEN ? 0 : error_set(reterr, ERR_INVALID, "the path is too long");
}

/* A file's name within quotes of a header; what cannot stand there is escaped as browsers do. */
static int name_append(struct buf *ret, const char *name)
{
    int r = 0;

    for (; *name && r == 0; name++) {
        unsigned char ch = (unsigned char)*name;

        r = ch < 0x20 || ch == '"' || ch == 0x7f ? buf_printf(ret, "%%%02X", ch)
                                                 : buf_append_byte(ret, ch);
    }
    return r;
}

/* A form with one file, which is never in memory as a whole. */
struct form {
    const char *path; /* for people */
    struct buf head, tail;
    uint64_t size; /* of the file, as it was found */
    int fd;
};

static void form_done(struct form *f)
{
    if (f->fd >= 0)
        close(f->fd);
    buf_done(&f->head);
    buf_done(&f->tail);
}
#define auto_form auto_cleanup(form_done)

static int file_open(struct form *f, uint64_t max, struct error *reterr)
{
    struct stat st;

    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (f->fd < 0 || fstat(f->fd, &st) < 0)
        return error_sys(reterr, errno, "cannot read '%.200s'", f->path);
    if (!S_ISREG(st.st_mode))
        return error_set(reterr, ERR_INVALID, "'%.200s' is no file", f->path);
    if ((uint64_t)st.st_size > max)
        return error_set(reterr, ERR_LIMIT, "'%.200s' is larger than UPLOAD_MAX_SIZE", f->path);
    f->size = (uint64_t)st.st_size;
    return 0;
}

static int form_fill(struct form *f, const char *boundary, struct error *reterr)
{
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;

    buf_init(&f->head, FORM_MAX);
    buf_init(&f->tail, FORM_MAX);
    if (buf_printf(&f->head, "--%s\r\nContent-Disposition: form-data; name=\"files\"; filename=\"",
                   boundary) < 0 ||
        name_append(&f->head, name) < 0 ||
        buf_append_str(&f->head, "\"\r\nContent-Type: application/octet-stream\r\n\r\n") < 0 ||
        buf_printf(&f->tail, "\r\n--%s--\r\n", boundary) < 0)
        return error_no_memory(reterr);
    return 0;
}

static ssize_t piece_take(const struct buf *b, uint64_t offset, char *to, size_t max)
{
    size_t len = MIN(max, b->len - (size_t)offset);

    memcpy(to, b->data + offset, len);
    return (ssize_t)len;
}

static ssize_t form_read(void *user, uint64_t offset, char *to, size_t max, struct error *reterr)
{
    const struct form *f = user;
    ssize_t n;

    if (offset < f->head.len)
        return piece_take(&f->head, offset, to, max);
    offset -= f->head.len;
    if (offset >= f->size)
        return piece_take(&f->tail, offset - f->size, to, max);
    do
        n = pread(f->fd, to, MIN((uint64_t)max, f->size - offset), (off_t)offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_sys(reterr, errno, "cannot read '%.200s'", f->path);
    if (n == 0)
        return error_set(reterr, ERR_INVALID, "'%.200s' became shorter while it was sent", f->path);
    return n;
}

/* What the next message says about it: a line of the note that docs/api.md describes. */
static void attach(struct chat *c, yyjson_val *file)
{
    auto_free char *line = yyjson_val_write(file, 0, NULL);
    char size[32];

    chat_size_format(yyjson_get_uint(yyjson_obj_get(file, "size")), size, sizeof(size));
    if (line)
        (void)!buf_printf(&c->attached, "%s\n", line);
    chat_say(c, STYLE_OK, "uploaded %s (%s)", json_get_str(file, "name", ""), size);
}

static int upload_one(struct chat *c, const char *word, struct error *reterr)
{
    char path[PATH_LEN], url[CHAT_THREAD_SIZE + 32], type[128], boundary[UUID_LEN + 1];
    auto_form struct form form = {.path = path, .fd = -1};
    auto_json yyjson_doc *doc = NULL;
    struct http_reply reply;
    size_t i, max;
    yyjson_val *file;
    int r;

    if ((r = path_expand(word, path, reterr)) < 0 || (r = uuid_v4(boundary, reterr)) < 0 ||
        (r = file_open(&form, c->settings->upload_max, reterr)) < 0 ||
        (r = form_fill(&form, boundary, reterr)) < 0)
        return r;
    snprintf(url, sizeof(url), "/threads/%s/files/upload", c->thread_id);
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
    r = chat_api_send(&c->api,
                      &(struct chat_request){.method = "POST",
                                             .path = url,
                                             .body_read = form_read,
                                             .len = form.head.len + form.size + form.tail.len,
                                             .user = &form,
                                             .content_type = type,
                                             .timeout_ms = TRANSFER_MS},
                      &reply, reterr);
    if (r == 0)
        r = json_parse(buf_str(&reply.body), reply.body.len, &doc, reterr);
    buf_done(&reply.body);
    yyjson_arr_foreach(doc ? yyjson_doc_get_root(doc) : NULL, i, max, file)
    {
        attach(c, file);
    }
    return r;
}

void chat_upload_command(struct chat *c, char **words, size_t count)
{
    struct error error;

    if (count == 0)
        chat_complain(c, "/upload PATH...");
    for (size_t i = 0; i < count; i++) {
        spinner_start(c->spinner, "uploading");
        if (upload_one(c, words[i], &error) < 0)
            chat_complain(c, "%s", error.text);
        spinner_stop(c->spinner);
    }
    if (c->attached.len > 0)
        chat_say(c, STYLE_FAINT, "the next message tells the agent where they are");
}

void chat_upload_complete(struct chat *c, size_t at, const char *word, struct chat_choices *choices)
{
    chat_choose_path(choices);
}

/* ---- downloads ---- */

/* The newest export of the path, or of the only file with that name. */
static yyjson_val *export_find(yyjson_val *list, const char *word)
{
    yyjson_val *file, *found = NULL, *named = NULL;
    size_t i, max, named_count = 0;

    yyjson_arr_foreach(list, i, max, file)
    {
        const char *path = json_get_str(file, "path", ""), *slash = strrchr(path, '/');

        if (str_eq(path, word))
            found = file;
        if (slash && str_eq(slash + 1, word)) {
            named = file;
            named_count++;
        }
    }
    return found ? found : named_count == 1 ? named : NULL;
}

/* The last component, as a name that is safe to make and to print. */
static void name_fill(const char *path, bool folder, char *ret, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (!path_is_name(name))
        name = "download";
    snprintf(ret, size, "%.200s%s", name, folder ? ".tar.gz" : "");
    for (char *at = ret; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '_';
    }
}

struct download {
    int fd;
    uint64_t bytes;
};

static int on_data(void *user, const char *data, size_t len, struct error *reterr)
{
    struct download *d = user;

    d->bytes += len;
    return fd_write_full(d->fd, data, len, reterr);
}

static int url_fill(struct chat *c, yyjson_val *file, struct buf *ret)
{
    if (buf_printf(ret, "/threads/%s/files/download?session_id=", c->thread_id) < 0 ||
        url_percent_append(ret, json_get_str(file, "session_id", "")) < 0 ||
        buf_append_str(ret, "&path=") < 0)
        return -1;
    return url_percent_append(ret, json_get_str(file, "path", ""));
}

/* Into a file of its own, which gets its name when all of it is there. */
static int download_to(struct chat *c, yyjson_val *file, const char *to, uint64_t *ret_bytes,
                       struct error *reterr)
{
    char stage[PATH_LEN];
    struct download d = {};
    struct http_reply reply;
    auto_buf struct buf url;
    auto_fd int fd = -1;
    int r;

    buf_init(&url, 8192);
    if (url_fill(c, file, &url) < 0 ||
        (size_t)snprintf(stage, sizeof(stage), "%s.%ld.part", to, (long)getpid()) >= sizeof(stage))
        return error_set(reterr, ERR_INVALID, "the path is too long");
    fd = d.fd = open(stage, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return error_sys(reterr, errno, "cannot write '%.200s'", to);
    r = chat_api_send(&c->api,
                      &(struct chat_request){.method = "GET",
                                             .path = buf_str(&url),
                                             .timeout_ms = TRANSFER_MS,
                                             .on_data = on_data,
                                             .user = &d},
                      &reply, reterr);
    if (r == 0)
        buf_done(&reply.body);
    if (r == 0 && renameat2(AT_FDCWD, stage, AT_FDCWD, to, RENAME_NOREPLACE) < 0)
        r = errno == EEXIST ? error_set(reterr, ERR_EXISTS,
                                        "'%.200s' is there already; give another name behind", to)
                            : error_sys(reterr, errno, "cannot write '%.200s'", to);
    if (r < 0)
        (void)!unlink(stage);
    *ret_bytes = d.bytes;
    return r;
}

/* Where it goes: a folder keeps the name, everything else is the name. */
static int target_fill(const char *word, const char *name, char ret[PATH_LEN], struct error *reterr)
{
    char path[PATH_LEN];
    struct stat st;
    int r;

    if (!word)
        return str_copy(ret, PATH_LEN, name);
    if ((r = path_expand(word, path, reterr)) < 0)
        return r;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return path_join(ret, PATH_LEN, path, name, reterr);
    return str_copy(ret, PATH_LEN, path);
}

void chat_download_command(struct chat *c, char **words, size_t count)
{
    auto_json yyjson_doc *doc = NULL;
    char name[256], to[PATH_LEN], size[32];
    struct error error = {.text = "the path is too long"};
    yyjson_val *file;
    uint64_t bytes = 0;
    int r;

    if (count == 0 || count > 2) {
        chat_complain(c, "/download PATH [TO]; /files lists what was exported");
        return;
    }
    if (files_get(c, &doc, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return;
    }
    file = export_find(yyjson_obj_get(yyjson_doc_get_root(doc), "exports"), words[0]);
    if (!file) {
        chat_complain(c, "no exported file is called '%s'; /files lists them", words[0]);
        return;
    }
    name_fill(json_get_str(file, "path", ""), str_eq(json_get_str(file, "type", ""), "directory"),
              name, sizeof(name));
    spinner_start(c->spinner, "downloading");
    r = target_fill(count > 1 ? words[1] : NULL, name, to, &error);
    if (r == 0)
        r = download_to(c, file, to, &bytes, &error);
    spinner_stop(c->spinner);
    chat_size_format(bytes, size, sizeof(size));
    if (r < 0)
        chat_complain(c, "%s", error.text);
    else
        chat_say(c, STYLE_OK, "saved %s (%s)", to, size);
}

void chat_download_complete(struct chat *c, size_t at, const char *word,
                            struct chat_choices *choices)
{
    auto_json yyjson_doc *doc = NULL;
    size_t i, max;
    yyjson_val *file;

    if (at > 0) {
        chat_choose_path(choices);
        return;
    }
    if (files_get(c, &doc, NULL) < 0)
        return;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "exports"), i, max, file)
    {
        chat_choice(choices, json_get_str(file, "path", ""));
    }
}
