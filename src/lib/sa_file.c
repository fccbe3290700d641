/* SPDX-License-Identifier: MIT */
/* Files through the public API. */
#include "lib/lib-internal.h"

#include "base/json.h"
#include "wire/utf8.h"

#include <string.h>

#define FILE_READ_MAX GIB
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
static void name_add(struct lister *l, yyjson_mut_val *o, const char *name)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;

    buf_init(&text, 64 * KIB);
    if (utf8_repair_feed(&repair, name, strlen(name), &text) == 0 &&
        utf8_repair_finish(&repair, &text) == 0)
        yyjson_mut_obj_add_strncpy(l->doc, o, "name", buf_str(&text), text.len);
}

static void entry_add(void *user, const char *name, const struct session_file_info *info)
{
    struct lister *l = user;
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(l->doc, l->list);
    const char *type = info->type == 'f'   ? "file"
                       : info->type == 'd' ? "dir"
                       : info->type == 'l' ? "link"
                                           : "other";

    name_add(l, o, name);
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
