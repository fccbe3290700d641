/* SPDX-License-Identifier: MIT */
/*
 * The verb `ui`: the page in a browser. The URL is always printed, because a browser on another
 * machine may be what the person has; nothing is opened where there is no desktop.
 */
#include "cli/verb.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/str.h"
#include "cli/local_server.h"
#include "cli/program.h"
#include "cli/stop_signals.h"

#include <poll.h>
#include <stdio.h>

static const struct option_entry ui_options[] = {
    {"no-open", 0, NULL, "print where the page is, and open nothing"},
    {},
};

enum { ALIVE_MS = 1000 };

struct ui {
    struct settings settings;
    struct local_server server;
    struct stop_signals signals;
    bool stop; /* atomic */
};

static void on_signal(void *user, int sig)
{
    struct ui *ui = user;

    __atomic_store_n(&ui->stop, true, __ATOMIC_RELEASE);
}

/* ---- the browser ---- */

static bool has_desktop(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

    return (x && x[0]) || (wayland && wayland[0]);
}

/* Whoever knows the person's browser. In a session of its own: our Ctrl-C is not for it. */
static void page_open(const char *url)
{
    static const char *const openers[] = {"xdg-open", "wslview", "open"};
    char path[PATH_LEN];
    struct error error;
    pid_t pid;

    if (!has_desktop())
        return;
    for (size_t i = 0; i < ARRAY_LEN(openers); i++) {
        const char *argv[] = {openers[i], url, NULL};

        if (program_find(openers[i], path, NULL) < 0)
            continue;
        if (spawn_start(&(struct spawn_options){.size = sizeof(struct spawn_options),
                                                .path = path,
                                                .argv = (char *const *)argv,
                                                .new_session = true},
                        &pid, &error) == 0)
            return;
        log_warn("%s", error.text);
    }
    log_info("no program was found that opens a page");
}

/* ---- the verb ---- */

/* Until a signal comes, or the server ends by itself. */
static int server_keep(struct ui *ui, struct error *reterr)
{
    struct pollfd stop = {.fd = ui->signals.fd, .events = POLLIN};

    printf("The server writes to %s; Ctrl-C ends it.\n", ui->server.log);
    fflush(stdout);
    while (poll(&stop, 1, ALIVE_MS) == 0) {
        if (!local_server_is_alive(&ui->server))
            return error_set(reterr, ERR_UNAVAILABLE, "the server has ended (log: %s)",
                             ui->server.log);
    }
    return 0;
}

static int ui_serve(struct ui *ui, const struct verb_args *args, struct error *reterr)
{
    int r = local_server_ensure(&ui->settings, &ui->server, reterr);

    if (r == -ERR_CANCELLED)
        return 0;
    if (r < 0)
        return r;
    printf("The page: %s/\n", ui->server.url);
    fflush(stdout);
    if (!verb_flag(args, "no-open"))
        page_open(ui->server.url);
    r = ui->server.pid > 0 ? server_keep(ui, reterr) : 0;
    local_server_done(&ui->server);
    return r;
}

static int ui_main(const struct verb_args *args)
{
    struct ui ui = {.signals = {.handle = on_signal, .user = &ui, .fd = -1}};
    struct error error = {};
    int r = verb_settings(args, &ui.settings, &error);

    if (r < 0)
        return verb_fail(&error);
    stop_signals_block();
    ui.server.env_file = verb_option(args, "env-file", NULL);
    ui.server.stop = &ui.stop;
    r = stop_signals_take(&ui.signals, &error);
    if (r == 0)
        r = ui_serve(&ui, args, &error);
    stop_signals_leave(&ui.signals);
    settings_done(&ui.settings);
    return r < 0 ? verb_fail(&error) : 0;
}

const struct verb_entry verb_ui = {
    .name = "ui",
    .words = "",
    .summary = "Open the agent's page in a browser",
    .help = "It is served by the `api` that answers at API_BASE_URL or SANDBOX_LISTEN; where none "
            "does, one is\n"
            "started, and ends with this program. Settings come from the environment, then from "
            "`.env` of the\n"
            "working directory.",
    .options = ui_options,
    .run = ui_main,
    .local_env = true,
};
