/* SPDX-License-Identifier: MIT */
/*
 * The verb `mcp`: sandboxes for an agent's client. Nothing but messages goes to stdout, so what the
 * process would print there by accident goes to stderr: the real stdout is a descriptor that only
 * the transport knows.
 */
#include "cli/verb.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "base/uuid.h"
#include "cli/mcp_config.h"
#include "cli/mcp_relay.h"
#include "cli/stop_signals.h"
#include "http/server.h"
#include "mcp/mcp.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static const struct option_entry mcp_options_table[] = {
    {"http", 0, "HOST:PORT", "serve streamable HTTP at /mcp of this loopback address; port 0: any"},
    {"keep-sessions", 0, NULL,
     "leave the sessions at the end; a start within SESSION_IDLE_TTL_SECONDS has them again"},
    {"no-build", 0, NULL, "a missing image is an error"},
    {"allow-degraded", 0, NULL, "start where this host lacks a protection"},
    {"print-config", 0, "CLIENT", "print what to paste: claude, claude-code, cursor or vscode"},
    {"conformance-fixture", 0, NULL, "add what the official conformance suite calls (for tests)"},
    {},
};

enum { HTTP_GRACE_MS = 1000 };

struct door {
    struct settings settings;
    char thread[UUID_LEN + 1];
    struct session_manager *manager;
    struct mcp_server *server;
    struct relay *relay; /* to an `api`, which then is the server */
    struct stop_signals signals;
};

/* ---- whose sessions ---- */

static int thread_read(int dir, char ret[UUID_LEN + 1])
{
    auto_free char *text = NULL;
    auto_json yyjson_doc *doc = NULL;
    size_t len;
    const char *id;

    if (fd_read_file(dir, "mcp-thread.json", 4096, &text, &len, NULL) < 0 ||
        json_parse(text, len, &doc, NULL) < 0)
        return -1;
    id = json_get_str(yyjson_doc_get_root(doc), "thread_id", "");
    return uuid_check(id) ? str_copy(ret, UUID_LEN + 1, id) : -1;
}

/* The conversation lives on in the state directory of the user, so that a client that is started
 * again has the same sessions and files. */
static int thread_load(struct door *d, struct error *reterr)
{
    char state[PATH_LEN], text[80];
    auto_fd int dir = -1;
    int len, r = settings_default_state_dir(environ, state, sizeof(state), reterr);

    if (r < 0 || (r = path_make_dirs(state, 0700, reterr)) < 0)
        return r;
    dir = path_open_dir(AT_FDCWD, state, reterr);
    if (dir < 0)
        return dir;
    if (thread_read(dir, d->thread) == 0)
        return 0;
    if ((r = uuid_v4(d->thread, reterr)) < 0)
        return r;
    len = snprintf(text, sizeof(text), "{\"thread_id\": \"%s\"}\n", d->thread);
    return fd_write_file_atomic(dir, "mcp-thread.json", text, (size_t)len, reterr);
}

/* ---- serving ---- */

static void on_progress(void *user, const char *text)
{
    struct door *d = user;

    log_info("%s", text);
    if (d->server)
        mcp_server_progress(d->server, text);
}

/* Until a signal comes. */
static int http_serve(struct door *d, const char *listen, struct error *reterr)
{
    struct pollfd stop = {.fd = d->signals.fd, .events = POLLIN};
    struct http_server *server = NULL;
    struct mcp_http *door = NULL;
    struct route_table tables[] = {{.entries = mcp_http_routes}, {0}};
    int r = mcp_http_new(d->server, &door, reterr);

    if (r < 0)
        return r;
    tables[0].user = door;
    r = http_server_start(&(struct http_options){.size = sizeof(struct http_options),
                                                 .listen = listen,
                                                 .tables = tables,
                                                 .cors_expose = "Mcp-Session-Id"},
                          &server, reterr);
    if (r < 0) {
        mcp_http_free(door);
        return r;
    }
    fprintf(stderr, "listening on %s/mcp\n", http_server_url(server));
    while (poll(&stop, 1, -1) < 0 && errno == EINTR)
        ;
    r = http_server_stop(server, HTTP_GRACE_MS, reterr);
    if (r < 0)
        _exit(verb_fail(reterr));
    mcp_http_free(door);
    return 0;
}

static int serve(struct door *d, const struct verb_args *args, int out, struct error *reterr)
{
    const char *listen = verb_option(args, "http", NULL);
    int r = mcp_server_new(
        &(struct mcp_server_options){.size = sizeof(struct mcp_server_options),
                                     .settings = &d->settings,
                                     .manager = d->manager,
                                     .owner = d->thread,
                                     .conformance_fixture = verb_flag(args, "conformance-fixture")},
        &d->server, reterr);

    if (r < 0 || (r = stop_signals_take(&d->signals, reterr)) < 0)
        return r;
    r = listen ? http_serve(d, listen, reterr)
               : mcp_stdio_run(d->server, STDIN_FILENO, out, d->signals.fd, reterr);
    stop_signals_leave(&d->signals);
    if (!mcp_server_stop(d->server)) {
        /* Its thread may still use everything; the keeper ends the sandboxes by their lease. */
        log_error("a call does not end; giving up");
        _exit(EXIT_HOST);
    }
    return r;
}

static int relay(struct door *d, int out, struct error *reterr)
{
    int r = stop_signals_take(&d->signals, reterr);

    if (r < 0)
        return r;
    log_info("messages are handed on to the API at %s", d->settings.api_base_url);
    r = relay_run(d->relay, STDIN_FILENO, out, d->signals.fd, reterr);
    stop_signals_leave(&d->signals);
    return r;
}

static void door_close(struct door *d)
{
    relay_free(d->relay);
    mcp_server_free(d->server);
    if (d->manager)
        session_manager_free(d->manager);
    settings_done(&d->settings);
}

static int door_open(struct door *d, const struct verb_args *args, struct error *reterr)
{
    bool stdio = !verb_option(args, "http", NULL) && !verb_flag(args, "conformance-fixture");
    int r = verb_settings(args, &d->settings, reterr);

    if (r < 0)
        return r;
    stop_signals_block();
    if (stdio && (r = relay_find(&d->settings, &d->relay, reterr)) != 0)
        return MIN(r, 0);
    if ((r = thread_load(d, reterr)) < 0)
        return r;
    d->settings.allow_degraded |= verb_flag(args, "allow-degraded");
    return session_manager_new(
        &(struct session_manager_options){.size = sizeof(struct session_manager_options),
                                          .settings = &d->settings,
                                          .instance =
                                              verb_option(args, "http", NULL) ? "server" : "mcp",
                                          .drop_privileges = true,
                                          .keep_sessions = verb_flag(args, "keep-sessions"),
                                          .no_build = verb_flag(args, "no-build"),
                                          .progress = on_progress,
                                          .progress_user = d},
        &d->manager, reterr);
}

/* The real stdout, out of the way of everything else that prints. */
static int stdout_take(struct error *reterr)
{
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return error_sys(reterr, errno, "cannot take stdout");
    return out;
}

static int mcp_main(const struct verb_args *args)
{
    const char *client = verb_option(args, "print-config", NULL);
    struct door d = {.signals = {.fd = -1}};
    struct error error = {};
    int r, out;

    if (client)
        return mcp_config_print(client, args);
    out = stdout_take(&error);
    r = out < 0 ? out : door_open(&d, args, &error);
    if (r == 0)
        r = d.relay ? relay(&d, out, &error) : serve(&d, args, out, &error);
    door_close(&d);
    return r < 0 ? verb_fail(&error) : 0;
}

const struct verb_entry verb_mcp = {
    .name = "mcp",
    .words = "",
    .summary =
        "Serve the Model Context Protocol to an agent's client, on stdin and stdout or by HTTP",
    .help = "A client starts it and speaks to it by its input and output; `--print-config` prints "
            "what to\n"
            "paste into the client's settings. It needs no database, no model key and no other "
            "server.\n"
            "The sessions end with it, but with --keep-sessions. Where an `api` answers at\n"
            "API_BASE_URL and takes API_KEY, messages on stdin are handed on to it: sessions are\n"
            "that server's then, and exported files have download URLs.",
    .options = mcp_options_table,
    .run = mcp_main,
};
