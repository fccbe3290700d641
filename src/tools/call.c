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
    pthread_mutex_init(&call->lock, NULL);
    *ret = call;
    return 0;
}

void tool_call_free(struct tool_call *call)
{
    if (!call)
        return;
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

/* 0, or less with the payload's error in `reterr`, or in `details`. */
static int call_perform(struct tool_call *call, yyjson_val *arguments, yyjson_doc **ret_checked,
                        struct buf *details, struct buf *ret, struct error *reterr)
{
    const struct schema *schema = schema_of(call, reterr);
    int r;

    if (!schema)
        return -ERR_INTERNAL;
    if ((r = schema_check(schema, arguments, ret_checked, details, reterr)) < 0 ||
        (r = tool_call_check(call, reterr)) < 0)
        return r;
    return call->tool->run(call, yyjson_doc_get_root(*ret_checked), ret, reterr);
}

bool tool_call_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret)
{
    static const char failed[] = "{\"success\":false", rest[] = ",\"error\":\"MemoryError: the "
                                                                "payload is above its limit\"}";
    auto_json yyjson_doc *checked = NULL;
    auto_buf struct buf details;
    size_t before = ret->len;
    struct error error = {};
    int r;

    buf_init(&details, MIB);
    r = call_perform(call, arguments, &checked, &details, ret, &error);
    if (r < 0) {
        ret->len = before; /* of a payload that was begun */
        r = details.len ? payload_invalid(&details, ret)
                        : payload_error(call, yyjson_doc_get_root(checked), &error, ret);
    }
    if (r < 0) {
        ret->len = before;
        r = buf_append_str(ret, failed) < 0 ? -1 : buf_append_str(ret, rest);
    }
    return r == 0 && !(ret->len - before >= strlen(failed) &&
                       memcmp(ret->data + before, failed, strlen(failed)) == 0);
}
