/* SPDX-License-Identifier: MIT */
/*
 * The log of a run. Frames are stored as they are sent, so a reader costs one copy and an offset is
 * simply a count of bytes. Output that nobody has seen yet is joined to the frame before it: a
 * program that prints single bytes would otherwise fill the log with headers.
 */
#include "init/log.h"

#include "wire/fields.h"

#include <string.h>

enum { BLOCK_FIRST = 1024 };

static uint64_t events_all;

void log_init(struct log *log, uint32_t stream)
{
    *log = (struct log){.stream = stream};
}

static struct log_block *block_alloc(enum log_kind kind, size_t cap)
{
    struct log_block *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->memory = b->data = malloc(cap);
    if (!b->data) {
        free(b);
        return NULL;
    }
    b->kind = kind;
    b->refs = 1;
    b->cap = cap;
    return b;
}

struct log_block *log_block_new(size_t skip, size_t len)
{
    struct log_block *b = block_alloc(LOG_EVENT, skip + FRAME_HEADER + len);

    if (!b)
        return NULL;
    b->data = b->memory + skip;
    b->size = FRAME_HEADER + len;
    return b;
}

void log_block_ref(struct log_block *b)
{
    b->refs++;
}

void log_block_unref(struct log_block *b)
{
    if (--b->refs > 0)
        return;
    free(b->memory);
    free(b);
}

void log_done(struct log *log)
{
    struct log_block *b = log->first;

    events_all -= log->event_size;
    while (log->cursors)
        log_detach(log->cursors);
    while (b) {
        struct log_block *next = b->next;

        log_block_unref(b);
        b = next;
    }
    *log = (struct log){.stream = log->stream};
}

static void block_link(struct log *log, struct log_block *b)
{
    b->offset = log->end;
    b->prev = log->last;
    if (log->last)
        log->last->next = b;
    else
        log->first = b;
    log->last = b;
}

/* ---- dropping ---- */

/* Gaps that touch become one: a run that prints for hours leaves one gap, not a list. */
static void gap_merge(struct log *log, struct log_block *gap, struct log_block *b)
{
    gap->size += b->size;
    gap->bytes[0] += b->bytes[0];
    gap->bytes[1] += b->bytes[1];
    gap->next = b->next;
    if (b->next)
        b->next->prev = gap;
    else
        log->last = gap;
    for (struct log_cursor *c = log->cursors; c; c = c->next) {
        if (c->block == b)
            c->block = gap;
    }
    log_block_unref(b);
}

static struct log_block *evict_next(struct log_block *b)
{
    while (b && (b->kind != LOG_OUTPUT || b->head))
        b = b->next;
    return b;
}

/* The block stays in the list as a gap, because readers may stand in it. */
static void evict_one(struct log *log)
{
    struct log_block *b = log->evict, *next = evict_next(b->next);

    log->tail_size -= b->size;
    free(b->memory);
    b->memory = b->data = NULL;
    b->kind = LOG_GAP;
    if (b->prev && b->prev->kind == LOG_GAP)
        gap_merge(log, b->prev, b);
    log->evict = next;
}

/* ---- appending ---- */

static bool type_is_stderr(uint8_t type)
{
    return type == FRAME_STDERR || type == FRAME_LATE_STDERR;
}

static size_t block_room(const struct log_block *b)
{
    return b && b->kind == LOG_OUTPUT ? b->cap - b->size : 0;
}

static void output_count(struct log *log, struct log_block *b, uint8_t type, size_t payload,
                         size_t size)
{
    b->size += size;
    b->bytes[type_is_stderr(type)] += payload;
    log->end += size;
    *(b->head ? &log->head_size : &log->tail_size) += size;
}

/* Joins to the last frame, when it is of the same type and no reader has been given it. */
static bool output_join(struct log *log, uint8_t type, const char *data, size_t len)
{
    struct log_block *b = log->last;
    size_t frame;

    if (block_room(b) < len || b->offset + b->last < log->seen ||
        (uint8_t)b->data[b->last + 4] != type)
        return false;
    frame = b->size - b->last - FRAME_HEADER;
    if (frame + len > FRAME_BULK_MAX)
        return false;
    memcpy(b->data + b->size, data, len);
    frame_header_format(b->data + b->last, type, log->stream, frame + len);
    output_count(log, b, type, len, len);
    return true;
}

/* Each block is twice as large as the one before: most runs print little, and many may be kept. */
static struct log_block *output_block(struct log *log, size_t need)
{
    struct log_block *b = log->last;
    size_t cap = BLOCK_FIRST;

    if (block_room(b) >= need)
        return b;
    if (b && b->kind == LOG_OUTPUT)
        cap = MIN(2 * b->cap, (size_t)LOG_BLOCK);
    b = block_alloc(LOG_OUTPUT, MAX(need, cap));
    if (!b)
        return NULL;
    b->head = log->head_size < LOG_HEAD;
    block_link(log, b);
    if (!b->head && !log->evict)
        log->evict = b;
    return b;
}

static void output_frame(struct log *log, uint8_t type, const char *data, size_t len)
{
    struct log_block *b;

    if (output_join(log, type, data, len))
        return;
    b = output_block(log, FRAME_HEADER + len);
    if (!b)
        return;
    b->last = b->size;
    frame_header_format(b->data + b->size, type, log->stream, len);
    memcpy(b->data + b->size + FRAME_HEADER, data, len);
    output_count(log, b, type, len, FRAME_HEADER + len);
    while (log->tail_size > LOG_TAIL && log->evict != log->last)
        evict_one(log);
}

void log_output(struct log *log, uint8_t type, const char *data, size_t len)
{
    while (len > 0) {
        size_t n = MIN(len, (size_t)FRAME_BULK_MAX);

        output_frame(log, type, data, n);
        data += n;
        len -= n;
    }
}

bool log_has_room(const struct log *log, size_t len)
{
    return log->event_size + len + LOG_EVENT_COST <= LOG_EVENTS &&
           events_all + len <= LOG_EVENTS_ALL;
}

/* Events stand alone in a block, so that output around them can be dropped. */
void log_event_block(struct log *log, uint8_t type, struct log_block *b)
{
    frame_header_format(b->data, type, log->stream, b->size - FRAME_HEADER);
    block_link(log, b);
    log->end += b->size;
    log->event_size += b->size + LOG_EVENT_COST;
    events_all += b->size + LOG_EVENT_COST;
}

int log_event(struct log *log, uint8_t type, const void *payload, size_t len)
{
    struct log_block *b = log_block_new(0, len);

    if (!b)
        return -1;
    if (len)
        memcpy(b->data + FRAME_HEADER, payload, len);
    log_event_block(log, type, b);
    return 0;
}

/* ---- reading ---- */

static uint64_t block_end(const struct log_block *b)
{
    return b->offset + b->size;
}

/* The size of the frame that begins at `at` in a block of output or an event. */
static size_t block_frame_size(const struct log_block *b, size_t at)
{
    const unsigned char *p = (const unsigned char *)b->data + at;

    return FRAME_HEADER +
           ((size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24);
}

/* Within a gap nobody knows any more where frames began. */
static bool block_has_boundary(const struct log_block *b, uint64_t offset)
{
    uint64_t at = 0;

    if (b->kind == LOG_GAP)
        return true;
    while (at < offset - b->offset)
        at += block_frame_size(b, at);
    return at == offset - b->offset;
}

int log_attach(struct log *log, struct log_cursor *cursor, uint64_t offset)
{
    struct log_block *b = log->first;

    if (offset > log->end)
        return -1;
    while (b && b->next && offset >= block_end(b))
        b = b->next;
    if (b && offset < block_end(b) && !block_has_boundary(b, offset))
        return -1;
    *cursor = (struct log_cursor){.log = log, .next = log->cursors, .block = b, .offset = offset};
    log->cursors = cursor;
    log->seen = MAX(log->seen, offset);
    return 0;
}

void log_detach(struct log_cursor *cursor)
{
    struct log_cursor **p;

    if (!cursor->log)
        return;
    for (p = &cursor->log->cursors; *p != cursor; p = &(*p)->next)
        continue;
    *p = cursor->next;
    *cursor = (struct log_cursor){};
}

/* Tells how much is missing from here to the end of a gap; a part of a gap counts in proportion. */
static int gap_note(const struct log_block *gap, const struct log_cursor *c, struct log_piece *ret)
{
    double part = (double)(block_end(gap) - c->offset) / (double)gap->size;
    auto_buf struct buf fields;

    buf_init(&fields, LOG_NOTE_MAX - FRAME_HEADER);
    if (fields_add_int(&fields, "stdout_bytes", (int64_t)((double)gap->bytes[0] * part)) < 0 ||
        fields_add_int(&fields, "stderr_bytes", (int64_t)((double)gap->bytes[1] * part)) < 0 ||
        fields_add_int(&fields, "offset", (int64_t)block_end(gap)) < 0)
        return -1;
    frame_header_format(ret->note, FRAME_DROPPED, c->log->stream, fields.len);
    memcpy(ret->note + FRAME_HEADER, fields.data, fields.len);
    ret->data = ret->note;
    ret->len = FRAME_HEADER + fields.len;
    ret->block = NULL;
    return 0;
}

int log_next(struct log_cursor *c, struct log_piece *ret)
{
    struct log *log = c->log;
    size_t at;

    if (!log || c->offset == log->end)
        return 0;
    if (!c->block)
        c->block = log->first;
    while (c->offset >= block_end(c->block))
        c->block = c->block->next;
    if (c->block->kind == LOG_GAP) {
        if (gap_note(c->block, c, ret) < 0)
            return 0;
        c->offset = block_end(c->block);
    } else {
        at = c->offset - c->block->offset;
        ret->data = c->block->data + at;
        ret->len = block_frame_size(c->block, at);
        ret->block = c->block;
        c->offset += ret->len;
    }
    log->seen = MAX(log->seen, c->offset);
    return 1;
}

uint64_t log_backlog(const struct log *log)
{
    uint64_t most = 0;

    for (const struct log_cursor *c = log->cursors; c; c = c->next)
        most = MAX(most, log->end - c->offset);
    return most;
}
