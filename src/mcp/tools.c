/* SPDX-License-Identifier: MIT */
/* tools/list and tools/call. What the table of tools holds is offered as it is. */
#include "mcp/mcp-internal.h"

#include "base/sha256.h"
#include "base/str.h"
#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"
#include "mcp/fixture.h"

#include <stdio.h>

/* ---- the list ---- */

static void tool_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct tool_entry *t)
{
    yyjson_mut_val *tool = yyjson_mut_arr_add_obj(doc, list), *hints;

    yyjson_mut_obj_add_str(doc, tool, "name", t->name);
    yyjson_mut_obj_add_str(doc, tool, "title", t->title);
    yyjson_mut_obj_add_str(doc, tool, "description", t->description);
    yyjson_mut_obj_add_val(doc, tool, "inputSchema", yyjson_mut_raw(doc, t->input_schema));
    yyjson_mut_obj_add_val(doc, tool, "outputSchema", yyjson_mut_raw(doc, t->output_schema));
    hints = yyjson_mut_obj_add_obj(doc, tool, "annotations");
    yyjson_mut_obj_add_str(doc, hints, "title", t->title);
    yyjson_mut_obj_add_bool(doc, hints, "readOnlyHint", t->read_only);
    yyjson_mut_obj_add_bool(doc, hints, "destructiveHint", t->destructive);
    yyjson_mut_obj_add_bool(doc, hints, "idempotentHint", t->idempotent);
    yyjson_mut_obj_add_bool(doc, hints, "openWorldHint", t->open_world);
}

int mcp_tools_list(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                   struct error *reterr)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, result, "tools");

    for (size_t i = 0; tool_table[i]; i++)
        tool_add(doc, list, tool_table[i]);
    if (r->server->fixture)
        mcp_fixture_tools_list(doc, list);
    return MCP_DONE;
}

const char *mcp_tool_schema(const struct mcp_server *s, const char *name)
{
    const struct fixture_entry *added = s->fixture ? fixture_tool_find(name) : NULL;
    const struct tool_entry *tool = tool_find(name);

    if (added)
        return added->schema;
    return tool ? tool->input_schema : NULL;
}

/* ---- a call that goes on ---- */

int mcp_state_purpose(const struct mcp_request *r, struct buf *ret)
{
    yyjson_val *arguments = yyjson_obj_get(r->message.params, "arguments");
    char digest[2 * SHA256_SIZE + 1];
    auto_buf struct buf text;
    struct sha256 sha;

    buf_init(&text, MCP_MESSAGE_MAX);
    if (arguments && json_write(arguments, &text, NULL) < 0)
        return -1;
    sha256_init(&sha);
    sha256_update(&sha, buf_str(&text), text.len);
    sha256_finish_hex(&sha, digest);
    return buf_printf(ret, "%s %s %.512s %s", r->message.method,
                      r->server->owner ? r->server->owner : "",
                      json_get_str(r->message.params, "name", ""), digest);
}

int mcp_input_required_fill(struct mcp_call *call, const struct mcp_request *r, yyjson_mut_doc *doc,
                            yyjson_mut_val *result)
{
    yyjson_mut_val *questions = mcp_call_questions(call, doc);
    auto_buf struct buf purpose, sealed;
    char text[ID_LEN + 16];

    buf_init(&purpose, 4 * KIB);
    buf_init(&sealed, 4 * KIB);
    snprintf(text, sizeof(text), "%s:%u", call->id, call->round);
    if (!questions || mcp_state_purpose(r, &purpose) < 0 ||
        mcp_state_seal(r->server->state_key, buf_str(&purpose), text, &sealed) < 0)
        return -1;
    yyjson_mut_obj_add_str(doc, result, "resultType", "input_required");
    yyjson_mut_obj_add_val(doc, result, "inputRequests", questions);
    yyjson_mut_obj_add_strncpy(doc, result, "requestState", buf_str(&sealed), sealed.len);
    return 0;
}

/* The call that the state names, when it still asks what it asked then; referenced. */
static struct mcp_call *call_of_state(struct mcp_request *r, const char *state,
                                      struct error *reterr)
{
    auto_buf struct buf purpose, text;
    struct mcp_call *call;
    char *colon;

    buf_init(&purpose, 4 * KIB);
    buf_init(&text, 4 * KIB);
    if (mcp_state_purpose(r, &purpose) < 0) {
        error_no_memory(reterr);
        return NULL;
    }
    if (mcp_state_open(r->server->state_key, buf_str(&purpose), state, &text, reterr) < 0)
        return NULL;
    colon = strchr(text.data, ':');
    if (colon)
        *colon++ = 0;
    call = colon ? mcp_call_find(r->server, text.data) : NULL;
    if (!call)
        error_set(reterr, ERR_INVALID, "requestState: that call has ended");
    else if (!mcp_call_attach(call, r, colon, reterr)) {
        mcp_call_unref(call);
        call = NULL;
    }
    return call;
}

/* The client's second request for a call: it brings the line, and waits on. */
static int call_continue(struct mcp_request *r, const char *state, struct error *reterr)
{
    yyjson_val *responses = yyjson_obj_get(r->message.params, "inputResponses");
    yyjson_val *response = yyjson_obj_get(responses, MCP_LINE);
    struct mcp_call *call = call_of_state(r, state, reterr);

    if (!call)
        return -ERR_INVALID;
    if (response)
        mcp_call_answer(call, MCP_LINE, response);
    else
        mcp_call_ask_again(call, r);
    mcp_call_unref(call);
    return MCP_LATER;
}

int mcp_tools_call(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                   struct error *reterr)
{
    const char *name = mcp_request_param(r, "name", reterr);
    const char *state = json_get_str(r->message.params, "requestState", NULL);
    yyjson_val *arguments = yyjson_obj_get(r->message.params, "arguments");
    const struct tool_entry *entry;
    int n;

    if (!name)
        return -ERR_INVALID;
    if (arguments && !yyjson_is_obj(arguments))
        return error_set(reterr, ERR_INVALID, "the parameter \"arguments\" is no object");
    if (r->server->fixture && fixture_tool_find(name))
        return mcp_fixture_run(r, fixture_tool_find(name), doc, result, reterr);
    entry = tool_find(name);
    if (!entry)
        return error_set(reterr, ERR_NOT_FOUND, "unknown tool: %.128s", name);
    if (state && r->era == MCP_MODERN)
        return call_continue(r, state, reterr);
    n = mcp_call_start(r, entry, reterr);
    return n < 0 ? n : MCP_LATER;
}
