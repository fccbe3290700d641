/* SPDX-License-Identifier: MIT */
/* Tools of the conformance suite that run as the product's own calls do, so as to become tasks. */
#include "mcp/fixture.h"

enum { STEP_MS = 20, FAILING_MS = 1000 };

/* Waits, unless the call is cancelled. */
static int call_wait(struct tool_call *call, double ms, struct error *reterr)
{
    static const struct timespec step = {.tv_nsec = STEP_MS * 1000000};

    for (double waited = 0; waited < ms; waited += STEP_MS) {
        if (tool_call_is_cancelled(call))
            return error_set(reterr, ERR_CANCELLED, "stopped on request");
        nanosleep(&step, NULL);
    }
    return 0;
}

static int slow_compute_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                            struct error *reterr)
{
    double seconds = yyjson_get_num(yyjson_obj_get(arguments, "seconds"));
    int r = call_wait(call, seconds * 1000, reterr);

    if (r < 0)
        return r;
    return buf_printf(ret, "{\"success\":true,\"seconds\":%.3f}", seconds) < 0
               ? error_no_memory(reterr)
               : 0;
}

static int failing_job_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                           struct error *reterr)
{
    int r = call_wait(call, FAILING_MS, reterr);

    return r < 0 ? r : error_set(reterr, ERR_INVALID, "this job always fails");
}

const struct tool_entry fixture_slow_compute = {
    .name = "slow_compute",
    .input_schema = FIXTURE_SLOW_SCHEMA,
    .run = slow_compute_run,
};

const struct tool_entry fixture_failing_job = {
    .name = "failing_job",
    .input_schema = FIXTURE_NO_ARGUMENTS,
    .run = failing_job_run,
};
