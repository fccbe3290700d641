/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an archive, in this process. What comes out has to be records that the daemon can
 * read, and ends when it is larger than a fuzzer's patience.
 */
#include "archive/tar-header.h"
#include "archive/unpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_MAX = 8 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct checked {
    struct output output; /* first */
    size_t total;
    struct buf pending;
};

static int checked_send(struct output *o, const void *data, size_t len, struct error *reterr)
{
    struct checked *c = (struct checked *)o;
    struct record record;
    ssize_t used;
    size_t done = 0;

    if (buf_append(&c->pending, data, len) < 0)
        abort();
    while ((used = record_next(c->pending.data + done, c->pending.len - done, &record, reterr)) > 0)
        done += (size_t)used;
    if (used < 0)
        abort();
    buf_consume(&c->pending, done);
    c->total += len;
    return c->total > OUTPUT_MAX ? error_set(reterr, ERR_LIMIT, "enough") : 0;
}

/* Tar headers get a right checksum, which a fuzzer would hardly ever find. */
static void checksums_repair(char *data, size_t size)
{
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        struct tar_header *h = (struct tar_header *)(data + at);
        unsigned sum = 0;

        if (memcmp(h->magic, "ustar", 5) != 0)
            continue;
        memset(h->checksum, ' ', sizeof(h->checksum));
        for (size_t i = 0; i < sizeof(*h); i++)
            sum += (unsigned char)data[at + i];
        snprintf(h->checksum, sizeof(h->checksum), "%06o", sum);
    }
}

static void archive_run(const void *data, size_t size)
{
    const struct source source = {.fd = -1, .data = data, .size = size};
    struct checked c = {.pending = {.max = 8 * RECORD_MAX}};
    struct error error;
    int r;

    output_init(&c.output, checked_send);
    r = unpack(&source, &c.output, &error);
    if (output_finish(&c.output, r < 0 ? &error : NULL, NULL) == 0 && c.pending.len > 0)
        abort();
    output_done(&c.output);
    buf_done(&c.pending);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *copy = malloc(size + 1);

    archive_run(data, size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    checksums_repair(copy, size);
    archive_run(copy, size);
    return 0;
}
