/* SPDX-License-Identifier: MIT */
/*
 * Questions of a run: whether calls may be made, and lines that a cell reads. A person sees exactly
 * what is asked about: arguments are shown with every character that could hide made visible.
 */
#include "cli/chat.h"

#include "base/fd.h"
#include "base/spawn.h"
#include "base/str.h"
#include "cli/chat_call.h"
#include "cli/chat_words.h"
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

enum { EDIT_MAX = 4 << 20 };

/* ---- a line that a cell reads ---- */

/* As one more line of the cell's panel, where there is one. */
static int prompt_fill(struct chat *c, yyjson_val *value, struct buf *ret)
{
    const char *prompt = json_get_str(value, "prompt", "");
    bool in_panel =
        chat_view_panel(c, json_get_str(value, "tool_call_id", "")) && term_caps(c->term)->is_tty;
    auto_buf struct buf clean;

    buf_init(&clean, 4096);
    if (clean_line(prompt[0] ? prompt : "input>", term_width(c->term) / 2, &clean) < 0 ||
        buf_append_str(ret, in_panel ? "│ " : "") < 0)
        return -1;
    return buf_printf(ret, "%s%s", buf_str(&clean),
                      clean.len && clean.data[clean.len - 1] == ' ' ? "" : " ");
}

static int input_ask(struct chat *c, yyjson_val *value, yyjson_mut_doc *doc, yyjson_mut_val **ret,
                     struct error *reterr)
{
    bool secret = json_get_bool(value, "password", false);
    auto_buf struct buf prompt, line;
    int r;

    chat_view_settle(c);
    buf_init(&prompt, 8192);
    buf_init(&line, LINE_MAX_BYTES);
    if (prompt_fill(c, value, &prompt) < 0)
        return error_no_memory(reterr);
    if ((r = chat_ask_line(c, buf_str(&prompt), secret, &line, reterr)) <= 0)
        return r;
    *ret = json_mut_text(doc, buf_str(&line), line.len);
    return 1;
}

/* ---- approval: what is shown ---- */

/* The member that is code; NULL. */
static const char *code_member(yyjson_val *args)
{
    static const char *const members[] = {"code", "command"};

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (yyjson_is_str(yyjson_obj_get(args, members[i])))
            return members[i];
    }
    return NULL;
}

/* The arguments beside the code; without code all of them. False: not even written. */
static bool rest_show(struct panel *panel, yyjson_val *args, const char *code)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *rest = yyjson_val_mut_copy(doc, args);
    auto_free char *json = NULL;
    size_t len = 0;

    if (code)
        yyjson_mut_obj_remove_key(rest, code);
    json = yyjson_mut_val_write(rest, 0, &len);
    if (json && len > 70) {
        free(json);
        json = yyjson_mut_val_write(rest, YYJSON_WRITE_PRETTY_TWO_SPACES, &len);
    }
    if (json && (!code || yyjson_mut_obj_size(rest) > 0))
        panel_code(panel, HIGHLIGHT_JSON, json, len);
    return json != NULL;
}

/* Whether a person has seen all of it. */
static bool args_show(struct chat *c, const char *name, yyjson_val *args)
{
    const char *member = code_member(args), *language = "bash";
    struct panel *panel = NULL;
    char title[160];
    bool whole;

    chat_gap(c);
    snprintf(title, sizeof(title), "%.80s: run exactly this?", name);
    if (panel_open(c->panels, title, 0, &panel, NULL) < 0)
        return false;
    if (member && str_eq(member, "code"))
        language = chat_memory_runtime(&c->memory, json_get_str(args, "session_id", ""));
    if (member)
        panel_code(panel, highlight_find(language, strlen(language)),
                   json_get_str(args, member, ""), yyjson_get_len(yyjson_obj_get(args, member)));
    if (member)
        panel_rule(panel, "with");
    whole = rest_show(panel, args, member) && panel_is_whole(panel);
    panel_close(panel, PANEL_WARNING,
                whole ? "y yes · n no · n REASON · e edit" : "not all of it: n no · n REASON");
    return whole;
}

/* ---- approval: editing ---- */

/* Runs $VISUAL or $EDITOR on a file; their words are split, and no shell sees them. */
static int editor_run(const char *editor, const char *path, struct error *reterr)
{
    auto_chat_words struct chat_words words = {};
    char *argv[CHAT_WORDS_MAX + 2] = {}, program[PATH_LEN];
    int r = chat_words_split(editor, &words, reterr), status = 0;
    pid_t pid;

    if (r < 0)
        return r;
    if (words.count == 0)
        return error_set(reterr, ERR_INVALID, "EDITOR is empty");
    if ((r = program_find(words.words[0], program, reterr)) < 0)
        return r;
    memcpy(argv, words.words, words.count * sizeof(*argv));
    argv[words.count] = (char *)(uintptr_t)path;
    r = spawn_start(
        &(struct spawn_options){.size = sizeof(struct spawn_options),
                                .path = program,
                                .argv = argv,
                                .fds = (const struct spawn_fd[]){{0, 0}, {1, 1}, {2, 2}},
                                .fd_count = 3},
        &pid, reterr);
    if (r < 0 || (r = spawn_wait(pid, &status, reterr)) < 0)
        return r;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : error_set(reterr, ERR_CANCELLED, "the editor has failed");
}

/* A file of its own each time: two chats may have an editor open. */
static int text_edit(struct chat *c, const char *editor, const struct buf *text, struct buf *ret,
                     struct error *reterr)
{
    static const char suffix[] = ".txt";
    char path[PATH_LEN];
    auto_free char *data = NULL;
    auto_fd int fd = -1;
    size_t len = 0;
    int r;

    if (path_join(path, sizeof(path), c->place.path, "edit-XXXXXX.txt", reterr) < 0)
        return -1;
    fd = mkostemps(path, sizeof(suffix) - 1, O_CLOEXEC);
    if (fd < 0)
        return error_sys(reterr, errno, "cannot write '%s'", path);
    if ((r = fd_write_full(fd, buf_str(text), text->len, reterr)) == 0 &&
        (r = editor_run(editor, path, reterr)) == 0)
        r = fd_read_file(AT_FDCWD, path, EDIT_MAX, &data, &len, reterr);
    (void)!unlink(path);
    if (r == 0 && buf_append(ret, data, len) < 0)
        r = error_no_memory(reterr);
    return r;
}

/* By the editor where there is one, else typed or pasted anew. */
static int text_get(struct chat *c, const struct buf *text, struct buf *ret, struct error *reterr)
{
    const char *editor = getenv("VISUAL");

    if (!editor || !editor[0])
        editor = getenv("EDITOR");
    if (term_caps(c->term)->has_input && editor && editor[0])
        return text_edit(c, editor, text, ret, reterr) < 0 ? -1 : 1;
    chat_say(c, STYLE_FAINT, "type or paste it anew (Alt-Enter begins another line):");
    return chat_ask_line(c, "new> ", false, ret, reterr);
}

/* {"name", "args"} with what the person has made of it. 0: nothing. */
static int action_edit(struct chat *c, yyjson_val *request, yyjson_mut_doc *doc,
                       yyjson_mut_val **ret, struct error *reterr)
{
    yyjson_val *args = yyjson_obj_get(request, "args");
    const char *member = code_member(args);
    auto_free char *json = yyjson_val_write(args, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    auto_json yyjson_doc *parsed = NULL;
    yyjson_val *code = member ? yyjson_obj_get(args, member) : NULL;
    yyjson_mut_val *edited;
    auto_buf struct buf before, text;
    int r;

    buf_init(&before, UINT32_MAX);
    buf_init(&text, EDIT_MAX);
    if ((code ? buf_append(&before, yyjson_get_str(code), yyjson_get_len(code))
              : buf_append_str(&before, json ? json : "{}")) < 0)
        return error_no_memory(reterr);
    r = text_get(c, &before, &text, reterr);
    if (r <= 0)
        return r;
    if (member) {
        edited = yyjson_val_mut_copy(doc, args);
        yyjson_mut_obj_put(edited, yyjson_mut_str(doc, member),
                           json_mut_text(doc, buf_str(&text), text.len));
    } else if ((r = json_parse(buf_str(&text), text.len, &parsed, reterr)) < 0) {
        return error_wrap(reterr, "the arguments");
    } else {
        edited = yyjson_val_mut_copy(doc, yyjson_doc_get_root(parsed));
    }
    *ret = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_strcpy(doc, *ret, "name", json_get_str(request, "name", ""));
    yyjson_mut_obj_add_val(doc, *ret, "args", edited);
    return 1;
}

/* ---- approval: the decision ---- */

static int decision_make(struct chat *c, const char *answer, yyjson_val *request,
                         yyjson_mut_doc *doc, yyjson_mut_val **ret, struct error *reterr)
{
    yyjson_mut_val *decision = yyjson_mut_obj(doc), *action = NULL;
    const char *reason = answer[0] ? answer + 1 : "";
    int r = 1;

    if (str_eq(answer, "y") || str_eq(answer, "yes")) {
        yyjson_mut_obj_add_str(doc, decision, "type", "approve");
    } else if (str_eq(answer, "e") || str_eq(answer, "edit")) {
        if ((r = action_edit(c, request, doc, &action, reterr)) <= 0)
            return r;
        yyjson_mut_obj_add_str(doc, decision, "type", "edit");
        yyjson_mut_obj_add_val(doc, decision, "edited_action", action);
    } else if (str_eq(answer, "no") || (answer[0] == 'n' && (!answer[1] || answer[1] == ' '))) {
        yyjson_mut_obj_add_str(doc, decision, "type", "reject");
        reason += strspn(reason, " ");
        if (*reason && !str_eq(answer, "no"))
            yyjson_mut_obj_add_val(doc, decision, "message",
                                   json_mut_text(doc, reason, strlen(reason)));
    } else {
        return error_set(reterr, ERR_INVALID, "y, n, n REASON or e");
    }
    *ret = decision;
    return 1;
}

/* The answer to what could not be shown whole: anything but a no is asked again. */
static int refusal_make(const char *answer, yyjson_val *request, yyjson_mut_doc *doc,
                        yyjson_mut_val **ret, struct error *reterr)
{
    if (answer[0] != 'n')
        return error_set(reterr, ERR_INVALID,
                         "this cannot be shown whole, so it cannot be approved: n, n REASON");
    return decision_make(NULL, answer, request, doc, ret, reterr);
}

/*
 * One call; asked again until the answer is one. Keys that were pressed before it was shown are no
 * answer to it.
 */
static int request_ask(struct chat *c, yyjson_val *request, yyjson_mut_doc *doc,
                       yyjson_mut_val **ret, struct error *reterr)
{
    const char *name = json_get_str(request, "name", "tool");
    yyjson_val *args = yyjson_obj_get(request, "args");
    struct chat_call *call = chat_call_match(c, name, args);
    bool whole = args_show(c, name, args);
    yyjson_mut_val *changed;
    int r;

    line_drop(c->line);
    if (call)
        call->is_shown = true;
    for (;;) {
        auto_buf struct buf answer;
        struct error error;

        buf_init(&answer, LINE_MAX_BYTES);
        if ((r = chat_ask_line(c, "approve? ", false, &answer, reterr)) <= 0)
            return r;
        r = whole ? decision_make(c, buf_str(&answer), request, doc, ret, &error)
                  : refusal_make(buf_str(&answer), request, doc, ret, &error);
        changed = r > 0 ? yyjson_mut_obj_get(*ret, "edited_action") : NULL;
        if (call && changed)
            chat_call_change(call, yyjson_mut_obj_get(changed, "args"));
        if (r > 0)
            return r;
        if (r < 0)
            chat_say(c, STYLE_WARNING, "%s", error.text);
    }
}

static int approval_ask(struct chat *c, yyjson_val *requests, yyjson_mut_doc *doc,
                        yyjson_mut_val **ret, struct error *reterr)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc), *decision = NULL;
    size_t i, max;
    yyjson_val *request;

    chat_calls_park(c);
    yyjson_arr_foreach(requests, i, max, request)
    {
        int r = request_ask(c, request, doc, &decision, reterr);

        if (r <= 0)
            return r;
        yyjson_mut_arr_append(list, decision);
    }
    *ret = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_val(doc, *ret, "decisions", list);
    return 1;
}

/* ---- all ---- */

/* An interrupt of another kind (a breakpoint) is answered by a line of the person's. */
static int other_ask(struct chat *c, yyjson_val *value, yyjson_mut_doc *doc, yyjson_mut_val **ret,
                     struct error *reterr)
{
    auto_free char *json = yyjson_val_write(value, 0, NULL);
    auto_buf struct buf line;
    int r;

    buf_init(&line, LINE_MAX_BYTES);
    chat_say(c, STYLE_WARNING, "the run asks: %s", json ? json : "");
    if ((r = chat_ask_line(c, "answer> ", false, &line, reterr)) <= 0)
        return r;
    *ret = json_mut_text(doc, buf_str(&line), line.len);
    return 1;
}

int chat_ask(struct chat *c, yyjson_val *waiting, yyjson_mut_doc *doc, yyjson_mut_val **ret,
             struct error *reterr)
{
    size_t i, max;
    yyjson_val *interrupt;

    *ret = yyjson_mut_obj(doc);
    yyjson_arr_foreach(waiting, i, max, interrupt)
    {
        yyjson_val *value = yyjson_obj_get(interrupt, "value");
        yyjson_val *requests = yyjson_obj_get(value, "action_requests");
        yyjson_mut_val *answer = NULL;
        int r;

        if (str_eq(json_get_str(value, "type", ""), "input_request"))
            r = input_ask(c, value, doc, &answer, reterr);
        else if (yyjson_is_arr(requests))
            r = approval_ask(c, requests, doc, &answer, reterr);
        else
            r = other_ask(c, value, doc, &answer, reterr);
        if (r <= 0)
            return r;
        yyjson_mut_obj_add(*ret, yyjson_mut_strcpy(doc, json_get_str(interrupt, "id", "")), answer);
    }
    return 1;
}
