/* SPDX-License-Identifier: MIT */
/*
 * What a model is told when something failed: the name of an exception, as it knows them from
 * Python, one sentence, what to do next, and which sessions it has. A path of the host is no
 * business of the model's, and is taken out of every text here.
 */
#include "base/log.h"
#include "base/str.h"
#include "tools/tool-internal.h"
#include "wire/utf8.h"

#include <stdio.h>

enum { TEXT_MAX = 4096 };

/* ---- words ---- */

#define HINT_ARGUMENT "Correct the argument that the error names, then call again."
#define HINT_LIMIT "Stop a session that is not needed any more with stop_session, then try again."
#define HINT_HOST "This cannot be mended from inside a session: tell the user what the error says."
#define HINT_CANCELLED "The call was stopped on request. Sessions that were there before go on."
#define HINT_CHOOSE \
    "Use the session_id of one of the active_sessions, or create a session with create_session."
#define HINT_NONE "There is no session: create one with create_session and use its session_id."
#define HINT_STOPPED "There is nothing to stop: active_sessions has those that are still there."
#define HINT_INSTALLER \
    "Read what the error says. If it does not know a package or version, correct that name. If " \
    "it could not reach an index, other arguments do not help: go on without the package, or " \
    "tell the user."
#define HINT_DIED \
    "The session is gone, with its variables and files. Call stop_session on it, then " \
    "create_session for a fresh one. First find out why: was a file imported into another " \
    "session, did the data outgrow the memory limit, was an error in callback-style async code " \
    "not handled? Do not run the same code again unchanged."
#define HINT_RESTARTED \
    "The session is still there with its files, but its variables are lost: a fresh kernel is " \
    "ready. Find out why the code ended the kernel before running it again."

struct code_words {
    const char *name; /* of the exception; NULL: as the error table says */
    const char *hint; /* NULL: about the sessions that there are, where the call names one */
    bool hides_paths; /* its texts may name files of the host */
};

static const struct code_words code_words[ERR_CODE_COUNT] = {
    [ERR_INVALID] = {NULL, HINT_ARGUMENT, true},
    [ERR_NOT_FOUND] = {"ValueError", NULL, true},
    [ERR_EXISTS] = {NULL, HINT_ARGUMENT, true},
    [ERR_DENIED] = {NULL, HINT_ARGUMENT, true},
    [ERR_LIMIT] = {"RuntimeError", HINT_LIMIT, true},
    [ERR_TIMEOUT] = {NULL, NULL, true},
    [ERR_CANCELLED] = {NULL, HINT_CANCELLED, true},
    [ERR_BUSY] = {"RuntimeError", NULL, true},
    [ERR_UNAVAILABLE] = {"RuntimeError", HINT_HOST, true},
    [ERR_PROTOCOL] = {"RuntimeError", NULL, true},
    [ERR_UPSTREAM] = {"RuntimeError", HINT_INSTALLER, false}, /* an installer, in the sandbox */
    [ERR_DIED] = {"RuntimeError", NULL, true},
    [ERR_DISK] = {"OSError", HINT_HOST, true},
    [ERR_SYSTEM] = {NULL, HINT_HOST, true},
    [ERR_NO_MEMORY] = {NULL, HINT_HOST, true},
    [ERR_INTERNAL] = {NULL, HINT_HOST, true},
};

static const struct code_words *words_of(enum error_code code)
{
    return &code_words[(unsigned)code < ERR_CODE_COUNT ? code : ERR_INTERNAL];
}

/* Why a session died; a word that ends in ':' stands for what begins so. */
static const char *const deaths[][2] = {
    {"oom", "the memory limit is exhausted"},
    {"pids", "the limit of processes is exhausted"},
    {"timeout", "it was stuck and has been given up"},
    {"expired", "its time was over"},
    {"evicted", "it had to make room for other conversations"},
    {"user", "it was stopped on request"},
    {"signal:", "its first process was ended by a signal"},
    {"exit:", "its first process ended"},
};

static const char *death_words(const char *cause)
{
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        if (str_eq(deaths[i][0], cause) ||
            (str_ends(deaths[i][0], ":") && str_starts(cause, deaths[i][0])))
            return deaths[i][1];
    }
    return "it was removed from outside";
}

/* ---- paths ---- */

/* What the caller gave, or below it; or above it, as a text is that was cut. */
static bool path_is_own(const char *path, size_t len, const char *own)
{
    size_t n = own ? strlen(own) : 0;

    if (n < 2 || memcmp(path, own, MIN(len, n)) != 0)
        return false;
    return len <= n || path[n] == '/' || own[n - 1] == '/';
}

/* Those of a sandbox, and the caller's own. */
static bool path_is_known(const char *path, size_t len, const char *const own[2])
{
    static const char *const guest[] = {"/workspace", "/home/sandbox"};

    for (size_t i = 0; i < ARRAY_LEN(guest); i++) {
        size_t n = strlen(guest[i]);

        if (str_starts(path, guest[i]) && (len == n || (len > n && path[n] == '/')))
            return true;
    }
    return path_is_own(path, len, own[0]) || path_is_own(path, len, own[1]);
}

/* The length of an archive's entry that is named here, up to its closing quote: its name is the
 * caller's own, and the reason why it was refused. 0 for none. */
static size_t entry_length(const char *at)
{
    const char *quote = str_starts(at, "entry '") ? strchr(at, '\'') : NULL;
    const char *end = quote ? strchr(quote + 1, '\'') : NULL;

    return end ? (size_t)(end - at) : 0;
}

/* The length of an absolute path that begins here, 0 for none. */
static size_t path_length(const char *text, const char *at)
{
    char before = at > text ? at[-1] : ' ';
    size_t len;

    if (*at != '/' || !at[1] || !strchr(" '\"(=[<,:", before))
        return 0;
    if (before == '\'' || before == '"') {
        const char *end = strchr(at, before);

        len = end ? (size_t)(end - at) : strlen(at);
        return len > 1 ? len : 0;
    }
    len = strcspn(at, " '\")]>;,");
    while (len && (at[len - 1] == ':' || at[len - 1] == '.'))
        len--;
    return len > 1 ? len : 0;
}

static int text_redact(const struct error *error, const char *const own[2], struct buf *ret)
{
    const char *at = error->text;

    if (!words_of(error->code)->hides_paths)
        return buf_append_str(ret, at);
    while (*at) {
        size_t len = entry_length(at);
        bool known = len;
        int r;

        if (!known)
            len = path_length(error->text, at);
        if (len == 0)
            r = buf_append_byte(ret, (unsigned char)*at++);
        else if (known || path_is_known(at, len, own))
            r = buf_append(ret, at, len);
        else
            r = buf_append_str(ret, "[path]");
        if (r < 0)
            return r;
        at += len;
    }
    return 0;
}

yyjson_mut_val *payload_text(yyjson_mut_doc *doc, const struct error *error, const char *own,
                             const char *other)
{
    const char *const paths[2] = {own, other};
    auto_buf struct buf text;

    buf_init(&text, TEXT_MAX);
    if (text_redact(error, paths, &text) < 0)
        return NULL;
    return json_mut_text(doc, buf_str(&text), text.len);
}

yyjson_mut_val *payload_echo(yyjson_mut_doc *doc, const char *text)
{
    return json_mut_text(doc, text, utf8_cut(text, strlen(text), PAYLOAD_ECHO_MAX));
}

/* ---- parts ---- */

/* Adds "active_sessions"; how many there are. */
static size_t sessions_add(struct tool_call *call, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    auto_free struct session_info *list = NULL;
    yyjson_mut_val *array = yyjson_mut_obj_add_arr(doc, root, "active_sessions");
    size_t count = 0;

    if (session_list(call->context->manager, call->context->owner, &list, &count, NULL) < 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, array);

        yyjson_mut_obj_add_strcpy(doc, item, "session_id", list[i].id);
        yyjson_mut_obj_add_strcpy(doc, item, "runtime", list[i].runtime);
        yyjson_mut_obj_add_str(doc, item, "status", session_status_name(list[i].status));
    }
    return count;
}

static void hint_add(struct tool_call *call, yyjson_mut_doc *doc, yyjson_mut_val *root,
                     const char *hint)
{
    size_t count = sessions_add(call, doc, root);

    yyjson_mut_obj_add_str(doc, root, "hint", hint ? hint : count ? HINT_CHOOSE : HINT_NONE);
}

void payload_add_stopped(struct tool_call *call, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    hint_add(call, doc, root, HINT_STOPPED);
}

/* "NAME: text", the text without what is not the caller's business. */
static void error_add(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *name,
                      const struct error *error)
{
    static const char *const none[2];
    auto_buf struct buf text;

    buf_init(&text, TEXT_MAX);
    if (buf_printf(&text, "%s: ", name) == 0 && text_redact(error, none, &text) == 0)
        yyjson_mut_obj_add_val(doc, root, "error", json_mut_text(doc, buf_str(&text), text.len));
}

/* ---- the payloads ---- */

int payload_invalid(const struct buf *details, struct buf *ret)
{
    return buf_printf(ret, "{\"success\":false,\"error\":\"INVALID_INPUT\",\"details\":%s}",
                      buf_str(details));
}

/* The session of the arguments is dead: why, in words. */
static bool death_describe(struct tool_call *call, const char *id, struct error *ret)
{
    struct session_info info;

    if (session_get_info(call->context->manager, id, call->context->owner, &info, NULL) < 0 ||
        info.status != SESSION_DEAD)
        return false;
    error_set(ret, ERR_DIED, "%s (%s)", death_words(info.death), info.death);
    return true;
}

static void died_fill(struct tool_call *call, yyjson_mut_doc *doc, const char *id,
                      const struct error *error)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    struct error reason = *error;

    death_describe(call, id, &reason);
    error_add(doc, root, "CONTAINER_DIED", &reason);
    yyjson_mut_obj_add_strcpy(doc, root, "session_id", id);
    hint_add(call, doc, root, HINT_DIED);
}

/* One that is somebody else's is told of in the same words. */
static void unknown_fill(const char *id, struct error *ret)
{
    error_set(ret, ERR_NOT_FOUND,
              "unknown session: '%.64s' not found; it has ended, or was never there", id);
}

static void failure_fill(struct tool_call *call, yyjson_mut_doc *doc, const char *id,
                         const struct error *error)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    const struct code_words *words = words_of(error->code);
    struct error told = *error;
    struct session_info info;

    if (id && error->code == ERR_NOT_FOUND &&
        session_get_info(call->context->manager, id, call->context->owner, &info, NULL) < 0)
        unknown_fill(id, &told);
    error_add(doc, root, words->name ? words->name : error_entry(error->code)->python_class, &told);
    /* To one that asked for no session, advice to make one is no help. */
    hint_add(call, doc, root, words->hint || id ? words->hint : HINT_HOST);
}

int payload_error(struct tool_call *call, yyjson_val *arguments, const struct error *error,
                  struct buf *ret)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const char *id = json_get_str(arguments, "session_id", NULL);

    if (words_of(error->code)->hides_paths)
        log_debug("tool %s: %s", call->tool->name, error->text);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", false);
    if (id && error->code == ERR_DIED)
        died_fill(call, doc, id, error);
    else
        failure_fill(call, doc, id, error);
    return json_mut_write(doc, ret, NULL);
}

int payload_add_death(struct tool_call *call, const char *session_id, struct buf *ret,
                      struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    struct session_info info;
    bool lives = session_get_info(call->context->manager, session_id, call->context->owner, &info,
                                  NULL) == 0 &&
                 info.status != SESSION_DEAD;
    auto_buf struct buf more;
    int r;

    buf_init(&more, MIB);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_strcpy(doc, root, "session_id", session_id);
    hint_add(call, doc, root, lives ? HINT_RESTARTED : HINT_DIED);
    if ((r = json_mut_write(doc, &more, reterr)) < 0)
        return r;
    /* Two objects become one. */
    ret->data[ret->len - 1] = ',';
    return buf_append(ret, more.data + 1, more.len - 1) < 0
               ? error_set(reterr, ERR_LIMIT, "the result is above its limit")
               : 0;
}

int tool_session_check(struct tool_call *call, const char *session_id, struct session_info *ret,
                       struct error *reterr)
{
    int r = session_get_info(call->context->manager, session_id, call->context->owner, ret, reterr);

    if (r < 0)
        return r;
    if (ret->status == SESSION_DEAD)
        return error_set(reterr, ERR_DIED, "session %s has died (%s)", ret->id, ret->death);
    return 0;
}
