/* SPDX-License-Identifier: MIT */
/*
 * Streams of whole threads: protocol v2 (commands, and events by channel and namespace), and the
 * stream that joins all runs of a thread one after another.
 */
#include "api/frames-internal.h"
#include "api/run_params.h"
#include "api/thread_log.h"
#include "base/str.h"

#include <stdio.h>

enum { FILTERS_MAX = 32, NAMESPACE_MAX = 8 };

/* ---- who may follow what ---- */

/* A thread of the owner's, or one that nobody has yet: clients open streams first. */
static int thread_check(struct http_request *req, const char *thread_id)
{
    struct store_thread thread = {};
    struct error error;
    int r = store_thread_get(api_of(req)->store, http_principal(req), thread_id, http_arena(req),
                             &thread, &error);

    return r == 0 || r == -ERR_NOT_FOUND ? 0 : api_fail(req, &error);
}

/* ---- the filter of a stream ---- */

static const struct channel_word {
    const char *word;
    uint32_t bit;
} channels[] = {
    {"values", CHANNEL_VALUES},           {"updates", CHANNEL_UPDATES},
    {"messages", CHANNEL_MESSAGES},       {"tools", CHANNEL_TOOLS},
    {"lifecycle", CHANNEL_LIFECYCLE},     {"input", CHANNEL_INPUT},
    {"checkpoints", CHANNEL_CHECKPOINTS}, {"tasks", CHANNEL_TASKS},
    {"custom", CHANNEL_CUSTOM},
};

struct event_filter {
    /* Prefixes of namespaces, each "a|b" ("" is the root), and how much deeper an event may be. */
    char prefixes[FILTERS_MAX][NAMESPACE_MAX * 64];
    size_t prefix_count;
    int64_t depth; /* -1: any */
};

static int64_t segments_of(const char *scope)
{
    int64_t count = *scope != 0;

    for (; *scope; scope++)
        count += *scope == '|';
    return count;
}

static bool prefix_is(const char *scope, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(scope, prefix, len) == 0 && (len == 0 || !scope[len] || scope[len] == '|');
}

static bool filter_wants(void *user, const char *scope)
{
    const struct event_filter *f = user;

    for (size_t i = 0; i < f->prefix_count; i++) {
        if (prefix_is(scope, f->prefixes[i]) &&
            (f->depth < 0 || segments_of(scope) - segments_of(f->prefixes[i]) <= f->depth))
            return true;
    }
    return f->prefix_count == 0;
}

static int channels_parse(struct http_request *req, yyjson_val *list, uint32_t *ret)
{
    size_t i, max;
    yyjson_val *v;

    *ret = 0;
    if (!yyjson_is_arr(list) || yyjson_arr_size(list) == 0)
        return api_unprocessable(req, "'channels' has to be an array of channels");
    yyjson_arr_foreach(list, i, max, v)
    {
        const char *word = yyjson_is_str(v) ? yyjson_get_str(v) : "";
        uint32_t bit = str_starts(word, "custom:") ? CHANNEL_CUSTOM : 0;

        for (size_t n = 0; n < ARRAY_LEN(channels); n++)
            bit |= str_eq(channels[n].word, word) ? channels[n].bit : 0;
        if (!bit)
            return api_unprocessable(req, "there is no channel '%.40s'", word);
        *ret |= bit;
    }
    return 0;
}

static int prefix_parse(struct http_request *req, yyjson_val *list, char *ret, size_t size)
{
    size_t i, max, len = 0;
    yyjson_val *v;

    ret[0] = 0;
    yyjson_arr_foreach(list, i, max, v)
    {
        int n = snprintf(ret + len, size - len, "%s%s", i ? "|" : "",
                         yyjson_is_str(v) ? yyjson_get_str(v) : "");

        if (n < 0 || (size_t)n >= size - len)
            return api_unprocessable(req, "a namespace is too long");
        len += (size_t)n;
    }
    return 0;
}

static int filter_parse(struct http_request *req, yyjson_val *body, struct event_filter *ret)
{
    yyjson_val *list = yyjson_obj_get(body, "namespaces"), *v;
    yyjson_val *depth = yyjson_obj_get(body, "depth");
    size_t i, max;

    if (!api_whole(depth, &ret->depth))
        ret->depth = -1;
    if (yyjson_arr_size(list) > FILTERS_MAX)
        return api_unprocessable(req, "more than %d namespaces", FILTERS_MAX);
    yyjson_arr_foreach(list, i, max, v)
    {
        if (prefix_parse(req, v, ret->prefixes[i], sizeof(ret->prefixes[i])) < 0)
            return -1;
        ret->prefix_count++;
    }
    return 0;
}

/* Where the client goes on: an event's id, or only its number. */
static const char *after_parse(struct http_request *req, yyjson_val *body, struct frame_log *log)
{
    const char *header = http_header(req, "Last-Event-ID");
    yyjson_val *since = yyjson_obj_get(body, "since");
    const char *id = json_get_str(body, "since_event_id", header);
    int64_t seq;

    if (api_whole(since, &seq) && seq >= 0)
        return arena_printf(http_arena(req), "%lld-%lld", (long long)frame_log_epoch(log),
                            (long long)seq);
    return id;
}

static void on_events(struct http_request *req)
{
    const char *thread_id = api_thread_id(req);
    struct event_filter *filter = calloc(1, sizeof(*filter));
    struct frame_log *log = NULL;
    struct error error;
    yyjson_val *body;
    uint32_t tags;

    if (!thread_id || !filter || api_body(req, &body) < 0 || thread_check(req, thread_id) < 0 ||
        channels_parse(req, yyjson_obj_get(body, "channels"), &tags) < 0 ||
        filter_parse(req, body, filter) < 0) {
        free(filter);
        return;
    }
    log = thread_log_get(api_of(req)->threads, http_principal(req), thread_id, true);
    if (!log) {
        free(filter);
        error_set(&error, ERR_LIMIT, "too many threads are followed");
        api_fail(req, &error);
        return;
    }
    if (frame_log_follow(req,
                         &(struct follow_options){.log = log,
                                                  .tags = tags,
                                                  .after = after_parse(req, body, log),
                                                  .present_tags = TAG_LIFE_OF_RUN,
                                                  .wants = filter_wants,
                                                  .on_done = free,
                                                  .user = filter},
                         &error) < 0)
        api_fail(req, &error);
    frame_log_unref(log);
}

/* ---- commands ---- */

/* The last event that a command has behind it: those of what it starts come after. */
static uint64_t applied_seq(struct http_request *req, const char *thread_id)
{
    struct frame_log *log =
        thread_log_get(api_of(req)->threads, http_principal(req), thread_id, false);
    uint64_t seq = log ? frame_log_next_seq(log) - 1 : 0;

    frame_log_unref(log);
    return seq;
}

static void command_reply(struct http_request *req, yyjson_val *body, const struct error *error,
                          const char *run_id, uint64_t seq)
{
    const char *thread_id = http_param(req, "thread_id");
    auto_buf struct buf text;
    auto_buf struct buf id;
    bool ok;

    buf_init(&text, 16 * KIB);
    buf_init(&id, KIB);
    if (json_write(yyjson_obj_get(body, "id"), &id, NULL) < 0)
        buf_clear(&id);
    if (error)
        ok = buf_printf(&text, "{\"type\":\"error\",\"id\":%s,\"error\":\"%s\",\"message\":",
                        id.len ? buf_str(&id) : "null",
                        error->code == ERR_NOT_FOUND  ? "no_such_run"
                        : error->code == ERR_INVALID  ? "invalid_argument"
                        : error->code == ERR_DENIED   ? "permission_denied"
                        : error->code == ERR_INTERNAL ? "unknown_command"
                                                      : "unknown_error") == 0 &&
             json_quote(&text, error->text, strlen(error->text)) == 0 &&
             buf_append_byte(&text, '}') == 0;
    else
        ok = buf_printf(&text,
                        "{\"type\":\"success\",\"id\":%s,\"result\":{\"run_id\":\"%s\"},\"meta\":{"
                        "\"thread_id\":\"%s\",\"applied_through_seq\":%llu}}",
                        id.len ? buf_str(&id) : "null", run_id, thread_id,
                        (unsigned long long)seq) == 0;
    if (ok)
        api_reply(req, 200, &text);
}

/* A member in either of its spellings. */
static yyjson_val *param_of(yyjson_val *params, const char *snake, const char *camel)
{
    yyjson_val *v = yyjson_obj_get(params, snake);

    return v ? v : yyjson_obj_get(params, camel);
}

static void copy_param(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *name, yyjson_val *v)
{
    if (v)
        yyjson_mut_obj_add(to, yyjson_mut_str(doc, name), yyjson_val_mut_copy(doc, v));
}

/* {"<interrupt id>": response, ...} of one response or of several. */
static int resume_make(yyjson_mut_doc *doc, yyjson_val *params, yyjson_mut_val *ret,
                       struct error *reterr)
{
    yyjson_val *list = yyjson_obj_get(params, "responses"), *v;
    size_t i, max;

    if (!list) {
        yyjson_val *id = param_of(params, "interrupt_id", "interruptId");

        if (!yyjson_is_str(id))
            return error_set(reterr, ERR_INVALID, "'interrupt_id' is missing");
        copy_param(doc, ret, yyjson_get_str(id), yyjson_obj_get(params, "response"));
        return 0;
    }
    yyjson_arr_foreach(list, i, max, v)
    {
        yyjson_val *id = param_of(v, "interrupt_id", "interruptId");

        if (!yyjson_is_str(id))
            return error_set(reterr, ERR_INVALID, "'interrupt_id' is missing");
        copy_param(doc, ret, yyjson_get_str(id), yyjson_obj_get(v, "response"));
    }
    return 0;
}

/* The body of a run that does what the command asks for. */
static int command_body(yyjson_val *body, yyjson_mut_doc *doc, struct error *reterr)
{
    const char *method = json_get_str(body, "method", "");
    yyjson_val *params = yyjson_obj_get(body, "params");
    yyjson_val *assistant = param_of(params, "assistant_id", "assistantId");
    yyjson_val *multitask = param_of(params, "multitask_strategy", "multitaskStrategy");
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    if (assistant)
        copy_param(doc, root, "assistant_id", assistant);
    else
        yyjson_mut_obj_add_str(doc, root, "assistant_id", AGENT_GRAPH);
    copy_param(doc, root, "config", yyjson_obj_get(params, "config"));
    copy_param(doc, root, "metadata", yyjson_obj_get(params, "metadata"));
    copy_param(doc, root, "context", yyjson_obj_get(params, "context"));
    copy_param(doc, root, "multitask_strategy", multitask);
    if (str_eq(method, "run.start")) {
        copy_param(doc, root, "input", yyjson_obj_get(params, "input"));
        return 0;
    }
    if (str_eq(method, "input.respond")) {
        yyjson_mut_val *command = yyjson_mut_obj_add_obj(doc, root, "command");
        yyjson_mut_val *resume = yyjson_mut_obj_add_obj(doc, command, "resume");

        copy_param(doc, command, "update", yyjson_obj_get(params, "update"));
        copy_param(doc, command, "goto", yyjson_obj_get(params, "goto"));
        return resume_make(doc, params, resume, reterr);
    }
    return error_set(reterr, ERR_INTERNAL, "the method '%.40s' is not known", method);
}

/* Parses and starts the run of a command; its failures are told in `error`. */
static int command_run(struct http_request *req, yyjson_val *body, const char *thread_id,
                       char ret_run[UUID_LEN + 1], struct error *error)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_doc *copy;
    auto_live_run struct live_run *run = NULL;
    struct run_params params;
    struct store_run row = {};
    struct frame_log *log;
    int r = command_body(body, doc, error);

    if (r < 0)
        return r;
    copy = yyjson_mut_doc_imut_copy(owned, NULL);
    if (!copy)
        return error_no_memory(error);
    /* The texts of the parameters live in it until the run is created. */
    api_capture(error);
    r = run_params_parse(req, yyjson_doc_get_root(copy), thread_id, &params);
    params.create.v2 = true;
    params.create.modes = MODE_VALUES | MODE_UPDATES | MODE_MESSAGES_TUPLE | MODE_CUSTOM;
    log =
        r == 0 ? thread_log_get(api_of(req)->threads, http_principal(req), thread_id, true) : NULL;
    /* @langchain/react takes any end that it is told of after its command for the end of what it
     * has started, and a page that opens its stream only then is told all from the beginning. */
    if (log)
        frame_log_turn(log);
    if (r == 0)
        r = api_run_start(req, &params, &row, &run);
    api_capture(NULL);
    frame_log_unref(log);
    if (r == 0)
        snprintf(ret_run, UUID_LEN + 1, "%s", row.id);
    yyjson_doc_free(copy);
    return r;
}

static void on_command(struct http_request *req)
{
    const char *thread_id = api_thread_id(req);
    char run_id[UUID_LEN + 1] = "";
    struct error error = {};
    yyjson_val *body;
    uint64_t seq;
    int r;

    if (!thread_id || api_body(req, &body) < 0)
        return;
    if (!yyjson_is_str(yyjson_obj_get(body, "method"))) {
        error_set(&error, ERR_INVALID, "a command has an 'id', a 'method' and 'params'");
        http_fail(req, 400, &error);
        return;
    }
    /* A run may be through before its command is answered. */
    seq = applied_seq(req, thread_id);
    r = command_run(req, body, thread_id, run_id, &error);
    command_reply(req, body, r < 0 ? &error : NULL, run_id, seq);
}

/* ---- all runs of a thread ---- */

struct thread_follower {
    struct live *live;
    int64_t epoch_ms; /* of the run that is being followed */
    char thread_id[];
};

static struct frame_log *next_log(void *user)
{
    struct thread_follower *f = user;
    struct live_run *run = live_thread_next(f->live, f->thread_id, f->epoch_ms);
    struct frame_log *log = NULL;

    if (run) {
        f->epoch_ms = live_run_epoch(run);
        log = frame_log_ref(live_run_log(run));
        live_run_unref(run);
    }
    return log;
}

/* The epoch that an id names: runs before it are not given again. */
static int64_t epoch_of(const char *id)
{
    char text[24];
    size_t len = id ? strcspn(id, "-") : 0;
    int64_t epoch;

    if (!id || len == 0 || len >= sizeof(text))
        return -1;
    memcpy(text, id, len);
    text[len] = 0;
    return str_parse_int(text, 1, INT64_MAX, &epoch) < 0 ? -1 : epoch;
}

static void on_thread_stream(struct http_request *req)
{
    const char *thread_id = api_thread_id(req), *after = http_header(req, "Last-Event-ID");
    struct api *api = api_of(req);
    struct thread_follower *f;
    struct store_thread thread = {};
    struct error error;

    if (!thread_id)
        return;
    if (store_thread_get(api->store, http_principal(req), thread_id, http_arena(req), &thread,
                         &error) < 0) {
        api_fail(req, &error);
        return;
    }
    f = calloc(1, sizeof(*f) + strlen(thread_id) + 1);
    if (!f) {
        error_no_memory(&error);
        api_fail(req, &error);
        return;
    }
    memcpy(f->thread_id, thread_id, strlen(thread_id) + 1);
    f->live = api->live;
    /* Without an id, only what is going on or begins from now; "-" and "-1" are everything. */
    f->epoch_ms = after ? MAX(epoch_of(after) - 1, 0) : live_thread_epoch(api->live, thread_id);
    if (frame_log_follow(req,
                         &(struct follow_options){.log = live_idle_log(api->live),
                                                  .tags = MODE_ALL,
                                                  .after = after,
                                                  .next = next_log,
                                                  .on_done = free,
                                                  .user = f},
                         &error) < 0)
        api_fail(req, &error);
}

const struct route_entry api_event_routes[] = {
    {"POST", "/threads/{thread_id}/commands", "Do a command of streaming protocol v2", on_command},
    {"POST", "/threads/{thread_id}/stream/events", "Follow a thread by streaming protocol v2",
     on_events},
    {"GET", "/threads/{thread_id}/stream", "Follow all runs of a thread", on_thread_stream},
    {},
};
