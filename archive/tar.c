/* SPDX-License-Identifier: MIT */
/*
 * One header after the other. Extended headers are collected until their entry comes, and each
 * part may be said once: a GNU long name and a PAX path for one entry are refused.
 */
#include "archive/tar.h"

#include "archive/tar-header.h"
#include "base/str.h"

#include <ctype.h>
#include <stdio.h>

enum {
    EXTENDED_MAX = 1024 * 1024, /* bytes of one PAX header: attributes can be large */
    PADDING_MAX = 1024 * 1024,  /* zeros behind the end */
    PIECE = 32 * 1024,
    EXECUTABLE = 0111,
};

struct tar {
    struct stream *in;
    struct output *out;
    struct tar_header header;
    struct tar_extended extended;
};

/* ---- headers ---- */

static bool is_ustar(const struct tar_header *h)
{
    return memcmp(h->magic,
                  "ustar\0"
                  "00",
                  sizeof(h->magic)) == 0;
}

static bool is_known(const struct tar_header *h)
{
    static const char none[sizeof(h->magic)];

    return is_ustar(h) || memcmp(h->magic, "ustar  ", sizeof(none)) == 0 ||
           memcmp(h->magic, none, sizeof(none)) == 0;
}

bool tar_detect(const void *block)
{
    const struct tar_header *h = block;

    return tar_header_is_zero(h) || (is_known(h) && tar_header_check_sum(h));
}

/* The name in the block itself; only ustar has a prefix, GNU keeps other things there. */
static size_t header_name(const struct tar_header *h,
                          char ret[sizeof(h->prefix) + sizeof(h->name) + 2])
{
    size_t len = is_ustar(h) ? strnlen(h->prefix, sizeof(h->prefix)) : 0;
    size_t name = strnlen(h->name, sizeof(h->name));

    memcpy(ret, h->prefix, len);
    if (len > 0)
        ret[len++] = '/';
    memcpy(ret + len, h->name, name);
    return len + name;
}

/* The content of an extended header, with its padding. */
static int content_read(struct tar *t, struct buf *ret, struct error *reterr)
{
    int64_t size;
    size_t padded;

    if (!tar_number_parse(t->header.size, sizeof(t->header.size), &size) || size <= 0)
        return error_set(reterr, ERR_INVALID, "an extended header has a malformed size");
    if (size > EXTENDED_MAX)
        return error_set(reterr, ERR_LIMIT, "an extended header has more than %d bytes",
                         EXTENDED_MAX);
    padded = ((size_t)size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    if (buf_reserve(ret, padded) < 0)
        return error_no_memory(reterr);
    ret->len = (size_t)size;
    return stream_take(t->in, ret->data, padded, reterr);
}

static int pax_take(struct tar *t, struct error *reterr)
{
    auto_buf struct buf content = {.max = EXTENDED_MAX + TAR_BLOCK};
    int r;

    if (t->extended.any)
        return error_set(reterr, ERR_INVALID, "two extended headers for one entry");
    r = content_read(t, &content, reterr);
    return r < 0 ? r
                 : tar_pax_parse(&t->extended, t->header.type == 'g', content.data, content.len,
                                 reterr);
}

/* GNU: the content is the next entry's name or target, with a NUL behind it. */
static int long_name_take(struct tar *t, struct error *reterr)
{
    struct buf *to = t->header.type == 'L' ? &t->extended.path : &t->extended.target;
    auto_buf struct buf content = {.max = EXTENDED_MAX + TAR_BLOCK};
    size_t len;
    int r;

    if (to->len > 0 || t->extended.pax)
        return error_set(reterr, ERR_INVALID, "two extended headers for one entry");
    if ((r = content_read(t, &content, reterr)) < 0)
        return r;
    len = strnlen(content.data, content.len);
    if (len == 0 || len + 1 < content.len)
        return error_set(reterr, ERR_INVALID, "a long name is empty or has a NUL in it");
    if (buf_append(to, content.data, len) < 0)
        return error_set(reterr, ERR_LIMIT, "a long name has %zu bytes", len);
    t->extended.any = true;
    return 0;
}

/* ---- entries ---- */

static int size_find(const struct tar *t, const struct entry *e, uint64_t *ret,
                     struct error *reterr)
{
    const struct tar_extended *x = &t->extended;
    int64_t size;

    if (!tar_number_parse(t->header.size, sizeof(t->header.size), &size) || size < 0)
        return entry_refuse(e, reterr, "has a malformed size");
    if (x->has_size && x->size != (uint64_t)size)
        return entry_refuse(e, reterr, "has one size in its header and another in PAX");
    if (size > 0 && e->kind != RECORD_FILE)
        return entry_refuse(e, reterr, "is no file, but has a size");
    *ret = (uint64_t)size;
    return 0;
}

/* Mode and time. Owners, devices and all other attributes are not even looked at. */
static int attributes_find(const struct tar *t, struct entry *e, struct error *reterr)
{
    const struct tar_header *h = &t->header;
    int64_t mode, mtime;

    if (!tar_number_parse(h->mode, sizeof(h->mode), &mode) || mode < 0)
        return entry_refuse(e, reterr, "has a malformed mode");
    if (!tar_number_parse(h->mtime, sizeof(h->mtime), &mtime) || mtime < INT32_MIN ||
        mtime > INT64_MAX / 1000)
        return entry_refuse(e, reterr, "has a malformed time");
    e->executable = mode & EXECUTABLE;
    e->mtime_ms = t->extended.has_mtime ? t->extended.mtime_ms : mtime * 1000;
    return 0;
}

static int content_copy(struct tar *t, const struct entry *e, struct error *reterr)
{
    char piece[PIECE];
    uint64_t left = e->size;
    int r = 0;

    while (left > 0) {
        size_t len = (size_t)MIN(left, (uint64_t)sizeof(piece));

        if ((r = stream_take(t->in, piece, len, reterr)) < 0 ||
            (r = output_data(t->out, piece, len, reterr)) < 0)
            return r;
        left -= len;
    }
    return stream_take(t->in, piece, (TAR_BLOCK - e->size % TAR_BLOCK) % TAR_BLOCK, reterr);
}

static int entry_take(struct tar *t, enum record_kind kind, const char *why, struct error *reterr)
{
    char name[sizeof(t->header.prefix) + sizeof(t->header.name) + 2];
    const struct tar_extended *x = &t->extended;
    struct entry e = {.name = name, .name_len = header_name(&t->header, name), .kind = kind};
    int r;

    if (x->path.len > 0) {
        e.name = x->path.data;
        e.name_len = x->path.len;
    }
    if (why || x->sparse)
        return entry_refuse(&e, reterr, "is %s", why ? why : "a sparse file");
    if (kind == RECORD_LINK) {
        e.target = x->target.len ? x->target.data : t->header.target;
        e.target_len =
            x->target.len ? x->target.len : strnlen(t->header.target, sizeof(t->header.target));
    } else if (x->target.len > 0) {
        return entry_refuse(&e, reterr, "is no link, but has a target");
    }
    if ((r = size_find(t, &e, &e.size, reterr)) < 0 || (r = attributes_find(t, &e, reterr)) < 0 ||
        (r = output_entry(t->out, &e, reterr)) < 0 || (r = content_copy(t, &e, reterr)) < 0)
        return r;
    tar_extended_done(&t->extended);
    tar_extended_init(&t->extended);
    return 0;
}

/* What each type flag is; a reason refuses the entry. */
static const struct type {
    char flag;
    enum record_kind kind;
    int (*extended)(struct tar *t, struct error *reterr);
    const char *why;
} types[] = {
    {'0', RECORD_FILE, NULL, NULL},
    {0, RECORD_FILE, NULL, NULL},
    {'2', RECORD_LINK, NULL, NULL},
    {'5', RECORD_DIR, NULL, NULL},
    {'x', RECORD_END, pax_take, NULL},
    {'g', RECORD_END, pax_take, NULL},
    {'L', RECORD_END, long_name_take, NULL},
    {'K', RECORD_END, long_name_take, NULL},
    {'1', RECORD_END, NULL, "a hard link"},
    {'3', RECORD_END, NULL, "a character device"},
    {'4', RECORD_END, NULL, "a block device"},
    {'6', RECORD_END, NULL, "a FIFO"},
    {'7', RECORD_END, NULL, "a contiguous file"},
    {'D', RECORD_END, NULL, "a listing of an incremental backup"},
    {'M', RECORD_END, NULL, "a part of a file that begins on another volume"},
    {'N', RECORD_END, NULL, "an old kind of long name"},
    {'S', RECORD_END, NULL, "a sparse file"},
    {'V', RECORD_END, NULL, "a volume label"},
    {'W', RECORD_END, NULL, "a whiteout"},
};

static int header_take(struct tar *t, struct error *reterr)
{
    const char flag = t->header.type;
    char unknown[40];

    if (!tar_header_check_sum(&t->header))
        return error_set(reterr, ERR_INVALID, "a header has a wrong checksum");
    if (!is_known(&t->header))
        return error_set(reterr, ERR_INVALID, "a header is of an unknown kind of tar");
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].flag == flag)
            return types[i].extended ? types[i].extended(t, reterr)
                                     : entry_take(t, types[i].kind, types[i].why, reterr);
    snprintf(unknown, sizeof(unknown),
             isprint((unsigned char)flag) ? "of unknown type '%c'" : "of unknown type %d", flag);
    return entry_take(t, RECORD_END, unknown, reterr);
}

/* Two blocks of zeros end the archive; writers fill up to their block size with more of them. */
static int end_take(struct tar *t, struct error *reterr)
{
    size_t padding = 0;

    if (t->extended.any)
        return error_set(reterr, ERR_INVALID, "an extended header without an entry");
    for (;; padding += TAR_BLOCK) {
        ssize_t n = stream_read(t->in, &t->header, TAR_BLOCK, reterr);

        if (n < 0)
            return (int)n;
        if (n == 0 && padding > 0)
            return stream_finish(t->in, reterr);
        if (n < TAR_BLOCK)
            return error_set(reterr, ERR_INVALID, "the archive is cut off");
        if (!tar_header_is_zero(&t->header))
            return error_set(reterr, ERR_INVALID, "there is data behind the end of the archive");
        if (padding > PADDING_MAX)
            return error_set(reterr, ERR_LIMIT, "more than %d bytes of zeros at the end",
                             PADDING_MAX);
    }
}

int tar_read(struct stream *in, struct output *out, struct error *reterr)
{
    struct tar t = {.in = in, .out = out};
    int r;

    r = stream_take(in, &t.header, TAR_BLOCK, reterr);
    if (r == 0 && !tar_detect(&t.header))
        return error_set(reterr, ERR_INVALID, "the compressed data is not a tar archive");
    tar_extended_init(&t.extended);
    while (r == 0 && !tar_header_is_zero(&t.header)) {
        r = header_take(&t, reterr);
        if (r == 0)
            r = stream_take(in, &t.header, TAR_BLOCK, reterr);
    }
    if (r == 0)
        r = end_take(&t, reterr);
    tar_extended_done(&t.extended);
    return r;
}
