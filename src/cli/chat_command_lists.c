/* SPDX-License-Identifier: MIT */
/* /threads and /sessions. */
#include "cli/chat_command.h"

#include "base/str.h"
#include "base/timestamp.h"
#include "cli/term/clean.h"
#include "cli/term/text.h"

#include <stdio.h>

enum { THREADS_SHOWN = 20, LINE_BYTES = 8192 };

/* ---- threads ---- */

static const char search[] =
    "{\"limit\":20,\"metadata\":{\"source\":\"cli\"},\"sort_by\":\"updated_at\","
    "\"sort_order\":\"desc\",\"select\":[\"thread_id\",\"updated_at\",\"metadata\",\"status\","
    "\"extracted\"],\"extract\":{\"first\":\"values.messages[0].content\"}}";

/* What a person calls it, else how it began. */
static int title_append(yyjson_val *thread, struct buf *ret)
{
    const char *title = json_get_str(yyjson_obj_get(thread, "metadata"), "title", "");
    yyjson_val *first = yyjson_obj_get(yyjson_obj_get(thread, "extracted"), "first");

    if (title[0])
        return buf_append_str(ret, title);
    if (chat_content_text(first, ret) < 0)
        return -1;
    return ret->len ? 0 : buf_append_str(ret, "(empty)");
}

/* "2026-11-30 07:07" of a time of the API. */
static void time_format(const char *time, char *ret, size_t size)
{
    snprintf(ret, size, "%.10s %.5s", time, strlen(time) > 16 ? time + 11 : "");
}

static void thread_line(struct chat *c, size_t number, yyjson_val *thread)
{
    bool here = str_eq(json_get_str(thread, "thread_id", ""), c->thread_id);
    const char *status = json_get_str(thread, "status", "");
    auto_buf struct buf title, line, whole;
    char left[96], time[32];

    buf_init(&title, 64 << 20);
    buf_init(&line, LINE_BYTES);
    buf_init(&whole, LINE_BYTES);
    time_format(json_get_str(thread, "updated_at", ""), time, sizeof(time));
    snprintf(left, sizeof(left), "%s%2zu  %.16s  ", here ? "▸" : " ", number, time);
    if (title_append(thread, &title) < 0 || buf_append_str(&whole, left) < 0 ||
        (!str_eq(status, "idle") && buf_printf(&whole, "[%.12s] ", status) < 0) ||
        buf_append(&whole, buf_str(&title), MIN(title.len, (size_t)2000)) < 0 ||
        clean_line(buf_str(&whole), term_width(c->term) - 1, &line) < 0)
        return;
    chat_say(c, here ? STYLE_OK : STYLE_PLAIN, "%s", buf_str(&line));
}

/* By its number in the list, or by the beginning of its id. NULL: none, or several. */
static const char *thread_pick(yyjson_val *list, const char *word)
{
    const char *found = NULL;
    int64_t number;
    size_t i, max;
    yyjson_val *thread;

    if (str_parse_int(word, 1, THREADS_SHOWN, &number) == 0)
        return json_get_str(yyjson_arr_get(list, (size_t)number - 1), "thread_id", NULL);
    yyjson_arr_foreach(list, i, max, thread)
    {
        const char *id = json_get_str(thread, "thread_id", "");

        if (!str_starts(id, word))
            continue;
        if (found)
            return NULL;
        found = id;
    }
    return found ? found : word;
}

void chat_threads_command(struct chat *c, char **words, size_t count)
{
    auto_json yyjson_doc *doc = NULL;
    struct error error;
    yyjson_val *list, *thread;
    const char *id;
    size_t i, max;

    if (chat_api_json(&c->api, "POST", "/threads/search", search, &doc, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return;
    }
    list = yyjson_doc_get_root(doc);
    if (count == 0) {
        yyjson_arr_foreach(list, i, max, thread)
        {
            thread_line(c, i + 1, thread);
        }
        chat_say(c, STYLE_FAINT, "/threads N goes to one of them");
        return;
    }
    id = thread_pick(list, words[0]);
    if (!id)
        chat_complain(c, "'%s' is none of them, or several; /threads lists them", words[0]);
    else if (chat_thread_switch(c, id, &error) < 0)
        chat_complain(c, "%s", error.text);
    else
        chat_thread_recap(c);
}

/* ---- sessions ---- */

static int sessions_get(struct chat *c, yyjson_doc **ret, struct error *reterr)
{
    return chat_api_json(&c->api, "GET", "/sessions", NULL, ret, reterr);
}

static bool is_here(struct chat *c, yyjson_val *session)
{
    return str_eq(json_get_str(session, "thread_id", ""), c->thread_id);
}

static void session_line(struct chat *c, yyjson_val *s)
{
    char time[32];

    time_format(json_get_str(s, "last_activity", ""), time, sizeof(time));
    chat_say(c, is_here(c, s) ? STYLE_PLAIN : STYLE_FAINT, "%.8s  %-7.10s %-9.12s %-5s %s  %s",
             json_get_str(s, "session_id", ""), json_get_str(s, "runtime", ""),
             json_get_str(s, "status", ""), json_get_bool(s, "busy", false) ? "busy" : "idle", time,
             is_here(c, s) ? "this conversation" : "another conversation");
}

static void sessions_list(struct chat *c, yyjson_val *list)
{
    size_t i, max;
    yyjson_val *session;

    if (yyjson_arr_size(list) == 0)
        chat_say(c, STYLE_FAINT, "there are no live sessions");
    yyjson_arr_foreach(list, i, max, session)
    {
        session_line(c, session);
    }
    if (yyjson_arr_size(list) > 0)
        chat_say(c, STYLE_FAINT, "/sessions stop ID ends one, /sessions interrupt ID its cell");
}

/* The one whose id begins so. */
static const char *session_pick(yyjson_val *list, const char *word)
{
    const char *found = NULL;
    size_t i, max;
    yyjson_val *session;

    yyjson_arr_foreach(list, i, max, session)
    {
        const char *id = json_get_str(session, "session_id", "");

        if (!str_starts(id, word))
            continue;
        if (found)
            return NULL;
        found = id;
    }
    return found && str_check_chars(found, "0123456789abcdef", 64) ? found : NULL;
}

void chat_sessions_command(struct chat *c, char **words, size_t count)
{
    auto_json yyjson_doc *doc = NULL, *done = NULL;
    bool stop = count > 0 && str_eq(words[0], "stop");
    bool interrupt = count > 0 && str_eq(words[0], "interrupt");
    struct error error;
    const char *id;
    char path[128];

    if (sessions_get(c, &doc, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return;
    }
    if (count == 0) {
        sessions_list(c, yyjson_doc_get_root(doc));
        return;
    }
    id = count == 2 ? session_pick(yyjson_doc_get_root(doc), words[1]) : NULL;
    if ((!stop && !interrupt) || !id) {
        chat_complain(c, "/sessions stop ID or /sessions interrupt ID, with an id of the list");
        return;
    }
    snprintf(path, sizeof(path), "/sessions/%.64s%s", id, stop ? "" : "/interrupt");
    if (chat_api_json(&c->api, stop ? "DELETE" : "POST", path, stop ? NULL : "{}", &done, &error) <
        0)
        chat_complain(c, "%s", error.text);
    else
        chat_say(c, STYLE_OK, "%s: %.8s", stop ? "stopped" : "interrupted", id);
}

void chat_sessions_complete(struct chat *c, size_t at, const char *word,
                            struct chat_choices *choices)
{
    auto_json yyjson_doc *doc = NULL;
    size_t i, max;
    yyjson_val *session;
    char id[9];

    if (at == 0) {
        chat_choice(choices, "stop");
        chat_choice(choices, "interrupt");
        return;
    }
    if (sessions_get(c, &doc, NULL) < 0)
        return;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, max, session)
    {
        snprintf(id, sizeof(id), "%.8s", json_get_str(session, "session_id", ""));
        chat_choice(choices, id);
    }
}
