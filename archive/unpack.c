/* SPDX-License-Identifier: MIT */
/* A file's name is not asked: its first bytes say what it is, and one reader alone gets it. */
#include "archive/unpack.h"

#include "archive/tar.h"
#include "archive/zip.h"

#include <string.h>

static const struct format {
    const char *name;
    size_t len;
    const char *magic; /* NULL: plain tar, which has none at its start */
    int stream;        /* -1: zip */
} formats[] = {
    {"zip", 4, "PK\3\4", -1},
    {"zip (empty)", 4, "PK\5\6", -1},
    {"tar.gz", 3, "\x1f\x8b\x08", STREAM_GZIP},
    {"tar.zst", 4, "\x28\xb5\x2f\xfd", STREAM_ZSTD},
    {"tar", 0, NULL, STREAM_PLAIN},
};

void unpack_list(FILE *to)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        fprintf(to, "%s\n", formats[i].name);
}

static const struct format *format_find(const char *block, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        const struct format *f = &formats[i];

        if (f->magic ? len >= f->len && memcmp(block, f->magic, f->len) == 0
                     : len == TAR_BLOCK && tar_detect(block))
            return f;
    }
    return NULL;
}

int unpack(const struct source *source, struct output *out, struct error *reterr)
{
    struct stream_range range = {.len = source->size};
    size_t len = (size_t)MIN(source->size, (uint64_t)TAR_BLOCK);
    auto_stream struct stream *stream = NULL;
    const struct format *format;
    char block[TAR_BLOCK];
    int r = source_read(source, 0, block, len, reterr);

    if (r < 0)
        return r;
    format = format_find(block, len);
    if (!format)
        return error_set(reterr, ERR_INVALID,
                         "unsupported format; tar, tar.gz, tar.zst and zip can be unpacked");
    if (format->stream < 0)
        return zip_read(source, out, reterr);
    range.kind = (enum stream_kind)format->stream;
    r = stream_open(source, &range, &stream, reterr);
    return r < 0 ? r : tar_read(stream, out, reterr);
}
