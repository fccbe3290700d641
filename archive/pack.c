/* SPDX-License-Identifier: MIT */
/*
 * libarchive writes GNU tar rather than PAX, because GNU's names are bytes: PAX wants UTF-8. In a
 * zip file it says "this name is UTF-8" when the locale is, so the locale is chosen for each name.
 */
#include "archive/pack.h"

#include "archive/library.h"
#include "base/fd.h"
#include "wire/utf8.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

struct pack {
    struct archive *archive;
    enum pack_format format;
    int fd;
    locale_t utf8; /* 0: this system has none, and names go unmarked */
    locale_t plain;
    uint64_t missing;   /* of the last file */
    struct error error; /* of the descriptor, met inside of libarchive */
};

static la_ssize_t archive_output(struct archive *a, void *user, const void *data, size_t len)
{
    struct pack *p = user;

    if (fd_write_full(p->fd, data, len, &p->error) < 0) {
        archive_set_error(a, EIO, "output");
        return -1;
    }
    return (la_ssize_t)len;
}

static int write_error(const struct pack *p, struct error *reterr)
{
    if (p->error.code != ERR_OK)
        return error_set(reterr, p->error.code, "%s", p->error.text);
    return error_set(reterr, ERR_INTERNAL, "cannot write the archive: %s",
                     archive_error_string(p->archive));
}

/* No time stamp of now in it: the same tree gives the same archive. */
static int archive_begin(struct pack *p)
{
    struct archive *a = p->archive;

    if (p->format == PACK_ZIP)
        return archive_write_set_format_zip(a);
    if (archive_write_set_format_gnutar(a) != ARCHIVE_OK ||
        archive_write_add_filter_gzip(a) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    return archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
}

int pack_new(enum pack_format format, int fd, struct pack **ret, struct error *reterr)
{
    auto_pack struct pack *p = calloc(1, sizeof(*p));

    if (!p)
        return error_no_memory(reterr);
    p->format = format;
    p->fd = fd;
    p->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", 0);
    p->plain = newlocale(LC_CTYPE_MASK, "C", 0);
    p->archive = archive_write_new();
    if (!p->archive || !p->plain)
        return error_no_memory(reterr);
    if (archive_begin(p) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(p->archive, 1) != ARCHIVE_OK ||
        archive_write_open(p->archive, p, NULL, archive_output, NULL) != ARCHIVE_OK)
        return write_error(p, reterr);
    *ret = TAKE_PTR(p);
    return 0;
}

void pack_free(struct pack *p)
{
    if (!p)
        return;
    if (p->archive)
        archive_write_free(p->archive);
    uselocale(LC_GLOBAL_LOCALE);
    if (p->utf8)
        freelocale(p->utf8);
    if (p->plain)
        freelocale(p->plain);
    free(p);
}

/* Whether repairing would change nothing. */
static bool is_utf8(const char *name)
{
    auto_buf struct buf b = {.max = 3 * RECORD_TEXT_MAX};
    struct utf8_repair repair = {};

    return utf8_repair_feed(&repair, name, strlen(name), &b) == 0 &&
           utf8_repair_finish(&repair, &b) == 0 && strcmp(buf_str(&b), name) == 0;
}

static int entry_begin(struct pack *p, const struct record *r, struct error *reterr)
{
    static const struct {
        enum record_kind kind;
        unsigned type, mode;
    } kinds[] = {
        {RECORD_DIR, AE_IFDIR, 0755}, {RECORD_FILE, AE_IFREG, 0644}, {RECORD_LINK, AE_IFLNK, 0777}};
    auto_archive_entry struct archive_entry *e = archive_entry_new();

    if (!e)
        return error_no_memory(reterr);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].kind != r->kind)
            continue;
        archive_entry_set_filetype(e, kinds[i].type);
        archive_entry_set_perm(e, r->executable ? 0755 : kinds[i].mode);
    }
    uselocale(p->utf8 && is_utf8(r->path) ? p->utf8 : p->plain);
    archive_entry_set_pathname(e, r->path);
    archive_entry_set_mtime(e, (time_t)(r->mtime_ms / 1000), 0);
    archive_entry_set_size(e, (int64_t)r->size);
    if (r->kind == RECORD_LINK)
        archive_entry_set_symlink(e, r->body);
    if (archive_write_header(p->archive, e) != ARCHIVE_OK)
        return write_error(p, reterr);
    p->missing = r->size;
    return 0;
}

static int data_add(struct pack *p, const struct record *r, struct error *reterr)
{
    if (r->len > p->missing)
        return error_set(reterr, ERR_PROTOCOL, "more data than the file's size");
    p->missing -= r->len;
    return archive_write_data(p->archive, r->body, r->len) == (la_ssize_t)r->len
               ? 0
               : write_error(p, reterr);
}

int pack_take(struct pack *p, const struct record *r, struct error *reterr)
{
    if (r->kind == RECORD_DATA)
        return data_add(p, r, reterr);
    if (p->missing > 0)
        return error_set(reterr, ERR_PROTOCOL, "less data than the file's size");
    if (r->kind == RECORD_ERROR)
        return error_set(reterr, r->code, "%s", (const char *)r->body);
    if (r->kind != RECORD_END)
        return entry_begin(p, r, reterr);
    return archive_write_close(p->archive) == ARCHIVE_OK ? 1 : write_error(p, reterr);
}
