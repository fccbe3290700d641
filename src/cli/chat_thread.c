/* SPDX-License-Identifier: MIT */
/* Conversations: which one goes on, and what a person is reminded of when it does. */
#include "cli/chat.h"

#include "base/str.h"

#include <stdio.h>

enum { RECAP_LINES = 12, RECAP_BYTES = 4000 };

/* ---- state ---- */

static int thread_get(struct chat *c, const char *path, yyjson_doc **ret, struct error *reterr)
{
    char text[CHAT_THREAD_SIZE + 128];

    snprintf(text, sizeof(text), "/threads/%s%s", c->thread_id, path);
    return chat_api_json(&c->api, "GET", text, NULL, ret, reterr);
}

/* A message of former times: it is known, and its calls are. */
static int message_know(struct chat *c, yyjson_val *message)
{
    size_t i, max;
    yyjson_val *call;

    if (chat_memory_see(&c->memory, json_get_str(message, "id", "")) < 0)
        return -1;
    yyjson_arr_foreach(yyjson_obj_get(message, "tool_calls"), i, max, call)
    {
        if (chat_memory_see_call(&c->memory, json_get_str(call, "id", "")) < 0)
            return -1;
    }
    if (str_eq(json_get_str(message, "type", ""), "tool"))
        chat_memory_learn_message(&c->memory, message);
    return 0;
}

static int messages_know(struct chat *c, yyjson_val *messages, struct error *reterr)
{
    size_t i, max;
    yyjson_val *message;

    yyjson_arr_foreach(messages, i, max, message)
    {
        if (message_know(c, message) < 0)
            return error_no_memory(reterr);
    }
    return 0;
}

/* ---- opening ---- */

/* Nothing of the conversation before is known any more. */
static int thread_enter(struct chat *c, const char *id, struct error *reterr)
{
    chat_calls_free(c);
    chat_view_begin(c);
    chat_memory_done(&c->memory);
    buf_clear(&c->attached);
    if (!chat_thread_check(id) || str_copy(c->thread_id, sizeof(c->thread_id), id) < 0)
        return error_set(reterr, ERR_PROTOCOL, "the server's name for a conversation is malformed");
    return chat_place_thread_save(&c->place, c->thread_id, reterr);
}

int chat_thread_new(struct chat *c, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    int r = chat_api_json(&c->api, "POST", "/threads", "{\"metadata\":{\"source\":\"cli\"}}", &doc,
                          reterr);

    if (r < 0)
        return r;
    return thread_enter(c, json_get_str(yyjson_doc_get_root(doc), "thread_id", ""), reterr);
}

int chat_thread_switch(struct chat *c, const char *id, struct error *reterr)
{
    char path[CHAT_THREAD_SIZE + 16];
    auto_json yyjson_doc *doc = NULL;
    int r;

    if (!chat_thread_check(id))
        return error_set(reterr, ERR_INVALID, "'%.100s' is no conversation's id", id);
    snprintf(path, sizeof(path), "/threads/%s", id);
    if ((r = chat_api_json(&c->api, "GET", path, NULL, &doc, reterr)) < 0)
        return r;
    return thread_enter(c, id, reterr);
}

int chat_thread_open(struct chat *c, const char *id, bool fresh, struct error *reterr)
{
    char kept[CHAT_THREAD_SIZE] = "";
    int r;

    if (id)
        return chat_thread_switch(c, id, reterr);
    if (!fresh)
        chat_place_thread_load(&c->place, kept);
    if (kept[0]) {
        r = chat_thread_switch(c, kept, reterr);
        if (r == 0 || -r != ERR_NOT_FOUND)
            return r;
    }
    return chat_thread_new(c, reterr);
}

/* ---- recap ---- */

/* The start of a text, whole lines of it. */
static size_t text_cut(const char *text, size_t len)
{
    size_t lines = 0, end = 0;

    for (size_t i = 0; i < MIN(len, (size_t)RECAP_BYTES) && lines < RECAP_LINES; i++) {
        if (text[i] == '\n') {
            lines++;
            end = i + 1;
        }
    }
    if (lines < RECAP_LINES)
        end = len <= RECAP_BYTES ? len : end ? end : utf8_cut(text, len, RECAP_BYTES);
    return end;
}

static void ai_recap(struct chat *c, yyjson_val *message)
{
    auto_buf struct buf text, lines;
    size_t len;

    buf_init(&text, 64 << 20);
    buf_init(&lines, 1 << 20);
    if (chat_content_text(yyjson_obj_get(message, "content"), &text) < 0 || text.len == 0)
        return;
    len = text_cut(text.data, text.len);
    if (markdown_render(
            text.data, len,
            &(struct markdown_layout){.width = term_caps(c->term)->is_tty ? term_width(c->term) : 0,
                                      .color = term_color(c->term)},
            &lines, NULL) == 0)
        term_print(c->term, buf_str(&lines), lines.len);
    if (len < text.len)
        chat_say(c, STYLE_FAINT, "…");
}

static void human_recap(struct chat *c, yyjson_val *message)
{
    auto_buf struct buf text, line;

    buf_init(&text, 64 << 20);
    buf_init(&line, 8192);
    if (chat_content_text(yyjson_obj_get(message, "content"), &text) == 0 &&
        clean_line(buf_str(&text), term_width(c->term) - 3, &line) == 0)
        chat_say(c, STYLE_USER, "❯ %s", buf_str(&line));
}

/* The last thing that a person has said, and the last that was answered. */
static void last_recap(struct chat *c, yyjson_val *messages)
{
    yyjson_val *message, *human = NULL, *ai = NULL;
    size_t i, max;

    yyjson_arr_foreach(messages, i, max, message)
    {
        const char *type = json_get_str(message, "type", "");

        if (str_eq(type, "human")) {
            human = message;
            ai = NULL;
        } else if (str_eq(type, "ai")) {
            ai = message;
        }
    }
    if (!human)
        return;
    chat_gap(c);
    chat_say(c, STYLE_FAINT, "The conversation goes on (%zu messages); it was last:", max);
    chat_gap(c);
    human_recap(c, human);
    if (!ai)
        return;
    chat_gap(c);
    ai_recap(c, ai);
}

/* ---- what is still going on ---- */

static bool run_find(struct chat *c, const char *status, char *ret, size_t size)
{
    auto_json yyjson_doc *doc = NULL;
    char path[64];
    struct error error;

    snprintf(path, sizeof(path), "/runs?limit=1&status=%s", status);
    if (thread_get(c, path, &doc, &error) < 0)
        return false;
    return str_copy(ret, size,
                    json_get_str(yyjson_arr_get_first(yyjson_doc_get_root(doc)), "run_id", "")) ==
               0 &&
           ret[0];
}

/* Whether there was something. */
static bool waiting_take(struct chat *c, yyjson_val *state)
{
    yyjson_val *interrupts = yyjson_obj_get(state, "interrupts");
    yyjson_val *messages = yyjson_obj_get(yyjson_obj_get(state, "values"), "messages");
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

    if (yyjson_arr_size(interrupts) == 0)
        return false;
    chat_view_begin(c);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, interrupts));
    c->view.waiting = yyjson_mut_doc_imut_copy(doc, NULL);
    chat_view_calls(c, yyjson_arr_get_last(messages), true);
    chat_run_answer(c);
    return true;
}

void chat_thread_wait_ask(struct chat *c)
{
    auto_json yyjson_doc *doc = NULL;
    struct error error;

    if (thread_get(c, "/state", &doc, &error) < 0)
        chat_complain(c, "%s", error.text);
    else if (!waiting_take(c, yyjson_doc_get_root(doc)))
        chat_say(c, STYLE_FAINT, "the conversation waits for nothing");
}

/* The state, with its messages known. */
static int state_know(struct chat *c, yyjson_doc **ret, yyjson_val **ret_messages)
{
    struct error error;
    int r = thread_get(c, "/state", ret, &error);

    if (r == 0) {
        *ret_messages =
            yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(*ret), "values"), "messages");
        r = messages_know(c, *ret_messages, &error);
    }
    if (r < 0)
        chat_complain(c, "%s", error.text);
    return r;
}

void chat_thread_know(struct chat *c)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *messages;

    (void)state_know(c, &doc, &messages);
}

void chat_thread_recap(struct chat *c)
{
    auto_json yyjson_doc *doc = NULL;
    char run_id[64];
    yyjson_val *messages;

    if (state_know(c, &doc, &messages) < 0)
        return;
    last_recap(c, messages);
    if (run_find(c, "running", run_id, sizeof(run_id)) ||
        run_find(c, "pending", run_id, sizeof(run_id)))
        chat_run_follow(c, run_id);
    else
        (void)waiting_take(c, yyjson_doc_get_root(doc));
}
