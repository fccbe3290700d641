/* SPDX-License-Identifier: MIT */
/*
 * An agent for a test: a store in the test's directory, sessions whose sandboxes are peers, and a
 * model behind a server on loopback that plays a script of turns, each the body of an answer in the
 * form of OpenAI. What the agent tells is kept, type by type.
 */
#pragma once

#include "agent/agent-internal.h"
#include "engine/image.h"
#include "http/client.h"
#include "tests/lib/fake-engine.h"
#include "tests/lib/rawhttp.h"

#include <sys/eventfd.h>

enum { BENCH_TURNS = 16, BENCH_EVENTS = 4096 };

/* Pieces of an answer. */
#define CHOICE(delta) "data: {\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define SAY(text) CHOICE("{\"content\":\"" text "\"}")
#define CALL(index, id, name) \
    CHOICE("{\"tool_calls\":[{\"index\":" #index ",\"id\":\"" id \
           "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"\"}}]}")
#define ARGS(index, text) \
    CHOICE("{\"tool_calls\":[{\"index\":" #index ",\"function\":{\"arguments\":\"" text "\"}}]}")
#define STOP(reason) \
    "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason \
    "\"}]}\n\n" \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4," \
    "\"total_tokens\":13}}\n\ndata: [DONE]\n\n"
#define ANSWER(text) SAY(text) STOP("stop")
#define FAIL_401 "401"
#define SILENCE "silence" /* until the client has left */

struct bench_event {
    struct agent_event e; /* its pointers are not valid */
    char *json, *interrupts, *id;
};

struct bench {
    struct world world;
    struct store *store;
    struct http_client *client;
    struct llm *llm;
    struct agent *agent;
    struct served served;
    struct route_table tables[2];
    char base_url[64];

    const char *turns[BENCH_TURNS];
    atomic_uint turn;
    char *asked;      /* the newest request of the model */
    pthread_mutex_t lock;

    char thread[UUID_LEN + 1], run[UUID_LEN + 1];
    struct bench_event events[BENCH_EVENTS];
    size_t count;
    struct agent_outcome outcome;
    int cancel_fd;
    struct arena arena;
    yyjson_doc *docs[64];
    size_t doc_count;
    /* While an event is told; or NULL. */
    void (*watch)(struct bench *b, const struct agent_event *e);
};

/* ---- the model ---- */

static inline void bench_silence(struct bench *b, struct http_request *req)
{
    uint64_t one = 1;

    if (b->cancel_fd > 0 && write(b->cancel_fd, &one, sizeof(one)) < 0)
        return;
    for (int i = 0; i < RAW_WAIT_MS && !http_is_gone(req); i++)
        usleep(1000);
}

static inline void bench_model(struct http_request *req)
{
    struct bench *b = http_user(req);
    unsigned at = atomic_fetch_add(&b->turn, 1);
    const char *turn = at < BENCH_TURNS ? b->turns[at] : NULL;

    pthread_mutex_lock(&b->lock);
    free(b->asked);
    b->asked = strndup(buf_str(http_body(req)), http_body(req)->len);
    pthread_mutex_unlock(&b->lock);
    if (!turn)
        http_respond(req, 400, "application/json", "{\"error\":{\"message\":\"no turn\"}}", 31);
    else if (str_eq(turn, FAIL_401))
        http_respond(req, 401, "application/json", "{\"error\":{\"message\":\"bad key\"}}", 31);
    else if (str_eq(turn, SILENCE))
        bench_silence(b, req);
    else
        http_respond(req, 200, "text/event-stream", turn, strlen(turn));
}

static const struct route_entry bench_routes[] = {
    {.method = "POST", .path = "/v1/chat/completions", .handler = bench_model},
    {},
};

/* ---- life ---- */

static inline void bench_events_drop(struct bench *b)
{
    for (size_t i = 0; i < b->count; i++) {
        free(b->events[i].json);
        free(b->events[i].interrupts);
        free(b->events[i].id);
    }
    b->count = 0;
    buf_done(&b->outcome.values);
    buf_done(&b->outcome.interrupts);
}

static inline void bench_close(struct bench *b)
{
    agent_free(b->agent);
    served_done(&b->served);
    llm_free(b->llm);
    http_client_free(b->client);
    store_close(b->store);
    world_end(&b->world);
    bench_events_drop(b);
    for (size_t i = 0; i < b->doc_count; i++)
        yyjson_doc_free(b->docs[i]);
    arena_done(&b->arena);
    free(b->asked);
    if (b->cancel_fd > 0)
        close(b->cancel_fd);
}
#define auto_bench __attribute__((cleanup(bench_close)))

static inline void bench_dir(const char *dir, const char *name, const char *below)
{
    char path[PATH_LEN];
    struct error err;

    snprintf(path, sizeof(path), "%s/%s/%s", dir, name, below);
    assert_ok(path_make_dirs(path, 0700, &err), err);
}

/* So that a Python session can be made. */
static inline void bench_image(struct world *w)
{
    char path[PATH_LEN], digest[IMAGE_DIGEST + 1];
    struct image_store store;
    struct error err;

    bench_dir(test_dir(), "images", "common");
    bench_dir(test_dir(), "images", "python");
    snprintf(path, sizeof(path), "%s/images/python/packages", test_dir());
    world_file(path, "a\n");
    snprintf(path, sizeof(path), "%s/images/build", test_dir());
    world_file(path, "#!/bin/sh\n");
    assert_ok(image_store_init(&store, w->settings.image_dir, &err), err);
    assert_ok(image_digest(&store, "python", digest, &err), err);
    bench_dir(w->settings.image_dir, "python", digest);
    snprintf(path, sizeof(path), "%s/python/%s/image.json", w->settings.image_dir, digest);
    world_file(path, "{}\n");
}

static inline void bench_agent(struct bench *b)
{
    struct error err;

    assert_ok(agent_new(&(struct agent_options){.size = sizeof(struct agent_options),
                                                .settings = &b->world.settings,
                                                .store = b->store,
                                                .manager = b->world.m,
                                                .llm = b->llm,
                                                .public_url = "http://127.0.0.1:8000"},
                        &b->agent, &err),
              err);
}

static inline void bench_open(struct bench *b)
{
    struct error err;

    arena_init(&b->arena, 256 * MIB);
    pthread_mutex_init(&b->lock, NULL);
    world_init(&b->world);
    bench_image(&b->world);
    world_start(&b->world);
    b->tables[0] = (struct route_table){bench_routes, b};
    b->served = served_start((struct http_options){.tables = b->tables});
    snprintf(b->base_url, sizeof(b->base_url), "http://127.0.0.1:%u/v1", b->served.port);
    assert_ok(store_open(&b->world.settings, &b->store, &err), err);
    assert_ok(
        http_client_new(&(struct http_client_options){.size = sizeof(struct http_client_options)},
                        &b->client, &err),
        err);
    assert_ok(llm_new(b->client, &b->llm, &err), err);
    bench_agent(b);
    assert_ok(uuid_v4(b->thread, &err), err);
}

/* ---- runs ---- */

static inline void bench_on_event(void *user, const struct agent_event *e)
{
    struct bench *b = user;
    struct bench_event *kept = &b->events[b->count];

    if (b->count == BENCH_EVENTS)
        return;
    kept->e = *e;
    kept->json = e->json ? strndup(e->json, e->len) : NULL;
    kept->interrupts = e->interrupts ? strdup(e->interrupts) : NULL;
    kept->id = strdup(e->message_id      ? e->message_id
                      : e->tool_call_id  ? e->tool_call_id
                      : e->checkpoint_id ? e->checkpoint_id
                                         : "");
    b->count++;
    if (b->watch)
        b->watch(b, e);
}

/* A document that lives as long as the bench. */
static inline yyjson_val *bench_json(struct bench *b, const char *text)
{
    struct error err;

    assert_true(b->doc_count < ARRAY_LEN(b->docs));
    assert_ok(json_parse(text, strlen(text), &b->docs[b->doc_count], &err), err);
    return yyjson_doc_get_root(b->docs[b->doc_count++]);
}

static inline struct agent_run_spec bench_spec(struct bench *b)
{
    return (struct agent_run_spec){
        .size = sizeof(struct agent_run_spec),
        .thread_id = b->thread,
        .owner = "o",
        .assistant_id = AGENT_ASSISTANT,
        .graph_id = AGENT_GRAPH,
        .model = {{.provider = "openai", .name = "m", .base_url = b->base_url, .api_key = "k"}, 0},
        .max_steps = 25,
        .cancel_fd = b->cancel_fd > 0 ? b->cancel_fd : -1,
    };
}

static inline void bench_claim(struct bench *b, struct store_run *ret, bool resume)
{
    struct store_worker worker = {.id = "w", .lease_us = 60000000, .attempts_max = 3};
    struct store_run_new n = {.create_thread = true, .resume = resume};
    struct store_run *active;
    size_t active_count;
    struct error err;

    assert_ok(uuid_v4(b->run, &err), err);
    n.run = (struct store_run){.id = b->run,
                               .thread_id = b->thread,
                               .owner = "o",
                               .assistant_id = AGENT_ASSISTANT,
                               .metadata = "{}",
                               .kwargs = "{}",
                               .multitask = "reject"};
    assert_ok(store_run_create(b->store, &n, &b->arena, ret, &active, &active_count, &err), err);
    assert_int_eq(store_run_claim(b->store, &worker, b->run, &b->arena, ret, &err), 1);
}

/* A whole run, as a server does it; spec NULL: as usual. `input` or `command`: JSON or NULL. */
static inline void bench_run_with(struct bench *b, struct agent_run_spec spec, const char *input,
                                  const char *command)
{
    static const char *const thread_status[] = {"idle", "interrupted", "idle", "error"};
    struct store_run run = {};
    struct error err = {};

    bench_events_drop(b);
    bench_claim(b, &run, false);
    spec.fence = (struct store_fence){.run_id = run.id, .attempt = run.attempt};
    spec.run_id = run.id;
    spec.input = input ? bench_json(b, input) : NULL;
    spec.command = command ? bench_json(b, command) : NULL;
    assert_ok(agent_run(b->agent, &spec, bench_on_event, b, &b->outcome, &err), err);
    assert_ok(store_run_end(b->store, &spec.fence,
                            &(struct store_run_end){.status = "success",
                                                    .thread_status = thread_status[b->outcome.end],
                                                    .interrupts = buf_str(&b->outcome.interrupts)},
                            &err),
              err);
}

static inline void bench_run(struct bench *b, const char *input)
{
    bench_run_with(b, bench_spec(b), input, NULL);
}

/* ---- looking ---- */

/* The types of what was told, short, in order; repeated chunks once. */
static inline const char *bench_story(const struct bench *b)
{
    static const char *const words[] = {
        [AGENT_VALUES] = "values",     [AGENT_CHECKPOINT] = "checkpoint",
        [AGENT_TASK] = "task",         [AGENT_TASK_RESULT] = "result",
        [AGENT_UPDATE] = "update",     [AGENT_INTERRUPT] = "interrupt",
        [AGENT_MODEL_START] = "start", [AGENT_CHUNK] = "chunk",
        [AGENT_MODEL_END] = "end",     [AGENT_MESSAGE] = "message",
        [AGENT_TOOL_START] = "tool",   [AGENT_TOOL_EVENT] = "event",
        [AGENT_TOOL_END] = "tool-end", [AGENT_TOOL_ERROR] = "tool-error",
        [AGENT_CUSTOM] = "custom",
    };
    static char story[16384];
    size_t len = 0;

    story[0] = 0;
    for (size_t i = 0; i < b->count; i++) {
        bool again =
            i && b->events[i].e.type == AGENT_CHUNK && b->events[i - 1].e.type == AGENT_CHUNK;

        if (!again && len < sizeof(story))
            len += (size_t)snprintf(story + len, sizeof(story) - len, "%s%s", len ? " " : "",
                                    words[b->events[i].e.type]);
    }
    return story;
}

/* The n-th event of a type, from 0; its JSON. */
static inline const char *bench_told(const struct bench *b, enum agent_event_type type, size_t n)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->events[i].e.type == type && n-- == 0)
            return b->events[i].json ? b->events[i].json : "(null)";
    }
    return "(none)";
}

/* A text or number in a JSON text, by its pointer. */
static inline const char *bench_at(const char *json, const char *pointer)
{
    static char values[8][4096];
    static unsigned next;
    char *value = values[next++ % ARRAY_LEN(values)];
    auto_json yyjson_doc *doc = NULL;
    auto_free char *text = NULL;
    yyjson_val *v;

    if (json_parse(json, strlen(json), &doc, NULL) < 0)
        return "(no JSON)";
    v = yyjson_ptr_get(yyjson_doc_get_root(doc), pointer);
    text = v && !yyjson_is_str(v) ? yyjson_val_write(v, 0, NULL) : NULL;
    snprintf(value, sizeof(values[0]), "%s", !v ? "(none)" : text ? text : yyjson_get_str(v));
    return value;
}

static inline const char *bench_value(const struct bench *b, const char *pointer)
{
    return bench_at(buf_str(&b->outcome.values), pointer);
}

/* The state at a checkpoint as text, in the bench's arena. */
static inline const char *bench_state(struct bench *b, const char *checkpoint)
{
    struct agent_state state = {};
    auto_buf struct buf json;
    struct error err;

    buf_init(&json, 64 * MIB);
    assert_ok(agent_state_load(b->agent, b->thread, checkpoint, &b->arena, &state, &err), err);
    assert_ok(agent_state_write(b->agent, &state, false, &json, &err), err);
    transcript_done(&state.messages);
    return arena_strdup(&b->arena, buf_str(&json));
}

/* A session of the thread; its id in the bench's arena. */
static inline const char *bench_session(struct bench *b)
{
    struct session_info info = {};
    struct error err;

    assert_ok(session_create(b->world.m,
                             &(struct session_options){.size = sizeof(struct session_options),
                                                       .owner = b->thread,
                                                       .network = JOB_NETWORK_NONE},
                             &info, &err),
              err);
    return arena_strdup(&b->arena, info.id);
}

/* A turn in which a cell is called, with the arguments' text that JSON in JSON needs. */
static inline const char *bench_turn_cell(struct bench *b, const char *session, const char *code)
{
    return arena_printf(&b->arena,
                        CALL(0, "call_1", "execute_code")
                            CHOICE("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{"
                                   "\\\"session_id\\\":\\\"%s\\\",\\\"code\\\":\\\"%s\\\"}\"}}]}")
                                STOP("tool_calls"),
                        session, code);
}

static inline size_t bench_history(struct bench *b)
{
    struct store_checkpoint *list = NULL;
    size_t count = 0;
    struct error err;

    assert_ok(store_checkpoint_list(b->store, b->thread, NULL, NULL, 1000, &b->arena, &list, &count,
                                    &err),
              err);
    return count;
}
