/* SPDX-License-Identifier: MIT */
/*
 * Events become lines; see chat_view.h. The same message comes several times (in pieces, in an
 * update, in each later state), so what was shown is known by its id, not by its place.
 */
#include "cli/chat_view.h"

#include "base/str.h"
#include "cli/chat.h"
#include "cli/chat_call.h"
#include "cli/chat_stream.h"

#include <stdio.h>

enum { TEXT_MAX = 64 << 20 };

/* ---- life ---- */

int chat_view_init(struct chat *c, struct error *reterr)
{
    c->view = (struct chat_view){.clean = {.mode = CLEAN_STRIP}};
    buf_init(&c->view.thought, 1 << 20);
    return markdown_stream_new(c->term, &c->view.markdown, reterr);
}

void chat_view_done(struct chat *c)
{
    chat_calls_free(c);
    markdown_stream_free(c->view.markdown);
    c->view.markdown = NULL;
    buf_done(&c->view.thought);
    yyjson_doc_free(c->view.waiting);
    c->view.waiting = NULL;
}

void chat_view_begin(struct chat *c)
{
    yyjson_doc_free(c->view.waiting);
    c->view.waiting = NULL;
    c->view.outcome[0] = 0;
    c->view.has_failed = c->view.has_results = false;
    c->view.streaming[0] = 0;
    c->view.part = CHAT_PART_NONE;
}

/* ---- text ---- */

/* The block that is open ends, and another one begins. */
static void part_begin(struct chat *c, enum chat_part part)
{
    if (c->view.part == part)
        return;
    if (c->view.part == CHAT_PART_THOUGHT)
        chat_thought_end(c);
    if (c->view.part == CHAT_PART_TEXT)
        (void)!markdown_stream_end(c->view.markdown, NULL);
    if (part != CHAT_PART_NONE)
        chat_gap(c);
    c->view.part = part;
}

static void text_show(struct chat *c, const char *text, size_t len)
{
    if (len == 0)
        return;
    part_begin(c, CHAT_PART_TEXT);
    c->view.text_len += len;
    (void)!markdown_stream_feed(c->view.markdown, text, len, NULL);
}

static void thought_show(struct chat *c, const char *text, size_t len)
{
    if (len == 0 || c->is_answer_only)
        return;
    spinner_start(c->spinner, "thinking");
    part_begin(c, CHAT_PART_THOUGHT);
    chat_thought_feed(c, text, len);
}

/* ---- contents ---- */

/* Of a block: what it says; `ret_thinks` for what the model says to itself. NULL for others. */
static yyjson_val *block_text(yyjson_val *block, bool *ret_thinks)
{
    const char *type = json_get_str(block, "type", "");

    *ret_thinks = str_eq(type, "reasoning") || str_eq(type, "thinking");
    if (*ret_thinks) {
        yyjson_val *text = yyjson_obj_get(block, type);

        return yyjson_is_str(text) ? text : NULL;
    }
    return str_eq(type, "text") ? yyjson_obj_get(block, "text") : NULL;
}

int chat_content_text(yyjson_val *content, struct buf *ret)
{
    size_t i, max;
    yyjson_val *block, *text;
    bool thinks;

    if (yyjson_is_str(content))
        return buf_append(ret, yyjson_get_str(content), yyjson_get_len(content));
    yyjson_arr_foreach(content, i, max, block)
    {
        text = block_text(block, &thinks);
        if (yyjson_is_str(text) && !thinks &&
            buf_append(ret, yyjson_get_str(text), yyjson_get_len(text)) < 0)
            return -1;
    }
    return 0;
}

static void content_show(struct chat *c, yyjson_val *content)
{
    size_t i, max;
    yyjson_val *block, *text;
    bool thinks;

    if (yyjson_is_str(content)) {
        text_show(c, yyjson_get_str(content), yyjson_get_len(content));
        return;
    }
    yyjson_arr_foreach(content, i, max, block)
    {
        text = block_text(block, &thinks);
        if (!yyjson_is_str(text))
            continue;
        if (thinks)
            thought_show(c, yyjson_get_str(text), yyjson_get_len(text));
        else
            text_show(c, yyjson_get_str(text), yyjson_get_len(text));
    }
}

/* ---- messages ---- */

/* What a cut connection has left out of a message that was streamed. */
static void rest_show(struct chat *c, yyjson_val *content)
{
    auto_buf struct buf text;

    buf_init(&text, TEXT_MAX);
    if (chat_content_text(content, &text) == 0 && text.len > c->view.text_len)
        text_show(c, text.data + c->view.text_len, text.len - c->view.text_len);
}

/* Without a model the answer is what the panels say already. */
static bool is_told(const struct chat *c, const char *provider)
{
    return c->view.has_results && str_eq(provider, "direct");
}

static void ai_show(struct chat *c, yyjson_val *message, const char *id)
{
    yyjson_val *metadata = yyjson_obj_get(message, "response_metadata");

    if (is_told(c, json_get_str(metadata, "model_provider", "")))
        ;
    else if (str_eq(id, c->view.streaming))
        rest_show(c, yyjson_obj_get(message, "content"));
    else
        content_show(c, yyjson_obj_get(message, "content"));
    part_begin(c, CHAT_PART_NONE);
    c->view.streaming[0] = 0;
    chat_view_calls(c, message, false);
}

/* Of another client in the same conversation: our own are known before they come. */
static void human_show(struct chat *c, yyjson_val *message)
{
    auto_buf struct buf text, line;

    buf_init(&text, TEXT_MAX);
    buf_init(&line, 8192);
    if (c->is_answer_only || chat_content_text(yyjson_obj_get(message, "content"), &text) < 0 ||
        clean_line(buf_str(&text), term_width(c->term) - 3, &line) < 0)
        return;
    part_begin(c, CHAT_PART_NONE);
    chat_gap(c);
    chat_say(c, STYLE_USER, "❯ %s", buf_str(&line));
}

void chat_view_message(struct chat *c, yyjson_val *message)
{
    const char *type = json_get_str(message, "type", ""), *id = json_get_str(message, "id", "");

    if (str_eq(type, "tool")) {
        if (chat_memory_see(&c->memory, id) > 0) {
            part_begin(c, CHAT_PART_NONE);
            chat_call_result(c, message);
        }
    } else if (str_eq(type, "ai")) {
        if (chat_memory_see(&c->memory, id) > 0)
            ai_show(c, message, id);
    } else if (str_eq(type, "human") && chat_memory_see(&c->memory, id) > 0) {
        human_show(c, message);
    }
}

static void messages_show(struct chat *c, yyjson_val *messages)
{
    size_t i, max;
    yyjson_val *message;

    if (yyjson_is_obj(messages))
        chat_view_message(c, messages);
    yyjson_arr_foreach(messages, i, max, message)
    {
        chat_view_message(c, message);
    }
}

/* ---- events ---- */

/* The call that a model is writing; its arguments are shown when they are whole. */
static void call_chunks_show(struct chat *c, yyjson_val *chunks)
{
    const char *name = json_get_str(yyjson_arr_get_first(chunks), "name", NULL);
    char text[128];

    if (!name)
        return;
    part_begin(c, CHAT_PART_NONE);
    snprintf(text, sizeof(text), "writing %.80s", name);
    spinner_start(c->spinner, text);
}

static void on_messages(struct chat *c, yyjson_val *data)
{
    yyjson_val *m = yyjson_arr_get_first(data);
    const char *id = json_get_str(m, "id", "");

    if (!str_eq(json_get_str(m, "type", ""), "AIMessageChunk")) {
        chat_view_message(c, m);
        return;
    }
    if (chat_memory_has(&c->memory, id) ||
        is_told(c, json_get_str(yyjson_arr_get(data, 1), "ls_provider", "")))
        return;
    if (!str_eq(id, c->view.streaming)) {
        part_begin(c, CHAT_PART_NONE);
        c->view.text_len = 0;
        if (str_copy(c->view.streaming, sizeof(c->view.streaming), id) < 0)
            return;
    }
    content_show(c, yyjson_obj_get(m, "content"));
    call_chunks_show(c, yyjson_obj_get(m, "tool_call_chunks"));
}

static void waiting_set(struct chat *c, yyjson_val *interrupts)
{
    auto_json_mut yyjson_mut_doc *doc = NULL;

    if (!yyjson_is_arr(interrupts) || yyjson_arr_size(interrupts) == 0)
        return;
    doc = yyjson_mut_doc_new(NULL);
    yyjson_doc_free(c->view.waiting);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, interrupts));
    c->view.waiting = yyjson_mut_doc_imut_copy(doc, NULL);
}

static void on_updates(struct chat *c, yyjson_val *data)
{
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_obj_foreach(data, i, max, key, value)
    {
        if (yyjson_equals_str(key, "__interrupt__"))
            waiting_set(c, value);
        else
            messages_show(c, yyjson_obj_get(value, "messages"));
    }
}

static void on_values(struct chat *c, yyjson_val *data)
{
    messages_show(c, yyjson_obj_get(data, "messages"));
    waiting_set(c, yyjson_obj_get(data, "__interrupt__"));
}

static void on_custom(struct chat *c, yyjson_val *data)
{
    if (str_eq(json_get_str(data, "type", ""), "tool_output"))
        chat_call_output(c, data);
}

static void on_error(struct chat *c, yyjson_val *data)
{
    const char *name = json_get_str(data, "error", "error");
    const char *text = json_get_str(data, "message", "");

    part_begin(c, CHAT_PART_NONE);
    chat_view_settle(c);
    chat_calls_close(c, PANEL_ERROR, "stopped");
    chat_gap(c);
    c->view.has_failed = true;
    chat_complain(c, "%s%s%s", name, text[0] ? ": " : "", text);
}

static void on_gap(struct chat *c, yyjson_val *data)
{
    part_begin(c, CHAT_PART_NONE);
    if (!c->is_answer_only)
        chat_say(c, STYLE_WARNING, "(some of the output was not kept by the server)");
}

static void on_end(struct chat *c, yyjson_val *data)
{
    if (str_copy(c->view.outcome, sizeof(c->view.outcome), json_get_str(data, "status", "")) < 0)
        c->view.outcome[0] = 0;
}

void chat_view_event(struct chat *c, const struct chat_event *event)
{
    static const struct {
        const char *name;
        void (*show)(struct chat *c, yyjson_val *data);
    } kinds[] = {
        {"messages", on_messages}, {"updates", on_updates}, {"custom", on_custom},
        {"values", on_values},     {"error", on_error},     {"gap", on_gap},
        {"end", on_end},
    };
    auto_json yyjson_doc *doc = NULL;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!str_eq(kinds[i].name, event->name))
            continue;
        if (json_parse(event->data, event->len, &doc, NULL) == 0)
            kinds[i].show(c, yyjson_doc_get_root(doc));
        return;
    }
}

void chat_view_end(struct chat *c, enum panel_state state, const char *note)
{
    part_begin(c, CHAT_PART_NONE);
    c->view.streaming[0] = 0;
    if (c->view.waiting)
        return;
    chat_view_settle(c);
    chat_calls_close(c, state, note);
}
