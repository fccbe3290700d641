/* SPDX-License-Identifier: MIT */
/* Reading results; see chat_result.h. Members of another type than ours count as missing: a tool's
 * message may be of any server. */
#include "cli/chat_result.h"

#include "base/str.h"

#include <stdio.h>

void chat_time_format(double ms, char *ret, size_t size)
{
    double s = ms / 1000;

    if (s < 10)
        snprintf(ret, size, "%.2f s", s);
    else if (s < 60)
        snprintf(ret, size, "%.1f s", s);
    else
        snprintf(ret, size, "%ld min %ld s", (long)s / 60, (long)s % 60);
}

void chat_size_format(uint64_t bytes, char *ret, size_t size)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;

    if (bytes < 1000) {
        snprintf(ret, size, "%u bytes", (unsigned)bytes);
        return;
    }
    for (; value >= 999.5 && unit + 1 < ARRAY_LEN(units); unit++)
        value /= 1000;
    snprintf(ret, size, value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* How a run ended, in words and colour; the server's own word where it is another. */
static const struct {
    const char *status, *text;
    enum panel_state state;
} endings[] = {
    {"ok", "ok", PANEL_OK},
    {"error", "error", PANEL_ERROR},
    {"timeout", "timed out", PANEL_WARNING},
    {"interrupted", "interrupted", PANEL_WARNING},
    {"died", "died", PANEL_ERROR},
};

static void note_add(struct chat_result *r, const char *text)
{
    size_t len = strlen(r->note);

    if (text[0])
        snprintf(r->note + len, sizeof(r->note) - len, "%s%s", len ? " · " : "", text);
}

static void ending_add(struct chat_result *r)
{
    const char *status = json_get_str(r->root, "status", ""), *cause, *type;
    char text[128];

    cause = json_get_str(r->root, "cause", "");
    type = json_get_str(yyjson_obj_get(r->root, "error"), "type", "");
    r->state = PANEL_ERROR;
    snprintf(text, sizeof(text), "%.60s", status);
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        if (str_eq(endings[i].status, status)) {
            r->state = endings[i].state;
            snprintf(text, sizeof(text), "%s", endings[i].text);
        }
    }
    note_add(r, text);
    if (str_eq(status, "error") && type[0])
        snprintf(r->note, sizeof(r->note), "error: %.80s", type);
    if (cause[0])
        note_add(r, cause);
}

static void run_read(struct chat_result *r)
{
    yyjson_val *error = yyjson_obj_get(r->root, "error");
    yyjson_val *output = yyjson_obj_get(r->root, "output");
    yyjson_val *duration = yyjson_obj_get(r->root, "duration_ms");
    char text[64];

    ending_add(r);
    if (yyjson_is_num(duration)) {
        chat_time_format(yyjson_get_num(duration), text, sizeof(text));
        note_add(r, text);
    }
    if (r->state != PANEL_OK && str_eq(json_get_str(r->root, "state", ""), "lost"))
        note_add(r, "variables lost");
    r->out = json_get_str(r->root, "stdout", "");
    r->err = json_get_str(r->root, "stderr", "");
    r->value = json_get_str(yyjson_obj_get(r->root, "result"), "text/plain", "");
    r->trace = json_get_str(error, "traceback", "");
    if (!r->trace[0])
        r->trace = json_get_str(error, "message", json_get_str(r->root, "message", ""));
    r->is_cut = json_get_bool(output, "truncated", false);
    r->bytes = yyjson_get_uint(yyjson_obj_get(output, "stdout_bytes")) +
               yyjson_get_uint(yyjson_obj_get(output, "stderr_bytes"));
}

/* Of a tool that runs no code. */
static void other_read(struct chat_result *r, bool failed)
{
    const char *session = json_get_str(r->root, "session_id", "");
    const char *runtime = json_get_str(r->root, "runtime", "");
    yyjson_val *files = yyjson_obj_get(r->root, "files");
    char text[64] = "";

    r->trace = json_get_str(r->root, "error", "");
    r->state = failed ? PANEL_ERROR : PANEL_OK;
    note_add(r, failed ? "error" : "ok");
    if (failed)
        return;
    note_add(r, runtime);
    if (session[0])
        snprintf(text, sizeof(text), "session %.8s", session);
    else if (yyjson_is_arr(files))
        snprintf(text, sizeof(text), yyjson_arr_size(files) == 1 ? "%zu file" : "%zu files",
                 yyjson_arr_size(files));
    note_add(r, text);
}

void chat_result_read(yyjson_doc *doc, const char *text, bool failed, struct chat_result *ret)
{
    yyjson_val *root = doc ? yyjson_doc_get_root(doc) : NULL;
    yyjson_val *success = yyjson_obj_get(root, "success");

    *ret = (struct chat_result){
        .text = text, .out = "", .err = "", .value = "", .trace = "", .state = PANEL_OK};
    if (!yyjson_is_obj(root)) {
        ret->state = failed ? PANEL_ERROR : PANEL_OK;
        note_add(ret, failed ? "error" : "ok");
        return;
    }
    ret->root = root;
    ret->is_ours = yyjson_is_bool(success);
    ret->is_run = yyjson_is_str(yyjson_obj_get(root, "status")) &&
                  yyjson_is_str(yyjson_obj_get(root, "stdout"));
    if (yyjson_is_arr(yyjson_obj_get(root, "display_outputs")))
        ret->displays = yyjson_obj_get(root, "display_outputs");
    if (ret->is_run)
        run_read(ret);
    else
        other_read(ret, failed || (ret->is_ours && !yyjson_get_bool(success)));
}
