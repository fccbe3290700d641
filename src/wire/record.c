/* SPDX-License-Identifier: MIT */
/* A record's header says which parts it has; a part that its kind does not have is an error. */
#include "wire/record.h"

#include "wire/utf8.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

struct header {
    uint8_t kind, flags; /* flags: executable, or the code of an error */
    uint16_t path_len;
    uint32_t body_len;
    uint64_t size;
    uint64_t mtime_ms;
};

_Static_assert(sizeof(struct header) == RECORD_HEADER, "no padding");

/* What each kind has. */
static const struct kind {
    uint8_t kind;
    uint8_t flags_max;
    bool path, size;
    size_t body_min, body_max;
} kinds[] = {
    {RECORD_DIR, 0, true, false, 0, 0},
    {RECORD_FILE, 1, true, true, 0, 0},
    {RECORD_LINK, 0, true, false, 2, RECORD_TEXT_MAX},
    {RECORD_DATA, 0, false, false, 1, RECORD_DATA_MAX},
    {RECORD_END, 0, false, false, 0, 0},
    {RECORD_ERROR, ERR_CODE_COUNT - 1, false, false, 2, RECORD_TEXT_MAX},
};

static const struct kind *kind_find(uint8_t kind)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}

static bool header_check(const struct header *h, const struct kind *k)
{
    size_t path_min = k->path ? 2 : 0, path_max = k->path ? RECORD_TEXT_MAX : 0;

    return h->flags <= k->flags_max && h->path_len >= path_min && h->path_len <= path_max &&
           h->body_len >= k->body_min && h->body_len <= k->body_max && (k->size || h->size == 0) &&
           (k->path || h->mtime_ms == 0) && (h->kind != RECORD_ERROR || h->flags != ERR_OK);
}

static bool text_check(const char *text, size_t len)
{
    return memchr(text, 0, len) == text + len - 1;
}

ssize_t record_next(const void *data, size_t len, struct record *ret, struct error *reterr)
{
    const char *text = (const char *)data + RECORD_HEADER;
    const struct kind *k;
    struct header h;
    size_t whole;

    if (len < sizeof(h))
        return 0;
    memcpy(&h, data, sizeof(h));
    h.path_len = le16toh(h.path_len);
    h.body_len = le32toh(h.body_len);
    k = kind_find(h.kind);
    if (!k || !header_check(&h, k))
        return error_set(reterr, ERR_PROTOCOL, "a malformed record");
    whole = sizeof(h) + h.path_len + h.body_len;
    if (len < whole)
        return 0;
    if ((k->path && !text_check(text, h.path_len)) ||
        (h.kind != RECORD_DATA && h.body_len && !text_check(text + h.path_len, h.body_len)))
        return error_set(reterr, ERR_PROTOCOL, "a malformed text in a record");
    *ret = (struct record){.kind = h.kind,
                           .executable = h.kind == RECORD_FILE && h.flags,
                           .code = h.kind == RECORD_ERROR ? h.flags : ERR_OK,
                           .path = k->path ? text : NULL,
                           .size = le64toh(h.size),
                           .mtime_ms = (int64_t)le64toh(h.mtime_ms),
                           .body = text + h.path_len,
                           .len = h.body_len};
    return (ssize_t)whole;
}

int record_append(struct buf *b, const struct record *r)
{
    size_t path_len = r->path ? strlen(r->path) + 1 : 0;
    const struct kind *k = kind_find((uint8_t)r->kind);
    struct header h = {.kind = (uint8_t)r->kind,
                       .flags = (uint8_t)(r->kind == RECORD_ERROR ? r->code : r->executable),
                       .size = r->size,
                       .mtime_ms = (uint64_t)r->mtime_ms};

    if (path_len > RECORD_TEXT_MAX || r->len > RECORD_DATA_MAX)
        return -1;
    h.path_len = (uint16_t)path_len;
    h.body_len = (uint32_t)r->len;
    if (!k || !header_check(&h, k) || buf_reserve(b, sizeof(h) + path_len + r->len) < 0)
        return -1;
    h.path_len = htole16(h.path_len);
    h.body_len = htole32(h.body_len);
    h.size = htole64(h.size);
    h.mtime_ms = htole64(h.mtime_ms);
    return buf_append(b, &h, sizeof(h)) < 0 || buf_append(b, r->path, path_len) < 0 ||
                   buf_append(b, r->body, r->len) < 0
               ? -1
               : 0;
}

/* ---- names for people ---- */

/* Length of what does not belong into a line of text at `p` (well-formed UTF-8, NUL behind it). */
static size_t odd_span(const unsigned char *p)
{
    if (p[0] < 0x20 || p[0] == 0x7f)
        return 1;
    if (p[0] == 0xc2 && p[1] < 0xa0) /* C1 controls */
        return 2;
    if (p[0] == 0xe2 &&
        ((p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
         (p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf)))
        return 3; /* line ends and what turns the direction of writing */
    return 0;
}

/* Cuts [from, from + count) out, wider where it would split a character. */
static void middle_cut(char *text, size_t keep)
{
    size_t len = strlen(text), head = keep / 2, tail = len - keep / 2;

    if (len <= keep + 3)
        return;
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80)
        head--;
    while (tail < len && ((unsigned char)text[tail] & 0xc0) == 0x80)
        tail++;
    memcpy(text + head, "...", 3);
    memmove(text + head + 3, text + tail, len - tail + 1);
}

void record_show(char *ret, size_t size, const char *name, size_t len)
{
    auto_buf struct buf text = {.max = 3 * RECORD_TEXT_MAX + 8};
    struct utf8_repair repair = {};
    size_t out = 0;

    if (utf8_repair_feed(&repair, name, MIN(len, (size_t)RECORD_TEXT_MAX), &text) < 0 ||
        utf8_repair_finish(&repair, &text) < 0 || text.len == 0) {
        snprintf(ret, size, "%s", len ? "?" : "");
        return;
    }
    for (size_t in = 0; in < text.len;) {
        size_t odd = odd_span((unsigned char *)text.data + in);

        text.data[out++] = odd ? '?' : text.data[in];
        in += odd ? odd : 1;
    }
    text.data[out] = 0;
    middle_cut(text.data, size - 4);
    snprintf(ret, size, "%s", text.data);
}
