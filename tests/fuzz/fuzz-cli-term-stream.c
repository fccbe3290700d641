/* SPDX-License-Identifier: MIT */
/* A growing text in pieces of any size gives the same lines as in one. The first byte is the size.
 */
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/markdown.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stream(const char *text, size_t len, size_t step, struct buf *ret)
{
    auto_fd int fd = memfd_create("out", MFD_CLOEXEC);
    auto_term struct term *t = NULL;
    auto_markdown_stream struct markdown_stream *m = NULL;
    char piece[4096];
    ssize_t n;

    if (fd < 0 || term_open(fd, fd, &t, NULL) < 0 || markdown_stream_new(t, &m, NULL) < 0)
        __builtin_trap();
    for (size_t at = 0; at < len; at += step) {
        if (markdown_stream_feed(m, text + at, MIN(step, len - at), NULL) < 0)
            __builtin_trap();
    }
    if (markdown_stream_end(m, NULL) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        __builtin_trap();
    buf_init(ret, 64 << 20);
    while ((n = fd_read_full(fd, piece, sizeof(piece), NULL)) > 0) {
        if (buf_append(ret, piece, (size_t)n) < 0)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, parts;

    if (size < 2 || size > 16384)
        return 0;
    stream((const char *)data + 1, size - 1, size, &whole);
    stream((const char *)data + 1, size - 1, (size_t)data[0] % 64 + 1, &parts);
    if (whole.len != parts.len || memcmp(buf_str(&whole), buf_str(&parts), whole.len) != 0)
        __builtin_trap();
    if (memchr(buf_str(&whole), 033, whole.len))
        __builtin_trap();
    buf_done(&whole);
    buf_done(&parts);
    return 0;
}
