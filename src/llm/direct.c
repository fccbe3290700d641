/* SPDX-License-Identifier: MIT */
/*
 * A provider that needs no model: it runs the code of the newest human message. It has no memory of
 * its own. Each call walks the conversation from its beginning and finds out which sessions there
 * are, which blocks have run and what comes next, so the same conversation always gets the same
 * answer, whichever server is asked.
 */
#include "base/str.h"
#include "llm/body.h"
#include "llm/direct-internal.h"

enum { SESSIONS_MAX = 32, REPORT_MAX = 512 * 1024 };

struct known_session {
    char id[64], runtime[16];
    size_t files; /* so many of the conversation's files have been brought into it */
};

struct walk {
    struct llm_stream *s;
    const struct llm_request *request;
    struct arena arena;
    struct direct_files files;
    struct direct_blocks blocks;
    struct known_session sessions[SESSIONS_MAX]; /* that live as far as is known, oldest first */
    size_t session_count;
    bool in_turn;   /* behind the newest human message */
    size_t next;    /* the block whose turn it is */
    unsigned tries; /* sessions of that block that were found dead */
    bool stopped;   /* something failed, and no more is run */
    struct buf report;
};

/* ---- sessions ---- */

static void session_drop(struct walk *w, const char *id)
{
    size_t n = 0;

    for (size_t i = 0; i < w->session_count; i++) {
        if (!str_eq(w->sessions[i].id, id))
            w->sessions[n++] = w->sessions[i];
    }
    w->session_count = n;
}

static void session_keep(struct walk *w, const char *id, const char *runtime)
{
    struct known_session session = {};

    if (str_copy(session.id, sizeof(session.id), id) < 0 ||
        str_copy(session.runtime, sizeof(session.runtime), runtime) < 0 || !*id)
        return;
    session_drop(w, id);
    if (w->session_count == SESSIONS_MAX)
        session_drop(w, w->sessions[0].id);
    w->sessions[w->session_count++] = session;
}

/* The newest one for a block; the shell is at home in all of them. NULL: none. */
static const struct known_session *session_find(const struct walk *w, enum direct_language language)
{
    for (size_t i = w->session_count; i-- > 0;) {
        if (language == DIRECT_SHELL || str_eq(w->sessions[i].runtime, direct_runtime(language)))
            return &w->sessions[i];
    }
    return NULL;
}

static struct known_session *session_by_id(struct walk *w, const char *id)
{
    for (size_t i = 0; i < w->session_count; i++) {
        if (str_eq(w->sessions[i].id, id))
            return &w->sessions[i];
    }
    return NULL;
}

/* ---- what results say ---- */

struct result {
    yyjson_val *payload;   /* NULL: it is not a JSON object */
    yyjson_val *arguments; /* of the call; NULL when they are not known */
    const char *text;
    bool success;
};

/* A run that killed its session still has an outcome; active_sessions tells which it was. */
static bool listed_as_dead(yyjson_val *payload, const char *id)
{
    size_t i, max;
    yyjson_val *item;

    yyjson_arr_foreach(yyjson_obj_get(payload, "active_sessions"), i, max, item)
    {
        if (str_eq(json_get_str(item, "session_id", ""), id))
            return str_eq(json_get_str(item, "status", ""), "dead");
    }
    return true;
}

/* Whether the session of a call is gone, and whether the call has run all the same. */
static bool session_is_gone(const struct result *r, const char *id, bool *ret_ran)
{
    const char *error = json_get_str(r->payload, "error", "");

    *ret_ran = yyjson_obj_get(r->payload, "status");
    if (*ret_ran)
        return str_eq(json_get_str(r->payload, "status", ""), "died") &&
               listed_as_dead(r->payload, id);
    return str_starts(error, "CONTAINER_DIED") || strstr(error, "unknown session");
}

static int failure_report(struct walk *w, const struct result *r, const char *what)
{
    if (!w->in_turn)
        return 0;
    w->stopped = true;
    if (buf_printf(&w->report, "%s\n\n", what) < 0)
        return -1;
    return direct_report(&w->report, r->payload, r->text);
}

static int created_take(struct walk *w, const struct result *r)
{
    const char *id = json_get_str(r->payload, "session_id", "");

    if (!r->success || !*id)
        return failure_report(w, r, "No session could be made.");
    session_keep(w, id, json_get_str(r->payload, "runtime", "python"));
    return 0;
}

static int stopped_take(struct walk *w, const struct result *r)
{
    if (r->success)
        session_drop(w, json_get_str(r->arguments, "session_id", ""));
    return 0;
}

static int block_report(struct walk *w, const struct result *r)
{
    if (w->blocks.count > 1 && buf_printf(&w->report, "%s**%zu of %zu**\n\n", w->next ? "\n" : "",
                                          w->next + 1, w->blocks.count) < 0)
        return -1;
    w->next++;
    w->tries = 0;
    w->stopped = !r->success;
    return direct_report(&w->report, r->payload, r->text);
}

static int executed_take(struct walk *w, const struct result *r)
{
    const char *id = json_get_str(r->arguments, "session_id", "");
    bool ran, gone = session_is_gone(r, id, &ran);

    if (gone)
        session_drop(w, id);
    if (!w->in_turn || w->next >= w->blocks.count)
        return 0;
    if (gone && !ran && w->tries++ == 0)
        return 0;
    return block_report(w, r);
}

/* What failed in a former turn is not tried again: it would end each turn from then on. */
static int imported_take(struct walk *w, const struct result *r)
{
    const char *id = json_get_str(r->arguments, "session_id", "");
    struct known_session *session = session_by_id(w, id);
    bool ran;

    if (session_is_gone(r, id, &ran)) {
        session_drop(w, id);
        if (w->tries++ == 0)
            return 0;
    } else if (session && (r->success || !w->in_turn)) {
        session->files += yyjson_arr_size(yyjson_obj_get(r->arguments, "files"));
        return 0;
    }
    return failure_report(w, r, "The files could not be brought into the session.");
}

struct taker {
    const char *tool;
    int (*take)(struct walk *w, const struct result *r);
};

static const struct taker takers[] = {
    {"create_session", created_take}, {"import_files", imported_take},
    {"execute_code", executed_take},  {"execute_terminal", executed_take},
    {"stop_session", stopped_take},
};

/* ---- the walk ---- */

static int parse_object(const char *text, yyjson_doc **ret)
{
    if (!text || json_parse(text, strlen(text), ret, NULL) < 0 ||
        !yyjson_is_obj(yyjson_doc_get_root(*ret)))
        return -1;
    return 0;
}

/* The payload of a tool is its first text; notes on pictures follow. */
static const char *payload_text(const struct llm_message *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        if (m->parts[i].kind == LLM_TEXT && m->parts[i].text)
            return m->parts[i].text;
    }
    return "";
}

static int result_take(struct walk *w, size_t at)
{
    const struct llm_message *m = &w->request->messages[at];
    const struct llm_tool_call *call = body_call_find(w->request, at, NULL);
    const char *name = body_tool_name(w->request, at);
    auto_json yyjson_doc *payload = NULL, *arguments = NULL;
    struct result r = {.text = payload_text(m)};

    if (parse_object(r.text, &payload) == 0)
        r.payload = yyjson_doc_get_root(payload);
    if (call && parse_object(call->arguments, &arguments) == 0)
        r.arguments = yyjson_doc_get_root(arguments);
    r.success = r.payload ? json_get_bool(r.payload, "success", false) : !m->is_error;
    for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
        if (str_eq(takers[i].tool, name))
            return takers[i].take(w, &r);
    }
    return 0;
}

/* The newest human message; message_count when there is none. */
static size_t turn_find(const struct llm_request *request)
{
    for (size_t i = request->message_count; i-- > 0;) {
        if (request->messages[i].role == LLM_USER)
            return i;
    }
    return request->message_count;
}

static int walk_all(struct walk *w, size_t turn)
{
    size_t steps = 0;

    for (size_t i = 0; i < w->request->message_count; i++) {
        const struct llm_message *m = &w->request->messages[i];

        w->in_turn = i > turn;
        steps += w->in_turn && m->role == LLM_ASSISTANT;
        if (m->role == LLM_TOOL && result_take(w, i) < 0)
            return -1;
    }
    /* Per block: make a session, bring the files, run, find it dead, and all of it again. */
    if (steps <= 7 * w->blocks.count || w->stopped || w->next == w->blocks.count)
        return 0;
    w->stopped = true;
    return buf_append_str(&w->report, "It does not come to an end, so it is given up.\n");
}

/* ---- the answer ---- */

static bool has_tool(const struct llm_request *request, const char *name)
{
    for (size_t i = 0; i < request->tool_count; i++) {
        if (str_eq(request->tools[i].name, name))
            return true;
    }
    return false;
}

static int say(struct walk *w, const char *text, size_t len, struct error *reterr)
{
    stream_finish(w->s, "stop");
    return stream_text(w->s, text, len, reterr);
}

/* {"NAME": text, ...} of two members; `second` may have no name. */
static int call_tool(struct walk *w, const char *tool, const char *const first[2],
                     const char *second, const struct direct_block *block, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf text = {.max = LLM_ARGUMENTS_BYTES};
    int r;

    if (!has_tool(w->request, tool)) {
        static const char none[] = "The tools that run code are not offered here.";

        return say(w, none, sizeof(none) - 1, reterr);
    }
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, first[0], first[1]);
    if (second)
        yyjson_mut_obj_add_strn(doc, root, second, block->code, block->len);
    stream_finish(w->s, "tool_calls");
    if ((r = json_mut_write(doc, &text, reterr)) < 0 ||
        (r = stream_call(w->s, 0, NULL, tool, reterr)) < 0)
        return r;
    return stream_arguments(w->s, 0, text.data, text.len, reterr);
}

static int files_import(struct walk *w, const struct known_session *session, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
    auto_buf struct buf text = {.max = LLM_ARGUMENTS_BYTES};
    int r;

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "session_id", session->id);
    list = yyjson_mut_obj_add_arr(doc, root, "files");
    for (size_t i = session->files; i < w->files.count; i++)
        yyjson_mut_obj_add_str(doc, yyjson_mut_arr_add_obj(doc, list), "source", w->files.paths[i]);
    stream_finish(w->s, "tool_calls");
    if ((r = json_mut_write(doc, &text, reterr)) < 0 ||
        (r = stream_call(w->s, 0, NULL, "import_files", reterr)) < 0)
        return r;
    return stream_arguments(w->s, 0, text.data, text.len, reterr);
}

static int block_run(struct walk *w, struct error *reterr)
{
    const struct direct_block *block = &w->blocks.items[w->next];
    const struct known_session *session = session_find(w, block->language);
    bool shell = block->language == DIRECT_SHELL;

    if (!session)
        return call_tool(w, "create_session",
                         (const char *const[]){"language", direct_runtime(block->language)}, NULL,
                         NULL, reterr);
    if (session->files < w->files.count && has_tool(w->request, "import_files"))
        return files_import(w, session, reterr);
    return call_tool(w, shell ? "execute_terminal" : "execute_code",
                     (const char *const[]){"session_id", session->id}, shell ? "command" : "code",
                     block, reterr);
}

static int final_say(struct walk *w, struct error *reterr)
{
    size_t left = w->blocks.count - w->next;
    int r = 0;

    if (w->stopped && left && w->next)
        r = buf_printf(&w->report, "\n%zu more %s not run.\n", left,
                       left == 1 ? "block was" : "blocks were");
    if (r == 0 && w->blocks.truncated)
        r = buf_printf(&w->report, "\nOnly the first %d blocks of a message are run.\n",
                       DIRECT_BLOCKS_MAX);
    if (r < 0)
        return error_set(reterr, ERR_LIMIT, "the outcome is too long to be told");
    return say(w, buf_str(&w->report), w->report.len, reterr);
}

static int nothing_say(struct walk *w, struct error *reterr)
{
    static const char text[] =
        "There is no code to run. Without a model, a message is run as it is, or the fenced blocks "
        "in it: ```python, ```js, ```r or ```sh.";

    return say(w, text, sizeof(text) - 1, reterr);
}

/* What the model's name stands for: the language of code without one. */
static enum direct_language fallback_language(const char *model)
{
    enum direct_language language =
        model ? direct_language_find(model, strlen(model)) : DIRECT_NONE;

    return language == DIRECT_NONE ? DIRECT_PYTHON : language;
}

/* The text of the turn without its note of files; those of all turns up to it are gathered. */
static const char *turn_text(struct walk *w, size_t turn)
{
    const char *text = "";
    size_t len = 0;

    for (size_t i = 0; i < w->request->message_count && i <= turn; i++) {
        const struct llm_message *m = &w->request->messages[i];

        if (m->role != LLM_USER)
            continue;
        text = body_text(w->s, m);
        if (!text || direct_files_find(text, &w->arena, &w->files, &len) < 0)
            return NULL;
    }
    return arena_memdup(&w->arena, text, len);
}

static int walk_answer(struct walk *w, struct error *reterr)
{
    size_t turn = turn_find(w->request);
    const char *text = turn_text(w, turn);

    if (!text)
        return error_no_memory(reterr);
    direct_blocks_find(text, fallback_language(w->request->model.name), &w->blocks);
    if (w->blocks.count == 0)
        return nothing_say(w, reterr);
    if (walk_all(w, turn) < 0)
        return error_set(reterr, ERR_LIMIT, "the outcome is too long to be told");
    return w->stopped || w->next == w->blocks.count ? final_say(w, reterr) : block_run(w, reterr);
}

static int direct_answer(const struct llm_request *request, struct llm_stream *s,
                         struct error *reterr)
{
    auto_free struct walk *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return error_no_memory(reterr);
    w->s = s;
    w->request = request;
    stream_model(s, provider_direct.name); /* a model's name chooses the language only */
    buf_init(&w->report, REPORT_MAX);
    arena_init(&w->arena, LLM_BODY_BYTES);
    r = walk_answer(w, reterr);
    arena_done(&w->arena);
    buf_done(&w->report);
    s->finished = r == 0;
    return r;
}

const struct provider_entry provider_direct = {
    .name = "direct",
    .title = "No model: code is run as it is written",
    .base_url = "",
    .answer = direct_answer,
};
