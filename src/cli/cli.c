/* SPDX-License-Identifier: MIT */
/*
 * The chat from its start to its end: the terminal, a server that answers, a conversation, and then
 * one message after another.
 */
#include "cli/chat_command.h"

#include "base/fd.h"
#include "base/str.h"
#include "cli/screen.h"
#include "cli/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

enum { SAY_MAX = 1 << 20, STATUS_SIGNAL = 128 };

static const struct option_entry options[] = {
    {"message", 'c', "TEXT", "ask this, print the answer and end; - reads it from the input"},
    {"new", 0, NULL, "begin a new conversation"},
    {"thread", 0, "ID", "go on with this conversation"},
    {"plain", 0, NULL, "no colours, no borders, nothing that moves"},
    {},
};

/* ---- what is said ---- */

static void lines_print(struct chat *c, enum style_role role, const char *text, size_t len)
{
    auto_buf struct buf clean, styled;

    buf_init(&clean, SAY_MAX);
    buf_init(&styled, 2 * SAY_MAX);
    if (clean_text(text, len, CLEAN_STRIP, &clean) == 0 &&
        style_text(&styled, role, term_color(c->term), buf_str(&clean), clean.len) == 0)
        term_print(c->term, buf_str(&styled), styled.len);
}

static void say(struct chat *c, enum style_role role, const char *fmt, va_list args)
    printf_like(3, 0);
static void say(struct chat *c, enum style_role role, const char *fmt, va_list args)
{
    char *text = NULL;
    int len = vasprintf(&text, fmt, args);

    if (len < 0)
        return;
    lines_print(c, role, text, (size_t)len);
    free(text);
}

void chat_say(struct chat *c, enum style_role role, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(c, role, fmt, args);
    va_end(args);
}

void chat_complain(struct chat *c, const char *fmt, ...)
{
    auto_free char *text = NULL;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    if (len < 0) {
        text = NULL;
        return;
    }
    if (!c->term || (c->is_one_shot && !term_caps(c->term)->is_tty))
        screen_message(text);
    else
        chat_say(c, STYLE_ERROR, "✗ %s", text);
}

void chat_gap(struct chat *c)
{
    if (!c->is_answer_only)
        term_print(c->term, "\n", 1);
}

/* ---- signals ---- */

/* They are blocked in all threads, and wait in a descriptor until somebody asks. */
static int signals_take(struct chat *c, struct error *reterr)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return c->signal_fd < 0 ? error_sys(reterr, errno, "cannot wait for signals") : 0;
}

int chat_signal_take(struct chat *c)
{
    struct signalfd_siginfo info;

    if (read(c->signal_fd, &info, sizeof(info)) != sizeof(info))
        return 0;
    if (info.ssi_signo == SIGINT)
        return 1;
    c->signal = (int)info.ssi_signo;
    c->is_over = true;
    return -1;
}

/* ---- answers ---- */

/* Where the line editor shows no prompt, though there is a person. */
static void prompt_plain(struct chat *c, const char *prompt)
{
    if (!term_caps(c->term)->has_input && isatty(term_in(c->term)) && isatty(term_out(c->term)))
        term_raw(c->term, prompt, strlen(prompt));
}

int chat_ask_line(struct chat *c, const char *prompt, bool secret, struct buf *ret,
                  struct error *reterr)
{
    enum line_event event;
    int r;

    /* Nothing stands below what is typed; whoever has an open part draws it again. */
    term_open_set(c->term, "", 0);
    if (secret && isatty(term_in(c->term))) {
        r = line_read_secret(c->line, prompt, ret, &event, reterr);
    } else {
        prompt_plain(c, prompt);
        r = line_read(c->line, prompt, ret, &event, reterr);
    }
    if (r < 0)
        return r;
    if (event == LINE_STOPPED)
        (void)chat_signal_take(c);
    return event == LINE_TEXT;
}

/* ---- the server ---- */

struct starting {
    const struct settings *settings;
    struct local_server server;
    bool stop;
    int done_fd;
    int result;
    struct error error;
};

static void *starting_main(void *arg)
{
    struct starting *s = arg;
    uint64_t one = 1;

    s->result = local_server_ensure(s->settings, &s->server, &s->error);
    (void)!write(s->done_fd, &one, sizeof(one));
    return NULL;
}

/* Waits for it, and hears signals meanwhile. */
static void starting_wait(struct chat *c, struct starting *s)
{
    struct pollfd fds[] = {{.fd = s->done_fd, .events = POLLIN},
                           {.fd = c->signal_fd, .events = POLLIN}};

    while (!fds[0].revents) {
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return;
        if (!fds[1].revents || chat_signal_take(c) == 0)
            continue;
        __atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
        c->is_over = true;
    }
}

int chat_server_ensure(struct chat *c, struct error *reterr)
{
    struct starting s = {.settings = c->settings, .server = {.env_file = c->server.env_file}};
    pthread_t thread;
    int e;

    if (c->api.base[0] && !c->is_lost && local_server_is_alive(&c->server))
        return 0;
    s.server.stop = &s.stop;
    s.done_fd = eventfd(0, EFD_CLOEXEC);
    if (s.done_fd < 0)
        return error_sys(reterr, errno, "cannot make an event descriptor");
    e = pthread_create(&thread, NULL, starting_main, &s);
    if (e) {
        close(s.done_fd);
        return error_sys(reterr, e, "cannot start a thread");
    }
    spinner_start(c->spinner, "looking for the server");
    starting_wait(c, &s);
    pthread_join(thread, NULL);
    spinner_stop(c->spinner);
    close(s.done_fd);
    if (s.result < 0) {
        *reterr = s.error;
        return s.result;
    }
    if (!local_server_is_alive(&c->server))
        chat_complain(c, "the server that was started here has ended; another one %s",
                      s.server.pid > 0 ? "was started" : "is there");
    s.server.stop = NULL;
    local_server_adopt(&c->server, &s.server);
    c->is_lost = false;
    /* The address of a server that is started again is the same, and a stream may be reading it. */
    return str_eq(c->api.base, c->server.url)
               ? 0
               : str_copy(c->api.base, sizeof(c->api.base), c->server.url);
}

/* ---- life ---- */

static int term_start(struct chat *c, const struct verb_args *args, struct error *reterr)
{
    int r;

    r = verb_flag(args, "plain") ? term_open_plain(STDIN_FILENO, STDOUT_FILENO, &c->term, reterr)
                                 : term_open(STDIN_FILENO, STDOUT_FILENO, &c->term, reterr);
    if (r < 0 || (r = panels_new(c->term, &c->panels, reterr)) < 0 ||
        (r = spinner_new(c->term, &c->spinner, reterr)) < 0 ||
        (r = path_join(c->history, sizeof(c->history), c->place.path, "cli-history", reterr)) < 0)
        return r;
    c->is_answer_only = c->is_one_shot && !term_caps(c->term)->is_tty;
    return line_new(c->term,
                    &(struct line_options){.size = sizeof(struct line_options),
                                           .history = c->is_one_shot ? NULL : c->history,
                                           .stop_fd = c->signal_fd,
                                           .complete = chat_complete,
                                           .user = c},
                    &c->line, reterr);
}

static int chat_open(struct chat *c, const struct verb_args *args, struct error *reterr)
{
    int r;

    if ((r = signals_take(c, reterr)) < 0 || (r = chat_place_open(&c->place, reterr)) < 0 ||
        (r = chat_api_init(&c->api, c->settings, reterr)) < 0 ||
        (r = term_start(c, args, reterr)) < 0 || (r = chat_view_init(c, reterr)) < 0)
        return r;
    c->server.env_file = verb_option(args, "env-file", NULL);
    if ((r = chat_server_ensure(c, reterr)) < 0)
        return r;
    c->api.cancel_fd = c->signal_fd;
    return chat_thread_open(c, verb_option(args, "thread", NULL), verb_flag(args, "new"), reterr);
}

static void chat_done(struct chat *c)
{
    if (c->term)
        chat_view_done(c);
    panels_free(c->panels);
    line_free(c->line);
    if (c->server.log[0] && c->spinner && c->signal == 0)
        spinner_start(c->spinner, "ending the server");
    local_server_done(&c->server);
    spinner_free(c->spinner);
    term_free(c->term);
    chat_api_done(&c->api);
    chat_memory_done(&c->memory);
    chat_config_done(&c->config);
    chat_place_done(&c->place);
    buf_done(&c->attached);
    if (c->signal_fd >= 0)
        close(c->signal_fd);
}

/* ---- talking ---- */

static void welcome(struct chat *c)
{
    struct panel *panel = NULL;
    auto_buf struct buf model;
    char line[600];
    bool usable;

    buf_init(&model, 1024);
    if (chat_model_describe(c, &model, &usable) < 0 ||
        panel_open(c->panels, "sandbox-agent " PACKAGE_VERSION, 0, &panel, NULL) < 0)
        return;
    snprintf(line, sizeof(line), "model   %.400s", buf_str(&model));
    panel_note(panel, STYLE_PLAIN, line);
    snprintf(line, sizeof(line), "server  %.256s%s", c->server.url,
             c->server.log[0] ? " (started here)" : "");
    panel_note(panel, STYLE_PLAIN, line);
    snprintf(line, sizeof(line), "thread  %s", c->thread_id);
    panel_note(panel, STYLE_PLAIN, line);
    if (!usable)
        panel_note(panel, STYLE_WARNING,
                   "No key is set: /model key asks for one. /model provider direct runs what you "
                   "type, without a model.");
    panel_close(panel, PANEL_RUNNING, "/help · Ctrl-C stops a run · Ctrl-D ends");
}

/* A message or command. What is piped in is shown, so that one can read what happened. */
static void text_take(struct chat *c, const char *text)
{
    const struct term_caps *caps = term_caps(c->term);
    bool keep = true;

    if (!text[strspn(text, " \t\n")])
        return;
    if (!caps->has_input && caps->is_tty)
        chat_say(c, STYLE_USER, "❯ %s", text);
    if (chat_is_command(text))
        keep = chat_command_run(c, text);
    else
        chat_run_message(c, text);
    if (keep)
        line_remember(c->line, text);
}

static void talk(struct chat *c)
{
    bool asked_twice = false;

    while (!c->is_over) {
        auto_buf struct buf text;
        enum line_event event;
        struct error error;

        buf_init(&text, LINE_MAX_BYTES + 1);
        chat_gap(c);
        prompt_plain(c, "> ");
        if (line_read(c->line, "❯ ", &text, &event, &error) < 0) {
            chat_complain(c, "%s", error.text);
            c->status = EXIT_HOST;
            return;
        }
        if (event == LINE_END)
            return;
        /* A Ctrl-C that came just before the editor took the keys is still a signal. */
        if (event == LINE_STOPPED && chat_signal_take(c) > 0) {
            if (!term_caps(c->term)->has_input) {
                c->signal = SIGINT;
                return;
            }
            event = LINE_INTERRUPTED;
        }
        if (event == LINE_INTERRUPTED && text.len == 0) {
            if (asked_twice)
                return;
            chat_say(c, STYLE_FAINT, "Ctrl-C again, or Ctrl-D, ends the chat");
        }
        asked_twice = event == LINE_INTERRUPTED && text.len == 0;
        if (event == LINE_TEXT)
            text_take(c, buf_str(&text));
    }
}

/* "-": all of the input. */
static int message_read(const char *given, char **ret, struct error *reterr)
{
    size_t len;

    if (!str_eq(given, "-")) {
        *ret = strdup(given);
        return *ret ? 0 : error_no_memory(reterr);
    }
    return fd_read_file(AT_FDCWD, "/dev/stdin", LINE_MAX_BYTES, ret, &len, reterr);
}

static int run(struct chat *c, const struct verb_args *args, struct error *reterr)
{
    const char *given = verb_option(args, "message", NULL);
    auto_free char *message = NULL;
    int r;

    if (given && (r = message_read(given, &message, reterr)) < 0)
        return r;
    c->is_one_shot = given != NULL;
    if ((r = chat_open(c, args, reterr)) < 0)
        return r;
    if (given) {
        chat_thread_know(c);
        chat_run_message(c, message);
        return 0;
    }
    welcome(c);
    chat_thread_recap(c);
    talk(c);
    return 0;
}

static int cli(const struct verb_args *args)
{
    auto_settings struct settings settings = {};
    struct chat c = {.settings = &settings, .signal_fd = -1, .place = {.dir = -1}};
    struct error error;
    int r;

    chat_config_init(&c.config);
    buf_init(&c.attached, MIB);
    if (verb_settings(args, &settings, &error) < 0)
        return verb_fail(&error);
    r = run(&c, args, &error);
    chat_done(&c);
    if (c.signal)
        return STATUS_SIGNAL + c.signal;
    return r < 0 ? verb_fail(&error) : c.status;
}

const struct verb_entry verb_cli = {
    .name = "cli",
    .words = "",
    .summary = "Chat with the agent in the terminal",
    .help = "Speaks to the server at API_BASE_URL, with API_KEY; where none answers on this host, "
            "one is\nstarted and ended again. The conversation goes on where it was the last time. "
            "Without a\nterminal each line of the input is a message. /help tells the commands. "
            "Exit status: 1 when\nthe last run failed.",
    .options = options,
    .run = cli,
    .local_env = true,
};
