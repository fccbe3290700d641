/* SPDX-License-Identifier: MIT */
/*
 * `sandbox-agent run`: cells of one session, in order, with live output. Signals are taken by a
 * thread of their own, so that Ctrl-C interrupts the cell and the session still ends in order.
 */
#include "cli/verb.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/display.h"
#include "cli/screen.h"
#include "cli/stop_signals.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>

enum {
    CELLS_MAX = 1000,
    DEPS_MAX = 100,
    INPUT_POLL_MS = 100,
    FILE_MAX_BYTES = 64 * 1024 * 1024,
    EVENT_BYTES = 128 * 1024 * 1024
};

static const struct option_entry run_options_table[] = {
    {"language", 'l', "LANG", "python, node or r; else by the first FILE's suffix, else python"},
    {"code", 'c', "CODE", "a cell; may be given several times"},
    {"timeout", 't', "SECONDS", "stop a cell after so long (default: as the settings say, 30)"},
    {"network", 0, "MODE", "none (default) or public"},
    {"dep", 0, "NAME[==VER]", "install a package first; may be given several times"},
    {"image", 0, "DIR", "a prepared root file system instead of the language's image"},
    {"memory", 0, "SIZE", "memory limit, such as 512m"},
    {"json", 0, NULL, "print one result object per cell instead of live output"},
    {"display-dir", 0, "DIR", "write displays (plots, tables, sounds) as files into DIR"},
    {"no-build", 0, NULL, "fail when the image is not there, instead of building it"},
    {"allow-degraded", 0, NULL, "start although this host lacks a required kernel feature"},
    {},
};

struct cell {
    char *text; /* owned */
    size_t len;
};

struct runner {
    struct cell cells[CELLS_MAX];
    size_t cell_count;
    struct session_dependency deps[DEPS_MAX];
    size_t dep_count;
    char *dep_texts[DEPS_MAX]; /* owned */
    const char *language;
    int64_t timeout_ms;
    uint64_t memory;
    int network;
    bool json, no_build, from_stdin;
    const char *image;
    struct display_sink displays;

    struct session_manager *manager;
    struct session_info session;

    pthread_mutex_t lock; /* of what the signal thread touches */
    struct run *current;
    bool creating;
    bool interrupted; /* the current cell, once */
    bool stopped;     /* nothing more is to be run */
};

/* ---- arguments ---- */

static int cell_add(struct runner *r, char *text, size_t len, const char *what,
                    struct error *reterr)
{
    if (len == 0) {
        free(text);
        return error_set(reterr, ERR_INVALID, "%s is empty: there is nothing to run", what);
    }
    if (r->cell_count == CELLS_MAX) {
        free(text);
        return error_set(reterr, ERR_INVALID, "more than %d cells", CELLS_MAX);
    }
    r->cells[r->cell_count++] = (struct cell){.text = text, .len = len};
    return 0;
}

static int code_add(struct runner *r, const char *code, struct error *reterr)
{
    char *copy = strdup(code);

    return copy ? cell_add(r, copy, strlen(copy), "the code of -c", reterr)
                : error_no_memory(reterr);
}

static int file_add(struct runner *r, const char *path, struct error *reterr)
{
    bool is_stdin = str_eq(path, "-");
    char *text = NULL;
    size_t len;
    int n =
        fd_read_file(AT_FDCWD, is_stdin ? "/dev/stdin" : path, FILE_MAX_BYTES, &text, &len, reterr);

    if (n < 0) {
        if (reterr->code != ERR_LIMIT)
            reterr->code = ERR_INVALID; /* whatever it was, the argument was no readable file */
        else
            error_set(reterr, ERR_INVALID, "'%s' is too large to be a cell", path);
        return -ERR_INVALID;
    }
    r->from_stdin |= is_stdin;
    return cell_add(r, text, len, is_stdin ? "standard input" : path, reterr);
}

static int dep_add(struct runner *r, const char *text, struct error *reterr)
{
    char *copy = strdup(text), *version;

    if (!copy || r->dep_count == DEPS_MAX) {
        free(copy);
        return error_set(reterr, ERR_INVALID, "more than %d dependencies", DEPS_MAX);
    }
    version = strstr(copy, "==");
    if (version) {
        *version = 0;
        version += 2;
    }
    r->dep_texts[r->dep_count] = copy;
    r->deps[r->dep_count++] = (struct session_dependency){.name = copy, .version = version};
    return 0;
}

static const char *language_from_file(const char *path)
{
    static const char *const suffixes[][2] = {
        {".py", "python"}, {".js", "node"}, {".mjs", "node"},
        {".cjs", "node"},  {".R", "r"},     {".r", "r"},
    };

    for (size_t i = 0; path && i < ARRAY_LEN(suffixes); i++) {
        if (str_ends(path, suffixes[i][0]))
            return suffixes[i][1];
    }
    return "python";
}

static int timeout_parse(const char *text, int64_t *ret_ms, struct error *reterr)
{
    char *end;
    double seconds = strtod(text, &end);

    if (*end || end == text || !isfinite(seconds) || seconds < 0.001 || seconds > 86400)
        return error_set(reterr, ERR_INVALID,
                         "--timeout: '%.40s' is no number of seconds up to 86400", text);
    *ret_ms = (int64_t)(seconds * 1000);
    return 0;
}

static int network_parse(const char *text, int *ret, struct error *reterr)
{
    if (str_eq(text, "none"))
        *ret = JOB_NETWORK_NONE;
    else if (str_eq(text, "public"))
        *ret = JOB_NETWORK_PUBLIC;
    else
        return error_set(reterr, ERR_INVALID, "--network: 'none' or 'public', not '%.40s'", text);
    return 0;
}

static int runner_parse(struct runner *r, const struct verb_args *args, struct error *reterr)
{
    const char *text;
    int n = 0;

    r->language =
        verb_option(args, "language", language_from_file(args->word_count ? args->words[0] : NULL));
    r->image = verb_option(args, "image", NULL);
    r->json = verb_flag(args, "json");
    r->no_build = verb_flag(args, "no-build");
    for (size_t i = 0; i < args->given_count && n == 0; i++) {
        if (str_eq(args->given[i].entry->name, "code"))
            n = code_add(r, args->given[i].value, reterr);
        else if (str_eq(args->given[i].entry->name, "dep"))
            n = dep_add(r, args->given[i].value, reterr);
    }
    for (size_t i = 0; i < args->word_count && n == 0; i++)
        n = file_add(r, args->words[i], reterr);
    if (n == 0 && !r->cell_count)
        n = error_set(reterr, ERR_INVALID, "nothing to run: give -c CODE, a FILE, or -");
    if (n == 0 && (text = verb_option(args, "timeout", NULL)))
        n = timeout_parse(text, &r->timeout_ms, reterr);
    if (n == 0)
        n = network_parse(verb_option(args, "network", "none"), &r->network, reterr);
    text = verb_option(args, "memory", NULL);
    if (n == 0 && text && str_parse_size(text, &r->memory) < 0)
        n = error_set(reterr, ERR_INVALID, "--memory: '%.40s' is no size such as 512m", text);
    return n;
}

static void runner_done(struct runner *r)
{
    for (size_t i = 0; i < r->cell_count; i++)
        free(r->cells[i].text);
    for (size_t i = 0; i < r->dep_count; i++)
        free(r->dep_texts[i]);
    display_sink_done(&r->displays);
    pthread_mutex_destroy(&r->lock);
}

/* ---- signals ---- */

/* The session that is being made is ended, and with it the making. */
static void creation_stop(struct runner *r)
{
    auto_free struct session_info *list = NULL;
    size_t count = 0;

    session_manager_cancel_builds(r->manager);
    if (session_list(r->manager, NULL, &list, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        struct error error;

        if (session_stop(r->manager, list[i].id, NULL, &error) < 0 && error.code != ERR_NOT_FOUND)
            verb_fail(&error);
    }
}

/* Ctrl-C stops the cell; a second one, or SIGTERM, also those that follow. */
static void signal_handle(void *user, int sig)
{
    struct runner *r = user;
    bool creating;

    pthread_mutex_lock(&r->lock);
    r->stopped |= sig != SIGINT || !r->current || r->interrupted;
    r->interrupted = true;
    creating = r->creating;
    if (r->current)
        run_cancel(r->current);
    pthread_mutex_unlock(&r->lock);
    if (creating)
        creation_stop(r);
}

static bool runner_is_stopped(struct runner *r)
{
    bool stopped;

    pthread_mutex_lock(&r->lock);
    stopped = r->stopped;
    pthread_mutex_unlock(&r->lock);
    return stopped;
}

/* ---- output ---- */

static void print_result(const char *json, size_t len)
{
    auto_json yyjson_doc *doc = NULL;

    if (json_parse(json, len, &doc, NULL) == 0)
        screen_line(STDOUT_FILENO, json_get_str(yyjson_doc_get_root(doc), "text/plain", ""));
}

static void print_error(const char *json, size_t len)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *root;
    const char *traceback;

    if (json_parse(json, len, &doc, NULL) < 0)
        return;
    root = yyjson_doc_get_root(doc);
    traceback = json_get_str(root, "traceback", "");
    if (traceback[0]) {
        screen_line(STDERR_FILENO, traceback);
        return;
    }
    screen_write(STDERR_FILENO, json_get_str(root, "type", ""),
                 strlen(json_get_str(root, "type", "")));
    screen_write(STDERR_FILENO, ": ", 2);
    screen_line(STDERR_FILENO, json_get_str(root, "message", ""));
}

/* Whether a line can be read before the run has ended. */
static bool input_wait(struct run *run)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    struct run_outcome outcome;

    while (poll(&in, 1, INPUT_POLL_MS) == 0) {
        if (run_wait(run, 0, &outcome, NULL) == 0)
            return false;
    }
    return true;
}

/* A line of the terminal, which gives them one by one; -1 at the end of input. */
static ssize_t line_read(struct run *run, bool hidden, char *ret, size_t size)
{
    struct termios before, silent;
    ssize_t n = -1;

    hidden = hidden && tcgetattr(STDIN_FILENO, &before) == 0;
    if (hidden) {
        silent = before;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSANOW, &silent);
    }
    if (input_wait(run))
        n = read(STDIN_FILENO, ret, size);
    if (hidden) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
        screen_write(STDERR_FILENO, "\n", 1);
    }
    if (n > 0 && ret[n - 1] == '\n')
        return n - 1;
    return n > 0 ? n : -1;
}

/* Asks the terminal; only where the cells themselves do not come from it. */
static void input_answer(struct run *run, const char *json, size_t len)
{
    auto_json yyjson_doc *doc = NULL;
    bool hidden = false;
    char line[4096];
    ssize_t n;

    if (json_parse(json, len, &doc, NULL) == 0) {
        const char *prompt = json_get_str(yyjson_doc_get_root(doc), "prompt", "");

        hidden = json_get_bool(yyjson_doc_get_root(doc), "password", false);
        screen_write(STDERR_FILENO, prompt, strlen(prompt));
    }
    n = line_read(run, hidden, line, sizeof(line));
    if (run_input(run, n < 0 ? NULL : line, n < 0 ? 0 : (size_t)n, NULL) < 0)
        return; /* it has ended meanwhile */
}

static void event_print(struct runner *r, struct run *run, const struct run_event *e)
{
    const char *data = buf_str(&e->data);
    size_t len = e->data.len;

    switch (e->type) {
    case RUN_EVENT_STDOUT:
    case RUN_EVENT_LATE_STDOUT:
        screen_write(STDOUT_FILENO, data, len);
        break;
    case RUN_EVENT_STDERR:
    case RUN_EVENT_LATE_STDERR:
        screen_write(STDERR_FILENO, data, len);
        break;
    case RUN_EVENT_DISPLAY:
        display_print(&r->displays, data, len);
        break;
    case RUN_EVENT_RESULT:
        print_result(data, len);
        break;
    case RUN_EVENT_ERROR:
        print_error(data, len);
        break;
    case RUN_EVENT_INPUT:
        input_answer(run, data, len);
        break;
    case RUN_EVENT_GAP:
        fprintf(stderr, "[%s bytes of output left out: it came faster than it could be printed]\n",
                data);
        break;
    case RUN_EVENT_END:
        break;
    }
}

static int cell_follow(struct runner *r, struct run *run, struct error *reterr)
{
    struct run_event event = {};
    struct run_cursor cursor = {};
    int n;

    buf_init(&event.data, EVENT_BYTES);
    while ((n = run_next(run, &cursor, CLOCK_FOREVER, &event, reterr)) > 0) {
        if (!r->json)
            event_print(r, run, &event);
        else if (event.type == RUN_EVENT_INPUT)
            input_answer(run, buf_str(&event.data), event.data.len);
        else if (event.type == RUN_EVENT_DISPLAY && r->displays.dir >= 0)
            display_save(&r->displays, buf_str(&event.data), event.data.len);
    }
    buf_done(&event.data);
    return n;
}

/* ---- cells ---- */

static int outcome_exit(const struct run_outcome *o)
{
    static const int statuses[] = {
        [RUN_OK] = 0,
        [RUN_ERROR] = EXIT_CELL_FAILED,
        [RUN_TIMEOUT] = EXIT_TIMEOUT,
        [RUN_INTERRUPTED] = EXIT_CELL_FAILED,
        [RUN_DIED] = EXIT_CELL_FAILED,
    };

    return statuses[o->status];
}

static int outcome_print(struct runner *r, struct run *run, const struct run_outcome *o,
                         struct error *reterr)
{
    auto_buf struct buf json;
    int n;

    if (!r->json) {
        if (o->message[0])
            screen_message(o->message);
        return 0;
    }
    buf_init(&json, 512 * MIB);
    if ((n = run_result_json(run, &json, reterr)) < 0)
        return n;
    screen_line(STDOUT_FILENO, buf_str(&json));
    return 0;
}

static void current_set(struct runner *r, struct run *run)
{
    pthread_mutex_lock(&r->lock);
    r->current = run;
    r->interrupted = false;
    pthread_mutex_unlock(&r->lock);
}

static int cell_run(struct runner *r, const struct cell *cell, struct run_outcome *ret,
                    struct error *reterr)
{
    auto_run struct run *run = NULL;
    int n = run_open(r->manager, r->session.id, NULL,
                     &(struct run_options){.size = sizeof(struct run_options),
                                           .kind = RUN_CODE,
                                           .text = cell->text,
                                           .len = cell->len,
                                           .timeout_ms = r->timeout_ms,
                                           .stdin_answers = !r->from_stdin && isatty(STDIN_FILENO)},
                     &run, reterr);

    if (n < 0)
        return n;
    current_set(r, run);
    n = cell_follow(r, run, reterr);
    current_set(r, NULL);
    if (n == 0)
        n = run_wait(run, CLOCK_FOREVER, ret, reterr);
    return n < 0 ? n : outcome_print(r, run, ret, reterr);
}

/* Every cell runs, whatever the one before gave, until the state is lost. */
static int cells_run(struct runner *r)
{
    int status = 0;

    for (size_t i = 0; i < r->cell_count && !runner_is_stopped(r); i++) {
        struct run_outcome outcome;
        struct error error;

        if (cell_run(r, &r->cells[i], &outcome, &error) < 0) {
            int failed = verb_fail(&error);

            return status ? status : failed;
        }
        if (!status)
            status = outcome_exit(&outcome);
        if (!outcome.state_kept)
            break;
    }
    return status ? status : runner_is_stopped(r) ? EXIT_CELL_FAILED : 0;
}

static void degraded_tell(uint32_t bits)
{
    char text[400] = "";

    for (uint32_t bit = 1; bit; bit <<= 1) {
        size_t len = strlen(text);

        if (bits & bit)
            snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "", degraded_name(bit));
    }
    if (text[0])
        log_info("degraded: %s; `sandbox-agent doctor` has the fixes", text);
}

static void creating_set(struct runner *r, bool creating)
{
    pthread_mutex_lock(&r->lock);
    r->creating = creating;
    pthread_mutex_unlock(&r->lock);
}

static int session_make(struct runner *r, struct error *reterr)
{
    int n;

    creating_set(r, true);
    n = session_create(r->manager,
                       &(struct session_options){.size = sizeof(struct session_options),
                                                 .runtime = r->language,
                                                 .image = r->image,
                                                 .network = r->network,
                                                 .memory_bytes = r->memory,
                                                 .dependencies = r->deps,
                                                 .dependency_count = r->dep_count},
                       &r->session, reterr);
    creating_set(r, false);
    if (n < 0 && runner_is_stopped(r))
        return error_set(reterr, ERR_CANCELLED, "stopped before the session was ready");
    return n;
}

static int session_run(struct runner *r, struct error *reterr)
{
    struct stop_signals signals = {.handle = signal_handle, .user = r, .fd = -1};
    int n = stop_signals_take(&signals, reterr);

    if (n < 0)
        return n;
    n = session_make(r, reterr);
    if (n == 0) {
        degraded_tell(r->session.degraded);
        n = cells_run(r);
    }
    stop_signals_leave(&signals);
    return n;
}

static void progress_print(void *user, const char *text)
{
    screen_line(STDERR_FILENO, text);
}

/* Limits of the code itself are usage, whatever their code says elsewhere. */
static int cells_check(const struct runner *r, struct error *reterr)
{
    for (size_t i = 0; i < r->cell_count; i++) {
        if (r->cells[i].len > 16 * MIB)
            return error_set(
                reterr, ERR_INVALID,
                "a cell of %zu bytes is too large, the limit is 16 MiB; put data into a file",
                r->cells[i].len);
    }
    return 0;
}

static int runner_main(struct runner *r, const struct verb_args *args, struct error *reterr)
{
    auto_settings struct settings settings = {};
    int n;

    if ((n = runner_parse(r, args, reterr)) < 0 || (n = cells_check(r, reterr)) < 0 ||
        (n = verb_settings(args, &settings, reterr)) < 0 ||
        (n = display_sink_open(&r->displays, verb_option(args, "display-dir", NULL), reterr)) < 0)
        return n;
    settings.allow_degraded |= verb_flag(args, "allow-degraded");
    stop_signals_block();
    n = session_manager_new(
        &(struct session_manager_options){.size = sizeof(struct session_manager_options),
                                          .settings = &settings,
                                          .instance = "run",
                                          .drop_privileges = true,
                                          .no_build = r->no_build,
                                          .progress = progress_print},
        &r->manager, reterr);
    if (n < 0)
        return n;
    n = session_run(r, reterr);
    session_manager_free(r->manager);
    return n;
}

static int run_main(const struct verb_args *args)
{
    struct runner *r = calloc(1, sizeof(*r));
    struct error error = {};
    int n;

    if (!r)
        return EXIT_HOST;
    r->displays.dir = -1;
    pthread_mutex_init(&r->lock, NULL);
    n = runner_main(r, args, &error);
    if (n < 0)
        n = verb_fail(&error);
    runner_done(r);
    free(r);
    return n;
}

const struct verb_entry verb_run = {
    .name = "run",
    .words = "(-c CODE... | FILE... | -)",
    .summary = "Run cells of one session in a fresh sandbox",
    .help =
        "Cells run in order and share their variables; output is printed as it comes. Every cell "
        "runs,\n"
        "whatever the one before gave, until the state is lost; the exit status is the first bad\n"
        "cell's. The network is off unless asked for; packages of --dep are installed before.",
    .options = run_options_table,
    .run = run_main,
};
