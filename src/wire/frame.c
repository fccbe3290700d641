/* SPDX-License-Identifier: MIT */
/* Frame parser and writer. The table of types is the only list of what may travel in which
 * direction. */
#include "wire/frame.h"

#include <string.h>

struct frame_entry {
    const char *name;
    unsigned sides;
};

static const struct frame_entry frame_table[] = {
    [FRAME_HELLO] = {"HELLO", FRAME_FROM_CLIENT},
    [FRAME_KERNEL] = {"KERNEL", FRAME_FROM_CLIENT},
    [FRAME_EXEC] = {"EXEC", FRAME_FROM_CLIENT},
    [FRAME_SPAWN] = {"SPAWN", FRAME_FROM_CLIENT},
    [FRAME_INPUT] = {"INPUT", FRAME_FROM_CLIENT},
    [FRAME_INTERRUPT] = {"INTERRUPT", FRAME_FROM_CLIENT},
    [FRAME_KILL] = {"KILL", FRAME_FROM_CLIENT},
    [FRAME_CREDIT] = {"CREDIT", FRAME_FROM_CLIENT},
    [FRAME_ATTACH] = {"ATTACH", FRAME_FROM_CLIENT},
    [FRAME_ACK] = {"ACK", FRAME_FROM_CLIENT},
    [FRAME_SWEEP] = {"SWEEP", FRAME_FROM_CLIENT},
    [FRAME_LEASE] = {"LEASE", FRAME_FROM_CLIENT},
    [FRAME_SHUTDOWN] = {"SHUTDOWN", FRAME_FROM_CLIENT},
    [FRAME_STATUS] = {"STATUS", FRAME_FROM_CLIENT},
    [FRAME_FILE_READ] = {"FILE_READ", FRAME_FROM_CLIENT},
    [FRAME_FILE_WRITE] = {"FILE_WRITE", FRAME_FROM_CLIENT},
    [FRAME_WRITE_DATA] = {"WRITE_DATA", FRAME_FROM_CLIENT},
    [FRAME_FILE_STAT] = {"FILE_STAT", FRAME_FROM_CLIENT},
    [FRAME_FILE_LIST] = {"FILE_LIST", FRAME_FROM_CLIENT},
    [FRAME_FILE_REMOVE] = {"FILE_REMOVE", FRAME_FROM_CLIENT},
    [FRAME_FILE_MKDIR] = {"FILE_MKDIR", FRAME_FROM_CLIENT},
    [FRAME_FILE_RENAME] = {"FILE_RENAME", FRAME_FROM_CLIENT},
    [FRAME_FILE_LINK] = {"FILE_LINK", FRAME_FROM_CLIENT},
    [FRAME_K_EXEC] = {"K_EXEC", FRAME_TO_KERNEL},
    [FRAME_K_ACK] = {"K_ACK", FRAME_TO_KERNEL},
    [FRAME_K_INPUT] = {"K_INPUT", FRAME_TO_KERNEL},
    [FRAME_K_INTERRUPT] = {"K_INTERRUPT", FRAME_TO_KERNEL},
    [FRAME_K_READY] = {"K_READY", FRAME_FROM_KERNEL},
    [FRAME_K_DISPLAY] = {"K_DISPLAY", FRAME_FROM_KERNEL},
    [FRAME_K_RESULT] = {"K_RESULT", FRAME_FROM_KERNEL},
    [FRAME_K_ERROR] = {"K_ERROR", FRAME_FROM_KERNEL},
    [FRAME_K_DONE] = {"K_DONE", FRAME_FROM_KERNEL},
    [FRAME_K_INPUT_REQUEST] = {"K_INPUT_REQUEST", FRAME_FROM_KERNEL},
    [FRAME_WELCOME] = {"WELCOME", FRAME_FROM_INIT},
    [FRAME_STDOUT] = {"STDOUT", FRAME_FROM_INIT},
    [FRAME_STDERR] = {"STDERR", FRAME_FROM_INIT},
    [FRAME_DISPLAY] = {"DISPLAY", FRAME_FROM_INIT},
    [FRAME_RESULT] = {"RESULT", FRAME_FROM_INIT},
    [FRAME_ERROR] = {"ERROR", FRAME_FROM_INIT},
    [FRAME_INPUT_REQUEST] = {"INPUT_REQUEST", FRAME_FROM_INIT},
    [FRAME_LATE_STDOUT] = {"LATE_STDOUT", FRAME_FROM_INIT},
    [FRAME_LATE_STDERR] = {"LATE_STDERR", FRAME_FROM_INIT},
    [FRAME_DROPPED] = {"DROPPED", FRAME_FROM_INIT},
    [FRAME_DATA] = {"DATA", FRAME_FROM_INIT},
    [FRAME_REPORT] = {"REPORT", FRAME_FROM_INIT},
    [FRAME_INPUT_TAKEN] = {"INPUT_TAKEN", FRAME_FROM_INIT},
    [FRAME_END] = {"END", FRAME_FROM_INIT},
};

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void write_u32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(v >> (8 * i) & 0xff);
}

const char *frame_name(uint8_t type, unsigned sides)
{
    if (type >= ARRAY_LEN(frame_table) || !(frame_table[type].sides & sides))
        return NULL;
    return frame_table[type].name;
}

int frame_peek(const void *header, unsigned sides, struct frame *ret, struct error *reterr)
{
    const unsigned char *p = header;
    uint32_t size = read_u32(p);

    if (size > FRAME_PAYLOAD_MAX)
        return error_set(reterr, ERR_PROTOCOL, "a frame of %u bytes is above the limit", size);
    if (!frame_name(p[4], sides))
        return error_set(reterr, ERR_PROTOCOL, "frame type 0x%02x is not known here", p[4]);
    *ret = (struct frame){.type = p[4], .stream = read_u32(p + 5), .len = size};
    return 0;
}

ssize_t frame_next(const void *data, size_t len, unsigned sides, struct frame *ret,
                   struct error *reterr)
{
    struct frame frame;
    int r;

    if (len < FRAME_HEADER)
        return 0;
    r = frame_peek(data, sides, &frame, reterr);
    if (r < 0)
        return r;
    if (len - FRAME_HEADER < frame.len)
        return 0;
    frame.payload = (const char *)data + FRAME_HEADER;
    *ret = frame;
    return (ssize_t)(FRAME_HEADER + frame.len);
}

void frame_header_format(char ret[FRAME_HEADER], uint8_t type, uint32_t stream, size_t len)
{
    write_u32(ret, (uint32_t)len);
    ret[4] = (char)type;
    write_u32(ret + 5, stream);
}

int frame_append(struct buf *b, uint8_t type, uint32_t stream, const void *payload, size_t len)
{
    char header[FRAME_HEADER];

    if (len > FRAME_PAYLOAD_MAX || buf_reserve(b, FRAME_HEADER + len) < 0)
        return -1;
    frame_header_format(header, type, stream, len);
    if (buf_append(b, header, sizeof(header)) < 0)
        return -1;
    return buf_append(b, payload, len);
}
