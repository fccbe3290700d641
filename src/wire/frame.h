/* SPDX-License-Identifier: MIT */
/*
 * Frames of the control and kernel protocols (docs/PROTOCOL.md sections 1-3). Bytes in, frames out:
 * no socket is touched here, so the daemon, init and the fuzzer run the same parser.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define PROTOCOL_VERSION "2"

enum {
    FRAME_HEADER = 9,
    FRAME_PAYLOAD_MAX = 64 * 1024 * 1024 + 4096,
    FRAME_BULK_MAX = 64 * 1024,     /* payload of an output or file data frame */
    FRAME_WINDOW = 4 * 1024 * 1024, /* credit of a fresh stream */
    KERNEL_TOKEN = 16,
};

enum frame_type {
    /* client to init */
    FRAME_HELLO = 0x01,
    FRAME_KERNEL,
    FRAME_EXEC,
    FRAME_SPAWN,
    FRAME_INPUT,
    FRAME_INTERRUPT,
    FRAME_KILL,
    FRAME_CREDIT,
    FRAME_ATTACH,
    FRAME_ACK,
    FRAME_SWEEP,
    FRAME_LEASE,
    FRAME_SHUTDOWN,
    FRAME_STATUS,
    FRAME_FILE_READ = 0x10,
    FRAME_FILE_WRITE,
    FRAME_WRITE_DATA,
    FRAME_FILE_STAT,
    FRAME_FILE_LIST,
    FRAME_FILE_REMOVE,
    FRAME_FILE_MKDIR,
    FRAME_FILE_RENAME,
    FRAME_FILE_LINK,
    /* init to kernel */
    FRAME_K_EXEC = 0x20,
    FRAME_K_ACK,
    FRAME_K_INPUT,
    FRAME_K_INTERRUPT,
    /* kernel to init */
    FRAME_K_READY = 0x30,
    FRAME_K_DISPLAY,
    FRAME_K_RESULT,
    FRAME_K_ERROR,
    FRAME_K_DONE,
    FRAME_K_INPUT_REQUEST,
    /* init to client */
    FRAME_WELCOME = 0x40,
    FRAME_STDOUT,
    FRAME_STDERR,
    FRAME_DISPLAY,
    FRAME_RESULT,
    FRAME_ERROR,
    FRAME_INPUT_REQUEST,
    FRAME_LATE_STDOUT,
    FRAME_LATE_STDERR,
    FRAME_DROPPED,
    FRAME_DATA,
    FRAME_REPORT,
    FRAME_INPUT_TAKEN,
    FRAME_END = 0x4f,
};

enum frame_side {
    FRAME_FROM_CLIENT = 1u << 0,
    FRAME_FROM_INIT = 1u << 1, /* to the client */
    FRAME_TO_KERNEL = 1u << 2,
    FRAME_FROM_KERNEL = 1u << 3,
};

struct frame {
    uint8_t type;
    uint32_t stream;
    const char *payload; /* borrowed from the buffer that was parsed */
    size_t len;
};

/* Name for messages, and NULL for a type that does not exist in these directions. */
const char *frame_name(uint8_t type, unsigned sides);

/* Reads and checks nine header bytes alone; the payload of `ret` is NULL. 0 or ERR_PROTOCOL. */
int frame_peek(const void *header, unsigned sides, struct frame *ret,
               struct error *reterr) must_check;

/*
 * Finds one frame at the start of `data`. Returns its whole size and fills `ret`; 0 when more bytes
 * are needed; ERR_PROTOCOL for a payload above FRAME_PAYLOAD_MAX or a type unknown in `sides`.
 */
ssize_t frame_next(const void *data, size_t len, unsigned sides, struct frame *ret,
                   struct error *reterr) must_check;

/* Writes the nine header bytes. */
void frame_header_format(char ret[FRAME_HEADER], uint8_t type, uint32_t stream, size_t len);

/* Appends header and payload. */
int frame_append(struct buf *b, uint8_t type, uint32_t stream, const void *payload,
                 size_t len) must_check;
