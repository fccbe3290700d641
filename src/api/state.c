/* SPDX-License-Identifier: MIT */
/* The states of a thread: its newest one, any other one, all of them, and edits. */
#include "api/threads.h"

#include "base/str.h"

enum { HISTORY_LIMIT = 10, HISTORY_LIMIT_MAX = 1000 };

static bool wants(struct http_request *req, const char *name)
{
    const char *text = http_query(req, name);
    bool value = false;

    return text && str_parse_bool(text, &value) == 0 && value;
}

/* Of a thread that never ran: no checkpoint at all. */
static void fresh_reply(struct http_request *req)
{
    api_reply_text(req, 200,
                   "{\"values\":{},\"next\":[],\"tasks\":[],\"interrupts\":[],\"metadata\":{},"
                   "\"created_at\":null,\"checkpoint\":null,\"parent_checkpoint\":null,"
                   "\"checkpoint_id\":null,\"parent_checkpoint_id\":null}");
}

/* Its own arena for each state: a history may have many large ones. */
static int state_append(struct http_request *req, const char *thread_id, const char *checkpoint_id,
                        struct buf *ret, struct error *reterr)
{
    struct agent *agent = api_of(req)->agent;
    struct agent_state state = {};
    auto_arena struct arena arena;
    int r;

    arena_init(&arena, API_ANSWER_MAX);
    r = agent_state_load(agent, thread_id, checkpoint_id, &arena, &state, reterr);
    state.ids_only = wants(req, "ids");
    if (r == 0)
        r = agent_state_write(agent, &state, wants(req, "inline"), ret, reterr);
    transcript_done(&state.messages);
    return r;
}

int api_values_append(struct api *api, const char *thread_id, const char *checkpoint_id,
                      struct buf *ret)
{
    struct agent_state state = {};
    auto_arena struct arena arena;
    size_t before = ret->len;
    int r;

    arena_init(&arena, API_ANSWER_MAX);
    r = agent_state_load(api->agent, thread_id, checkpoint_id, &arena, &state, NULL);
    if (r == 0 &&
        (buf_append_str(ret, "{\"messages\":") < 0 ||
         transcript_write(&state.messages, ret, NULL) < 0 || buf_append_byte(ret, '}') < 0)) {
        ret->len = before;
        r = -1;
    }
    transcript_done(&state.messages);
    return r;
}

static void state_reply(struct http_request *req, const char *checkpoint_id)
{
    struct store_thread t = {};
    struct error error;
    auto_buf struct buf b;

    buf_init(&b, API_ANSWER_MAX);
    if (thread_get(req, &t) < 0)
        return;
    if (!t.head && !checkpoint_id)
        fresh_reply(req);
    else if (state_append(req, t.id, checkpoint_id, &b, &error) < 0)
        api_fail(req, &error);
    else
        api_reply(req, 200, &b);
}

static void on_get(struct http_request *req)
{
    state_reply(req, NULL);
}

static void on_get_at(struct http_request *req)
{
    const char *id = api_uuid(req, "checkpoint_id");

    if (id)
        state_reply(req, id);
}

/* "id", {"checkpoint_id"}, or {"configurable": {"checkpoint_id"}}. */
static const char *checkpoint_of(yyjson_val *v)
{
    if (yyjson_is_str(v))
        return yyjson_get_str(v);
    return json_get_str(v, "checkpoint_id",
                        json_get_str(yyjson_obj_get(v, "configurable"), "checkpoint_id", NULL));
}

static void on_get_body(struct http_request *req)
{
    yyjson_val *body;

    if (api_body(req, &body) < 0)
        return;
    if (!yyjson_is_obj(yyjson_obj_get(body, "checkpoint"))) {
        api_unprocessable(req, "'checkpoint' has to be an object");
        return;
    }
    state_reply(req, checkpoint_of(yyjson_obj_get(body, "checkpoint")));
}

/* ---- edits ---- */

static void edit_reply(struct http_request *req, const char *thread_id, const char *checkpoint_id)
{
    static const char form[] =
        "{\"checkpoint\":{\"thread_id\":\"%s\",\"checkpoint_ns\":\"\",\"checkpoint_id\":\"%s\"},"
        "\"configurable\":{\"thread_id\":\"%s\",\"checkpoint_ns\":\"\",\"checkpoint_id\":\"%s\"},"
        "\"checkpoint_id\":\"%s\"}";

    api_reply_text(req, 200,
                   arena_printf(http_arena(req), form, thread_id, checkpoint_id, thread_id,
                                checkpoint_id, checkpoint_id));
}

static bool graph_is_known(const struct store_thread *t)
{
    return t->head || strstr(t->metadata, "\"graph_id\"");
}

static void on_edit(struct http_request *req)
{
    char checkpoint[UUID_LEN + 1];
    struct store_thread t = {};
    struct agent_edit edit = {};
    struct error error;
    yyjson_val *body;

    if (api_body(req, &body) < 0 || thread_get(req, &t) < 0)
        return;
    edit.thread_id = t.id;
    edit.values = yyjson_obj_get(body, "values");
    edit.as_node = json_get_str(body, "as_node", NULL);
    edit.checkpoint_id =
        json_get_str(body, "checkpoint_id", checkpoint_of(yyjson_obj_get(body, "checkpoint")));
    if (edit.values && !yyjson_is_obj(edit.values) && !yyjson_is_arr(edit.values) &&
        !yyjson_is_null(edit.values)) {
        api_unprocessable(req, "'values' has to be an object, an array of them, or null");
        return;
    }
    /* Nothing to change: some clients ask for the state so. */
    if ((!edit.values || yyjson_is_null(edit.values)) && !edit.as_node && !edit.checkpoint_id) {
        state_reply(req, NULL);
        return;
    }
    if (!graph_is_known(&t)) {
        error_set(
            &error, ERR_INVALID,
            "the thread has no associated graph yet: run it, or set graph_id in its metadata");
        api_fail(req, &error);
        return;
    }
    if (agent_state_edit(api_of(req)->agent, &edit, checkpoint, &error) < 0)
        api_fail(req, &error);
    else
        edit_reply(req, t.id, checkpoint);
}

/* ---- history ---- */

struct history {
    int64_t limit;
    const char *before, *metadata;
};

static int history_write(struct http_request *req, const char *thread_id, const struct history *h,
                         struct buf *ret, struct error *reterr)
{
    struct store_checkpoint *list = NULL;
    size_t count = 0;
    int r = store_checkpoint_list(api_of(req)->store, thread_id, h->before, h->metadata, h->limit,
                                  http_arena(req), &list, &count, reterr);

    if (r < 0 || buf_append_byte(ret, '[') < 0)
        return r < 0 ? r : error_no_memory(reterr);
    for (size_t i = 0; i < count && r == 0; i++) {
        if (i > 0 && buf_append_byte(ret, ',') < 0)
            return error_no_memory(reterr);
        r = state_append(req, thread_id, list[i].id, ret, reterr);
    }
    if (r == 0 && buf_append_byte(ret, ']') < 0)
        r = error_no_memory(reterr);
    return r;
}

static void history_reply(struct http_request *req, const struct history *h)
{
    struct store_thread t = {};
    struct error error;
    auto_buf struct buf b;

    buf_init(&b, API_ANSWER_MAX);
    if (thread_get(req, &t) < 0)
        return;
    if (history_write(req, t.id, h, &b, &error) < 0)
        api_fail(req, &error);
    else
        api_reply(req, 200, &b);
}

static void on_history(struct http_request *req)
{
    struct store_page page;
    yyjson_val *body;

    if (api_body(req, &body) < 0 ||
        api_page(req, body, HISTORY_LIMIT, HISTORY_LIMIT_MAX, &page) < 0)
        return;
    history_reply(req, &(struct history){
                           .limit = page.limit,
                           .before = checkpoint_of(yyjson_obj_get(body, "before")),
                           .metadata = api_metadata_filter(req, yyjson_obj_get(body, "metadata")),
                       });
}

static void on_history_query(struct http_request *req)
{
    struct store_page page = {.limit = HISTORY_LIMIT};

    if (api_query_page(req, HISTORY_LIMIT_MAX, &page) == 0)
        history_reply(req,
                      &(struct history){.limit = page.limit, .before = http_query(req, "before")});
}

const struct route_entry api_state_routes[] = {
    {"GET", "/threads/{thread_id}/state", "The newest state", on_get},
    {"POST", "/threads/{thread_id}/state", "Edit the state", on_edit},
    {"POST", "/threads/{thread_id}/state/checkpoint", "The state at a checkpoint", on_get_body},
    {"GET", "/threads/{thread_id}/state/{checkpoint_id}", "The state at a checkpoint", on_get_at},
    {"POST", "/threads/{thread_id}/history", "States, newest first", on_history},
    {"GET", "/threads/{thread_id}/history", "States, newest first", on_history_query},
    {},
};
