/* SPDX-License-Identifier: MIT */
/*
 * Files that a person gives to a thread's tools and gets from them: uploads, which tools import by
 * their paths on this host; exports of sessions, streamed as they are read; and large displays. All
 * are as good as their names: whoever owns the thread may have them.
 */
#include "api/files.h"

#include "api/threads.h"
#include "api/upload.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/str.h"
#include "session/transfer.h"
#include "wire/url.h"
#include "wire/utf8.h"

#include <stdio.h>

enum { SHA256_HEX = 64, HEADER_VALUE_MAX = 2048, ITEM_URL_MAX = 32768 };

/* Beside the files themselves: heads of parts and boundaries. */
#define FORM_OVERHEAD (16 * MIB)

/* ---- uploads ---- */

static void upload_release(void *context)
{
    upload_free(context);
}

/* Before anything is kept: whose thread it is, and whether it can fit. */
static int upload_begin(struct http_request *req, struct upload **ret, struct error *reterr)
{
    const struct settings *s = api_of(req)->settings;
    const char *length = http_header(req, "Content-Length");
    const char *type = http_header(req, "Content-Type");
    struct store_thread t = {};
    int64_t bytes;
    int r;

    *reterr = (struct error){};
    api_capture(reterr);
    r = thread_get(req, &t);
    api_capture(NULL);
    if (r < 0)
        return r;
    if (length && str_parse_int(length, 0, INT64_MAX, &bytes) == 0 &&
        (uint64_t)bytes > s->upload_max + FORM_OVERHEAD)
        return error_set(reterr, ERR_LIMIT, "the upload is above UPLOAD_MAX_SIZE (%llu bytes)",
                         (unsigned long long)s->upload_max);
    r = upload_new(s->storage_dir, type ? type : "", s->upload_max, ret, reterr);
    if (r == 0)
        http_set_context(req, *ret, upload_release);
    return r;
}

static int on_upload_piece(struct http_request *req, const char *data, size_t len,
                           struct error *reterr)
{
    struct upload *u = http_context(req);
    int r = 0;

    if (!data) {
        http_set_context(req, NULL, NULL);
        return 0;
    }
    if (!u)
        r = upload_begin(req, &u, reterr);
    return r < 0 ? r : upload_feed(u, data, len, reterr);
}

static void uploaded_reply(struct http_request *req, const char *thread_id, const struct upload *u)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_arr(doc);
    size_t count;
    const struct upload_file *files = upload_files(u, &count);

    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, root);

        api_add_str(doc, v, "name", files[i].name);
        api_add_str(doc, v, "path",
                    arena_printf(http_arena(req), "%s/%s/uploads/%s",
                                 api_of(req)->settings->storage_dir, thread_id, files[i].name));
        yyjson_mut_obj_add_uint(doc, v, "size", files[i].size);
    }
    api_reply_doc(req, 200, owned);
}

static void on_upload(struct http_request *req)
{
    struct upload *u = http_context(req);
    struct store_thread t = {};
    struct error error;

    /* Again: a long upload's thread may have been deleted meanwhile. */
    if (thread_get(req, &t) < 0)
        return;
    if (!u) {
        api_unprocessable(req, "a form with a field 'files' is needed");
        return;
    }
    if (upload_commit(u, t.id, &error) < 0)
        http_fail(req, error.code == ERR_INVALID ? 422 : error.code == ERR_LIMIT ? 413 : 0, &error);
    else
        uploaded_reply(req, t.id, u);
}

/* ---- listing ---- */

struct listing {
    struct http_request *req;
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    const char *thread_id;
};

static void upload_list_one(void *user, const struct upload_found *file)
{
    const struct listing *l = user;
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(l->doc, l->list);
    const char *path =
        arena_printf(http_arena(l->req), "%s/%s/uploads/%s", api_of(l->req)->settings->storage_dir,
                     l->thread_id, file->name);

    yyjson_mut_obj_add_val(l->doc, v, "name",
                           json_mut_text(l->doc, file->name, strlen(file->name)));
    yyjson_mut_obj_add_val(l->doc, v, "path",
                           path ? json_mut_text(l->doc, path, strlen(path))
                                : yyjson_mut_null(l->doc));
    yyjson_mut_obj_add_uint(l->doc, v, "size", file->size);
    api_add_time(l->doc, v, "modified_at", file->modified_us);
}

static void export_list_one(void *user, const char *id, const struct export_info *info)
{
    const struct listing *l = user;
    const struct api *api = api_of(l->req);
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(l->doc, l->list);
    auto_buf struct buf url;

    buf_init(&url, ITEM_URL_MAX);
    yyjson_mut_obj_add_strcpy(l->doc, v, "session_id", id);
    yyjson_mut_obj_add_val(l->doc, v, "path",
                           json_mut_text(l->doc, info->path, strlen(info->path)));
    yyjson_mut_obj_add_str(l->doc, v, "type", info->type == 'd' ? "directory" : "file");
    yyjson_mut_obj_add_uint(l->doc, v, "size", info->size);
    if (buf_printf(&url, "%s/threads/%s/files/download?session_id=%s&path=",
                   api->settings->api_base_url[0] ? api->settings->api_base_url : api->url,
                   l->thread_id, id) == 0 &&
        url_percent_append(&url, info->path) == 0)
        yyjson_mut_obj_add_strncpy(l->doc, v, "download_url", url.data, url.len);
}

static void on_list(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    struct listing l = {.req = req, .doc = doc};
    struct store_thread t = {};
    struct error error;

    if (thread_get(req, &t) < 0)
        return;
    yyjson_mut_doc_set_root(doc, root);
    l.thread_id = t.id;
    l.list = yyjson_mut_obj_add_arr(doc, root, "uploads");
    upload_list(api_of(req)->settings->storage_dir, t.id, upload_list_one, &l);
    l.list = yyjson_mut_obj_add_arr(doc, root, "exports");
    if (session_export_list(api_of(req)->manager, NULL, t.id, export_list_one, &l, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_doc(req, 200, owned);
}

/* ---- downloads ---- */

/* One character stands for each that the quoted form cannot say. */
static int quoted_append(struct buf *ret, const char *text, bool *ret_whole)
{
    int r = 0;

    for (; *text && r == 0; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = c >= 0x20 && c < 0x7f && !strchr("\"\\%", c);

        *ret_whole &= plain;
        if (plain || (c & 0xc0) != 0x80)
            r = buf_append_byte(ret, plain ? c : '_');
    }
    return r;
}

int attachment_write(const char *name, struct buf *ret)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;
    bool whole = true;

    buf_init(&text, HEADER_VALUE_MAX);
    if (utf8_repair_feed(&repair, name, strlen(name), &text) < 0 ||
        utf8_repair_finish(&repair, &text) < 0 ||
        buf_append_str(ret, "attachment; filename=\"") < 0 ||
        quoted_append(ret, buf_str(&text), &whole) < 0 || buf_append_byte(ret, '"') < 0)
        return -1;
    if (whole)
        return 0;
    return buf_append_str(ret, "; filename*=UTF-8''") < 0 ? -1
                                                          : url_percent_append(ret, buf_str(&text));
}

static ssize_t download_read(void *user, char *ret, size_t len)
{
    struct error error;
    ssize_t n = session_download_read(user, ret, len, &error);

    if (n < 0)
        log_warn("a download was cut short: %s", error.text);
    return n;
}

static void download_close(void *user)
{
    session_download_close(user);
}

static int format_parse(struct http_request *req, enum download_format *ret)
{
    static const struct {
        const char *word;
        enum download_format format;
    } words[] = {{"zip", DOWNLOAD_ZIP}, {"tar.gz", DOWNLOAD_TAR_GZ}};
    const char *given = http_query(req, "format");

    *ret = DOWNLOAD_AUTO;
    if (!given)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(words[i].word, given)) {
            *ret = words[i].format;
            return 0;
        }
    }
    return api_unprocessable(req, "'format' is zip or tar.gz");
}

static void on_download(struct http_request *req)
{
    struct session_path at = {.id = http_query(req, "session_id"), .path = http_query(req, "path")};
    struct session_download *download = NULL;
    enum download_format format;
    struct download_info info = {};
    struct store_thread t = {};
    auto_buf struct buf name;
    struct error error;

    if (thread_get(req, &t) < 0 || format_parse(req, &format) < 0)
        return;
    if (!at.id || !*at.id || !at.path || !*at.path) {
        api_unprocessable(req, "'session_id' and 'path' are needed");
        return;
    }
    at.owner = t.id;
    if (session_download_open(api_of(req)->manager, &at, format, &info, &download, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    buf_init(&name, 4 * HEADER_VALUE_MAX);
    if (attachment_write(info.name, &name) == 0)
        http_header_add(req, "Content-Disposition", buf_str(&name));
    http_header_add(req, "Cache-Control", "private, no-store");
    http_respond_reader(
        req, 200, info.mime, info.size,
        &(struct http_reader){.read = download_read, .close = download_close, .user = download});
}

/* ---- displays ---- */

static bool mime_is(const char *mime, const char *prefix)
{
    return strncasecmp(mime, prefix, strlen(prefix)) == 0;
}

struct blob_kind blob_kind_of(const char *mime)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "/.+-_;= ";
    bool media = mime_is(mime, "audio/") || mime_is(mime, "video/") ||
                 (mime_is(mime, "image/") && !mime_is(mime, "image/svg"));
    struct blob_kind kind = {.content_type = mime,
                             .base64 = media || mime_is(mime, "application/pdf"),
                             .attachment = !media && !mime_is(mime, "text/plain") &&
                                           !mime_is(mime, "application/json")};

    if (!str_check_chars(mime, set, 128))
        kind.content_type = "application/octet-stream";
    else if (str_eq(mime, "text/plain") || str_eq(mime, "text/html"))
        kind.content_type =
            mime[5] == 'p' ? "text/plain; charset=utf-8" : "text/html; charset=utf-8";
    return kind;
}

/* Kernels break lines in base64. */
static int base64_read(const struct store_blob *blob, struct buf *ret)
{
    auto_buf struct buf text;

    buf_init(&text, API_ANSWER_MAX);
    if (buf_reserve(&text, blob->len) < 0)
        return -1;
    for (size_t i = 0; i < blob->len; i++) {
        if (!strchr(" \t\r\n", blob->data[i]) && buf_append_byte(&text, blob->data[i]) < 0)
            return -1;
    }
    return base64_decode(ret, buf_str(&text), text.len);
}

static void blob_reply(struct http_request *req, const struct store_blob *blob)
{
    struct blob_kind kind = blob_kind_of(blob->mime ? blob->mime : "");
    auto_buf struct buf bytes;

    buf_init(&bytes, API_ANSWER_MAX);
    if (kind.attachment)
        http_header_add(req, "Content-Disposition", "attachment");
    if (!kind.base64)
        http_respond(req, 200, kind.content_type, blob->data, blob->len);
    else if (base64_read(blob, &bytes) == 0)
        http_respond(req, 200, kind.content_type, buf_str(&bytes), bytes.len);
    else
        http_respond(req, 200, "application/octet-stream", blob->data, blob->len);
}

static void on_blob(struct http_request *req)
{
    const char *sha256 = http_param(req, "sha256"), *known = http_header(req, "If-None-Match");
    auto_arena struct arena arena;
    struct store_thread t = {};
    struct store_blob blob = {};
    char tag[SHA256_HEX + 3];
    struct error error;

    arena_init(&arena, API_ANSWER_MAX);
    if (thread_get(req, &t) < 0)
        return;
    if (strlen(sha256) != SHA256_HEX || !str_check_chars(sha256, "0123456789abcdef", SHA256_HEX)) {
        api_unprocessable(req, "'sha256' has to be %d lower-case hex digits", SHA256_HEX);
        return;
    }
    if (store_blob_get(api_of(req)->store, t.id, sha256, &arena, &blob, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    snprintf(tag, sizeof(tag), "\"%s\"", sha256);
    http_header_add(req, "ETag", tag);
    http_header_add(req, "Cache-Control", "private, max-age=31536000, immutable");
    http_header_add(req, "Content-Security-Policy", "sandbox; default-src 'none'");
    if (known && strstr(known, tag))
        api_reply_empty(req, 304);
    else
        blob_reply(req, &blob);
}

const struct route_entry api_file_routes[] = {
    {"POST", "/threads/{thread_id}/files/upload", "Upload files for the thread's tools", on_upload,
     SIZE_MAX / 2, on_upload_piece},
    {"GET", "/threads/{thread_id}/files/download",
     "Download a file or a folder that was exported from a sandbox", on_download},
    {"GET", "/threads/{thread_id}/files", "List a thread's uploads and exports", on_list},
    {"GET", "/threads/{thread_id}/blobs/{sha256}", "The bytes of a large display", on_blob},
    {},
};
