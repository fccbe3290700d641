/* SPDX-License-Identifier: MIT */
/*
 * Calls of tools. Each has a thread, so that a long one holds up nobody; who gets its answer is
 * decided when it is there. A cell that reads a line does not stop its thread: the question goes to
 * the client, and the answer, should it come in time, to the running cell.
 */
#include "mcp/mcp-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"
#include "mcp/content.h"
#include "mcp/meta.h"
#include "wire/utf8.h"

#include <stdio.h>

enum {
    CALLS_MAX = 256,
    PROGRESS_MIN_MS = 1000,  /* between two messages with output */
    PROGRESS_MAX_MS = 10000, /* without a sign of life */
    TASK_AFTER_MS = 10000,   /* before clients lose their patience */
    KEEP_MS = 600000,        /* what nobody came back for */
};

struct mcp_call *mcp_call_ref(struct mcp_call *call)
{
    __atomic_add_fetch(&call->refs, 1, __ATOMIC_RELAXED);
    return call;
}

void mcp_call_unref(struct mcp_call *call)
{
    if (!call || __atomic_sub_fetch(&call->refs, 1, __ATOMIC_ACQ_REL))
        return;
    tool_call_free(call->tool);
    mcp_request_unref(call->first);
    mcp_request_unref(call->request);
    yyjson_mut_doc_free(call->questions);
    yyjson_mut_doc_free(call->answers);
    yyjson_mut_doc_free(call->result);
    free(call);
}

struct mcp_call *mcp_call_find(struct mcp_server *s, const char *id)
{
    struct mcp_call *call;

    pthread_mutex_lock(&s->lock);
    for (call = s->calls; call && !str_eq(call->id, id); call = call->next)
        ;
    if (call)
        mcp_call_ref(call);
    pthread_mutex_unlock(&s->lock);
    return call;
}

/* Under the lock. The list's reference goes to the caller. */
static bool call_unlist(struct mcp_call *call)
{
    struct mcp_call **p;

    for (p = &call->server->calls; *p && *p != call; p = &(*p)->next)
        ;
    if (!*p)
        return false;
    *p = call->next;
    call->server->call_count--;
    return true;
}

static struct mcp_request *call_request(struct mcp_call *call)
{
    struct mcp_request *r;

    pthread_mutex_lock(&call->server->lock);
    r = call->request ? mcp_request_ref(call->request) : NULL;
    pthread_mutex_unlock(&call->server->lock);
    return r;
}

/* Takes the request away: nobody waits for the call now. The reference goes to the caller. */
static struct mcp_request *call_leave(struct mcp_call *call)
{
    struct mcp_request *r;

    pthread_mutex_lock(&call->server->lock);
    r = call->request;
    call->request = NULL;
    if (r)
        call->expires_ms = clock_deadline(KEEP_MS);
    pthread_mutex_unlock(&call->server->lock);
    return r;
}

void mcp_call_cancel(struct mcp_call *call)
{
    pthread_mutex_lock(&call->server->lock);
    if (call->state < MCP_CALL_DONE) {
        call->state = MCP_CALL_CANCELLED;
        call->changed_wall_ms = clock_wall_ms();
    }
    pthread_mutex_unlock(&call->server->lock);
    if (call->tool)
        tool_call_cancel(call->tool);
}

/* ---- progress ---- */

/* The last line or so of what was printed, as UTF-8. */
static void tail_add(struct mcp_call *call, const char *data, size_t len)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;
    size_t from = 0;

    buf_init(&text, 4 * sizeof(call->tail));
    if (len > sizeof(call->tail)) {
        data += len - sizeof(call->tail);
        len = sizeof(call->tail);
    }
    if (utf8_repair_feed(&repair, data, len, &text) < 0 || utf8_repair_finish(&repair, &text) < 0)
        return;
    if (text.len >= sizeof(call->tail))
        from = text.len - sizeof(call->tail) + 1;
    while (from < text.len && ((unsigned char)text.data[from] & 0xc0) == 0x80)
        from++;
    pthread_mutex_lock(&call->server->lock);
    call->tail_len = text.len - from;
    memcpy(call->tail, buf_str(&text) + from, call->tail_len);
    call->tail[call->tail_len] = 0;
    pthread_mutex_unlock(&call->server->lock);
}

static void call_progress(struct mcp_call *call, struct mcp_request *r)
{
    char message[sizeof(call->tail)];

    pthread_mutex_lock(&call->server->lock);
    memcpy(message, call->tail, call->tail_len);
    message[call->tail_len] = 0;
    pthread_mutex_unlock(&call->server->lock);
    mcp_request_progress(r, message);
}

static bool progress_is_due(struct mcp_request *r, int64_t after_ms)
{
    bool due;

    pthread_mutex_lock(&r->lock);
    due = r->progress_token && !r->answered &&
          clock_ms() - MAX(r->progress_ms, r->started_ms) >= after_ms;
    pthread_mutex_unlock(&r->lock);
    return due;
}

/* ---- questions ---- */

/* The line for the cell that waits for it. */
static void line_give(struct mcp_call *call, yyjson_val *elicit_result)
{
    yyjson_val *line = yyjson_obj_get(yyjson_obj_get(elicit_result, "content"), MCP_LINE);
    bool accepted = str_eq(json_get_str(elicit_result, "action", ""), "accept");
    const char *text = accepted ? yyjson_get_str(line) : NULL;

    if (tool_call_input(call->tool, text, text ? yyjson_get_len(line) : 0, NULL) < 0)
        log_debug("an answer came too late for call %s", call->id);
}

void mcp_call_ask(struct mcp_call *call, yyjson_mut_doc *questions)
{
    pthread_mutex_lock(&call->server->lock);
    yyjson_mut_doc_free(call->questions);
    call->questions = questions;
    call->round++;
    if (call->state == MCP_CALL_WORKING)
        call->state = MCP_CALL_INPUT;
    call->changed_wall_ms = clock_wall_ms();
    pthread_mutex_unlock(&call->server->lock);
}

/* Whether the question was open. With the last one, the call goes on. */
static bool question_close(struct mcp_call *call, const char *key, yyjson_val *answer)
{
    yyjson_mut_val *open, *kept;
    bool was;

    pthread_mutex_lock(&call->server->lock);
    open = yyjson_mut_doc_get_root(call->questions);
    was = yyjson_mut_obj_remove_key(open, key);
    if (was) {
        call->changed_wall_ms = clock_wall_ms();
        if (yyjson_mut_obj_size(open) == 0 && call->state == MCP_CALL_INPUT)
            call->state = MCP_CALL_WORKING;
    }
    if (was && call->answers) {
        kept = yyjson_val_mut_copy(call->answers, answer);
        yyjson_mut_obj_add(yyjson_mut_doc_get_root(call->answers),
                           yyjson_mut_strcpy(call->answers, key), kept);
    }
    pthread_mutex_unlock(&call->server->lock);
    return was;
}

void mcp_call_answer(struct mcp_call *call, const char *key, yyjson_val *answer)
{
    if (question_close(call, key, answer) && call->tool)
        line_give(call, answer);
}

yyjson_mut_val *mcp_call_questions(struct mcp_call *call, yyjson_mut_doc *doc)
{
    yyjson_mut_val *open, *copy = NULL;

    pthread_mutex_lock(&call->server->lock);
    open = yyjson_mut_doc_get_root(call->questions);
    if (yyjson_mut_obj_size(open) > 0)
        copy = yyjson_mut_val_mut_copy(doc, open);
    pthread_mutex_unlock(&call->server->lock);
    return copy;
}

/* A question to a legacy client. */
struct asked {
    struct mcp_call *call;
    unsigned round;
};

/* A late answer is not one to the question that was asked since. */
static void on_answer(void *user, yyjson_val *result)
{
    struct asked *a = user;
    bool is_newest;

    pthread_mutex_lock(&a->call->server->lock);
    is_newest = a->call->round == a->round;
    pthread_mutex_unlock(&a->call->server->lock);
    if (is_newest)
        mcp_call_answer(a->call, MCP_LINE, result);
    mcp_call_unref(a->call);
    free(a);
}

static int ask_legacy(struct mcp_call *call, struct mcp_request *r)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *question = yyjson_mut_obj_get(mcp_call_questions(call, doc), MCP_LINE);
    struct asked *a = malloc(sizeof(*a));

    if (!a)
        return -1;
    *a = (struct asked){mcp_call_ref(call), call->round}; /* which this thread alone changes */
    if (question && mcp_ask(r, "elicitation/create", doc, yyjson_mut_obj_get(question, "params"),
                            &(struct mcp_asker){on_answer, a}, NULL) == 0)
        return 0;
    mcp_call_unref(call);
    free(a);
    return -1;
}

/* The request is answered; the one that brings the line takes its place. */
static int ask_modern(struct mcp_call *call, struct mcp_request *r)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    auto_mcp_request struct mcp_request *left = NULL;

    if (mcp_input_required_fill(call, r, doc, result) < 0)
        return -1;
    left = call_leave(call);
    mcp_request_answer(r, doc, result);
    return 0;
}

void mcp_call_ask_again(struct mcp_call *call, struct mcp_request *r)
{
    if (ask_modern(call, r) < 0)
        mcp_call_answer(call, MCP_LINE, NULL);
}

static void result_send(struct mcp_request *r, yyjson_mut_doc *doc, bool failed)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);

    if (!failed)
        mcp_request_answer(r, doc, root);
    else
        mcp_request_fail(r, &(struct jsonrpc_fault){
                                yyjson_mut_get_int(yyjson_mut_obj_get(root, "code")),
                                yyjson_mut_get_str(yyjson_mut_obj_get(root, "message")), NULL});
}

/* The result of a call that ended while nobody waited for it. */
static void call_deliver(struct mcp_call *call, struct mcp_request *r)
{
    yyjson_mut_doc *doc;
    bool unlisted;

    pthread_mutex_lock(&call->server->lock);
    doc = call->result;
    call->result = NULL;
    unlisted = call_unlist(call);
    pthread_mutex_unlock(&call->server->lock);
    if (doc)
        result_send(r, doc, call->failed);
    yyjson_mut_doc_free(doc);
    if (unlisted)
        mcp_call_unref(call);
}

bool mcp_call_attach(struct mcp_call *call, struct mcp_request *r, const char *round,
                     struct error *reterr)
{
    char now[16];
    bool attached, over;

    pthread_mutex_lock(&call->server->lock);
    snprintf(now, sizeof(now), "%u", call->round);
    attached = !call->request && !call->is_task && str_eq(now, round) && r->client;
    over = attached && call->result;
    if (attached && !over) {
        call->request = mcp_request_ref(r);
        r->call = mcp_call_ref(call);
    }
    pthread_mutex_unlock(&call->server->lock);
    if (over)
        call_deliver(call, r);
    if (!attached)
        error_set(reterr, ERR_INVALID, "requestState was used before");
    return attached;
}

/*
 * The elicitation of a line. NULL for a password, which is not asked for: a form is no place for
 * secrets, says the protocol.
 */
static yyjson_mut_doc *line_question(const char *json, size_t len)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"" MCP_LINE "\":{\"type\":\"string\","
        "\"title\":\"Input\"}},\"required\":[\"" MCP_LINE "\"]}";
    auto_json yyjson_doc *parsed = NULL;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root, *question, *params;
    const char *prompt;

    if (json_parse(json, len, &parsed, NULL) < 0 ||
        json_get_bool(yyjson_doc_get_root(parsed), "password", false))
        return NULL;
    prompt = json_get_str(yyjson_doc_get_root(parsed), "prompt", "");
    doc = yyjson_mut_doc_new(NULL);
    root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    question = yyjson_mut_obj_add_obj(doc, root, MCP_LINE);
    yyjson_mut_obj_add_str(doc, question, "method", "elicitation/create");
    params = yyjson_mut_obj_add_obj(doc, question, "params");
    yyjson_mut_obj_add_str(doc, params, "mode", "form");
    yyjson_mut_obj_add_strcpy(doc, params, "message",
                              prompt[0] ? prompt : "The running code waits for a line of input.");
    yyjson_mut_obj_add_val(doc, params, "requestedSchema", yyjson_mut_raw(doc, schema));
    return doc;
}

static void on_question(struct mcp_call *call, const char *json, size_t len)
{
    auto_mcp_request struct mcp_request *r = NULL;
    yyjson_mut_doc *question = line_question(json, len);
    int n = 0;

    if (!question) {
        line_give(call, NULL);
        return;
    }
    mcp_call_ask(call, question);
    /* A task has none: its client will ask. */
    r = call_request(call);
    if (r)
        n = r->era == MCP_MODERN ? ask_modern(call, r) : ask_legacy(call, r);
    if (n < 0)
        mcp_call_answer(call, MCP_LINE, NULL);
}

/* ---- the thread ---- */

static void on_event(void *user, const struct run_event *e)
{
    struct mcp_call *call = user;
    auto_mcp_request struct mcp_request *r = NULL;

    if (e->type == RUN_EVENT_INPUT) {
        on_question(call, buf_str(&e->data), e->data.len);
        return;
    }
    if (e->type != RUN_EVENT_STDOUT && e->type != RUN_EVENT_STDERR)
        return;
    tail_add(call, buf_str(&e->data), e->data.len);
    r = call_request(call);
    if (r && progress_is_due(r, PROGRESS_MIN_MS))
        call_progress(call, r);
}

/* Of a tool every failure is a result, which a model can act on. */
static int tool_run(struct mcp_call *call, yyjson_mut_doc *doc, yyjson_mut_val *result,
                    struct error *reterr)
{
    yyjson_val *arguments = yyjson_obj_get(call->first->message.params, "arguments");
    struct mcp_server *s = call->server;
    struct content_context context = {
        .manager = s->manager, .displays = s->displays, .owner = s->owner};
    auto_buf struct buf payload;
    struct error error;
    bool ok;

    buf_init(&payload, MCP_PAYLOAD_MAX);
    ok = tool_call_run(call->tool, arguments, &payload);
    if (content_format(
            &context,
            &(struct content_payload){.session_id = json_get_str(arguments, "session_id", NULL),
                                      .json = buf_str(&payload),
                                      .len = payload.len,
                                      .success = ok},
            doc, result, &error) < 0) {
        yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, result, "content");
        yyjson_mut_val *text = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_str(doc, text, "type", "text");
        yyjson_mut_obj_add_strcpy(doc, text, "text", error.text);
        yyjson_mut_obj_add_bool(doc, result, "isError", true);
        return 0;
    }
    mcp_resources_after(call, arguments, &payload, doc, result);
    return 0;
}

/* The result goes to who waits, or is kept for who will ask. */
static void call_finish(struct mcp_call *call, yyjson_mut_doc *doc, bool failed)
{
    struct mcp_server *s = call->server;
    struct mcp_request *r;
    bool unlisted = false;

    pthread_mutex_lock(&s->lock);
    r = call->request;
    call->request = NULL;
    if (call->state != MCP_CALL_CANCELLED)
        call->state = failed ? MCP_CALL_FAILED : MCP_CALL_DONE;
    call->failed = failed;
    call->changed_wall_ms = clock_wall_ms();
    call->expires_ms = clock_deadline(KEEP_MS);
    if (r)
        unlisted = call_unlist(call);
    else
        call->result = doc;
    pthread_mutex_unlock(&s->lock);
    if (!r)
        return;
    result_send(r, doc, failed);
    mcp_request_unref(r);
    yyjson_mut_doc_free(doc);
    if (unlisted)
        mcp_call_unref(call);
}

static void call_main(void *arg)
{
    struct mcp_call *call = arg;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    struct error error;
    bool failed = call->run(call, doc, result, &error) < 0;

    if (failed) {
        result = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_int(doc, result, "code", mcp_fault_code(&error));
        yyjson_mut_obj_add_strcpy(doc, result, "message", error.text);
    }
    yyjson_mut_doc_set_root(doc, result);
    call_finish(call, doc, failed);
    mcp_call_unref(call);
}

/* ---- the start ---- */

/* Into the server's list, where there is room. */
static int call_list(struct mcp_call *call, struct mcp_request *r, struct error *reterr)
{
    struct mcp_server *s = call->server;
    int n = 0;

    pthread_mutex_lock(&s->lock);
    if (s->stopping) {
        n = error_set(reterr, ERR_CANCELLED, "the server is stopping");
    } else if (!r->client) {
        n = error_set(reterr, ERR_CANCELLED, "the request was cancelled");
    } else if (s->call_count >= CALLS_MAX) {
        n = error_set(reterr, ERR_LIMIT, "limit_reached: %d calls run or wait to be asked for",
                      CALLS_MAX);
    } else {
        call->next = s->calls;
        s->calls = mcp_call_ref(call);
        s->call_count++;
        r->call = mcp_call_ref(call);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void call_list_undo(struct mcp_call *call)
{
    struct mcp_server *s = call->server;
    bool unlisted;

    pthread_mutex_lock(&s->lock);
    unlisted = call_unlist(call);
    pthread_mutex_unlock(&s->lock);
    if (unlisted)
        mcp_call_unref(call);
}

static struct mcp_call *call_new(struct mcp_request *r, mcp_call_fn *run, const void *arg,
                                 struct error *reterr)
{
    struct mcp_call *call = calloc(1, sizeof(*call));

    if (!call) {
        error_no_memory(reterr);
        return NULL;
    }
    *call = (struct mcp_call){.refs = 1,
                              .server = r->server,
                              .run = run,
                              .arg = arg,
                              .first = mcp_request_ref(r),
                              .request = mcp_request_ref(r),
                              .created_ms = clock_ms(),
                              .created_wall_ms = clock_wall_ms(),
                              .changed_wall_ms = clock_wall_ms()};
    if (id_new(call->id, reterr) == 0)
        return call;
    mcp_call_unref(call);
    return NULL;
}

static int call_launch(struct mcp_call *call, struct mcp_request *r, struct error *reterr)
{
    int n = call_list(call, r, reterr);

    /* Its place in the session's queue is that of its message, whichever thread runs first. */
    if (n == 0 && call->tool)
        tool_call_begin(call->tool, yyjson_obj_get(r->message.params, "arguments"));
    if (n == 0 && (n = mcp_thread_start(call->server, call_main, call, reterr)) < 0)
        call_list_undo(call);
    if (n < 0)
        mcp_call_unref(call); /* else it is the thread's */
    return n;
}

int mcp_call_start(struct mcp_request *r, const struct tool_entry *entry, struct error *reterr)
{
    struct mcp_call *call = call_new(r, tool_run, NULL, reterr);
    struct tool_observer observer = {
        .event = on_event, .user = call, .answers_input = r->capabilities & MCP_CAN_ELICIT};

    if (!call)
        return -ERR_NO_MEMORY;
    call->entry = entry;
    if (tool_call_new(&r->server->context, entry, &observer, &call->tool, reterr) < 0) {
        mcp_call_unref(call);
        return -ERR_NO_MEMORY;
    }
    return call_launch(call, r, reterr);
}

int mcp_call_start_work(struct mcp_request *r, mcp_call_fn *run, const void *arg,
                        struct error *reterr)
{
    struct mcp_call *call = call_new(r, run, arg, reterr);

    return call ? call_launch(call, r, reterr) : -ERR_NO_MEMORY;
}

/* ---- once a second ---- */

/* The n-th call, referenced. */
static struct mcp_call *call_at(struct mcp_server *s, size_t n)
{
    struct mcp_call *call;

    pthread_mutex_lock(&s->lock);
    for (call = s->calls; call && n; call = call->next)
        n--;
    if (call)
        mcp_call_ref(call);
    pthread_mutex_unlock(&s->lock);
    return call;
}

static void call_become_task(struct mcp_call *call, struct mcp_request *r)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    auto_mcp_request struct mcp_request *left = NULL;

    pthread_mutex_lock(&call->server->lock);
    if (call->request == r) {
        call->is_task = true;
        left = call->request;
        call->request = NULL;
        call->expires_ms = CLOCK_FOREVER;
    }
    pthread_mutex_unlock(&call->server->lock);
    if (!left)
        return;
    mcp_task_fill(call, doc, result);
    yyjson_mut_obj_add_str(doc, result, "resultType", "task");
    mcp_request_answer(r, doc, result);
}

void mcp_call_make_task(struct mcp_request *r)
{
    struct mcp_call *call;

    pthread_mutex_lock(&r->server->lock);
    call = r->call ? mcp_call_ref(r->call) : NULL;
    pthread_mutex_unlock(&r->server->lock);
    if (call)
        call_become_task(call, r);
    mcp_call_unref(call);
}

/* Whether it is to be forgotten. A question that nobody answers is answered with nothing. */
static bool call_expire(struct mcp_call *call)
{
    bool expired, asks, forget = false;

    pthread_mutex_lock(&call->server->lock);
    expired = !call->request && call->expires_ms && clock_ms() > call->expires_ms;
    asks = expired && call->state == MCP_CALL_INPUT;
    if (expired && call->result)
        forget = call_unlist(call);
    pthread_mutex_unlock(&call->server->lock);
    if (asks)
        mcp_call_answer(call, MCP_LINE, NULL);
    return forget;
}

static void call_tick(struct mcp_call *call)
{
    auto_mcp_request struct mcp_request *r = call_request(call);

    if (r && progress_is_due(r, PROGRESS_MAX_MS))
        call_progress(call, r);
    if (r && r->capabilities & MCP_CAN_TASKS && clock_ms() - r->started_ms >= TASK_AFTER_MS)
        call_become_task(call, r);
    if (!r && call_expire(call))
        mcp_call_unref(call);
}

void mcp_calls_tick(struct mcp_server *s)
{
    struct mcp_call *call;

    /* One that leaves the list meanwhile may cost another its turn, which comes a second later. */
    for (size_t n = 0; (call = call_at(s, n)); n++) {
        call_tick(call);
        mcp_call_unref(call);
    }
}

/* Without the lock: to stop a session that is being made takes its time, and whoever makes it may
 * want the lock to tell how far it is. */
void mcp_calls_cancel(struct mcp_server *s)
{
    struct mcp_call *list[CALLS_MAX];
    size_t count = 0;

    pthread_mutex_lock(&s->lock);
    for (struct mcp_call *call = s->calls; call; call = call->next)
        list[count++] = mcp_call_ref(call);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++) {
        mcp_call_cancel(list[i]);
        mcp_call_unref(list[i]);
    }
}

void mcp_calls_progress(struct mcp_server *s, const char *text)
{
    struct mcp_call *call;

    for (size_t n = 0; (call = call_at(s, n)); n++) {
        auto_mcp_request struct mcp_request *r = call_request(call);

        if (r && call->entry && str_eq(call->entry->name, "create_session")) {
            mcp_request_progress(r, text);
            mcp_request_log(r, "info", text);
        }
        mcp_call_unref(call);
    }
}
