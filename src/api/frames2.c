/* SPDX-License-Identifier: MIT */
/*
 * Events of the streaming protocol v2 (github.com/langchain-ai/agent-protocol, `streaming/`): one
 * envelope for all, in the log of the thread. A message is a sequence of blocks, each with an index
 * of its own; arguments of tool calls are told as the whole text so far, so not at each piece.
 */
#include "api/frames-internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

#include <stdio.h>

enum { ARGUMENTS_STEP = 64 };

struct envelope {
    const char *method;
    uint32_t channel;
    const struct agent_event *e; /* its node's namespace, and "node"; NULL: the root's */
    bool rooted;                 /* has "node", but the root's namespace */
    bool ends;                   /* the run */
};

/* The head up to "data":; the caller appends the data and ends with put(). */
static bool begin(struct frames *f, const struct envelope *v)
{
    struct frame_log *log = f->options.thread;
    unsigned long long seq = frame_log_next_seq(log);
    const char *node = v->e ? agent_node_name(v->e->node) : NULL;
    /* The id of a root's lifecycle event names its run, as the official servers' do: clients tell
     * by it the replayed end of a former run from that of the one they have started. */
    bool names_run = v->channel & TAG_LIFE_OF_RUN;

    buf_clear(&f->data);
    if (buf_printf(&f->data,
                   "{\"type\":\"event\",\"event_id\":\"%s%s%s%lld-%llu\",\"seq\":%llu,"
                   "\"method\":\"%s\",\"params\":{\"namespace\":[",
                   names_run ? "synth:" : "", names_run ? f->options.run_id : "",
                   names_run ? ":" : "", (long long)frame_log_epoch(log), seq, seq, v->method) < 0)
        return false;
    if (node && !v->rooted && buf_printf(&f->data, "\"%s:%s\"", node, v->e->task_id) < 0)
        return false;
    if (buf_printf(&f->data, "],\"timestamp\":%lld,", (long long)clock_wall_ms()) < 0)
        return false;
    return (!node || buf_printf(&f->data, "\"node\":\"%s\",", node) == 0) &&
           frames_text(f, "\"data\":");
}

static void put(struct frames *f, const struct envelope *v, bool whole)
{
    char scope[64] = "";

    if (!whole || !frames_text(f, "}}"))
        return;
    if (v->e && !v->rooted)
        snprintf(scope, sizeof(scope), "%s:%s", agent_node_name(v->e->node), v->e->task_id);
    frame_log_append(f->options.thread, &(struct log_frame){.event = v->method,
                                                            .data = buf_str(&f->data),
                                                            .len = f->data.len,
                                                            .tags = v->channel,
                                                            .scope = scope,
                                                            .ends = v->ends});
}

static void put_json(struct frames *f, const struct envelope *v, const char *json, size_t len)
{
    put(f, v, begin(f, v) && frames_json(f, json, len));
}

/* ---- life ---- */

static void lifecycle_put(struct frames *f, const struct agent_event *e, const char *event,
                          const char *error)
{
    struct envelope v = {"lifecycle", CHANNEL_LIFECYCLE | (e ? 0 : TAG_LIFE_OF_RUN), e,
                         .ends = !e && !str_eq(event, "running")};
    const char *graph = e ? agent_node_name(e->node) : f->options.graph_id;

    put(f, &v,
        begin(f, &v) && buf_printf(&f->data, "{\"event\":\"%s\",\"graph_name\":", event) == 0 &&
            frames_quoted(f, graph) && frames_text(f, ",\"run_id\":") &&
            frames_quoted(f, f->options.run_id) &&
            (!error || (frames_text(f, ",\"error\":") && frames_quoted(f, error))) &&
            frames_text(f, "}"));
}

void frames2_begin(struct frames *f)
{
    lifecycle_put(f, NULL, "running", NULL);
}

void frames2_end(struct frames *f, const char *status, const char *error)
{
    auto_json yyjson_doc *doc = NULL;
    const char *text = NULL;

    if (error && json_parse(error, strlen(error), &doc, NULL) == 0)
        text = json_get_str(yyjson_doc_get_root(doc), "message", error);
    lifecycle_put(f, NULL,
                  str_eq(status, "success")       ? "completed"
                  : str_eq(status, "interrupted") ? "interrupted"
                                                  : "failed",
                  text);
}

/* ---- messages ---- */

static const struct envelope message_envelope = {"messages", CHANNEL_MESSAGES, NULL};

/*
 * What the model says is the root's: some clients read no other namespace, and others take both.
 * The result of a tool is in `values`; as a message it stays where the tool ran.
 */
static struct envelope message_of(const struct agent_event *e)
{
    struct envelope v = message_envelope;

    v.e = e;
    v.rooted = e->node == NODE_MODEL;
    return v;
}

static void message_start(struct frames *f, const struct agent_event *e, const char *role,
                          const char *tool_call_id)
{
    struct envelope v = message_of(e);

    put(f, &v,
        begin(f, &v) && frames_text(f, "{\"event\":\"message-start\",\"id\":") &&
            frames_quoted(f, e->message_id) &&
            buf_printf(&f->data,
                       ",\"role\":\"%s\",\"run_id\":\"%s\",\"metadata\":{\"langgraph_node\":"
                       "\"%s\"}",
                       role, f->options.run_id, agent_node_name(e->node)) == 0 &&
            (!tool_call_id ||
             (frames_text(f, ",\"tool_call_id\":") && frames_quoted(f, tool_call_id))) &&
            frames_text(f, "}"));
}

static void block_start(struct frames *f, const struct agent_event *e, int kind)
{
    struct envelope v = message_of(e);
    const struct frames_call *call = f->call_count ? &f->calls[f->call_count - 1] : NULL;
    bool ok =
        begin(f, &v) &&
        buf_printf(&f->data,
                   "{\"event\":\"content-block-start\",\"index\":%u,\"content\":", f->block) == 0;

    if (kind == LLM_DELTA_CALL)
        ok = ok && call && frames_text(f, "{\"type\":\"tool_call_chunk\",\"id\":") &&
             frames_quoted(f, call->id) && frames_text(f, ",\"name\":") &&
             frames_quoted(f, call->name) && frames_text(f, ",\"args\":\"\"}}");
    else
        ok = ok && frames_text(f, kind == LLM_DELTA_TEXT
                                      ? "{\"type\":\"text\",\"text\":\"\"}}"
                                      : "{\"type\":\"reasoning\",\"reasoning\":\"\"}}");
    put(f, &v, ok);
    f->open = kind;
    f->told = 0;
    f->block_at = kind == LLM_DELTA_TEXT ? f->text.len : f->reasoning.len;
}

/* What the open block has become. */
static bool block_content(struct frames *f)
{
    const struct frames_call *call = f->call_count ? &f->calls[f->call_count - 1] : NULL;
    const struct buf *text = f->open == LLM_DELTA_TEXT ? &f->text : &f->reasoning;
    auto_json yyjson_doc *doc = NULL;
    const char *arguments;
    bool valid;

    if (f->open != LLM_DELTA_CALL)
        return frames_text(f, f->open == LLM_DELTA_TEXT
                                  ? "{\"type\":\"text\",\"text\":"
                                  : "{\"type\":\"reasoning\",\"reasoning\":") &&
               json_quote(&f->data, buf_str(text) + f->block_at, text->len - f->block_at) == 0 &&
               frames_text(f, "}");
    arguments = call->arguments.len ? buf_str(&call->arguments) : "{}";
    valid = json_parse(arguments, strlen(arguments), &doc, NULL) == 0 &&
            yyjson_is_obj(yyjson_doc_get_root(doc));
    return frames_text(f, valid ? "{\"type\":\"tool_call\",\"id\":"
                                : "{\"type\":\"invalid_tool_call\",\"id\":") &&
           frames_quoted(f, call->id) && frames_text(f, ",\"name\":") &&
           frames_quoted(f, call->name) && frames_text(f, ",\"args\":") &&
           (valid ? frames_text(f, arguments) : frames_quoted(f, arguments)) &&
           (valid || frames_text(f, ",\"error\":\"the arguments are not a JSON object\"")) &&
           frames_text(f, "}");
}

static void block_finish(struct frames *f, const struct agent_event *e)
{
    struct envelope v = message_of(e);

    if (f->open < 0)
        return;
    put(f, &v,
        begin(f, &v) &&
            buf_printf(&f->data, "{\"event\":\"content-block-finish\",\"index\":%u,\"content\":",
                       f->block) == 0 &&
            block_content(f) && frames_text(f, "}"));
    f->open = -1;
    f->block++;
}

static void text_delta(struct frames *f, const struct agent_event *e)
{
    const struct llm_delta *d = e->delta;
    struct envelope v = message_of(e);
    bool text = d->kind == LLM_DELTA_TEXT;

    put(f, &v,
        begin(f, &v) &&
            buf_printf(&f->data,
                       "{\"event\":\"content-block-delta\",\"index\":%u,\"delta\":{\"type\":"
                       "\"%s-delta\",\"%s\":",
                       f->block, text ? "text" : "reasoning", text ? "text" : "reasoning") == 0 &&
            json_quote(&f->data, d->text, d->len) == 0 &&
            buf_printf(&f->data, "},\"run_id\":\"%s\"}", f->options.run_id) == 0);
}

static void arguments_delta(struct frames *f, const struct agent_event *e)
{
    const struct frames_call *call = &f->calls[f->call_count - 1];
    struct envelope v = message_of(e);
    size_t len = call->arguments.len;

    if (len - f->told < MAX((size_t)ARGUMENTS_STEP, len / 8))
        return;
    f->told = len;
    put(f, &v,
        begin(f, &v) &&
            buf_printf(&f->data,
                       "{\"event\":\"content-block-delta\",\"index\":%u,\"delta\":{\"type\":"
                       "\"block-delta\",\"fields\":{\"type\":\"tool_call_chunk\",\"id\":",
                       f->block) == 0 &&
            frames_quoted(f, call->id) && frames_text(f, ",\"name\":") &&
            frames_quoted(f, call->name) && frames_text(f, ",\"args\":") &&
            json_quote(&f->data, buf_str(&call->arguments), len) == 0 && frames_text(f, "}}}"));
}

static void usage_write(struct frames *f, const struct agent_event *e, bool *ok)
{
    const struct llm_usage *u = e->usage;

    if (!u || u->input < 0 || u->output < 0)
        return;
    *ok = *ok && buf_printf(&f->data,
                            ",\"usage\":{\"input_tokens\":%lld,\"output_tokens\":%lld,"
                            "\"total_tokens\":%lld}",
                            (long long)u->input, (long long)u->output,
                            (long long)(u->input + u->output)) == 0;
}

static void message_finish(struct frames *f, const struct agent_event *e)
{
    struct envelope v = message_of(e);
    bool ok = begin(f, &v) && frames_text(f, "{\"event\":\"message-finish\"");

    usage_write(f, e, &ok);
    if (e->finish_reason)
        ok = ok && frames_text(f, ",\"reason\":") && frames_quoted(f, e->finish_reason);
    put(f, &v, ok && frames_text(f, "}"));
    f->message_open = false;
}

/* What has come so far was collected by the frames of v1. */
static void on_chunk(struct frames *f, const struct agent_event *e)
{
    const struct llm_delta *d = e->delta;

    if (!f->message_open) {
        message_start(f, e, "ai", NULL);
        f->message_open = true;
        f->block = 0;
        f->open = -1;
    }
    if (!d) {
        block_finish(f, e);
        message_finish(f, e);
        return;
    }
    if (d->kind == LLM_DELTA_ARGUMENTS) {
        if (f->open == LLM_DELTA_CALL && f->call_count)
            arguments_delta(f, e);
        return;
    }
    if (f->open != (int)d->kind || d->kind == LLM_DELTA_CALL) {
        size_t now = d->kind == LLM_DELTA_CALL ? 0 : d->len;

        block_finish(f, e);
        block_start(f, e, d->kind);
        /* This piece was collected already, and belongs to the block. */
        f->block_at -= MIN(f->block_at, now);
    }
    if (d->kind != LLM_DELTA_CALL)
        text_delta(f, e);
}

static void on_message(struct frames *f, const struct agent_event *e)
{
    struct envelope v = message_of(e);
    auto_json yyjson_doc *doc = NULL;
    const char *content;

    if (json_parse(e->json, e->len, &doc, NULL) < 0)
        return;
    content = json_get_str(yyjson_doc_get_root(doc), "content", "");
    message_start(f, e, "tool", e->tool_call_id);
    put(f, &v,
        begin(f, &v) && frames_text(f, "{\"event\":\"content-block-start\",\"index\":0,\"content\":"
                                       "{\"type\":\"text\",\"text\":\"\"}}"));
    put(f, &v,
        begin(f, &v) &&
            frames_text(f, "{\"event\":\"content-block-finish\",\"index\":0,\"content\":{\"type\":"
                           "\"text\",\"text\":") &&
            frames_quoted(f, content) && frames_text(f, "}}"));
    put(f, &v, begin(f, &v) && frames_text(f, "{\"event\":\"message-finish\"}"));
}

/* ---- the rest ---- */

static void on_values(struct frames *f, const struct agent_event *e)
{
    put_json(f, &(struct envelope){"values", CHANNEL_VALUES, NULL}, e->json, e->len);
}

static void on_checkpoint(struct frames *f, const struct agent_event *e)
{
    struct envelope v = {"checkpoints", CHANNEL_CHECKPOINTS, NULL};

    put(f, &v,
        begin(f, &v) && frames_text(f, "{\"id\":") && frames_quoted(f, e->checkpoint_id) &&
            frames_text(f, ",\"parent_id\":") && frames_quoted(f, e->parent_id) &&
            buf_printf(&f->data, ",\"step\":%lld,\"source\":", (long long)e->step) == 0 &&
            frames_quoted(f, e->source) && frames_text(f, "}"));
}

static void on_task(struct frames *f, const struct agent_event *e)
{
    lifecycle_put(f, e, e->type == AGENT_TASK ? "started" : "completed", NULL);
    put_json(f, &(struct envelope){"tasks", CHANNEL_TASKS, NULL}, e->json, e->len);
}

static void on_update(struct frames *f, const struct agent_event *e)
{
    struct envelope v = {"updates", CHANNEL_UPDATES, NULL};

    put(f, &v,
        begin(f, &v) &&
            buf_printf(&f->data, "{\"node\":\"%s\",\"values\":", agent_node_name(e->node)) == 0 &&
            frames_json(f, e->json, e->len) && frames_text(f, "}"));
}

static void on_interrupt(struct frames *f, const struct agent_event *e)
{
    struct envelope v = {"input.requested", CHANNEL_INPUT, NULL};
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *interrupt;
    size_t i, max;

    if (json_parse(e->json, e->len, &doc, NULL) < 0)
        return;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, max, interrupt)
    {
        yyjson_val *value = yyjson_obj_get(interrupt, "value");

        put(f, &v,
            begin(f, &v) && frames_text(f, "{\"interrupt_id\":") &&
                frames_quoted(f, json_get_str(interrupt, "id", "")) &&
                frames_text(f, ",\"payload\":") && json_write(value, &f->data, NULL) == 0 &&
                frames_text(f, ",\"value\":") && json_write(value, &f->data, NULL) == 0 &&
                frames_text(f, "}"));
    }
}

static const struct tool_word {
    enum agent_event_type type;
    const char *event, *key;
} tool_words[] = {
    {AGENT_TOOL_START, "tool-started", "input"},
    {AGENT_TOOL_EVENT, "tool-output-delta", "delta"},
    {AGENT_TOOL_END, "tool-finished", "output"},
    {AGENT_TOOL_ERROR, "tool-error", "output"},
};

/* The text of a failed tool's message: what `tool-error` says. */
static bool tool_message(struct frames *f, const struct agent_event *e)
{
    auto_json yyjson_doc *doc = NULL;

    if (json_parse(e->json, e->len, &doc, NULL) < 0)
        return false;
    return frames_text(f, ",\"message\":") &&
           frames_quoted(f, json_get_str(yyjson_doc_get_root(doc), "content", ""));
}

static void on_tool(struct frames *f, const struct agent_event *e)
{
    struct envelope v = {"tools", CHANNEL_TOOLS, e, true};
    const struct tool_word *w = tool_words;

    while (w->type != e->type)
        w++;
    put(f, &v,
        begin(f, &v) &&
            buf_printf(&f->data, "{\"event\":\"%s\",\"tool_call_id\":", w->event) == 0 &&
            frames_quoted(f, e->tool_call_id) && frames_text(f, ",\"tool_name\":") &&
            frames_quoted(f, e->tool_name) && buf_printf(&f->data, ",\"%s\":", w->key) == 0 &&
            frames_json(f, e->json, e->len) &&
            (e->type != AGENT_TOOL_ERROR || tool_message(f, e)) && frames_text(f, "}"));
}

static void on_custom(struct frames *f, const struct agent_event *e)
{
    struct envelope v = {"custom", CHANNEL_CUSTOM, NULL};

    put(f, &v,
        begin(f, &v) && frames_text(f, "{\"name\":\"tool_output\",\"payload\":") &&
            frames_json(f, e->json, e->len) && frames_text(f, "}"));
}

static void (*const event_table[])(struct frames *f, const struct agent_event *e) = {
    [AGENT_VALUES] = on_values,   [AGENT_CHECKPOINT] = on_checkpoint,
    [AGENT_TASK] = on_task,       [AGENT_TASK_RESULT] = on_task,
    [AGENT_UPDATE] = on_update,   [AGENT_INTERRUPT] = on_interrupt,
    [AGENT_CHUNK] = on_chunk,     [AGENT_MESSAGE] = on_message,
    [AGENT_TOOL_START] = on_tool, [AGENT_TOOL_EVENT] = on_tool,
    [AGENT_TOOL_END] = on_tool,   [AGENT_TOOL_ERROR] = on_tool,
    [AGENT_CUSTOM] = on_custom,
};

void frames2_event(struct frames *f, const struct agent_event *e)
{
    if (event_table[e->type])
        event_table[e->type](f, e);
}
