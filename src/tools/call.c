/* SPDX-License-Identifier: MIT */
/*
 * One call of a tool, from its arguments to its payload. What can be stopped from another thread is
 * named in the call while it goes on: a run, or the session that is being made.
 */
#include "tools/tool-internal.h"

#include "base/str.h"

enum { TOOLS_MAX = 32 };

/* ---- schemas ---- */

/* Of the table's tools, in its order; made once, kept until the process ends. */
static struct schema *table_schemas[TOOLS_MAX];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_parse(void)
{
    for (size_t i = 0; i < TOOLS_MAX && tool_table[i]; i++) {
        const char *text = tool_table[i]->input_schema;

        if (schema_new(text, strlen(text), &table_schemas[i], NULL) < 0)
            table_schemas[i] = NULL;
    }
}

static const struct schema *schema_of(struct tool_call *call, struct error *reterr)
{
    const char *text = call->tool->input_schema;

    pthread_once(&table_once, table_parse);
    for (size_t i = 0; i < TOOLS_MAX && tool_table[i]; i++) {
        if (tool_table[i] == call->tool && table_schemas[i])
            return table_schemas[i];
    }
    if (!call->own_schema && schema_new(text, strlen(text), &call->own_schema, reterr) < 0)
        return NULL;
    return call->own_schema;
}

/* ---- life ---- */

int tool_call_new(const struct tool_context *context, const struct tool_entry *tool,
                  const struct tool_observer *observer, struct tool_call **ret,
                  struct error *reterr)
{
    struct tool_call *call = calloc(1, sizeof(*call));

    if (!call)
        return error_no_memory(reterr);
    call->context = context;
    call->tool = tool;
    if (observer)
        call->observer = *observer;
    buf_init(&call->details, MIB);
    pthread_mutex_init(&call->lock, NULL);
    *ret = call;
    return 0;
}

void tool_call_free(struct tool_call *call)
{
    if (!call)
        return;
    /* It was begun, and then nobody ran it. */
    if (call->run)
        run_cancel(call->run);
    run_unref(call->run);
    buf_done(&call->details);
    yyjson_doc_free(call->checked);
    schema_free(call->own_schema);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

/* ---- from other threads ---- */

static struct run *run_of(struct tool_call *call)
{
    struct run *run;

    pthread_mutex_lock(&call->lock);
    run = call->run ? run_ref(call->run) : NULL;
    pthread_mutex_unlock(&call->lock);
    return run;
}

void tool_call_cancel(struct tool_call *call)
{
    auto_run struct run *run = NULL;
    char making[ID_LEN + 1];

    pthread_mutex_lock(&call->lock);
    call->cancelled = true;
    memcpy(making, call->making, sizeof(making));
    pthread_mutex_unlock(&call->lock);
    run = run_of(call);
    if (run)
        run_cancel(run);
    /* It may be made by now, and then it is gone again: nobody has heard of it yet. */
    if (making[0] && session_stop(call->context->manager, making, call->context->owner, NULL) < 0)
        return;
}

bool tool_call_is_cancelled(struct tool_call *call)
{
    bool cancelled;

    pthread_mutex_lock(&call->lock);
    cancelled = call->cancelled;
    pthread_mutex_unlock(&call->lock);
    return cancelled;
}

int tool_call_input(struct tool_call *call, const char *line, size_t len, struct error *reterr)
{
    auto_run struct run *run = run_of(call);

    if (!run)
        return error_set(reterr, ERR_INVALID, "no cell of this call waits for a line");
    return run_input(run, line, len, reterr);
}

int tool_call_check(struct tool_call *call, struct error *reterr)
{
    if (tool_call_is_cancelled(call))
        return error_set(reterr, ERR_CANCELLED, "stopped on request");
    return 0;
}

/* ---- the call itself ---- */

static int call_begin(struct tool_call *call, yyjson_val *arguments, struct error *reterr)
{
    const struct schema *schema = schema_of(call, reterr);
    int r;

    if (!schema)
        return -ERR_INTERNAL;
    if ((r = schema_check(schema, arguments, &call->checked, &call->details, reterr)) < 0 ||
        (r = tool_call_check(call, reterr)) < 0 || !call->tool->begin)
        return r;
    return call->tool->begin(call, yyjson_doc_get_root(call->checked), reterr);
}

void tool_call_begin(struct tool_call *call, yyjson_val *arguments)
{
    if (!call->begun)
        call->begin_result = call_begin(call, arguments, &call->begin_error);
    call->begun = true;
}

/* What can still be stopped is; the run that the call may have is over. */
static int call_finish(struct tool_call *call, struct buf *ret, struct error *reterr)
{
    struct run *run;
    int r = call->run ? 0 : tool_call_check(call, reterr);

    if (r == 0)
        r = call->tool->run(call, yyjson_doc_get_root(call->checked), ret, reterr);
    pthread_mutex_lock(&call->lock);
    run = TAKE_PTR(call->run);
    pthread_mutex_unlock(&call->lock);
    run_unref(run);
    return r;
}

/* What is left when no payload could be made. */
static int payload_minimum(struct buf *ret)
{
    return buf_append_str(ret,
                          "{\"success\":false,\"error\":\"MemoryError: the payload is above its "
                          "limit\"}");
}

bool tool_call_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret)
{
    static const char failed[] = "{\"success\":false";
    size_t before = ret->len, len = sizeof(failed) - 1;
    struct error error;
    int r;

    tool_call_begin(call, arguments);
    r = call->begin_result;
    error = call->begin_error;
    if (r >= 0)
        r = call_finish(call, ret, &error);
    if (r < 0) {
        ret->len = before; /* of a payload that was begun */
        r = call->details.len
                ? payload_invalid(&call->details, ret)
                : payload_error(call, yyjson_doc_get_root(call->checked), &error, ret);
    }
    if (r < 0) {
        ret->len = before;
        r = payload_minimum(ret);
    }
    return r >= 0 && !(ret->len - before >= len && memcmp(ret->data + before, failed, len) == 0);
}
