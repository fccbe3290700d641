/* SPDX-License-Identifier: MIT */
/* Panels of calls; see chat_call.h. */
#include "cli/chat_call.h"

#include "base/str.h"
#include "cli/chat.h"
#include "cli/chat_result.h"

#include <stdio.h>

enum { TEXT_MAX = 64 << 20 };

#define YELLOW "\033[33m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

/* ---- the list ---- */

static void call_free(struct chat_call *call)
{
    free(call->id);
    free(call->name);
    free(call->result);
    yyjson_doc_free(call->args);
    free(call);
}

static struct chat_call *call_find(struct chat *c, const char *id)
{
    for (struct chat_call *call = c->view.calls; call; call = call->next) {
        if (str_eq(call->id, id))
            return call;
    }
    return NULL;
}

struct panel *chat_view_panel(struct chat *c, const char *call_id)
{
    struct chat_call *call = call_find(c, call_id);

    return call ? call->panel : NULL;
}

static struct chat_call *call_new(struct chat *c, const char *id, const char *name)
{
    struct chat_call *call = calloc(1, sizeof(*call)), **at;

    if (!call)
        return NULL;
    call->id = strdup(id);
    call->name = strdup(name);
    if (!call->id || !call->name) {
        call_free(call);
        return NULL;
    }
    for (at = &c->view.calls; *at; at = &(*at)->next)
        ;
    *at = call;
    return call;
}

void chat_calls_free(struct chat *c)
{
    while (c->view.calls) {
        struct chat_call *call = c->view.calls;

        c->view.calls = call->next;
        call_free(call);
    }
}

void chat_calls_close(struct chat *c, enum panel_state state, const char *note)
{
    for (struct chat_call *call = c->view.calls; call; call = call->next) {
        if (call->panel)
            panel_close(call->panel, state, note);
    }
    chat_calls_free(c);
}

/* ---- input ---- */

/* Tools whose input is code, in the language of the session or in their own. */
static const struct {
    const char *tool, *member, *language;
} code_tools[] = {
    {"execute_code", "code", NULL},
    {"execute_terminal", "command", "bash"},
};

static void json_feed(struct chat *c, struct panel *panel, const char *text, size_t len)
{
    struct highlight h = {.language = HIGHLIGHT_JSON, .color = term_color(c->term)};
    auto_buf struct buf clean, colored;

    buf_init(&clean, TEXT_MAX);
    buf_init(&colored, TEXT_MAX);
    if (clean_text(text, len, CLEAN_STRIP, &clean) == 0 &&
        highlight_text(&h, buf_str(&clean), clean.len, &colored) == 0)
        panel_feed(panel, buf_str(&colored), colored.len);
}

/* On one line when it is short. */
static char *json_pretty(yyjson_val *value, size_t *ret_len)
{
    char *text = yyjson_val_write(value, 0, ret_len);

    if (!text || *ret_len <= 60)
        return text;
    free(text);
    return yyjson_val_write(value, YYJSON_WRITE_PRETTY_TWO_SPACES, ret_len);
}

/* What else a cell or command was given. */
static void others_note(struct panel *panel, yyjson_val *args, const char *member)
{
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_obj_foreach(args, i, max, key, value)
    {
        auto_free char *text = yyjson_val_write(value, 0, NULL);
        char line[256];

        if (!text || yyjson_equals_str(key, member) || yyjson_equals_str(key, "session_id"))
            continue;
        snprintf(line, sizeof(line), "%.60s: %.180s", yyjson_get_str(key), text);
        panel_note(panel, STYLE_FAINT, line);
    }
}

static void input_show(struct chat *c, struct chat_call *call)
{
    yyjson_val *args = call->args ? yyjson_doc_get_root(call->args) : NULL;
    const char *runtime = chat_memory_runtime(&c->memory, json_get_str(args, "session_id", ""));
    size_t len = 0;
    auto_free char *text = NULL;

    for (size_t i = 0; i < ARRAY_LEN(code_tools); i++) {
        yyjson_val *code = yyjson_obj_get(args, code_tools[i].member);
        const char *language = code_tools[i].language ? code_tools[i].language : runtime;

        if (!str_eq(call->name, code_tools[i].tool) || !yyjson_is_str(code))
            continue;
        panel_code(call->panel, highlight_find(language, strlen(language)), yyjson_get_str(code),
                   yyjson_get_len(code));
        others_note(call->panel, args, code_tools[i].member);
        return;
    }
    if (yyjson_is_str(args)) { /* arguments that are no JSON */
        panel_code(call->panel, HIGHLIGHT_NONE, yyjson_get_str(args), yyjson_get_len(args));
    } else if (yyjson_obj_size(args) > 0 && (text = json_pretty(args, &len))) {
        panel_code(call->panel, HIGHLIGHT_JSON, text, len);
    }
}

/* "execute_code · python", and the session where there are several. */
static void title_fill(struct chat *c, const char *name, yyjson_val *args, char *ret, size_t size)
{
    const char *session = json_get_str(args, "session_id", "");
    const char *runtime = chat_memory_runtime(&c->memory, session);
    bool several = chat_memory_sessions(&c->memory) > 1 && session[0];

    if (str_eq(name, "execute_terminal"))
        runtime = "bash";
    else if (!str_eq(name, "execute_code"))
        runtime = "";
    snprintf(ret, size, "%.80s%s%.16s%s%.8s", name, runtime[0] ? " · " : "", runtime,
             several ? " · " : "", several ? session : "");
}

static void panel_make(struct chat *c, struct chat_call *call)
{
    yyjson_val *args = call->args ? yyjson_doc_get_root(call->args) : NULL;
    char title[160];

    if (call->panel || c->is_answer_only)
        return;
    chat_gap(c);
    title_fill(c, call->name, args, title, sizeof(title));
    if (panel_open(c->panels, title, CHAT_PANEL_LINES, &call->panel, NULL) < 0)
        call->panel = NULL;
    else if (!call->is_shown)
        input_show(c, call);
    call->is_shown = true;
}

static yyjson_doc *doc_copy(yyjson_val *value)
{
    auto_json_mut yyjson_mut_doc *doc = value ? yyjson_mut_doc_new(NULL) : NULL;

    if (!doc)
        return NULL;
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, value));
    return yyjson_mut_doc_imut_copy(doc, NULL);
}

static struct chat_call *call_add(struct chat *c, const char *id, const char *name,
                                  yyjson_val *args)
{
    struct chat_call *call = call_new(c, id, name);

    if (call)
        call->args = doc_copy(args);
    return call;
}

void chat_view_calls(struct chat *c, yyjson_val *message, bool again)
{
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    const char *name = NULL;
    size_t i, max;
    yyjson_val *call;
    char text[128];

    for (size_t n = 0; n < ARRAY_LEN(lists); n++) {
        yyjson_arr_foreach(yyjson_obj_get(message, lists[n]), i, max, call)
        {
            const char *id = json_get_str(call, "id", "");

            if (chat_memory_see_call(&c->memory, id) <= 0 && !(again && !call_find(c, id)))
                continue;
            name = json_get_str(call, "name", "tool");
            call_add(c, id, name, yyjson_obj_get(call, "args"));
        }
    }
    if (!name)
        return;
    c->view.is_unsettled = true;
    snprintf(text, sizeof(text), "running %.80s", name);
    spinner_start(c->spinner, text);
}

void chat_view_settle(struct chat *c)
{
    for (struct chat_call *call = c->view.calls; call; call = call->next)
        panel_make(c, call);
    c->view.is_unsettled = false;
}

/* ---- approval ---- */

void chat_calls_park(struct chat *c)
{
    for (struct chat_call *call = c->view.calls; call; call = call->next) {
        if (call->panel)
            panel_close(call->panel, PANEL_WARNING, "waits for approval");
        call->panel = NULL;
    }
    c->view.is_unsettled = false;
}

struct chat_call *chat_call_match(struct chat *c, const char *name, yyjson_val *args)
{
    for (struct chat_call *call = c->view.calls; call; call = call->next) {
        if (!call->is_asked && str_eq(call->name, name) && call->args &&
            yyjson_equals(yyjson_doc_get_root(call->args), args)) {
            call->is_asked = true;
            return call;
        }
    }
    return NULL;
}

void chat_call_change(struct chat_call *call, yyjson_mut_val *args)
{
    yyjson_doc_free(call->args);
    call->args = yyjson_mut_val_imut_copy(args, NULL);
    call->is_shown = false;
}

/* ---- output ---- */

static void colored_feed(struct panel *panel, const char *color, const char *text, size_t len)
{
    panel_feed(panel, color, strlen(color));
    panel_feed(panel, text, len);
    panel_feed(panel, PLAIN, strlen(PLAIN));
}

void chat_call_output(struct chat *c, yyjson_val *event)
{
    struct chat_call *call = call_find(c, json_get_str(event, "tool_call_id", ""));
    const char *stream = json_get_str(event, "stream", "");
    yyjson_val *data = yyjson_obj_get(event, "data");

    if (!call || !yyjson_is_str(data))
        return;
    chat_view_settle(c);
    if (!call->panel)
        return;
    if (!call->has_output)
        panel_rule(call->panel, "output");
    call->has_output = true;
    if (str_eq(stream, "stderr"))
        colored_feed(call->panel, YELLOW, yyjson_get_str(data), yyjson_get_len(data));
    else
        panel_feed(call->panel, yyjson_get_str(data), yyjson_get_len(data));
}

/* ---- results ---- */

static void run_show(struct chat *c, struct chat_call *call, const struct chat_result *r)
{
    struct panel *p = call->panel;
    char size[32], text[80];

    if (!call->has_output && (r->out[0] || r->err[0])) {
        panel_rule(p, "output");
        panel_feed(p, r->out, strlen(r->out));
        if (r->err[0])
            colored_feed(p, YELLOW, r->err, strlen(r->err));
    }
    if (r->value[0]) {
        panel_rule(p, "result");
        panel_feed(p, r->value, strlen(r->value));
    }
    if (r->state != PANEL_OK && r->trace[0]) {
        panel_rule(p, "error");
        colored_feed(p, RED, r->trace, strlen(r->trace));
    }
    if (r->is_cut) {
        chat_size_format(r->bytes, size, sizeof(size));
        snprintf(text, sizeof(text), "only a part of the output was kept: it was %s", size);
        panel_note(p, STYLE_WARNING, text);
    }
}

/* The files of an import or export, one a line. */
static void files_show(struct panel *p, yyjson_val *files)
{
    size_t i, max;
    yyjson_val *file;

    panel_rule(p, "files");
    yyjson_arr_foreach(files, i, max, file)
    {
        bool ok = json_get_bool(file, "success", false);
        const char *path = json_get_str(file, "path", json_get_str(file, "destination", ""));
        char size[32], line[600];
        auto_buf struct buf clean;

        buf_init(&clean, 4 * sizeof(line));
        chat_size_format(yyjson_get_uint(yyjson_obj_get(file, "size")), size, sizeof(size));
        snprintf(line, sizeof(line), "%s %.300s%s%.240s%s", ok ? "✓" : "✗", path, ok ? " (" : ": ",
                 ok ? size : json_get_str(file, "error", ""), ok ? ")" : "");
        if (clean_line(line, sizeof(line), &clean) == 0)
            panel_note(p, ok ? STYLE_OK : STYLE_ERROR, buf_str(&clean));
    }
}

/* Whose good results say nothing that the note does not say. */
static bool is_silent(const char *name)
{
    static const char *const names[] = {"create_session", "stop_session", "interrupt_session"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(names[i], name))
            return true;
    }
    return false;
}

static void other_show(struct chat *c, struct chat_call *call, const struct chat_result *r)
{
    yyjson_val *files = yyjson_obj_get(r->root, "files");
    auto_free char *text = NULL;
    size_t len = 0;

    if (r->is_ours && r->state == PANEL_OK && is_silent(call->name))
        return;
    if (r->is_ours && yyjson_arr_size(files) > 0) {
        files_show(call->panel, files);
        return;
    }
    panel_rule(call->panel, r->state == PANEL_OK ? "output" : "error");
    if (r->is_ours && r->state != PANEL_OK && r->trace[0] && !yyjson_obj_get(r->root, "details"))
        colored_feed(call->panel, RED, r->trace, strlen(r->trace));
    else if (r->root && (text = json_pretty(r->root, &len)))
        json_feed(c, call->panel, text, len);
    else
        panel_feed(call->panel, r->text, strlen(r->text));
}

static void result_show(struct chat *c, struct chat_call *call, const struct chat_result *r)
{
    struct chat_shown below = {.saved = {.max = MIB}};
    size_t i, max;
    yyjson_val *item;

    if (r->is_run)
        run_show(c, call, r);
    else
        other_show(c, call, r);
    yyjson_arr_foreach(r->displays, i, max, item)
    {
        chat_display_show(c, call->panel, item, &below);
    }
    panel_close(call->panel, r->state, r->note);
    chat_shown_print(c, &below);
}

/* Shows the results that have come, up to the first call that has none. */
static void results_show(struct chat *c)
{
    while (c->view.calls && c->view.calls->result) {
        struct chat_call *call = c->view.calls;
        auto_json yyjson_doc *message = NULL, *doc = NULL;
        auto_buf struct buf content;
        struct chat_result result;
        bool failed;

        c->view.calls = call->next;
        buf_init(&content, TEXT_MAX);
        if (json_parse(call->result, call->result_len, &message, NULL) == 0)
            (void)!chat_content_text(yyjson_obj_get(yyjson_doc_get_root(message), "content"),
                                     &content);
        (void)!json_parse(buf_str(&content), content.len, &doc, NULL);
        failed = str_eq(json_get_str(yyjson_doc_get_root(message), "status", ""), "error");
        chat_result_read(doc, buf_str(&content), failed, &result);
        if (call->panel)
            result_show(c, call, &result);
        call_free(call);
    }
}

void chat_call_result(struct chat *c, yyjson_val *message)
{
    const char *id = json_get_str(message, "tool_call_id", "");
    struct chat_call *call = call_find(c, id);

    chat_memory_learn_message(&c->memory, message);
    if (!call && chat_memory_see_call(&c->memory, id) > 0)
        call = call_add(c, id, json_get_str(message, "name", "tool"), NULL);
    if (!call || call->result)
        return;
    chat_view_settle(c);
    call->result = yyjson_val_write(message, 0, &call->result_len);
    results_show(c);
    c->view.has_results = !c->is_answer_only;
    spinner_start(c->spinner, c->view.calls ? "running" : "thinking");
}
