/* SPDX-License-Identifier: MIT */
/* What a client sends to init: frames, and the requests that are parsed into more than fields. */
#include "init/config.h"
#include "init/process.h"
#include "init/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void request_parse(const struct frame *frame)
{
    struct fields f = {.data = frame->payload, .len = frame->len};
    struct process_spec spec;
    struct error err;
    struct run *run;

    if (fields_check(&f, &err) < 0)
        return;
    (void)!process_spec_parse(&spec, &f, &err);
    process_spec_done(&spec);
    run = run_open(frame->stream % 2 ? RUN_SPAWN : RUN_EXEC, frame->stream, &f, &err);
    if (run)
        run_free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t position = 0;
    struct frame frame;
    struct error err;
    ssize_t used;

    while ((used = frame_next(data + position, size - position, FRAME_FROM_CLIENT, &frame, &err)) >
           0) {
        request_parse(&frame);
        position += (size_t)used;
    }
    return 0;
}
