/* SPDX-License-Identifier: MIT */
/* Frames from a kernel: bytes in, frames out. The other side may be hostile code. */
#include "init/kframe.h"

#include <string.h>

static const char *const statuses[] = {"ok", "error", "interrupted"};

void kreader_done(struct kreader *r)
{
    free(r->small);
    if (r->big)
        log_block_unref(r->big);
    *r = (struct kreader){};
}

/* A large frame takes exactly its own bytes: what comes behind it is read into the small buffer. */
int kreader_room(struct kreader *r, char **ret, size_t *ret_len)
{
    if (r->big) {
        *ret = r->big->memory + r->big_have;
        *ret_len = r->big_size - r->big_have;
        return 0;
    }
    if (!r->small)
        r->small = malloc(KREADER_SMALL);
    if (!r->small)
        return -1;
    if (r->begin) {
        memmove(r->small, r->small + r->begin, r->len);
        r->begin = 0;
    }
    *ret = r->small + r->len;
    *ret_len = KREADER_SMALL - r->len;
    return 0;
}

void kreader_filled(struct kreader *r, size_t len)
{
    if (r->big)
        r->big_have += len;
    else
        r->len += len;
}

static void kreader_drop_last(struct kreader *r)
{
    if (r->used && r->big) {
        log_block_unref(r->big);
        r->big = NULL;
    } else if (r->used) {
        r->begin += r->used;
        r->len -= r->used;
    }
    r->used = 0;
}

static void frame_fill(struct kframe *ret, const char *bytes, const struct frame *header)
{
    *ret = (struct kframe){.type = header->type,
                           .stream = header->stream,
                           .token = bytes + FRAME_HEADER,
                           .json = bytes + FRAME_HEADER + KERNEL_TOKEN,
                           .len = header->len - KERNEL_TOKEN};
}

static int header_read(const char *bytes, struct frame *ret, struct error *reterr)
{
    int r = frame_peek(bytes, FRAME_FROM_KERNEL, ret, reterr);

    if (r < 0)
        return r;
    if (ret->len > KFRAME_MAX)
        return error_set(reterr, ERR_PROTOCOL, "a frame of %zu bytes is above the limit", ret->len);
    if (ret->len < KERNEL_TOKEN)
        return error_set(reterr, ERR_PROTOCOL, "a frame has no token");
    return 0;
}

/* Goes over to a block: from here on the bytes of this frame are read into it. */
static int big_begin(struct kreader *r, const struct frame *header, struct error *reterr)
{
    r->big = log_block_new(KERNEL_TOKEN, header->len - KERNEL_TOKEN);
    if (!r->big)
        return error_no_memory(reterr);
    r->big_size = FRAME_HEADER + header->len;
    r->big_have = r->len;
    memcpy(r->big->memory, r->small + r->begin, r->len);
    r->begin = r->len = 0;
    return 0;
}

int kreader_next(struct kreader *r, struct kframe *ret, struct error *reterr)
{
    const char *bytes;
    struct frame header;
    int e;

    kreader_drop_last(r);
    if (r->big ? r->big_have < r->big_size : r->len < FRAME_HEADER)
        return 0;
    bytes = r->big ? r->big->memory : r->small + r->begin;
    e = header_read(bytes, &header, reterr);
    if (e < 0)
        return e;
    if (!r->big && FRAME_HEADER + header.len > KREADER_SMALL)
        return big_begin(r, &header, reterr);
    if (!r->big && r->len < FRAME_HEADER + header.len)
        return 0;
    r->used = FRAME_HEADER + header.len;
    frame_fill(ret, bytes, &header);
    return 1;
}

struct log_block *kreader_take(struct kreader *r, const struct kframe *frame)
{
    struct log_block *block;

    if (r->big) {
        block = TAKE_PTR(r->big);
        r->used = 0;
        return block;
    }
    block = log_block_new(0, frame->len);
    if (block)
        memcpy(block->data + FRAME_HEADER, frame->json, frame->len);
    return block;
}

/* Takes blanks and one expected token off the front. */
static bool eat(const char **p, const char *end, const char *what)
{
    size_t len = strlen(what);

    while (*p < end && (**p == ' ' || **p == '\t' || **p == '\n' || **p == '\r'))
        (*p)++;
    if ((size_t)(end - *p) < len || memcmp(*p, what, len) != 0)
        return false;
    *p += len;
    return true;
}

/* The one piece of JSON that init reads. Anything but what a kernel of ours writes is refused. */
const char *kframe_status(const struct kframe *frame)
{
    const char *p = frame->json, *end = p + frame->len;

    if (!eat(&p, end, "{") || !eat(&p, end, "\"status\"") || !eat(&p, end, ":") ||
        !eat(&p, end, "\""))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        const char *q = p;
        size_t len = strlen(statuses[i]);

        if ((size_t)(end - q) > len && memcmp(q, statuses[i], len) == 0 && q[len] == '"') {
            q += len + 1;
            return eat(&q, end, "}") ? statuses[i] : NULL;
        }
    }
    return NULL;
}
