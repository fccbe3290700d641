/* SPDX-License-Identifier: MIT */
/*
 * The end record has to reach exactly to the end of the file and the directory exactly to the end
 * record: offsets that are only right after a correction are what makes two readers disagree.
 */
#include "archive/zip-directory.h"

#include "archive/crc32.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum {
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR64_SIZE = 20,
    CENTRAL_SIZE = 46,
    COMMENT_MAX = 65535,
    DIRECTORY_MAX = 64 * 1024 * 1024,
    HOST_UNIX = 3,
    HOST_DARWIN = 19,
    DOS_FOLDER = 0x10,
    FLAGS_KNOWN = 0x0006 | ZIP_FLAG_SIZES_BEHIND | ZIP_FLAG_UTF8,
    FLAG_ENCRYPTED = 1u << 0,
};

static int malformed(struct error *reterr, const char *what)
{
    return error_set(reterr, ERR_INVALID, "the zip file's %s", what);
}

/* ---- where the directory is ---- */

struct end {
    uint64_t pos; /* of the first end record */
    uint64_t count, size, offset;
};

static int end_find(const struct source *s, struct end *ret, char record[END_SIZE],
                    struct error *reterr)
{
    auto_free char *tail = NULL;
    size_t len = (size_t)MIN(s->size, (uint64_t)END_SIZE + COMMENT_MAX);
    int r;

    if (len < END_SIZE)
        return malformed(reterr, "end is cut off");
    tail = malloc(len);
    if (!tail)
        return error_no_memory(reterr);
    if ((r = source_read(s, s->size - len, tail, len, reterr)) < 0)
        return r;
    for (size_t at = len - END_SIZE + 1; at-- > 0;) {
        if (zip_u32(tail + at) != ZIP_SIGNATURE_END)
            continue;
        if (at + END_SIZE + zip_u16(tail + at + 20) != len)
            return malformed(reterr, "comment has another length, or data is behind its end");
        memcpy(record, tail + at, END_SIZE);
        *ret = (struct end){.pos = s->size - len + at,
                            .count = zip_u16(record + 10),
                            .size = zip_u32(record + 12),
                            .offset = zip_u32(record + 16)};
        return zip_u32(record + 4) == 0 && zip_u16(record + 8) == ret->count
                   ? 0
                   : malformed(reterr, "parts are on several disks");
    }
    return malformed(reterr, "end is cut off");
}

static bool agrees(uint64_t small, uint64_t mark, uint64_t large)
{
    return small == mark || small == large;
}

/* A second end record with larger numbers, directly in front of the first. */
static int end64_take(const struct source *s, struct end *e, struct error *reterr)
{
    char locator[LOCATOR64_SIZE], record[END64_SIZE];
    uint64_t pos;
    int r;

    if (e->pos < LOCATOR64_SIZE + END64_SIZE)
        return 0;
    if ((r = source_read(s, e->pos - LOCATOR64_SIZE, locator, sizeof(locator), reterr)) < 0)
        return r;
    if (zip_u32(locator) != ZIP_SIGNATURE_LOCATOR64)
        return 0;
    pos = e->pos - LOCATOR64_SIZE - END64_SIZE;
    if (zip_u32(locator + 4) != 0 || zip_u64(locator + 8) != pos || zip_u32(locator + 16) > 1)
        return malformed(reterr, "zip64 end is not where it is said to be");
    if ((r = source_read(s, pos, record, sizeof(record), reterr)) < 0)
        return r;
    if (zip_u32(record) != ZIP_SIGNATURE_END64 || zip_u64(record + 4) != END64_SIZE - 12 ||
        zip_u64(record + 16) != 0 || zip_u64(record + 24) != zip_u64(record + 32))
        return malformed(reterr, "zip64 end is malformed");
    if (!agrees(e->count, ZIP_MARK64, zip_u64(record + 32)) ||
        !agrees(e->size, UINT32_MAX, zip_u64(record + 40)) ||
        !agrees(e->offset, UINT32_MAX, zip_u64(record + 48)))
        return malformed(reterr, "zip64 end says other numbers than its end");
    *e = (struct end){.pos = pos,
                      .count = zip_u64(record + 32),
                      .size = zip_u64(record + 40),
                      .offset = zip_u64(record + 48)};
    return 0;
}

int zip_directory_read(const struct source *source, struct zip_directory *ret, struct error *reterr)
{
    char record[END_SIZE];
    struct end end = {};
    int r;

    if ((r = end_find(source, &end, record, reterr)) < 0 ||
        (r = end64_take(source, &end, reterr)) < 0)
        return r;
    if (end.size > DIRECTORY_MAX)
        return error_set(reterr, ERR_LIMIT, "a zip directory of more than %d bytes", DIRECTORY_MAX);
    if (end.offset > end.pos || end.pos - end.offset != end.size)
        return malformed(reterr, "directory is not where it is said to be");
    ret->pos = end.offset;
    ret->count = end.count;
    buf_init(&ret->data, DIRECTORY_MAX);
    if (buf_reserve(&ret->data, end.size) < 0)
        return error_no_memory(reterr);
    ret->data.len = end.size;
    return source_read(source, end.offset, ret->data.data, end.size, reterr);
}

/* ---- its entries ---- */

ssize_t zip_extra_find(const char *extra, size_t len, uint16_t id, const char **ret)
{
    ssize_t found = -1;

    while (len >= 4) {
        size_t part = zip_u16(extra + 2);

        if (part > len - 4)
            break;
        if (zip_u16(extra) == id) {
            if (found >= 0)
                return -2;
            found = (ssize_t)part;
            *ret = extra + 4;
        }
        extra += 4 + part;
        len -= 4 + part;
    }
    return found;
}

/* Numbers that do not fit are in the zip64 part: those that are marked, and no other. */
static int numbers_widen(struct zip_entry *z, const char *extra, size_t len, struct error *reterr)
{
    uint64_t *const numbers[] = {&z->entry.size, &z->packed_size, &z->offset};
    const char *part = NULL;
    ssize_t have = zip_extra_find(extra, len, ZIP_EXTRA_ZIP64, &part);
    size_t want = 0;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        want += *numbers[i] == UINT32_MAX ? 8 : 0;
    if (have == -2 || (have >= 0 && (size_t)have != want))
        return entry_refuse(&z->entry, reterr, "has a zip64 part that does not fit");
    if (have < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (*numbers[i] != UINT32_MAX)
            continue;
        *numbers[i] = zip_u64(part);
        part += 8;
    }
    return 0;
}

/* A name in UTF-8 beside one in an old character set; it counts if it belongs to that name. */
static int name_replace(struct zip_entry *z, const char *extra, size_t len, struct error *reterr)
{
    const char *part = NULL;
    ssize_t have = zip_extra_find(extra, len, ZIP_EXTRA_NAME, &part);

    if (have == -1)
        return 0;
    if (have < 6 || part[0] != 1 ||
        zip_u32(part + 1) != zip_crc32(0, z->stored_name, z->stored_len))
        return entry_refuse(&z->entry, reterr, "has a second name that does not belong to it");
    z->entry.name = part + 5;
    z->entry.name_len = (size_t)have - 5;
    return 0;
}

/*
 * Days since 1970, with years that begin in March. timegm() would do, but wants to read the time
 * zone's file, which would be the end of this process.
 */
static int64_t days_find(int64_t year, unsigned month, unsigned day)
{
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t since_march = (month + 9) % 12;

    return y * 365 + y / 4 - y / 100 + y / 400 + (since_march * 153 + 2) / 5 + day - 1 - 719468;
}

/* In UTC where it is told so, otherwise the writer's local time, taken for UTC. */
static int64_t mtime_find(const char *central, const char *extra, size_t len)
{
    const unsigned clock = zip_u16(central + 12), date = zip_u16(central + 14);
    const char *part = NULL;
    ssize_t have = zip_extra_find(extra, len, ZIP_EXTRA_TIME, &part);

    if (have >= 5 && part[0] & 1)
        return (int64_t)(int32_t)zip_u32(part + 1) * 1000;
    return (days_find(1980 + (date >> 9), date >> 5 & 15, date & 31) * 86400 +
            (clock >> 11) * 3600 + (clock >> 5 & 63) * 60 + (clock & 31) * 2) *
           1000;
}

/* Modes of Unix, where they are, and the slash behind the name have to agree. */
static int kind_find(struct zip_entry *z, const char *central, struct error *reterr)
{
    struct entry *e = &z->entry;
    const unsigned host = (unsigned char)central[5];
    const uint32_t attributes = zip_u32(central + 38);
    const unsigned mode = host == HOST_UNIX || host == HOST_DARWIN ? attributes >> 16 : 0;
    const bool slash = e->name_len > 0 && e->name[e->name_len - 1] == '/';
    const unsigned type = mode & S_IFMT;

    if (type != 0 && type != S_IFREG && type != S_IFDIR && type != S_IFLNK)
        return entry_refuse(e, reterr, "is a device, FIFO or socket");
    if (slash ? type == S_IFREG || type == S_IFLNK
              : type == S_IFDIR || (type == 0 && attributes & DOS_FOLDER))
        return entry_refuse(e, reterr, "is a folder by its name or its mode, but not by both");
    e->kind = slash ? RECORD_DIR : type == S_IFLNK ? RECORD_LINK : RECORD_FILE;
    e->executable = mode & 0111;
    if (e->kind == RECORD_DIR && e->size > 0)
        return entry_refuse(e, reterr, "is a folder, but has a size");
    return 0;
}

static int method_check(const struct zip_entry *z, struct error *reterr)
{
    if (z->flags & FLAG_ENCRYPTED)
        return entry_refuse(&z->entry, reterr, "is encrypted");
    if (z->flags & ~FLAGS_KNOWN)
        return entry_refuse(&z->entry, reterr, "has unknown flags 0x%04x", z->flags);
    if (z->method != ZIP_STORED && z->method != ZIP_DEFLATED)
        return entry_refuse(&z->entry, reterr, "is compressed by unknown method %u", z->method);
    if (z->method == ZIP_STORED && z->packed_size != z->entry.size)
        return entry_refuse(&z->entry, reterr, "is stored with another size than its own");
    return 0;
}

/* Backslashes: writers that use them mean folders, the standard forbids them. */
static int name_check(const struct zip_entry *z, struct error *reterr)
{
    const char *name = z->entry.name;
    size_t len = z->entry.name_len;

    if (len == 0)
        return entry_refuse(&z->entry, reterr, "has no name");
    if (memchr(name, '\\', len))
        return entry_refuse(&z->entry, reterr, "has a backslash in its name");
    return 0;
}

int zip_directory_next(const struct zip_directory *d, size_t *pos, struct zip_entry *ret,
                       struct error *reterr)
{
    const char *p = d->data.data + *pos;
    const size_t left = d->data.len - *pos;
    size_t name, extra, whole;
    int r;

    if (left == 0)
        return 0;
    if (left < CENTRAL_SIZE || zip_u32(p) != ZIP_SIGNATURE_CENTRAL)
        return malformed(reterr, "directory is malformed");
    name = zip_u16(p + 28);
    extra = zip_u16(p + 30);
    whole = CENTRAL_SIZE + name + extra + zip_u16(p + 32);
    if (left < whole || zip_u16(p + 34) != 0)
        return malformed(reterr, "directory is malformed");
    *ret = (struct zip_entry){
        .entry = {.name = p + CENTRAL_SIZE, .name_len = name, .size = zip_u32(p + 24)},
        .stored_name = p + CENTRAL_SIZE,
        .stored_len = name,
        .flags = zip_u16(p + 8),
        .method = zip_u16(p + 10),
        .crc = zip_u32(p + 16),
        .packed_size = zip_u32(p + 20),
        .offset = zip_u32(p + 42),
    };
    ret->entry.mtime_ms = mtime_find(p, p + CENTRAL_SIZE + name, extra);
    if ((r = name_replace(ret, p + CENTRAL_SIZE + name, extra, reterr)) < 0 ||
        (r = numbers_widen(ret, p + CENTRAL_SIZE + name, extra, reterr)) < 0 ||
        (r = name_check(ret, reterr)) < 0 || (r = method_check(ret, reterr)) < 0 ||
        (r = kind_find(ret, p, reterr)) < 0)
        return r;
    *pos += whole;
    return 1;
}
