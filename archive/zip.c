/* SPDX-License-Identifier: MIT */
/*
 * Offsets are sorted before anything is read, so that an entry's bytes end where the next one
 * begins: a few kilobytes that a thousand entries share are the worst kind of bomb.
 */
#include "archive/zip.h"

#include "archive/crc32.h"
#include "archive/stream.h"
#include "archive/zip-directory.h"

#include <inttypes.h>
#include <string.h>

enum { LOCAL_SIZE = 30, PIECE = 32 * 1024 };

struct zip {
    const struct source *source;
    struct output *out;
    struct zip_directory directory;
    uint64_t *offsets; /* of all entries, ascending, and the directory's */
    size_t count;
};

/* Lets a number sink to its place in a heap whose root is the largest. */
static void heap_sink(uint64_t *heap, size_t count, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        uint64_t moved = heap[at];

        if (child + 1 < count && heap[child] < heap[child + 1])
            child++;
        if (moved >= heap[child])
            return;
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* glibc's qsort() asks how much memory the machine has, which this process may not. */
static void offsets_sort(uint64_t *offsets, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        heap_sink(offsets, count, i);
    for (size_t last = count; last-- > 1;) {
        uint64_t largest = offsets[0];

        offsets[0] = offsets[last];
        offsets[last] = largest;
        heap_sink(offsets, last, 0);
    }
}

/* All of the directory is checked here, before the first entry is told to anybody. */
static int offsets_collect(struct zip *z, struct error *reterr)
{
    struct zip_entry e;
    size_t pos = 0, max = z->directory.data.len / 46 + 1;
    int r;

    z->offsets = calloc(max, sizeof(*z->offsets));
    if (!z->offsets)
        return error_no_memory(reterr);
    while ((r = zip_directory_next(&z->directory, &pos, &e, reterr)) > 0) {
        if (e.offset >= z->directory.pos)
            return entry_refuse(&e.entry, reterr, "begins behind the last entry");
        z->offsets[z->count++] = e.offset;
    }
    if (r < 0)
        return r;
    if (z->count != z->directory.count)
        return error_set(reterr, ERR_INVALID, "the zip file has %zu entries and says %" PRIu64,
                         z->count, z->directory.count);
    offsets_sort(z->offsets, z->count);
    z->offsets[z->count] = z->directory.pos;
    if (z->offsets[0] != 0)
        return error_set(reterr, ERR_INVALID, "the zip file has data before its first entry");
    return 0;
}

/* The first offset behind this entry's own; two entries at one place leave no room. */
static uint64_t offset_after(const struct zip *z, uint64_t offset)
{
    size_t low = 0, high = z->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (z->offsets[middle] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return z->offsets[low + 1];
}

/* ---- the local header ---- */

static bool number_agrees(const struct zip_entry *e, uint64_t local, uint64_t central)
{
    return local == central || (e->flags & ZIP_FLAG_SIZES_BEHIND && local == 0);
}

static bool numbers_agree(const struct zip_entry *e, const char *local, const char *extra,
                          size_t len)
{
    uint64_t packed = zip_u32(local + 18), size = zip_u32(local + 22);
    const char *part = NULL;
    ssize_t have = zip_extra_find(extra, len, ZIP_EXTRA_ZIP64, &part);

    if (have == -2)
        return false;
    if (have >= 16 && size == UINT32_MAX)
        size = zip_u64(part);
    if (have >= 16 && packed == UINT32_MAX)
        packed = zip_u64(part + 8);
    return number_agrees(e, zip_u32(local + 14), e->crc) && number_agrees(e, size, e->entry.size) &&
           number_agrees(e, packed, e->packed_size);
}

static int local_check(const struct zip_entry *e, const char *local, const char *rest,
                       struct error *reterr)
{
    const size_t name = zip_u16(local + 26), extra = zip_u16(local + 28);

    if (name != e->stored_len || memcmp(rest, e->stored_name, name) != 0)
        return entry_refuse(&e->entry, reterr, "has another name in its local header");
    if (zip_u16(local + 6) != e->flags || zip_u16(local + 8) != e->method)
        return entry_refuse(&e->entry, reterr, "has another method or flags in its local header");
    if (!numbers_agree(e, local, rest + name, extra))
        return entry_refuse(&e->entry, reterr, "has another size or checksum in its local header");
    return 0;
}

/* Finds where the data is, once the local header was found to say the same. */
static int data_find(const struct zip *z, const struct zip_entry *e, uint64_t *ret,
                     struct error *reterr)
{
    const uint64_t room = offset_after(z, e->offset) - e->offset;
    auto_free char *rest = NULL;
    char local[LOCAL_SIZE];
    size_t len;
    int r;

    if (room < LOCAL_SIZE)
        return entry_refuse(&e->entry, reterr, "shares its bytes with another one");
    if ((r = source_read(z->source, e->offset, local, sizeof(local), reterr)) < 0)
        return r;
    if (zip_u32(local) != ZIP_SIGNATURE_LOCAL)
        return entry_refuse(&e->entry, reterr, "has no local header");
    len = (size_t)zip_u16(local + 26) + zip_u16(local + 28);
    if (room < LOCAL_SIZE + len || room - LOCAL_SIZE - len < e->packed_size)
        return entry_refuse(&e->entry, reterr, "shares its bytes with another one");
    rest = malloc(len + 1);
    if (!rest)
        return error_no_memory(reterr);
    if ((r = source_read(z->source, e->offset + LOCAL_SIZE, rest, len, reterr)) < 0 ||
        (r = local_check(e, local, rest, reterr)) < 0)
        return r;
    *ret = e->offset + LOCAL_SIZE + len;
    return 0;
}

/* ---- content ---- */

/* Reads all of the content, for a function that takes the pieces, and checks it. */
static int content_read(const struct zip *z, const struct zip_entry *e, uint64_t pos,
                        int (*take)(struct output *, const void *, size_t, struct error *),
                        struct error *reterr)
{
    const struct stream_range range = {
        .kind = e->method == ZIP_DEFLATED ? STREAM_DEFLATE : STREAM_PLAIN,
        .pos = pos,
        .len = e->packed_size,
        .crc = e->crc,
        .bytes = (uint32_t)e->entry.size,
    };
    auto_stream struct stream *stream = NULL;
    uint64_t left = e->entry.size;
    char piece[PIECE];
    uint32_t crc = 0;
    int r = stream_open(z->source, &range, &stream, reterr);

    while (r == 0 && left > 0) {
        size_t len = (size_t)MIN(left, (uint64_t)sizeof(piece));

        r = stream_take(stream, piece, len, reterr);
        if (r == 0) {
            crc = zip_crc32(crc, piece, len);
            left -= len;
            r = take(z->out, piece, len, reterr);
        }
    }
    if (r < 0)
        return entry_wrap(&e->entry, reterr);
    if (stream_finish(stream, NULL) < 0)
        return entry_refuse(&e->entry, reterr, "is longer than it says");
    if (crc != e->crc)
        return entry_refuse(&e->entry, reterr, "has a wrong checksum");
    return 0;
}

/* The target of a link is its content, which has to be whole before the link is told. */
struct target {
    struct output sink; /* first */
    size_t len;
    char text[RECORD_TEXT_MAX + PIECE];
};

static int target_take(struct output *out, const void *data, size_t len, struct error *reterr)
{
    struct target *t = (struct target *)out;

    if (len > sizeof(t->text) - t->len)
        return error_set(reterr, ERR_INVALID, "a link's target is too long");
    memcpy(t->text + t->len, data, len);
    t->len += len;
    return 0;
}

static int link_read(const struct zip *z, struct zip_entry *e, uint64_t pos, struct error *reterr)
{
    struct target target = {};
    struct zip into = *z;
    int r;

    into.out = &target.sink;
    if (e->entry.size >= RECORD_TEXT_MAX)
        return entry_refuse(&e->entry, reterr, "is a link whose target is malformed");
    if ((r = content_read(&into, e, pos, target_take, reterr)) < 0)
        return r;
    e->entry.target = target.text;
    e->entry.target_len = target.len;
    return output_entry(z->out, &e->entry, reterr);
}

static int entry_read(const struct zip *z, struct zip_entry *e, struct error *reterr)
{
    uint64_t pos = 0;
    int r = data_find(z, e, &pos, reterr);

    if (r == 0 && e->entry.kind == RECORD_LINK)
        return link_read(z, e, pos, reterr);
    if (r == 0)
        r = output_entry(z->out, &e->entry, reterr);
    if (r == 0 && e->entry.kind == RECORD_FILE)
        r = content_read(z, e, pos, output_data, reterr);
    return r;
}

static int entries_read(struct zip *z, struct error *reterr)
{
    struct zip_entry e;
    size_t pos = 0;
    int r;

    if ((r = zip_directory_read(z->source, &z->directory, reterr)) < 0 ||
        (r = offsets_collect(z, reterr)) < 0)
        return r;
    while ((r = zip_directory_next(&z->directory, &pos, &e, reterr)) > 0)
        if ((r = entry_read(z, &e, reterr)) < 0)
            return r;
    return r;
}

int zip_read(const struct source *source, struct output *out, struct error *reterr)
{
    struct zip z = {.source = source, .out = out};
    int r = entries_read(&z, reterr);

    free(z.offsets);
    buf_done(&z.directory.data);
    return r;
}
