/* SPDX-License-Identifier: MIT */
/*
 * libarchive has no filter for bare deflate data, so the data of a zip entry gets the header and
 * trailer of a gzip member around it. Filters are appended by name: with automatic detection a
 * compressed file inside of an entry would be decompressed, too.
 */
#include "archive/stream.h"

#include "archive/crc32.h"
#include "archive/library.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { PIECE = 64 * 1024, GZIP_TRAILER = 8 };

static const unsigned char gzip_header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};

struct stream {
    const struct source *source;
    struct stream_range left; /* of the input; `len` and `pos` move */
    uint64_t end;             /* of the range */
    uint64_t input;           /* bytes that were handed to the filter */
    uint64_t output;          /* bytes that came out of it, and their sum */
    uint32_t crc;
    bool header_done, trailer_done;
    bool empty;              /* nothing comes out, and libarchive may not be asked for it */
    struct archive *archive; /* NULL: STREAM_PLAIN */
    struct error error;      /* of the source, met inside of the filter */
    unsigned char trailer[GZIP_TRAILER];
    const unsigned char *ready; /* decompressed and not read yet */
    size_t ready_len;
    unsigned char in[PIECE], out[PIECE];
};

static ssize_t piece_hand(struct stream *s, const void *piece, size_t len, const void **ret)
{
    *ret = piece;
    s->input += len;
    return (ssize_t)len;
}

/* The next piece of the range, at most PIECE; 0 at its end. */
static ssize_t range_read(struct stream *s, struct error *reterr)
{
    size_t len = (size_t)MIN(s->left.len, (uint64_t)PIECE);
    int r = source_read(s->source, s->left.pos, s->in, len, reterr);

    if (r < 0)
        return r;
    s->left.pos += len;
    s->left.len -= len;
    return (ssize_t)len;
}

static ssize_t filter_input(struct archive *a, void *user, const void **ret)
{
    struct stream *s = user;
    ssize_t len;

    if (s->left.kind == STREAM_DEFLATE && !s->header_done) {
        s->header_done = true;
        return piece_hand(s, gzip_header, sizeof(gzip_header), ret);
    }
    len = range_read(s, &s->error);
    if (len < 0) {
        archive_set_error(a, EIO, "input");
        return -1;
    }
    if (len == 0 && s->left.kind == STREAM_DEFLATE && !s->trailer_done) {
        s->trailer_done = true;
        return piece_hand(s, s->trailer, sizeof(s->trailer), ret);
    }
    return piece_hand(s, s->in, (size_t)len, ret);
}

static int filter_error(const struct stream *s, struct error *reterr)
{
    if (s->error.code != ERR_OK)
        return error_set(reterr, s->error.code, "%s", s->error.text);
    return error_set(reterr, ERR_INVALID, "the compressed data is damaged or cut off");
}

static int filter_open(struct stream *s, struct error *reterr)
{
    int filter = s->left.kind == STREAM_ZSTD ? ARCHIVE_FILTER_ZSTD : ARCHIVE_FILTER_GZIP;
    struct archive_entry *entry;
    int r;

    s->archive = archive_read_new();
    if (!s->archive)
        return error_no_memory(reterr);
    if (archive_read_support_format_raw(s->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(s->archive) != ARCHIVE_OK ||
        archive_read_append_filter(s->archive, filter) != ARCHIVE_OK)
        return error_set(reterr, ERR_UNAVAILABLE, "libarchive was built without a decompressor");
    if (archive_read_open(s->archive, s, NULL, filter_input, NULL) != ARCHIVE_OK)
        return filter_error(s, reterr);
    r = archive_read_next_header(s->archive, &entry);
    s->empty = r == ARCHIVE_EOF && archive_errno(s->archive) == 0;
    return r == ARCHIVE_OK || s->empty ? 0 : filter_error(s, reterr);
}

int stream_open(const struct source *source, const struct stream_range *range, struct stream **ret,
                struct error *reterr)
{
    auto_stream struct stream *s = calloc(1, sizeof(*s));
    const uint32_t trailer[] = {htole32(range->crc), htole32(range->bytes)};
    int r;

    if (!s)
        return error_no_memory(reterr);
    s->source = source;
    s->left = *range;
    s->end = range->pos + range->len;
    memcpy(s->trailer, trailer, sizeof(s->trailer));
    if (range->kind != STREAM_PLAIN && (r = filter_open(s, reterr)) < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

void stream_close(struct stream *s)
{
    if (s && s->archive)
        archive_read_free(s->archive);
    free(s);
}

/* Makes more bytes ready; 0 at the end. */
static ssize_t stream_fill(struct stream *s, struct error *reterr)
{
    ssize_t n;

    if (s->archive) {
        s->ready = s->out;
        n = s->empty ? 0 : archive_read_data(s->archive, s->out, sizeof(s->out));
        if (n < 0)
            return filter_error(s, reterr);
        s->output += (uint64_t)n;
        s->crc = zip_crc32(s->crc, s->out, (size_t)n);
    } else {
        s->ready = s->in;
        n = range_read(s, reterr);
        if (n < 0)
            return n;
    }
    s->ready_len = (size_t)n;
    return n;
}

ssize_t stream_read(struct stream *s, void *data, size_t len, struct error *reterr)
{
    size_t done = 0;

    while (done < len) {
        size_t n;
        ssize_t r = 1;

        if (s->ready_len == 0)
            r = stream_fill(s, reterr);
        if (r < 0)
            return r;
        if (r == 0)
            break;
        n = MIN(len - done, s->ready_len);
        memcpy((char *)data + done, s->ready, n);
        s->ready += n;
        s->ready_len -= n;
        done += n;
    }
    return (ssize_t)done;
}

int stream_take(struct stream *s, void *data, size_t len, struct error *reterr)
{
    ssize_t n = stream_read(s, data, len, reterr);

    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : error_set(reterr, ERR_INVALID, "the archive is cut off");
}

/*
 * Of gzip's checksum, which stands behind each member, the last one can be found. It is of all that
 * came out when its length is, too; otherwise there were several members, and nothing to compare.
 */
static int gzip_check(const struct stream *s, struct error *reterr)
{
    uint32_t trailer[2];
    int r = source_read(s->source, s->end - sizeof(trailer), trailer, sizeof(trailer), reterr);

    if (r < 0)
        return r;
    if (le32toh(trailer[1]) == (uint32_t)s->output && le32toh(trailer[0]) != s->crc)
        return error_set(reterr, ERR_INVALID, "the compressed data is damaged");
    return 0;
}

int stream_finish(struct stream *s, struct error *reterr)
{
    char more;
    ssize_t n = stream_read(s, &more, 1, reterr);

    if (n < 0)
        return (int)n;
    if (n > 0 || s->left.len > 0 ||
        (s->archive && archive_filter_bytes(s->archive, -1) != (int64_t)s->input))
        return error_set(reterr, ERR_INVALID, "there is data behind the end of the archive");
    return s->left.kind == STREAM_GZIP ? gzip_check(s, reterr) : 0;
}
