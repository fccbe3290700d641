/* SPDX-License-Identifier: MIT */
/* A part of the source as a stream of bytes, decompressed on the way. */
#pragma once

#include "archive/source.h"

#include <stdbool.h>
#include <sys/types.h>

enum stream_kind {
    STREAM_PLAIN,
    STREAM_GZIP,    /* members, one behind the other */
    STREAM_ZSTD,    /* frames, one behind the other */
    STREAM_DEFLATE, /* the bare data of a zip entry */
};

struct stream_range {
    enum stream_kind kind;
    uint64_t pos, len;   /* of the source */
    uint32_t crc, bytes; /* STREAM_DEFLATE: what the entry says of its content */
};

struct stream;

int stream_open(const struct source *source, const struct stream_range *range, struct stream **ret,
                struct error *reterr) must_check;
void stream_close(struct stream *s);

/* Up to `len` bytes, short only at the end. */
ssize_t stream_read(struct stream *s, void *data, size_t len, struct error *reterr) must_check;

/* Exactly `len` bytes. */
int stream_take(struct stream *s, void *data, size_t len, struct error *reterr) must_check;

/* That was all: nothing more comes out, and nothing was left over of what went in. */
int stream_finish(struct stream *s, struct error *reterr) must_check;

DEFINE_CLEANUP(struct stream *, stream_close)
#define auto_stream __attribute__((cleanup(stream_close_cleanup)))
