/* SPDX-License-Identifier: MIT */
/*
 * Entries of the conformance fixture that run as the product's own calls do, so as to become tasks.
 * Unlike a cell, they wait for their answers on their thread.
 */
#include "mcp/fixture.h"

#include "base/clock.h"

enum { STEP_MS = 20, CALL_MAX_MS = 120000, ANSWER_MAX_MS = 60000 };

/* Waits, unless the call is cancelled; while it asks, only until it has its answers. */
static int call_wait(struct mcp_call *call, int64_t ms, bool asks, struct error *reterr)
{
    static const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    int64_t deadline = clock_deadline(ms);

    while (clock_ms() < deadline) {
        bool stopped, answered;

        pthread_mutex_lock(&call->server->lock);
        stopped = call->state == MCP_CALL_CANCELLED || call->server->stopping;
        answered = call->state != MCP_CALL_INPUT;
        pthread_mutex_unlock(&call->server->lock);
        if (stopped)
            return error_set(reterr, ERR_CANCELLED, "stopped on request");
        if (asks && answered)
            return 0;
        nanosleep(&step, NULL);
    }
    return asks ? error_set(reterr, ERR_TIMEOUT, "the client did not answer") : 0;
}

/* Asks, and returns the answers by their keys. */
static int call_ask(struct mcp_call *call, const struct fixture_entry *entry, yyjson_doc **ret,
                    struct error *reterr)
{
    yyjson_mut_doc *questions = yyjson_mut_doc_new(NULL);
    int n;

    yyjson_mut_doc_set_root(questions, yyjson_mut_obj(questions));
    fixture_questions_fill(call->first, entry, 0, questions, yyjson_mut_doc_get_root(questions));
    call->answers = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(call->answers, yyjson_mut_obj(call->answers));
    mcp_call_ask(call, questions);
    n = call_wait(call, ANSWER_MAX_MS, true, reterr);
    if (n == 0)
        *ret = yyjson_mut_doc_imut_copy(call->answers, NULL);
    return n;
}

int fixture_call_run(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *result,
                     struct error *reterr)
{
    const struct fixture_entry *entry = call->arg;
    struct fixture_values values = fixture_values_of(call->first);
    yyjson_val *seconds = yyjson_obj_get(values.arguments, "seconds");
    double ms = seconds ? yyjson_get_num(seconds) * 1000 : entry->call_ms;
    auto_json yyjson_doc *answers = NULL;
    int n = call_wait(call, (int64_t)MIN(MAX(ms, 0.0), (double)CALL_MAX_MS), false, reterr);

    if (n == 0 && entry->flags & FIXTURE_ASK_LATE && call->first->capabilities & MCP_CAN_TASKS) {
        n = call_ask(call, entry, &answers, reterr);
        values.responses = yyjson_doc_get_root(answers);
    }
    if (n == 0 && !entry->result)
        n = error_set(reterr, ERR_INTERNAL, "this job always fails");
    if (n == 0)
        fixture_result_fill(entry, &values, doc, result);
    return n;
}
