/* SPDX-License-Identifier: MIT */
/* The table of commands, and those that need only a few lines. */
#include "cli/chat_command.h"

#include "base/str.h"
#include "cli/chat_words.h"
#include "cli/term/text.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

enum { HELP_COLUMN = 31 };

/* ---- short ones ---- */

static void on_new(struct chat *c, char **words, size_t count)
{
    struct error error;

    if (chat_thread_new(c, &error) < 0)
        chat_complain(c, "%s", error.text);
    else
        chat_say(c, STYLE_OK, "a new conversation: %s", c->thread_id);
}

static void on_quit(struct chat *c, char **words, size_t count)
{
    c->is_over = true;
    c->status = 0;
}

static void on_stop(struct chat *c, char **words, size_t count)
{
    char body[CHAT_THREAD_SIZE + 96];
    auto_json yyjson_doc *doc = NULL;
    size_t total = 0;
    struct error error;

    for (int i = 0; i < 2; i++) {
        auto_json yyjson_doc *found = NULL;

        snprintf(body, sizeof(body), "/threads/%s/runs?status=%s", c->thread_id,
                 i == 0 ? "running" : "pending");
        if (chat_api_json(&c->api, "GET", body, NULL, &found, &error) == 0)
            total += yyjson_arr_size(yyjson_doc_get_root(found));
    }
    if (total == 0) {
        chat_say(c, STYLE_FAINT, "nothing runs in this conversation");
        return;
    }
    snprintf(body, sizeof(body), "{\"thread_id\":\"%s\",\"status\":\"all\"}", c->thread_id);
    if (chat_api_json(&c->api, "POST", "/runs/cancel?action=interrupt", body, &doc, &error) < 0)
        chat_complain(c, "%s", error.text);
    else
        chat_say(c, STYLE_OK, "stopped");
}

static void on_answer(struct chat *c, char **words, size_t count)
{
    chat_thread_wait_ask(c);
}

/* The command and its words as they are typed, then what it does. */
static void help_line(struct chat *c, const char *left, const char *text)
{
    enum term_color color = term_color(c->term);
    size_t width = text_width(left, strlen(left));
    auto_buf struct buf line;

    buf_init(&line, 4096);
    if (style_text(&line, STYLE_CODE, color, left, strlen(left)) == 0 &&
        text_repeat(&line, " ", width < HELP_COLUMN ? HELP_COLUMN - width : 1) == 0 &&
        buf_append_str(&line, text) == 0)
        term_print(c->term, line.data, line.len);
}

static void on_help(struct chat *c, char **words, size_t count)
{
    char left[64];

    for (const struct chat_command *m = chat_commands; m->name; m++) {
        snprintf(left, sizeof(left), "%s %s", m->name, m->words);
        help_line(c, left, m->help);
    }
    help_line(c, "Alt-Enter, or \\ Enter", "another line of the message");
    help_line(c, "Ctrl-C", "stops what runs; twice at the prompt: ends");
    help_line(c, "Ctrl-D, exit, quit, q", "end the chat; it goes on next time");
}

/* ---- the table ---- */

const struct chat_command chat_commands[] = {
    {"/new", "", "begin another conversation", on_new, NULL},
    {"/threads", "[N|ID]", "list the conversations, or go to one", chat_threads_command, NULL},
    {"/model", "[NAME|SETTING VALUE]", "the model of this chat", chat_model_command,
     chat_model_complete},
    {"/files", "", "uploaded and exported files", chat_files_command, NULL},
    {"/upload", "PATH...", "give files to the agent", chat_upload_command, chat_upload_complete},
    {"/download", "PATH [TO]", "keep an exported file", chat_download_command,
     chat_download_complete},
    {"/sessions", "[stop|interrupt ID]", "the live sandboxes", chat_sessions_command,
     chat_sessions_complete},
    {"/stop", "", "end what runs in this conversation", on_stop, NULL},
    {"/answer", "", "answer what the conversation waits for", on_answer, NULL},
    {"/help", "", "print this", on_help, NULL},
    {"/quit", "", "end the chat", on_quit, NULL},
    {},
};

/* A slash, letters, and then nothing or a space: paths and comments are messages. */
bool chat_is_command(const char *line)
{
    static const char *const ends[] = {"exit", "quit", "q"};
    const char *at = line + 1;

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (str_eq(ends[i], line))
            return true;
    }
    if (line[0] != '/' || !islower((unsigned char)line[1]))
        return false;
    while (islower((unsigned char)*at))
        at++;
    return !*at || *at == ' ' || *at == '\t';
}

static const struct chat_command *command_find(const char *word)
{
    for (const struct chat_command *m = chat_commands; m->name; m++) {
        if (str_eq(m->name, word))
            return m;
    }
    return NULL;
}

/* A key that was typed behind the command stands on the screen; it is kept nowhere else. */
static bool may_be_kept(const struct chat_words *w)
{
    return !(w->count > 2 && str_eq(w->words[0], "/model") && str_eq(w->words[1], "key"));
}

bool chat_command_run(struct chat *c, const char *line)
{
    auto_chat_words struct chat_words words = {};
    const struct chat_command *m;
    struct error error;

    if (line[0] != '/') {
        on_quit(c, NULL, 0);
        return false;
    }
    if (chat_words_split(line, &words, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return !str_starts(line, "/model"); /* it may have a key in it */
    }
    m = command_find(words.words[0]);
    if (m)
        m->run(c, words.words + 1, words.count - 1);
    else
        chat_complain(c,
                      "there is no command '%s'; /help lists them (a message may begin with a "
                      "space)",
                      words.words[0]);
    return may_be_kept(&words);
}

/* ---- completion ---- */

void chat_choice(struct chat_choices *choices, const char *text)
{
    char quoted[2 * PATH_LEN];

    if (str_starts(text, choices->word) && chat_word_quote(text, quoted, sizeof(quoted)) == 0)
        line_choice(choices->to, choices->from, quoted);
}

static void path_choice(struct chat_choices *choices, const char *dir, size_t dir_len,
                        const char *name)
{
    char path[PATH_LEN];
    struct stat st;
    int len = snprintf(path, sizeof(path), "%.*s%s", (int)dir_len, dir, name);

    if ((size_t)len + 1 >= sizeof(path))
        return;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        path[len] = '/';
        path[len + 1] = 0;
    }
    chat_choice(choices, path);
}

void chat_choose_path(struct chat_choices *choices)
{
    const char *slash = strrchr(choices->word, '/');
    size_t dir_len = slash ? (size_t)(slash + 1 - choices->word) : 0;
    char path[PATH_LEN] = ".";
    struct dirent *entry;
    DIR *dir;

    if (dir_len >= sizeof(path))
        return;
    if (dir_len > 0) {
        memcpy(path, choices->word, dir_len);
        path[dir_len] = 0;
    }
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        bool hidden = entry->d_name[0] == '.';

        if (path_is_name(entry->d_name) && (!hidden || choices->word[dir_len] == '.'))
            path_choice(choices, choices->word, dir_len, entry->d_name);
    }
    if (dir)
        closedir(dir);
}

void chat_complete(void *user, const char *before, struct line_choices *to)
{
    struct chat *c = user;
    auto_chat_words struct chat_words words = {};
    char word[PATH_LEN];
    struct chat_choices choices = {.to = to, .word = word};
    const struct chat_command *m;

    if (before[0] != '/' || chat_words_last(before, &choices.from, word, sizeof(word)) < 0)
        return;
    if (choices.from == 0) {
        for (m = chat_commands; m->name; m++)
            chat_choice(&choices, m->name);
        return;
    }
    if (chat_words_split(before, &words, NULL) < 0 || words.count == 0)
        return;
    m = command_find(words.words[0]);
    if (m && m->complete)
        m->complete(c, words.count - (word[0] ? 2 : 1), word, &choices);
}
