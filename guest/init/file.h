/* SPDX-License-Identifier: MIT */
/*
 * File operations of clients (docs/PROTOCOL.md section 3.1, 0x10 to 0x18), done as the sandbox
 * user. Frames go into a queue that the caller sends; what takes long is done in steps.
 */
#pragma once

#include "init/outq.h"
#include "wire/fields.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum { FILE_STEP_ROOM = 256 * 1024 }; /* a step does nothing while so much waits to be sent */

struct file_op;

/* Begins an operation. NULL when it is over already (its END is in `out`, or there was no memory
 * for it). */
struct file_op *file_open(const struct frame *frame, struct outq *out);
uint32_t file_stream(const struct file_op *op);

/* Ends an operation that is not over: nothing of it stays. */
void file_close(struct file_op *op);

/* Goes on. True when it is over; the caller then calls file_close(). */
bool file_step(struct file_op *op, struct outq *out);

/* Whether a step has something to do, given what the client took. */
bool file_is_ready(const struct file_op *op, const struct outq *out);

/* WRITE_DATA; true when the operation is over. */
bool file_data(struct file_op *op, const char *data, size_t len, struct outq *out);

void file_credit(struct file_op *op, int64_t bytes);

/* INTERRUPT or KILL: END `interrupted`. */
void file_abort(struct file_op *op, struct outq *out);

/* ---- answers, also for others ---- */

/* END with status ok, or with what failed. */
int reply_end(struct outq *out, uint32_t stream, const struct error *why) must_check;
int reply_fields(struct outq *out, uint8_t type, uint32_t stream, const struct buf *f) must_check;
