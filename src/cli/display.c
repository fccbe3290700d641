/* SPDX-License-Identifier: MIT */
/* Saving displays. File names are ours (a number and a suffix from a table): nothing of the guest
 * gets into a path. */
#include "cli/display.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

struct suffix_entry {
    const char *mime;
    const char *suffix;
    bool base64;
};

static const struct suffix_entry suffixes[] = {
    {"image/png", "png", true},
    {"image/jpeg", "jpg", true},
    {"image/gif", "gif", true},
    {"image/webp", "webp", true},
    {"image/svg+xml", "svg", false},
    {"application/pdf", "pdf", true},
    {"audio/wav", "wav", true},
    {"audio/mpeg", "mp3", true},
    {"audio/ogg", "ogg", true},
    {"video/mp4", "mp4", true},
    {"video/webm", "webm", true},
    {"text/html", "html", false},
    {"text/markdown", "md", false},
    {"text/latex", "tex", false},
    {"text/plain", "txt", false},
    {"application/vnd.plotly.v1+json", "plotly.json", false},
    {"application/geo+json", "geojson", false},
    {"application/json", "json", false},
};

static const struct suffix_entry *suffix_find(const char *mime)
{
    static const struct suffix_entry other = {"", "bin", false};

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (str_eq(suffixes[i].mime, mime))
            return &suffixes[i];
    }
    return &other;
}

const char *display_suffix(const char *mime, bool *ret_base64)
{
    const struct suffix_entry *e = suffix_find(mime);

    *ret_base64 = e->base64;
    return e->suffix;
}

int display_sink_open(struct display_sink *ret, const char *path, struct error *reterr)
{
    int r;

    *ret = (struct display_sink){.dir = -1};
    if (!path)
        return 0;
    if (str_copy(ret->path, sizeof(ret->path), path) < 0)
        return error_set(reterr, ERR_INVALID, "--display-dir: the path is too long");
    if ((r = path_make_dirs(path, 0755, reterr)) < 0)
        return r;
    ret->dir = path_open_dir(AT_FDCWD, path, reterr);
    return MIN(ret->dir, 0);
}

void display_sink_done(struct display_sink *d)
{
    if (d->dir >= 0)
        close(d->dir);
}

/* The bytes of a display: decoded, as they are, or JSON text. */
static int content_get(const struct suffix_entry *e, yyjson_val *data, struct buf *ret)
{
    if (!yyjson_is_str(data))
        return json_write(data, ret, NULL);
    if (e->base64)
        return base64_decode(ret, yyjson_get_str(data), yyjson_get_len(data));
    return buf_append(ret, yyjson_get_str(data), yyjson_get_len(data));
}

static int item_save(struct display_sink *d, const struct suffix_entry *e, yyjson_val *data,
                     char ret_name[64], struct error *reterr)
{
    auto_buf struct buf content;
    auto_fd int fd = -1;

    buf_init(&content, 128 * MIB);
    if (content_get(e, data, &content) < 0)
        return error_set(reterr, ERR_PROTOCOL, "the display is malformed");
    snprintf(ret_name, 64, "display-%03u.%s", ++d->count, e->suffix);
    fd = openat(d->dir, ret_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return error_sys(reterr, errno, "cannot write '%s/%s'", d->path, ret_name);
    return fd_write_full(fd, buf_str(&content), content.len, reterr);
}

/* The name of the kind is the cell's own word. */
static void told(const char *mime, const char *what)
{
    char text[PATH_LEN + 256];

    snprintf(text, sizeof(text), "[%.128s: %s]", mime, what);
    screen_line(STDERR_FILENO, text);
}

static void item_handle(struct display_sink *d, const char *json, size_t len, bool tell)
{
    auto_json yyjson_doc *doc = NULL;
    const struct suffix_entry *e;
    const char *mime;
    struct error error;
    yyjson_val *data;
    char name[64], path[PATH_LEN + 64];

    if (json_parse(json, len, &doc, NULL) < 0)
        return;
    mime = json_get_str(yyjson_doc_get_root(doc), "type", "");
    data = yyjson_obj_get(yyjson_doc_get_root(doc), "data");
    e = suffix_find(mime);
    if (d->dir < 0) {
        if (str_eq(mime, "text/plain"))
            screen_line(STDOUT_FILENO, yyjson_is_str(data) ? yyjson_get_str(data) : "");
        else
            told(mime, "a display; --display-dir DIR keeps it");
        return;
    }
    if (item_save(d, e, data, name, &error) < 0)
        screen_message(error.text);
    else if (tell && path_join(path, sizeof(path), d->path, name, NULL) == 0)
        told(mime, path);
}

void display_print(struct display_sink *d, const char *json, size_t len)
{
    item_handle(d, json, len, true);
}

void display_save(struct display_sink *d, const char *json, size_t len)
{
    item_handle(d, json, len, false);
}
