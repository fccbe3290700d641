/* SPDX-License-Identifier: MIT */
/*
 * The verb `api`: the agent's server. What it needs is opened in order before it listens, and a
 * stop goes the other way: runs end first, so that their streams have their last event, then the
 * connections, then the sandboxes.
 */
#include "api/api.h"

#include "base/log.h"
#include "base/str.h"
#include "cli/api_dev.h"
#include "cli/api_mcp.h"
#include "cli/stop_signals.h"
#include "cli/verb.h"
#include "http/server.h"
#include "mcp/mcp.h"
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

static const struct option_entry api_options_table[] = {
    {"listen", 0, "HOST:PORT", "where to listen; 127.0.0.1:8000; port 0: any"},
    {"keep-sessions", 0, NULL,
     "leave the sessions at the end; a start within SESSION_IDLE_TTL_SECONDS has them again"},
    {"no-build", 0, NULL, "a missing image is an error"},
    {"allow-degraded", 0, NULL, "start where this host lacks a protection"},
    {"ui-dir", 0, "DIR", "read the page's files from DIR, not from the program"},
    {"until-eof", 0, NULL, NULL}, /* stops when all that write to its standard input are gone */
    {},
};

enum { RUNS_GRACE_MS = 5000, HTTP_GRACE_MS = 2000, LIST_MAX = 64, TABLES_MAX = 24 };

struct server {
    struct settings settings;
    struct session_manager *manager;
    struct api *api;
    struct mcp_doors *mcp;
    struct route_table tables[TABLES_MAX + 1];
    struct http_listener listener;
    struct http_server *http;
    const char *hosts[LIST_MAX + 1], *origins[LIST_MAX + 1];
    unsigned signals_seen;
    bool again; /* who stops it starts it again: its sandboxes stay; atomic */
    struct stop_signals signals;
};

/* The first one asks; the second one does not wait for what is still going on. */
static void on_signal(void *user, int sig)
{
    struct server *s = user;

    if (sig == SIGUSR2)
        __atomic_store_n(&s->again, true, __ATOMIC_RELEASE);
    if (++s->signals_seen > 1)
        _exit(0);
}

static void on_progress(void *user, const char *text)
{
    struct server *s = user;

    log_info("%s", text);
    mcp_doors_progress(__atomic_load_n(&s->mcp, __ATOMIC_ACQUIRE), text);
}

/* A comma list as an array that ends with NULL; the arena owns the words. */
static int list_split(struct settings *settings, const char *text, const char **ret,
                      struct error *reterr)
{
    char *copy = arena_strdup(&settings->arena, text), *save = NULL;
    size_t n = 0;

    if (!copy)
        return error_no_memory(reterr);
    for (char *word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
        if (n == LIST_MAX)
            return error_set(reterr, ERR_LIMIT, "more than %d entries in a list", LIST_MAX);
        if (str_eq(word, "*"))
            return error_set(reterr, ERR_INVALID, "'*' is not taken: name what is allowed");
        ret[n++] = word;
    }
    return 0;
}

/* All doors of the port. */
static int tables_fill(struct server *s, struct error *reterr)
{
    const struct route_table *own = api_tables(s->api);
    struct mcp_doors *doors = NULL;
    size_t n = 0;
    int r = mcp_doors_new(&(struct mcp_doors_options){.size = sizeof(struct mcp_doors_options),
                                                      .settings = &s->settings,
                                                      .manager = s->manager,
                                                      .api = s->api},
                          &doors, reterr);

    if (r < 0)
        return r;
    /* Images may be built already. */
    __atomic_store_n(&s->mcp, doors, __ATOMIC_RELEASE);
    while (n + 2 < TABLES_MAX && own[n].entries) {
        s->tables[n] = own[n];
        n++;
    }
    s->tables[n++] = (struct route_table){mcp_http_routes, mcp_doors_user(doors)};
    s->tables[n] = api_page_table(s->api);
    api_describe(s->api, mcp_http_routes);
    return 0;
}

/* Links lead to where the server listens, when nobody has said how clients reach it. */
static int base_url_fill(struct server *s, struct error *reterr)
{
    static const char standard[] = "http://127.0.0.1:8000";
    const struct http_listener *l = &s->listener;
    struct arena *arena = &s->settings.arena;

    if (!str_eq(s->settings.api_base_url, standard))
        return 0;
    s->settings.api_base_url =
        l->is_any ? arena_printf(arena, "http://%s:%u",
                                 strchr(l->address, ':') ? "[::1]" : "127.0.0.1", l->port)
                  : arena_strdup(arena, l->url);
    return s->settings.api_base_url ? 0 : error_no_memory(reterr);
}

/* Before the rest: what writes links has to know the port. */
static int listener_open(struct server *s, const struct verb_args *args, struct error *reterr)
{
    bool keys = api_keys_are_set(&s->settings);
    int r = http_listener_open(verb_option(args, "listen", s->settings.listen), keys, &s->listener,
                               reterr);

    if (r == -ERR_DENIED && !keys)
        error_wrap(reterr, "without API_KEY or API_KEYS_FILE everybody may ask");
    return r < 0 ? r : base_url_fill(s, reterr);
}

static int http_open(struct server *s, struct error *reterr)
{
    int r = list_split(&s->settings, s->settings.allowed_hosts, s->hosts, reterr);

    if (r < 0)
        return error_wrap(reterr, "ALLOWED_HOSTS");
    if ((r = list_split(&s->settings, s->settings.cors_origins, s->origins, reterr)) < 0)
        return error_wrap(reterr, "CORS_ORIGINS");
    return http_server_start(&(struct http_options){.size = sizeof(struct http_options),
                                                    .listener = &s->listener,
                                                    .tables = s->tables,
                                                    .admit = api_admit,
                                                    .admit_user = s->api,
                                                    .hosts = s->hosts,
                                                    .origins = s->origins,
                                                    .loopback_origins = true,
                                                    .cors_expose = API_CORS_EXPOSE},
                             &s->http, reterr);
}

static int serve(struct server *s, const struct verb_args *args, struct error *reterr)
{
    struct pollfd stop[] = {{.events = POLLIN},
                            {.fd = verb_flag(args, "until-eof") ? STDIN_FILENO : -1}};
    int r = listener_open(s, args, reterr);

    if (r < 0)
        return r;
    r = api_new(&(struct api_options){.size = sizeof(struct api_options),
                                      .settings = &s->settings,
                                      .manager = s->manager,
                                      .page = page_files,
                                      .page_dir = verb_option(args, "ui-dir", NULL)},
                &s->api, reterr);
    if (r < 0 || (r = tables_fill(s, reterr)) < 0 ||
        (r = stop_signals_take(&s->signals, reterr)) < 0 || (r = http_open(s, reterr)) < 0)
        return r;
    r = api_start(s->api, http_server_url(s->http), reterr);
    if (r == 0) {
        fprintf(stderr, "listening on %s\n", http_server_url(s->http));
        stop[0].fd = s->signals.fd;
        while (poll(stop, ARRAY_LEN(stop), -1) < 0 && errno == EINTR)
            ;
    }
    if (!api_stop(s->api, RUNS_GRACE_MS)) {
        /* Their threads still use everything; the next start takes them up. */
        log_error("runs do not end; giving up");
        _exit(EXIT_HOST);
    }
    if (http_server_stop(s->http, HTTP_GRACE_MS, r < 0 ? NULL : reterr) < 0)
        _exit(r < 0 ? EXIT_HOST : verb_fail(reterr));
    stop_signals_leave(&s->signals);
    if (!mcp_doors_stop(s->mcp)) {
        /* Its thread may still use everything; the keeper ends the sandboxes by their lease. */
        log_error("a call does not end; giving up");
        _exit(EXIT_HOST);
    }
    return r;
}

static int server_open(struct server *s, const struct verb_args *args, struct error *reterr)
{
    int r = verb_settings(args, &s->settings, reterr);

    if (r < 0)
        return r;
    s->settings.allow_degraded |= verb_flag(args, "allow-degraded");
    stop_signals_block();
    return session_manager_new(
        &(struct session_manager_options){.size = sizeof(struct session_manager_options),
                                          .settings = &s->settings,
                                          .instance = "server",
                                          .drop_privileges = true,
                                          .keep_sessions = verb_flag(args, "keep-sessions"),
                                          .no_build = verb_flag(args, "no-build"),
                                          .progress = on_progress,
                                          .progress_user = s},
        &s->manager, reterr);
}

static int api_main(const struct verb_args *args)
{
    bool dev = args->word_count == 1 && str_eq(args->words[0], "dev");
    struct server s = {.signals = {.handle = on_signal, .user = &s, .fd = -1},
                       .listener = {.fd = -1}};
    struct error error = {};
    int r;

    if (dev)
        return api_dev_main(args);
    if (args->word_count) {
        fprintf(stderr, "sandbox-agent api: unknown argument '%s'\n", args->words[0]);
        return EXIT_USAGE;
    }
    r = server_open(&s, args, &error);
    if (r == 0)
        r = serve(&s, args, &error);
    api_free(s.api);
    if (s.manager && __atomic_load_n(&s.again, __ATOMIC_ACQUIRE))
        session_manager_keep(s.manager);
    if (s.manager)
        session_manager_free(s.manager);
    mcp_doors_free(s.mcp);
    http_listener_close(&s.listener);
    settings_done(&s.settings);
    return r < 0 ? verb_fail(&error) : 0;
}

const struct verb_entry verb_api = {
    .name = "api",
    .words = "[dev]",
    .summary = "Serve the agent over the LangGraph Platform API",
    .help = "The SDKs and user interfaces of LangGraph drive it unchanged; its graph is called\n"
            "sandbox-agent, or agent. Clients of the Model Context Protocol use /mcp, and `mcp`\n"
            "hands its messages on to it. Without API_KEY or API_KEYS_FILE it answers this host "
            "only.\n"
            "It is stopped by SIGINT or SIGTERM: runs have some seconds to end, and what they did\n"
            "is kept. Settings come from the environment, then from `.env` of the working "
            "directory.\n"
            "\n"
            "`api dev` is for whoever changes it: SQLite, a debug log, the page from `ui/dist`. It "
            "starts\n"
            "again when the program, `.env` or the page has changed; sandboxes live on.",
    .options = api_options_table,
    .run = api_main,
    .local_env = true,
};
