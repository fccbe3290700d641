/* SPDX-License-Identifier: MIT */
/*
 * The extension io.modelcontextprotocol/tasks: calls that take longer than clients like to wait for
 * are polled. Source: github.com/modelcontextprotocol/ext-tasks.
 */
#include "mcp/mcp-internal.h"

#include "base/str.h"
#include "mcp/call-internal.h"
#include "mcp/meta.h"

#include <stdio.h>
#include <time.h>

enum { TASK_TTL_MS = 600000, TASK_POLL_MS = 2000 };

static const char *const state_names[] = {
    [MCP_CALL_WORKING] = "working",     [MCP_CALL_INPUT] = "input_required",
    [MCP_CALL_DONE] = "completed",      [MCP_CALL_FAILED] = "failed",
    [MCP_CALL_CANCELLED] = "cancelled",
};

static void time_add(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    char text[40];
    size_t len;

    gmtime_r(&seconds, &tm);
    len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, sizeof(text) - len, ".%03dZ", (int)(wall_ms % 1000));
    yyjson_mut_obj_add_strcpy(doc, o, key, text);
}

/* Under the lock. */
static void task_fill(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *ret)
{
    yyjson_mut_obj_add_strcpy(doc, ret, "taskId", call->id);
    yyjson_mut_obj_add_str(doc, ret, "status", state_names[call->state]);
    if (call->tail_len)
        yyjson_mut_obj_add_strncpy(doc, ret, "statusMessage", call->tail, call->tail_len);
    time_add(doc, ret, "createdAt", call->created_wall_ms);
    time_add(doc, ret, "lastUpdatedAt", call->changed_wall_ms);
    yyjson_mut_obj_add_int(doc, ret, "ttlMs", TASK_TTL_MS);
    yyjson_mut_obj_add_int(doc, ret, "pollIntervalMs", TASK_POLL_MS);
}

void mcp_task_fill(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *ret)
{
    pthread_mutex_lock(&call->server->lock);
    task_fill(call, doc, ret);
    pthread_mutex_unlock(&call->server->lock);
}

/* What else a task has in its state; under the lock. */
static void detail_fill(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *ret)
{
    static const char *const members[] = {
        [MCP_CALL_INPUT] = "inputRequests",
        [MCP_CALL_DONE] = "result",
        [MCP_CALL_FAILED] = "error",
        [MCP_CALL_CANCELLED] = NULL,
    };
    yyjson_mut_doc *from = call->state == MCP_CALL_INPUT ? call->questions : call->result;
    yyjson_mut_val *detail;

    if (!members[call->state] || !from)
        return;
    detail = yyjson_mut_val_mut_copy(doc, yyjson_mut_doc_get_root(from));
    if (call->state == MCP_CALL_DONE)
        mcp_meta_complete(doc, detail);
    yyjson_mut_obj_add_val(doc, ret, members[call->state], detail);
}

/* The task of the request, referenced. Who did not declare the extension is told so: then NULL with
 * `*ret` MCP_LATER. */
static struct mcp_call *task_of(struct mcp_request *r, int *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = NULL;
    yyjson_mut_val *data, *extensions;
    const char *id = mcp_request_param(r, "taskId", reterr);
    struct mcp_call *call = id ? mcp_call_find(r->server, id) : NULL;

    *ret = -ERR_INVALID;
    if (r->capabilities & MCP_CAN_TASKS) {
        if (call && call->is_task)
            return call;
        if (id)
            error_set(reterr, ERR_NOT_FOUND, "unknown task '%.64s'", id);
        mcp_call_unref(call);
        return NULL;
    }
    doc = yyjson_mut_doc_new(NULL);
    data = yyjson_mut_obj(doc);
    extensions = yyjson_mut_obj_add_obj(
        doc, yyjson_mut_obj_add_obj(doc, data, "requiredCapabilities"), "extensions");
    yyjson_mut_obj_add_obj(doc, extensions, MCP_EXTENSION_TASKS);
    mcp_request_fail(r, &(struct jsonrpc_fault){MCP_MISSING_CAPABILITY,
                                                "the client did not declare " MCP_EXTENSION_TASKS,
                                                data});
    mcp_call_unref(call);
    *ret = MCP_LATER;
    return NULL;
}

int mcp_task_get(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                 struct error *reterr)
{
    int n;
    struct mcp_call *call = task_of(r, &n, reterr);

    if (!call)
        return n;
    pthread_mutex_lock(&r->server->lock);
    task_fill(call, doc, result);
    detail_fill(call, doc, result);
    pthread_mutex_unlock(&r->server->lock);
    mcp_call_unref(call);
    return MCP_DONE;
}

/* Some of the answers may come, and the others later. */
int mcp_task_update(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                    struct error *reterr)
{
    int n;
    struct mcp_call *call = task_of(r, &n, reterr);
    yyjson_val *responses = yyjson_obj_get(r->message.params, "inputResponses"), *key, *response;
    size_t i, max;

    if (!call)
        return n;
    yyjson_obj_foreach(responses, i, max, key, response)
    {
        mcp_call_answer(call, yyjson_get_str(key), response);
    }
    mcp_call_unref(call);
    return MCP_DONE;
}

int mcp_task_cancel(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                    struct error *reterr)
{
    int n;
    struct mcp_call *call = task_of(r, &n, reterr);

    if (!call)
        return n;
    mcp_call_cancel(call);
    mcp_call_unref(call);
    return MCP_DONE;
}
