/* SPDX-License-Identifier: MIT */
/*
 * Downloads: an exported file as it is, or an exported folder as an archive that is made while it
 * is read. A thread walks the folder then; it ends with the download, whichever of the two stops
 * first.
 */
#include "session/transfer-internal.h"

#include "base/str.h"
#include "session/archive.h"
#include "wire/utf8.h"

#include <stdio.h>

#define WORKSPACE "/workspace"

struct session_download {
    struct session_reader *reader; /* of a raw file */

    /* of an archive */
    struct archive_packer *packer;
    pthread_t pusher;
    bool pushing;
    struct session_manager *manager;
    char id[ID_LEN + 1];
    char *owner;
    char path[TREE_PATH_MAX];
    bool is_dir;
};

static const struct format {
    const char *suffix, *mime;
    enum archive_format archive;
} formats[] = {
    [DOWNLOAD_AUTO] = {".tar.gz", "application/gzip", ARCHIVE_TAR_GZ},
    [DOWNLOAD_TAR_GZ] = {".tar.gz", "application/gzip", ARCHIVE_TAR_GZ},
    [DOWNLOAD_ZIP] = {".zip", "application/zip", ARCHIVE_ZIP},
};

/* ---- archives ---- */

static int archive_push(struct session_download *d, struct error *reterr)
{
    const struct session_path at = {d->id, d->owner, d->path};
    auto_session_reader struct session_reader *r = NULL;
    struct session_file_info info;
    int n;

    if (d->is_dir)
        return session_walk_push(d->manager, &at, &d->packer->sink, reterr);
    n = session_reader_open(d->manager, &at, &info, &r, reterr);
    return n < 0 ? n : session_reader_push(r, &info, place_name(d->path), &d->packer->sink, reterr);
}

static void *pusher_main(void *arg)
{
    struct session_download *d = arg;
    struct error why;
    int r = archive_push(d, &why);

    if (r == 0)
        r = archive_packer_finish(d->packer, &why);
    if (r < 0)
        archive_packer_fail(d->packer, &why);
    return NULL;
}

static int archive_open(struct session_download *d, enum download_format format,
                        struct error *reterr)
{
    int r = archive_packer_new(formats[format].archive, &d->packer, reterr);

    if (r < 0)
        return r;
    r = pthread_create(&d->pusher, NULL, pusher_main, d);
    d->pushing = r == 0;
    return r ? error_sys(reterr, r, "cannot start a thread") : 0;
}

/* ---- opening ---- */

/* A long name loses its end, but never a part of a character. */
static void name_make(const char *path, const char *suffix, struct download_info *ret)
{
    const char *name = place_name(path);
    size_t room = sizeof(ret->name) - 1 - strlen(suffix);
    size_t len = utf8_cut(name, strlen(name), room);

    snprintf(ret->name, sizeof(ret->name), "%.*s%s", (int)len, name, suffix);
}

static int size_check(uint64_t size, struct error *reterr)
{
    return size <= DOWNLOAD_BYTES_MAX
               ? 0
               : error_set(reterr, ERR_LIMIT, "the file has %llu bytes, a download at most %llu",
                           (unsigned long long)size, DOWNLOAD_BYTES_MAX);
}

static int raw_open(struct session_download *d, const struct session_path *at,
                    struct download_info *ret_info, struct error *reterr)
{
    struct session_file_info info;
    int r = session_reader_open(d->manager, at, &info, &d->reader, reterr);

    if (r == 0)
        r = size_check(info.size, reterr);
    if (r < 0)
        return r;
    name_make(d->path, "", ret_info);
    ret_info->mime = "application/octet-stream";
    ret_info->size = (int64_t)info.size;
    return 0;
}

static int download_begin(struct session_download *d, const struct session_path *at,
                          enum download_format format, struct download_info *ret_info,
                          struct error *reterr)
{
    const struct session_path place = {d->id, at->owner, d->path};
    struct session_file_info info;
    int r = place_normalize(WORKSPACE, at->path, d->path, reterr);

    if (r == 0)
        r = session_export_check(d->manager, &place, reterr);
    if (r == 0)
        r = session_file_look(d->manager, &place, &info, reterr);
    if (r < 0)
        return r;
    d->is_dir = info.type == 'd';
    if (!d->is_dir && format == DOWNLOAD_AUTO)
        return raw_open(d, &place, ret_info, reterr);
    r = size_check(info.size, reterr);
    if (r < 0)
        return r;
    name_make(d->path, formats[format].suffix, ret_info);
    ret_info->mime = formats[format].mime;
    ret_info->size = -1;
    return archive_open(d, format, reterr);
}

int session_download_open(struct session_manager *m, const struct session_path *at,
                          enum download_format format, struct download_info *ret_info,
                          struct session_download **ret, struct error *reterr)
{
    auto_session_download struct session_download *d = calloc(1, sizeof(*d));
    int r;

    if (!d)
        return error_no_memory(reterr);
    d->manager = m;
    d->owner = at->owner ? strdup(at->owner) : NULL;
    if (at->owner && !d->owner)
        return error_no_memory(reterr);
    if (str_copy(d->id, sizeof(d->id), at->id) < 0)
        return error_set(reterr, ERR_NOT_FOUND, "unknown session '%.64s'", at->id);
    r = download_begin(d, at, format, ret_info, reterr);
    if (r == 0)
        *ret = TAKE_PTR(d);
    return r;
}

ssize_t session_download_read(struct session_download *d, void *data, size_t len,
                              struct error *reterr)
{
    return d->reader ? session_reader_read(d->reader, data, len, reterr)
                     : archive_packer_read(d->packer, data, len, reterr);
}

void session_download_close(struct session_download *d)
{
    if (!d)
        return;
    if (d->pushing) {
        archive_packer_cancel(d->packer);
        pthread_join(d->pusher, NULL);
    }
    if (d->packer)
        archive_packer_free(d->packer);
    session_reader_close(d->reader);
    free(d->owner);
    free(d);
}
