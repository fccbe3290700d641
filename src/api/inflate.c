/* SPDX-License-Identifier: MIT */
/* The one file that sees zlib. */
#include "api/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16 }; /* the largest window, and a gzip header */

struct inflate {
    z_stream stream;
    bool over;
};

int inflate_new(const void *data, size_t len, struct inflate **ret, struct error *reterr)
{
    struct inflate *z = calloc(1, sizeof(*z));

    if (!z)
        return error_no_memory(reterr);
    z->stream.next_in = (Bytef *)(uintptr_t)data;
    z->stream.avail_in = (uInt)len;
    if (inflateInit2(&z->stream, GZIP_WINDOW) != Z_OK) {
        free(z);
        return error_no_memory(reterr);
    }
    *ret = z;
    return 0;
}

void inflate_free(struct inflate *z)
{
    inflateEnd(&z->stream);
    free(z);
}

ssize_t inflate_read(struct inflate *z, char *ret, size_t len)
{
    int r;

    if (z->over)
        return 0;
    z->stream.next_out = (Bytef *)ret;
    z->stream.avail_out = (uInt)MIN(len, (size_t)1 << 30);
    r = inflate(&z->stream, Z_NO_FLUSH);
    z->over = r == Z_STREAM_END;
    if ((r != Z_OK && r != Z_STREAM_END) || (char *)z->stream.next_out == ret)
        return z->over ? 0 : -1;
    return (char *)z->stream.next_out - ret;
}
