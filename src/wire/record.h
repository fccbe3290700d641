/* SPDX-License-Identifier: MIT */
/*
 * Records between the daemon and sandbox-archive (docs/PROTOCOL.md section 5): a tree of files as
 * plain bytes. Texts carry their NUL, so a record is used where it lies; the parser has checked it.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    RECORD_HEADER = 24,
    RECORD_TEXT_MAX = 4096, /* of a path, a target or an error, with its NUL */
    RECORD_DATA_MAX = 64 * 1024,
    RECORD_MAX = RECORD_HEADER + RECORD_TEXT_MAX + RECORD_DATA_MAX,
};

enum record_kind {
    RECORD_DIR = 'd',
    RECORD_FILE = 'f', /* `size` bytes in RECORD_DATA follow */
    RECORD_LINK = 'l', /* the body is its target */
    RECORD_DATA = '=',
    RECORD_END = '.',   /* the tree is whole; nothing follows */
    RECORD_ERROR = '!', /* the body says why there is no tree; nothing follows */
};

struct record {
    enum record_kind kind;
    bool executable;      /* RECORD_FILE */
    enum error_code code; /* RECORD_ERROR */
    const char *path;     /* entries; never empty */
    uint64_t size;        /* RECORD_FILE */
    int64_t mtime_ms;     /* entries */
    const void *body;     /* data, or a text that ends with a NUL, which `len` counts */
    size_t len;
};

/*
 * Finds one record at the start of `data`. Returns its whole size and fills `ret`, which points
 * into `data`; 0 when more bytes are needed; ERR_PROTOCOL when it is malformed.
 */
ssize_t record_next(const void *data, size_t len, struct record *ret,
                    struct error *reterr) must_check;

/* -1 when a text or the data is too long, or memory is short. */
int record_append(struct buf *b, const struct record *r) must_check;

/* A name for people: well-formed text stays, control characters and the like become '?', a long
 * one loses its middle. */
void record_show(char *ret, size_t size, const char *name, size_t len);
