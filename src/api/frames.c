/* SPDX-License-Identifier: MIT */
/*
 * Frames by stream mode, as two Agent Servers send them. A table says which modes an event of the
 * agent has a frame in; each frame is written only when the run asked for its mode.
 */
#include "api/frames.h"

#include "api/frames-internal.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "base/timestamp.h"

#include <stdio.h>

enum { FRAMES_ARENA_MAX = 64 * 1024 };

int frames_new(const struct frames_options *o, struct frames **ret, struct error *reterr)
{
    struct frames *f = calloc(1, sizeof(*f));

    if (!f)
        return error_no_memory(reterr);
    arena_init(&f->arena, FRAMES_ARENA_MAX);
    f->options = *o;
    f->options.run_id = arena_strdup(&f->arena, o->run_id);
    f->options.thread_id = arena_strdup(&f->arena, o->thread_id);
    f->options.assistant_id = arena_strdup(&f->arena, o->assistant_id);
    f->options.graph_id = arena_strdup(&f->arena, o->graph_id);
    f->open = -1;
    buf_init(&f->data, FRAME_MAX);
    buf_init(&f->meta, 64 * KIB);
    buf_init(&f->text, LLM_TEXT_BYTES);
    buf_init(&f->reasoning, LLM_TEXT_BYTES);
    frame_log_ref(o->log);
    if (o->thread)
        frame_log_ref(o->thread);
    if (!f->options.run_id || !f->options.thread_id || !f->options.assistant_id ||
        !f->options.graph_id) {
        frames_free(f);
        return error_no_memory(reterr);
    }
    *ret = f;
    return 0;
}

static void message_forget(struct frames *f)
{
    for (size_t i = 0; i < f->call_count; i++)
        buf_done(&f->calls[i].arguments);
    f->call_count = 0;
    f->message_id[0] = 0;
    buf_clear(&f->text);
    buf_clear(&f->reasoning);
}

void frames_free(struct frames *f)
{
    if (!f)
        return;
    message_forget(f);
    buf_done(&f->data);
    buf_done(&f->meta);
    buf_done(&f->text);
    buf_done(&f->reasoning);
    frame_log_unref(f->options.log);
    frame_log_unref(f->options.thread);
    arena_done(&f->arena);
    free(f);
}

void frames_set_model(struct frames *f, const char *provider, const char *model)
{
    snprintf(f->provider, sizeof(f->provider), "%s", provider ? provider : "");
    snprintf(f->model, sizeof(f->model), "%s", model ? model : "");
}

/* ---- writing ---- */

bool frames_text(struct frames *f, const char *text)
{
    return buf_append_str(&f->data, text) == 0;
}

bool frames_json(struct frames *f, const char *json, size_t len)
{
    return json ? buf_append(&f->data, json, len) == 0 : frames_text(f, "null");
}

bool frames_quoted(struct frames *f, const char *text)
{
    return text ? json_quote(&f->data, text, strlen(text)) == 0 : frames_text(f, "null");
}

void frames_put(struct frames *f, const char *event, uint32_t tags)
{
    frame_log_append(f->options.log, &(struct log_frame){.event = event,
                                                         .data = buf_str(&f->data),
                                                         .len = f->data.len,
                                                         .tags = tags});
}

static bool meta_member(struct buf *b, const char *key, const char *value)
{
    return buf_printf(b, "\"%s\":", key) == 0 && json_quote(b, value, strlen(value)) == 0 &&
           buf_append_byte(b, ',') == 0;
}

const char *frames_meta(struct frames *f, const struct agent_event *e)
{
    struct buf *b = &f->meta;
    const char *node = agent_node_name(e->node);
    bool ok;

    buf_clear(b);
    ok = buf_append_byte(b, '{') == 0 && meta_member(b, "run_id", f->options.run_id) &&
         meta_member(b, "thread_id", f->options.thread_id) &&
         meta_member(b, "graph_id", f->options.graph_id) &&
         meta_member(b, "assistant_id", f->options.assistant_id) &&
         meta_member(b, "ls_provider", f->provider) && meta_member(b, "ls_model_name", f->model) &&
         buf_printf(
             b,
             "\"run_attempt\":%lld,\"langgraph_node\":\"%s\",\"langgraph_step\":%lld,"
             "\"langgraph_triggers\":[\"branch:to:%s\"],\"langgraph_path\":[\"__pregel_pull\","
             "\"%s\"],\"langgraph_checkpoint_ns\":\"%s:%s\",\"checkpoint_ns\":\"%s:%s\","
             "\"ls_model_type\":\"chat\",\"tags\":[]}",
             (long long)f->options.attempt, node, (long long)e->step, node, node, node, e->task_id,
             node, e->task_id) == 0;
    return ok ? buf_str(b) : "{}";
}

/* ---- a streamed message as far as it has come ---- */

static void collect_call(struct frames *f, const struct llm_delta *d)
{
    struct frames_call *call;

    if (d->kind == LLM_DELTA_CALL && f->call_count < ARRAY_LEN(f->calls)) {
        call = &f->calls[f->call_count++];
        snprintf(call->id, sizeof(call->id), "%s", d->id ? d->id : "");
        snprintf(call->name, sizeof(call->name), "%s", d->name ? d->name : "");
        buf_init(&call->arguments, LLM_ARGUMENTS_BYTES);
    }
    /* Fragments of one call come together, so they are always the last one's. */
    if (d->kind == LLM_DELTA_ARGUMENTS && f->call_count > 0)
        (void)!buf_append(&f->calls[f->call_count - 1].arguments, d->text, d->len);
}

void frames_collect(struct frames *f, const struct agent_event *e)
{
    const struct llm_delta *d = e->delta;

    if (e->message_id && !str_eq(e->message_id, f->message_id)) {
        message_forget(f);
        snprintf(f->message_id, sizeof(f->message_id), "%s", e->message_id);
    }
    if (!d)
        return;
    if (d->kind == LLM_DELTA_TEXT)
        (void)!buf_append(&f->text, d->text, d->len);
    else if (d->kind == LLM_DELTA_REASONING)
        (void)!buf_append(&f->reasoning, d->text, d->len);
    else
        collect_call(f, d);
}

static bool partial_content(struct frames *f)
{
    if (f->reasoning.len == 0)
        return json_quote(&f->data, buf_str(&f->text), f->text.len) == 0;
    return frames_text(f, "[{\"type\":\"reasoning\",\"reasoning\":") &&
           json_quote(&f->data, buf_str(&f->reasoning), f->reasoning.len) == 0 &&
           frames_text(f, ",\"index\":0},{\"type\":\"text\",\"text\":") &&
           json_quote(&f->data, buf_str(&f->text), f->text.len) == 0 &&
           frames_text(f, ",\"index\":1}]");
}

static bool partial_calls(struct frames *f)
{
    bool ok = true;

    for (size_t i = 0; i < f->call_count && ok; i++) {
        struct frames_call *c = &f->calls[i];

        ok = frames_text(f, i ? ",{\"name\":" : "{\"name\":") && frames_quoted(f, c->name) &&
             frames_text(f, ",\"args\":") &&
             json_quote(&f->data, buf_str(&c->arguments), c->arguments.len) == 0 &&
             frames_text(f, ",\"id\":") && frames_quoted(f, c->id) &&
             buf_printf(&f->data, ",\"index\":%zu,\"type\":\"tool_call_chunk\"}", i) == 0;
    }
    return ok;
}

/* [accumulated message]: what this mode sends again with every token. */
static bool partial_write(struct frames *f)
{
    buf_clear(&f->data);
    return frames_text(f, "[{\"content\":") && partial_content(f) &&
           frames_text(f, ",\"additional_kwargs\":{},\"response_metadata\":{},\"type\":\"ai\","
                          "\"name\":null,\"id\":") &&
           frames_quoted(f, f->message_id) &&
           frames_text(f, ",\"tool_calls\":[],\"invalid_tool_calls\":[],\"usage_metadata\":null,"
                          "\"tool_call_chunks\":[") &&
           partial_calls(f) && frames_text(f, "]}]");
}

/* ---- events that CopilotKit lives on ---- */

struct chain_event {
    const char *event, *name, *id;
    const char *data; /* JSON */
    size_t len;
    const char *key;    /* member of `data` that holds it: "input", "output", "chunk" */
    const char *second; /* JSON of a further member, or NULL */
    const char *second_key;
};

static void chain_put(struct frames *f, const struct agent_event *e, const struct chain_event *c)
{
    if (!(f->options.modes & MODE_EVENTS))
        return;
    buf_clear(&f->data);
    if (frames_text(f, "{\"event\":\"") && frames_text(f, c->event) &&
        frames_text(f, "\",\"name\":") && frames_quoted(f, c->name) &&
        frames_text(f, ",\"run_id\":") && frames_quoted(f, c->id) &&
        frames_text(f, ",\"tags\":[],\"metadata\":") && frames_text(f, frames_meta(f, e)) &&
        frames_text(f, ",\"data\":{") &&
        (!c->key ||
         (buf_printf(&f->data, "\"%s\":", c->key) == 0 && frames_json(f, c->data, c->len))) &&
        (!c->second ||
         (buf_printf(&f->data, ",\"%s\":", c->second_key) == 0 && frames_text(f, c->second))) &&
        frames_text(f, "},\"parent_ids\":[") &&
        (str_eq(c->id, f->options.run_id) || frames_quoted(f, f->options.run_id)) &&
        frames_text(f, "]}"))
        frames_put(f, "events", MODE_EVENTS);
}

static void chain_root(struct frames *f, const char *event, const char *key, const char *json)
{
    const struct agent_event none = {.node = NODE_START, .task_id = ""};

    chain_put(f, &none,
              &(struct chain_event){.event = event,
                                    .name = "LangGraph",
                                    .id = f->options.run_id,
                                    .data = json,
                                    .len = json ? strlen(json) : 0,
                                    .key = key});
}

/* ---- one function per kind of event ---- */

static void debug_put(struct frames *f, const struct agent_event *e, const char *type)
{
    char now[TIMESTAMP_TEXT];

    if (!(f->options.modes & MODE_DEBUG))
        return;
    timestamp_format(timestamp_now(), now);
    buf_clear(&f->data);
    if (buf_printf(&f->data, "{\"step\":%lld,\"timestamp\":\"%s\",\"type\":\"%s\",\"payload\":",
                   (long long)e->step, now, type) == 0 &&
        frames_json(f, e->json, e->len) && frames_text(f, "}"))
        frames_put(f, "debug", MODE_DEBUG);
}

static void plain_put(struct frames *f, const struct agent_event *e, const char *event,
                      uint32_t mode)
{
    if (!(f->options.modes & mode))
        return;
    buf_clear(&f->data);
    if (frames_json(f, e->json, e->len))
        frames_put(f, event, mode);
}

static void on_values(struct frames *f, const struct agent_event *e)
{
    if (!(f->options.modes & MODE_VALUES))
        return;
    buf_clear(&f->data);
    /* The state is an object that is not empty: the interrupts become its last member. */
    if (e->interrupts
            ? frames_json(f, e->json, e->len - 1) && frames_text(f, ",\"__interrupt__\":") &&
                  frames_text(f, e->interrupts) && frames_text(f, "}")
            : frames_json(f, e->json, e->len))
        frames_put(f, "values", MODE_VALUES);
}

static void on_checkpoint(struct frames *f, const struct agent_event *e)
{
    plain_put(f, e, "checkpoints", MODE_CHECKPOINTS);
    debug_put(f, e, "checkpoint");
}

static void on_task(struct frames *f, const struct agent_event *e)
{
    plain_put(f, e, "tasks", MODE_TASKS);
    debug_put(f, e, "task");
    chain_put(f, e,
              &(struct chain_event){.event = "on_chain_start",
                                    .name = agent_node_name(e->node),
                                    .id = e->task_id,
                                    .data = "{}",
                                    .len = 2,
                                    .key = "input"});
}

static void on_task_result(struct frames *f, const struct agent_event *e)
{
    plain_put(f, e, "tasks", MODE_TASKS);
    debug_put(f, e, "task_result");
}

static void on_update(struct frames *f, const struct agent_event *e)
{
    struct chain_event c = {.event = "on_chain_stream",
                            .name = agent_node_name(e->node),
                            .id = e->task_id,
                            .data = e->json,
                            .len = e->len,
                            .key = "chunk"};

    chain_put(f, e, &c);
    c.event = "on_chain_end";
    c.key = "output";
    chain_put(f, e, &c);
    if (!(f->options.modes & MODE_UPDATES))
        return;
    buf_clear(&f->data);
    if (buf_printf(&f->data, "{\"%s\":", agent_node_name(e->node)) == 0 &&
        frames_json(f, e->json, e->len) && frames_text(f, "}"))
        frames_put(f, "updates", MODE_UPDATES);
}

static void on_interrupt(struct frames *f, const struct agent_event *e)
{
    if (!(f->options.modes & MODE_UPDATES))
        return;
    buf_clear(&f->data);
    if (frames_text(f, "{\"__interrupt__\":") && frames_json(f, e->json, e->len) &&
        frames_text(f, "}"))
        frames_put(f, "updates", MODE_UPDATES);
}

static void tuple_put(struct frames *f, const struct agent_event *e)
{
    if (!(f->options.modes & MODE_MESSAGES_TUPLE))
        return;
    buf_clear(&f->data);
    if (frames_text(f, "[") && frames_json(f, e->json, e->len) && frames_text(f, ",") &&
        frames_text(f, frames_meta(f, e)) && frames_text(f, "]"))
        frames_put(f, "messages", MODE_MESSAGES_TUPLE);
}

static void message_meta_put(struct frames *f, const struct agent_event *e)
{
    buf_clear(&f->data);
    if (frames_text(f, "{") && frames_quoted(f, e->message_id) &&
        frames_text(f, ":{\"metadata\":") && frames_text(f, frames_meta(f, e)) &&
        frames_text(f, "}}"))
        frames_put(f, "messages/metadata", MODE_MESSAGES);
}

static void on_chunk(struct frames *f, const struct agent_event *e)
{
    bool first = !str_eq(e->message_id, f->message_id);

    frames_collect(f, e);
    /* First: AG-UI's bridge goes by tuples until it has seen one of these, and counts both. */
    chain_put(f, e,
              &(struct chain_event){.event = "on_chat_model_stream",
                                    .name = f->model,
                                    .id = e->task_id,
                                    .data = e->json,
                                    .len = e->len,
                                    .key = "chunk"});
    tuple_put(f, e);
    if (!(f->options.modes & MODE_MESSAGES))
        return;
    if (first)
        message_meta_put(f, e);
    if (partial_write(f))
        frames_put(f, "messages/partial", MODE_MESSAGES);
}

static void on_model(struct frames *f, const struct agent_event *e)
{
    bool start = e->type == AGENT_MODEL_START;

    chain_put(f, e,
              &(struct chain_event){.event = start ? "on_chat_model_start" : "on_chat_model_end",
                                    .name = f->model,
                                    .id = e->task_id,
                                    .data = e->json,
                                    .len = e->len,
                                    .key = start ? "input" : "output",
                                    .second = start ? NULL : "{}",
                                    .second_key = "input"});
}

static void on_message(struct frames *f, const struct agent_event *e)
{
    tuple_put(f, e);
    if (!(f->options.modes & MODE_MESSAGES))
        return;
    message_meta_put(f, e);
    buf_clear(&f->data);
    if (frames_text(f, "[") && frames_json(f, e->json, e->len) && frames_text(f, "]"))
        frames_put(f, "messages/complete", MODE_MESSAGES);
}

/* Of the four events of a tool: its name in `tools`, the member of its data, its name in `events`.
 */
static const struct tool_words {
    enum agent_event_type type;
    const char *word, *key, *chain, *chain_key;
} tool_words[] = {
    {AGENT_TOOL_START, "on_tool_start", "input", "on_tool_start", "input"},
    {AGENT_TOOL_EVENT, "on_tool_event", "data", NULL, NULL},
    {AGENT_TOOL_END, "on_tool_end", "output", "on_tool_end", "output"},
    /* A bridge that knows only on_tool_end shows the failure of a tool, too. */
    {AGENT_TOOL_ERROR, "on_tool_error", "error", "on_tool_end", "output"},
};

static void on_tool(struct frames *f, const struct agent_event *e)
{
    const struct tool_words *w = tool_words;

    while (w->type != e->type)
        w++;
    if (w->chain)
        chain_put(f, e,
                  &(struct chain_event){.event = w->chain,
                                        .name = e->tool_name,
                                        .id = e->tool_call_id,
                                        .data = e->json,
                                        .len = e->len,
                                        .key = w->chain_key,
                                        .second = e->input,
                                        .second_key = "input"});
    if (!(f->options.modes & MODE_TOOLS))
        return;
    buf_clear(&f->data);
    if (buf_printf(&f->data, "{\"event\":\"%s\",\"toolCallId\":", w->word) == 0 &&
        frames_quoted(f, e->tool_call_id) && frames_text(f, ",\"name\":") &&
        frames_quoted(f, e->tool_name) && buf_printf(&f->data, ",\"%s\":", w->key) == 0 &&
        frames_json(f, e->json, e->len) && frames_text(f, "}"))
        frames_put(f, "tools", MODE_TOOLS);
}

static void on_custom(struct frames *f, const struct agent_event *e)
{
    plain_put(f, e, "custom", MODE_CUSTOM);
    chain_put(f, e,
              &(struct chain_event){.event = "on_custom_event",
                                    .name = e->tool_name ? e->tool_name : "custom",
                                    .id = e->task_id,
                                    .data = e->json,
                                    .len = e->len,
                                    .key = "chunk"});
}

static void (*const event_table[])(struct frames *f, const struct agent_event *e) = {
    [AGENT_VALUES] = on_values,     [AGENT_CHECKPOINT] = on_checkpoint,
    [AGENT_TASK] = on_task,         [AGENT_TASK_RESULT] = on_task_result,
    [AGENT_UPDATE] = on_update,     [AGENT_INTERRUPT] = on_interrupt,
    [AGENT_MODEL_START] = on_model, [AGENT_CHUNK] = on_chunk,
    [AGENT_MODEL_END] = on_model,   [AGENT_MESSAGE] = on_message,
    [AGENT_TOOL_START] = on_tool,   [AGENT_TOOL_EVENT] = on_tool,
    [AGENT_TOOL_END] = on_tool,     [AGENT_TOOL_ERROR] = on_tool,
    [AGENT_CUSTOM] = on_custom,
};

unsigned frames_skip_bits(const struct frames *f)
{
    static const struct {
        enum agent_event_type type;
        uint32_t modes;
        bool v2;
    } readers[] = {
        {AGENT_TASK, MODE_TASKS | MODE_DEBUG, true},
        {AGENT_CHECKPOINT, MODE_CHECKPOINTS | MODE_DEBUG, false},
        {AGENT_MODEL_START, MODE_EVENTS, false},
    };
    unsigned skip = 0;

    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        if (!(f->options.modes & readers[i].modes) && !(readers[i].v2 && f->options.thread))
            skip |= 1u << readers[i].type;
    }
    return skip;
}

void frames_begin(struct frames *f)
{
    buf_clear(&f->data);
    /* The first attempt was told when the run was accepted. */
    if (f->options.attempt > 1 && buf_printf(&f->data, "{\"run_id\":\"%s\",\"attempt\":%lld}",
                                             f->options.run_id, (long long)f->options.attempt) == 0)
        frames_put(f, "metadata", 0);
    chain_root(f, "on_chain_start", "input", "{}");
    if (f->options.thread)
        frames2_begin(f);
}

void frames_event(struct frames *f, const struct agent_event *e)
{
    event_table[e->type](f, e);
    if (f->options.thread)
        frames2_event(f, e);
}

void frames_end(struct frames *f, const char *status, const char *error, const char *values)
{
    chain_root(f, "on_chain_end", "output", values);
    if (error) {
        buf_clear(&f->data);
        if (frames_text(f, error))
            frames_put(f, "error", 0);
    }
    buf_clear(&f->data);
    if (buf_printf(&f->data, "{\"status\":\"%s\"}", status) == 0)
        frames_put(f, "end", 0);
    if (f->options.thread)
        frames2_end(f, status, error);
}
