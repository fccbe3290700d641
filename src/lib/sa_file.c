/* SPDX-License-Identifier: MIT */
/* Files through the public API. */
#include "lib/lib-internal.h"

#include "base/json.h"
#include "session/transfer.h"
#include "wire/utf8.h"

#include <string.h>

#define FILE_READ_MAX GIB
enum { DOWNLOAD_PIECE = 64 * 1024 };
#define ARGUMENTS "the library, the session's id, the path or the place for the result"

int sa_file_read(struct sa *sa, const char *id, const char *path, void **ret, size_t *ret_len,
                 struct sa_error *reterr)
{
    auto_buf struct buf data;
    struct error error;

    buf_init(&data, FILE_READ_MAX);
    if (!sa || !id || !path || !ret || !ret_len)
        return sa_missing(ARGUMENTS, reterr);
    /* An empty file gives an empty string, never NULL. */
    if (session_file_read(sa->manager, &(struct session_path){id, NULL, path}, &data, &error) < 0)
        return sa_fail(&error, reterr);
    if (buf_append(&data, "", 0) < 0) {
        error_no_memory(&error);
        return sa_fail(&error, reterr);
    }
    *ret_len = data.len;
    *ret = buf_take(&data);
    return 0;
}

int sa_file_write(struct sa *sa, const char *id, const char *path, const void *data, size_t len,
                  struct sa_error *reterr)
{
    struct error error;
    int r;

    if (!sa || !id || !path || (!data && len))
        return sa_missing(ARGUMENTS, reterr);
    r = session_file_write(sa->manager, &(struct session_path){id, NULL, path}, data, len, &error);
    return r < 0 ? sa_fail(&error, reterr) : 0;
}

struct lister {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
};

/* A file's name is any bytes, and JSON is UTF-8: one bad name must not hide the others. */
static void path_add(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, const char *name)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;

    buf_init(&text, 64 * KIB);
    if (utf8_repair_feed(&repair, name, strlen(name), &text) == 0 &&
        utf8_repair_finish(&repair, &text) == 0)
        yyjson_mut_obj_add_strncpy(doc, o, key, buf_str(&text), text.len);
}

static void entry_add(void *user, const char *name, const struct session_file_info *info)
{
    struct lister *l = user;
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(l->doc, l->list);
    const char *type = info->type == 'f'   ? "file"
                       : info->type == 'd' ? "dir"
                       : info->type == 'l' ? "link"
                                           : "other";

    path_add(l->doc, o, "name", name);
    yyjson_mut_obj_add_str(l->doc, o, "type", type);
    yyjson_mut_obj_add_uint(l->doc, o, "size", info->size);
    yyjson_mut_obj_add_sint(l->doc, o, "mtime_ms", info->mtime_ms);
}

int sa_file_list(struct sa *sa, const char *id, const char *path, char **ret_json,
                 struct sa_error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    struct lister lister = {.doc = doc, .list = yyjson_mut_arr(doc)};
    auto_buf struct buf text;
    struct error error;

    buf_init(&text, 256 * MIB);
    if (!sa || !id || !path || !ret_json)
        return sa_missing(ARGUMENTS, reterr);
    yyjson_mut_doc_set_root(doc, lister.list);
    if (session_file_list(sa->manager, &(struct session_path){id, NULL, path}, entry_add, &lister,
                          &error) < 0 ||
        json_mut_write(doc, &text, &error) < 0)
        return sa_fail(&error, reterr);
    *ret_json = buf_take(&text);
    return 0;
}

int sa_file_remove(struct sa *sa, const char *id, const char *path, struct sa_error *reterr)
{
    struct error error;
    int r;

    if (!sa || !id || !path)
        return sa_missing(ARGUMENTS, reterr);
    r = session_file_remove(sa->manager, &(struct session_path){id, NULL, path}, true, &error);
    return r < 0 ? sa_fail(&error, reterr) : 0;
}

/* ---- streams ---- */

static struct sa_import_options import_options_copy(const struct sa_import_options *options)
{
    struct sa_import_options copy = {};

    memcpy(&copy, options, MIN(options->size, sizeof(copy)));
    return copy;
}

static int import_source_make(const struct sa_import_options *o, struct import_source *ret,
                              struct error *error)
{
    static const enum import_kind kinds[] = {
        [SA_HOST] = IMPORT_HOST, [SA_SESSION] = IMPORT_SESSION, [SA_CONTENT] = IMPORT_CONTENT};

    if (o->kind < 0 || (size_t)o->kind >= ARRAY_LEN(kinds))
        return error_set(error, ERR_INVALID, "%d is no kind of source", o->kind);
    if (o->kind == SA_CONTENT ? !o->content && o->len > 0 : !o->path)
        return error_set(error, ERR_INVALID, "the source is missing");
    *ret = (struct import_source){.kind = kinds[o->kind],
                                  .path = o->path,
                                  .session_id = o->session_id,
                                  .content = o->content ? o->content : "",
                                  .len = o->len,
                                  .extract = o->extract != 0};
    return 0;
}

static int object_write(yyjson_mut_doc *doc, char **ret_json, struct sa_error *reterr)
{
    auto_buf struct buf text;
    struct error error;

    buf_init(&text, MIB);
    if (json_mut_write(doc, &text, &error) < 0)
        return sa_fail(&error, reterr);
    *ret_json = buf_take(&text);
    return 0;
}

int sa_import(struct sa *sa, const char *id, const struct sa_import_options *options,
              char **ret_json, struct sa_error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    struct sa_import_options copy;
    struct import_source source;
    struct import_result result;
    struct error error;

    if (!sa || !id || !options || !ret_json)
        return sa_missing("the library, the session's id, the source or the place for the result",
                          reterr);
    copy = import_options_copy(options);
    if (import_source_make(&copy, &source, &error) < 0 ||
        session_import(sa->manager, &(struct session_path){id, NULL, copy.destination}, &source,
                       &(struct import_roots){.everything = true}, &result, &error) < 0)
        return sa_fail(&error, reterr);
    yyjson_mut_doc_set_root(doc, o);
    path_add(doc, o, "destination", result.destination);
    yyjson_mut_obj_add_uint(doc, o, "size", result.size);
    yyjson_mut_obj_add_uint(doc, o, "files", result.files);
    return object_write(doc, ret_json, reterr);
}

int sa_export(struct sa *sa, const char *id, const char *path, char **ret_json,
              struct sa_error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    struct export_info info;
    struct error error;

    if (!sa || !id || !path || !ret_json)
        return sa_missing(ARGUMENTS, reterr);
    if (session_export(sa->manager, &(struct session_path){id, NULL, path}, &info, &error) < 0)
        return sa_fail(&error, reterr);
    yyjson_mut_doc_set_root(doc, o);
    path_add(doc, o, "path", info.path);
    yyjson_mut_obj_add_str(doc, o, "type", info.type == 'd' ? "dir" : "file");
    yyjson_mut_obj_add_uint(doc, o, "size", info.size);
    return object_write(doc, ret_json, reterr);
}

static int download_pump(struct session_download *d, sa_download_fn *fn, void *user,
                         struct error *error)
{
    auto_free char *data = malloc(DOWNLOAD_PIECE);
    ssize_t n;

    if (!data)
        return error_no_memory(error);
    while ((n = session_download_read(d, data, DOWNLOAD_PIECE, error)) > 0) {
        if (fn(user, data, (size_t)n))
            return error_set(error, ERR_CANCELLED, "the download was stopped");
    }
    return (int)n;
}

int sa_download(struct sa *sa, const char *id, const char *path, int format, sa_download_fn *fn,
                void *user, struct sa_error *reterr)
{
    static const enum download_format formats[] = {[SA_DOWNLOAD_AUTO] = DOWNLOAD_AUTO,
                                                   [SA_DOWNLOAD_TAR_GZ] = DOWNLOAD_TAR_GZ,
                                                   [SA_DOWNLOAD_ZIP] = DOWNLOAD_ZIP};
    auto_session_download struct session_download *d = NULL;
    struct download_info info;
    struct error error;

    if (!sa || !id || !path || !fn)
        return sa_missing("the library, the session's id, the path or the function", reterr);
    if (format < 0 || (size_t)format >= ARRAY_LEN(formats)) {
        error_set(&error, ERR_INVALID, "%d is no format of a download", format);
        return sa_fail(&error, reterr);
    }
    if (session_download_open(sa->manager, &(struct session_path){id, NULL, path}, formats[format],
                              &info, &d, &error) < 0 ||
        download_pump(d, fn, user, &error) < 0)
        return sa_fail(&error, reterr);
    return 0;
}
