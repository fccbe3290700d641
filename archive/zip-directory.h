/* SPDX-License-Identifier: MIT */
/* The central directory of a zip file and where it is. */
#pragma once

#include "archive/output.h"
#include "archive/source.h"

enum {
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8,
    ZIP_FLAG_SIZES_BEHIND = 1u << 3, /* the local header does not know them yet */
    ZIP_FLAG_UTF8 = 1u << 11,
    ZIP_MARK64 = 0xffff, /* a number that is in the zip64 part; 32 bits: UINT32_MAX */
    ZIP_EXTRA_ZIP64 = 0x0001,
    ZIP_EXTRA_TIME = 0x5455,
    ZIP_EXTRA_NAME = 0x7075,
};
#define ZIP_SIGNATURE_LOCAL 0x04034b50u
#define ZIP_SIGNATURE_CENTRAL 0x02014b50u
#define ZIP_SIGNATURE_END 0x06054b50u
#define ZIP_SIGNATURE_END64 0x06064b50u
#define ZIP_SIGNATURE_LOCATOR64 0x07064b50u

struct zip_directory {
    struct buf data;
    uint64_t pos; /* in the file; entries lie before it */
    uint64_t count;
};

struct zip_entry {
    struct entry entry;      /* the name and the rest as it will be told */
    const char *stored_name; /* as the local header has to have it */
    size_t stored_len;
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed_size, offset;
};

static inline uint16_t zip_u16(const void *p)
{
    const unsigned char *b = p;

    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t zip_u32(const void *p)
{
    return zip_u16(p) | (uint32_t)zip_u16((const char *)p + 2) << 16;
}

static inline uint64_t zip_u64(const void *p)
{
    return zip_u32(p) | (uint64_t)zip_u32((const char *)p + 4) << 32;
}

/* A part of the extra field by its id; -1 when there is none, -2 when there are two. */
ssize_t zip_extra_find(const char *extra, size_t len, uint16_t id, const char **ret);

int zip_directory_read(const struct source *source, struct zip_directory *ret,
                       struct error *reterr) must_check;

/* Iterates from *pos = 0: 1 an entry that points into the directory, 0 the end. */
int zip_directory_next(const struct zip_directory *d, size_t *pos, struct zip_entry *ret,
                       struct error *reterr) must_check;
