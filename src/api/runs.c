/* SPDX-License-Identifier: MIT */
/* Runs: on threads, and stateless ones, which have a thread of their own for as long as they take.
 */
#include "api/run_params.h"
#include "api/threads.h"

#include "base/str.h"

#include <stdio.h>

enum { RUNS_LIMIT = 10, RUNS_LIMIT_MAX = 1000, CANCEL_WAIT_MS = 10000 };

/* ---- creating ---- */

int api_run_start(struct http_request *req, struct run_params *params, struct store_run *ret_row,
                  struct live_run **ret)
{
    struct error error;

    if (live_run_create(api_of(req)->live, &params->create, http_arena(req), ret_row, ret, &error) <
        0)
        return api_fail(req, &error);
    return 0;
}

/* Where the run is, and where it can be followed. The first one holds nothing behind the id. */
static void location_add(struct http_request *req, const struct store_run *row, const char *how)
{
    char text[256];

    snprintf(text, sizeof(text), "/threads/%s/runs/%s", row->thread_id, row->id);
    http_header_add(req, "Content-Location", text);
    snprintf(text, sizeof(text), "/threads/%s/runs/%s/%s", row->thread_id, row->id, how);
    http_header_add(req, "Location", text);
}

enum run_answer { ANSWER_ROW, ANSWER_STREAM, ANSWER_VALUES };

static void row_reply(struct http_request *req, const struct store_run *row, const char *values)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;

    yyjson_mut_doc_set_root(doc, run_format(doc, row, values));
    api_reply_doc(req, 200, owned);
}

static void run_create(struct http_request *req, const char *thread_id, enum run_answer answer)
{
    auto_live_run struct live_run *run = NULL;
    struct run_params params;
    struct store_run row = {};
    struct run_follow follow;
    struct error error;
    yyjson_val *body;
    int r = 0;

    if (api_body(req, &body) < 0 || run_params_parse(req, body, thread_id, &params) < 0 ||
        api_run_start(req, &params, &row, &run) < 0)
        return;
    location_add(req, &row, answer == ANSWER_STREAM ? "stream" : "join");
    follow = (struct run_follow){.modes = params.create.modes,
                                 .cancel_on_disconnect = params.cancel_on_disconnect,
                                 .resumable = params.resumable,
                                 .creator = true};
    if (answer == ANSWER_STREAM)
        r = api_run_stream(req, run, &follow, &error);
    else if (answer == ANSWER_VALUES)
        r = api_run_wait(req, run, &follow, &error);
    else
        row_reply(req, &row, NULL);
    if (r < 0)
        api_fail(req, &error);
}

static void thread_run_create(struct http_request *req, enum run_answer answer)
{
    const char *thread_id = api_thread_id(req);

    if (thread_id)
        run_create(req, thread_id, answer);
}

static void on_create(struct http_request *req)
{
    thread_run_create(req, ANSWER_ROW);
}

static void on_create_stream(struct http_request *req)
{
    thread_run_create(req, ANSWER_STREAM);
}

static void on_create_wait(struct http_request *req)
{
    thread_run_create(req, ANSWER_VALUES);
}

static void on_stateless(struct http_request *req)
{
    run_create(req, NULL, ANSWER_ROW);
}

static void on_stateless_stream(struct http_request *req)
{
    run_create(req, NULL, ANSWER_STREAM);
}

static void on_stateless_wait(struct http_request *req)
{
    run_create(req, NULL, ANSWER_VALUES);
}

/* All are checked before the first one is created. */
static void on_batch(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    struct run_params *params;
    size_t i, max, count;
    yyjson_val *body, *one;

    yyjson_mut_doc_set_root(doc, list);
    if (api_body_array(req, &body) < 0)
        return;
    count = yyjson_arr_size(body);
    params = arena_alloc(http_arena(req), MAX(count, 1) * sizeof(*params));
    if (count > API_BATCH_MAX || !params) {
        api_unprocessable(req, "a batch has at most %d runs", API_BATCH_MAX);
        return;
    }
    yyjson_arr_foreach(body, i, max, one)
    {
        if (run_params_parse(req, one, NULL, &params[i]) < 0)
            return;
    }
    for (i = 0; i < count; i++) {
        auto_live_run struct live_run *run = NULL;
        struct store_run *row = arena_alloc(http_arena(req), sizeof(*row));

        if (!row || api_run_start(req, &params[i], row, &run) < 0)
            return;
        yyjson_mut_arr_append(list, run_format(doc, row, NULL));
    }
    api_reply_doc(req, 200, owned);
}

/* ---- reading ---- */

static int row_get(struct http_request *req, const char *thread_id, const char *run_id,
                   struct store_run *ret)
{
    struct error error;

    if (store_run_get(api_of(req)->store, http_principal(req), thread_id, run_id, http_arena(req),
                      ret, &error) < 0)
        return api_fail(req, &error);
    return 0;
}

int api_run_attach(struct http_request *req, const char *thread_id, const char *run_id,
                   struct live_run **ret)
{
    struct store_run row = {};
    struct error error;

    *ret = live_run_find(api_of(req)->live, run_id);
    /* A temporary run is gone from the store when it ends; its log is still here. */
    if (*ret && str_eq(live_run_thread(*ret), thread_id) &&
        str_eq(live_run_owner(*ret), http_principal(req)))
        return 0;
    live_run_unref(*ret);
    *ret = NULL;
    if (row_get(req, thread_id, run_id, &row) < 0)
        return -1;
    if (live_run_attach(api_of(req)->live, &row, ret, &error) < 0)
        return api_fail(req, &error);
    return 0;
}

static void on_list(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    struct store_page page = {.limit = RUNS_LIMIT};
    struct store_run *rows = NULL;
    struct store_thread t = {};
    struct error error;
    size_t count = 0;

    if (thread_get(req, &t) < 0 || api_query_page(req, RUNS_LIMIT_MAX, &page) < 0)
        return;
    if (store_run_list(api_of(req)->store, http_principal(req), t.id, http_query(req, "status"),
                       &page, http_arena(req), &rows, &count, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, run_format(doc, &rows[i], NULL));
    api_reply_doc(req, 200, owned);
}

static const char *run_id_of(struct http_request *req, const char **ret_thread)
{
    *ret_thread = api_thread_id(req);
    return *ret_thread ? api_uuid(req, "run_id") : NULL;
}

/* The output is that of the run's last checkpoint. */
static void on_get(struct http_request *req)
{
    const char *thread_id, *run_id = run_id_of(req, &thread_id);
    struct store_run row = {};
    auto_buf struct buf values;

    buf_init(&values, API_ANSWER_MAX);
    if (!run_id || row_get(req, thread_id, run_id, &row) < 0)
        return;
    if (row.checkpoint && !str_eq(row.status, "pending") && !str_eq(row.status, "running"))
        (void)!api_values_append(api_of(req), thread_id, row.checkpoint, &values);
    row_reply(req, &row, values.len ? buf_str(&values) : NULL);
}

/* Modes as the clients of two languages write them: repeated, or one JSON array; absent: all. */
static int modes_query(struct http_request *req, uint32_t *ret)
{
    const char *word;

    *ret = 0;
    for (size_t i = 0; (word = http_query_at(req, "stream_mode", i)); i++) {
        auto_json yyjson_doc *doc = NULL;
        yyjson_val *mode;
        size_t at, max;

        if (word[0] != '[') {
            *ret |= stream_mode_parse(word);
            continue;
        }
        if (json_parse(word, strlen(word), &doc, NULL) < 0)
            return api_unprocessable(req, "'stream_mode' is neither a mode nor an array of them");
        yyjson_arr_foreach(yyjson_doc_get_root(doc), at, max, mode)
        {
            *ret |= yyjson_is_str(mode) ? stream_mode_parse(yyjson_get_str(mode)) : 0;
        }
    }
    if (*ret == 0)
        *ret = MODE_ALL;
    return 0;
}

static bool query_bool(struct http_request *req, const char *name)
{
    const char *text = http_query(req, name);
    bool value = false;

    return text && str_parse_bool(text, &value) == 0 && value;
}

static void run_join(struct http_request *req, bool stream)
{
    const char *thread_id, *run_id = run_id_of(req, &thread_id);
    auto_live_run struct live_run *run = NULL;
    struct run_follow follow = {};
    struct error error;
    int r;

    if (!run_id || modes_query(req, &follow.modes) < 0 ||
        api_run_attach(req, thread_id, run_id, &run) < 0)
        return;
    follow.cancel_on_disconnect = query_bool(req, "cancel_on_disconnect");
    r = stream ? api_run_stream(req, run, &follow, &error)
               : api_run_wait(req, run, &follow, &error);
    if (r < 0)
        api_fail(req, &error);
}

static void on_join(struct http_request *req)
{
    run_join(req, false);
}

static void on_join_stream(struct http_request *req)
{
    run_join(req, true);
}

/* ---- ending ---- */

static void on_cancel(struct http_request *req)
{
    const char *thread_id, *run_id = run_id_of(req, &thread_id);
    const char *action = http_query(req, "action");
    struct store_run row = {};
    struct error error;

    if (!run_id)
        return;
    if (action && !str_eq(action, "interrupt") && !str_eq(action, "rollback") &&
        !str_eq(action, "cancel")) {
        api_unprocessable(req, "'action' is interrupt, rollback or cancel");
        return;
    }
    action = action && str_eq(action, "rollback") ? "rollback" : "interrupt";
    if (row_get(req, thread_id, run_id, &row) < 0)
        return;
    if (live_cancel(api_of(req)->live, http_principal(req), thread_id, run_id, action,
                    query_bool(req, "wait") ? CANCEL_WAIT_MS : 0, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    /* One that was rolled back is gone: then it is answered as it was. */
    (void)!store_run_get(api_of(req)->store, http_principal(req), thread_id, run_id,
                         http_arena(req), &row, NULL);
    row_reply(req, &row, NULL);
}

static void on_delete(struct http_request *req)
{
    const char *thread_id, *run_id = run_id_of(req, &thread_id);
    struct api *api = api_of(req);
    struct error error;

    if (!run_id)
        return;
    if (query_bool(req, "force"))
        (void)!live_cancel(api->live, http_principal(req), thread_id, run_id, "interrupt",
                           CANCEL_WAIT_MS, NULL);
    if (store_run_delete(api->store, http_principal(req), thread_id, run_id, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_empty(req, 204);
}

/* A dead worker's run, ended by hand: the only change that is taken. */
static void on_patch(struct http_request *req)
{
    const char *thread_id, *run_id = run_id_of(req, &thread_id);
    struct store_run row = {};
    struct error error;
    yyjson_val *body;

    if (!run_id || api_body(req, &body) < 0)
        return;
    if (!str_eq(json_get_str(body, "status", ""), "interrupted")) {
        api_unprocessable(req, "only the status 'interrupted' can be set");
        return;
    }
    if (live_cancel(api_of(req)->live, http_principal(req), thread_id, run_id, "interrupt",
                    CANCEL_WAIT_MS, &error) < 0)
        api_fail(req, &error);
    else if (row_get(req, thread_id, run_id, &row) == 0)
        row_reply(req, &row, NULL);
}

/* {"thread_id", "run_ids"} or {"status": pending, running, all} of all the owner's threads. */
static void on_cancel_many(struct http_request *req)
{
    static const char *const states[] = {"pending", "running"};
    const char *thread_id, *status, *action = http_query(req, "action");
    struct api *api = api_of(req);
    yyjson_val *body, *id;
    size_t i, max;

    if (api_body(req, &body) < 0)
        return;
    action = action && str_eq(action, "rollback") ? "rollback" : "interrupt";
    thread_id = json_get_str(body, "thread_id", NULL);
    status = json_get_str(body, "status", NULL);
    if (!status && !thread_id) {
        api_unprocessable(req, "'status', or 'thread_id' and 'run_ids' are needed");
        return;
    }
    yyjson_arr_foreach(yyjson_obj_get(body, "run_ids"), i, max, id)
    {
        if (thread_id && yyjson_is_str(id))
            (void)!live_cancel(api->live, http_principal(req), thread_id, yyjson_get_str(id),
                               action, 0, NULL);
    }
    for (i = 0; status && i < ARRAY_LEN(states); i++) {
        struct store_page page = {.limit = RUNS_LIMIT_MAX};
        struct store_run *rows = NULL;
        size_t count = 0;

        if ((!str_eq(status, "all") && !str_eq(status, states[i])) ||
            store_run_list_brief(api->store, http_principal(req), NULL, states[i], &page,
                                 http_arena(req), &rows, &count, NULL) < 0)
            continue;
        for (size_t n = 0; n < count; n++)
            (void)!live_cancel(api->live, http_principal(req), rows[n].thread_id, rows[n].id,
                               action, 0, NULL);
    }
    api_reply_empty(req, 204);
}

const struct route_entry api_run_routes[] = {
    {"POST", "/threads/{thread_id}/runs", "Create a run in the background", on_create},
    {"POST", "/threads/{thread_id}/runs/stream", "Create a run and stream its events",
     on_create_stream},
    {"POST", "/threads/{thread_id}/runs/wait", "Create a run and wait for its final values",
     on_create_wait},
    {"GET", "/threads/{thread_id}/runs", "List the runs of a thread, newest first", on_list},
    {"GET", "/threads/{thread_id}/runs/{run_id}", "Get a run", on_get},
    {"GET", "/threads/{thread_id}/runs/{run_id}/stream", "Follow a run's events", on_join_stream},
    {"GET", "/threads/{thread_id}/runs/{run_id}/join", "Wait for a run's final values", on_join},
    {"POST", "/threads/{thread_id}/runs/{run_id}/cancel", "Cancel a run", on_cancel},
    {"DELETE", "/threads/{thread_id}/runs/{run_id}", "Delete a run that has ended", on_delete},
    {"PATCH", "/threads/{thread_id}/runs/{run_id}", "Mark a run as interrupted", on_patch},
    {"POST", "/runs/stream", "Create a stateless run and stream its events", on_stateless_stream},
    {"POST", "/runs/wait", "Create a stateless run and wait for its final values",
     on_stateless_wait},
    {"POST", "/runs", "Create a stateless run in the background", on_stateless},
    {"POST", "/runs/batch", "Create several stateless runs", on_batch},
    {"POST", "/runs/cancel", "Cancel several runs", on_cancel_many},
    {},
};
