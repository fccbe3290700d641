/* SPDX-License-Identifier: MIT */
/*
 * The server is a child of its own, not this process anew: it gives its privileges up when it has
 * started, and only one that never had a sandbox can start the next. Between two of them the
 * sandboxes live on in the keeper, so a restart costs no variables. What has changed is seen by
 * looking, four times a second, which works on any file system; a change counts when two looks in a
 * row agree, because a linker and a bundler write for a while.
 */
#include "cli/api_dev.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/str.h"
#include "cli/screen.h"
#include "cli/stop_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LOOK_MS = 250, STOP_MS = 30000, WORDS_MAX = 32, WATCHED = 4 };

#define STANDARD_UI "ui/dist"

/* A file as it was seen. */
struct look {
    bool there;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
};

struct watched {
    const char *name; /* for people */
    char path[PATH_LEN];
    bool may_be_missing;    /* else a file that is not there is being written */
    struct look used, last; /* by the child; at the last look */
};

struct dev {
    struct watched files[WATCHED]; /* the program, the settings, the page, its directory */
    const char *argv[WORDS_MAX + 1];
    size_t ui_word; /* where --ui-dir stands among them */
    char **env;
    pid_t child;          /* 0: it has ended */
    bool is_due;          /* it could not be started */
    struct error failure; /* why, as it was said */
    int life[2];          /* a pipe: the child's standard input ends when we are gone */
    struct stop_signals signals;
};

/* ---- what is looked at ---- */

static struct look look_at(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (struct look){};
    return (struct look){.there = true,
                         .dev = st.st_dev,
                         .ino = st.st_ino,
                         .size = st.st_size,
                         .changed = st.st_mtim};
}

static bool look_eq(const struct look *a, const struct look *b)
{
    return a->there == b->there && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void files_use(struct dev *d)
{
    for (size_t i = 0; i < WATCHED; i++)
        d->files[i].used = d->files[i].last = look_at(d->files[i].path);
}

/* What has changed since the child was started, and rests; NULL when nothing has. */
static const char *files_changed(struct dev *d)
{
    const char *name = NULL;
    bool rest = true;

    for (size_t i = 0; i < WATCHED; i++) {
        struct watched *w = &d->files[i];
        struct look now = look_at(w->path);

        rest = rest && look_eq(&now, &w->last) && (now.there || w->may_be_missing);
        if (!look_eq(&now, &w->used))
            name = w->name;
        w->last = now;
    }
    return rest ? name : NULL;
}

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ui/dist of the working directory; else the one beside the build directory of this program. */
static int ui_dir_fill(const struct verb_args *args, const char *program, char *ret, size_t size,
                       struct error *reterr)
{
    const char *given = verb_option(args, "ui-dir", NULL);
    char dir[PATH_LEN];

    if (given || is_dir(STANDARD_UI))
        return str_copy(ret, size, given ? given : STANDARD_UI) < 0
                   ? error_set(reterr, ERR_INVALID, "--ui-dir is too long")
                   : 0;
    if (str_copy(dir, sizeof(dir), program) < 0)
        return error_set(reterr, ERR_INVALID, "the program's path is too long");
    *strrchr(dir, '/') = 0;
    return path_join(ret, size, dir, "../" STANDARD_UI, reterr);
}

/* Fills `ui_dir`, which the child is told. */
static int files_fill(struct dev *d, const struct verb_args *args, char *ui_dir, size_t size,
                      struct error *reterr)
{
    struct watched *program = &d->files[0], *settings = &d->files[1], *page = &d->files[2],
                   *page_dir = &d->files[3];
    ssize_t len = readlink("/proc/self/exe", program->path, sizeof(program->path) - 1);
    int r;

    if (len < 0)
        return error_sys(reterr, errno, "cannot find this program");
    program->path[len] = 0;
    program->name = "the program";
    settings->name = "the settings' file";
    settings->may_be_missing = true;
    page->name = page_dir->name = "the page";
    if (str_copy(settings->path, sizeof(settings->path), verb_option(args, "env-file", ".env")) < 0)
        return error_set(reterr, ERR_INVALID, "--env-file is too long");
    if ((r = ui_dir_fill(args, program->path, ui_dir, size, reterr)) < 0)
        return r;
    page->may_be_missing = page_dir->may_be_missing = !is_dir(ui_dir);
    /* Its names are routes, which are made when the server starts. */
    if (str_copy(page_dir->path, sizeof(page_dir->path), ui_dir) < 0)
        return error_set(reterr, ERR_INVALID, "--ui-dir is too long");
    return path_join(page->path, sizeof(page->path), ui_dir, "index.html", reterr);
}

/* ---- the child ---- */

static int argv_fill(struct dev *d, const struct verb_args *args, const char *ui_dir,
                     struct error *reterr)
{
    static char dashed[WORDS_MAX][24];
    size_t n = 0;

    d->argv[n++] = "sandbox-agent";
    d->argv[n++] = "api";
    for (size_t i = 0; i < args->given_count; i++) {
        const struct option_given *given = &args->given[i];

        if (n + 5 > WORDS_MAX)
            return error_set(reterr, ERR_LIMIT, "too many options");
        if (str_eq(given->entry->name, "ui-dir"))
            continue;
        snprintf(dashed[n], sizeof(dashed[n]), "--%s", given->entry->name);
        d->argv[n] = dashed[n];
        n++;
        if (given->value)
            d->argv[n++] = given->value;
    }
    d->argv[n++] = "--until-eof";
    d->ui_word = n;
    d->argv[n + 1] = ui_dir;
    return 0;
}

/* Whatever the settings' file says: the environment counts more. */
static int env_fill(struct dev *d, struct error *reterr)
{
    static char database[] = "POSTGRES_HOST=", log[] = "SANDBOX_LOG=debug";
    size_t count = 0, n = 0;

    while (environ[count])
        count++;
    d->env = calloc(count + 3, sizeof(*d->env));
    if (!d->env)
        return error_no_memory(reterr);
    for (size_t i = 0; i < count; i++) {
        if (!str_starts(environ[i], "POSTGRES_HOST=") && !str_starts(environ[i], "SANDBOX_LOG="))
            d->env[n++] = environ[i];
    }
    d->env[n++] = database;
    d->env[n++] = log;
    return 0;
}

/* In a session of its own: a Ctrl-C reaches it once, by us. */
static int child_start(struct dev *d, struct error *reterr)
{
    const struct spawn_fd fds[] = {{d->life[0], 0}, {STDOUT_FILENO, 1}, {STDERR_FILENO, 2}};
    int r;

    files_use(d);
    /* Until there is one, the page is the program's own. */
    d->argv[d->ui_word] = is_dir(d->argv[d->ui_word + 1]) ? "--ui-dir" : NULL;
    r = spawn_start(&(struct spawn_options){.size = sizeof(struct spawn_options),
                                            .path = d->files[0].path,
                                            .argv = (char *const *)d->argv,
                                            .env = d->env,
                                            .fds = fds,
                                            .fd_count = ARRAY_LEN(fds),
                                            .new_session = true},
                    &d->child, reterr);
    if (r < 0)
        d->child = 0;
    return r;
}

/* Takes its status when it has ended. */
static bool child_is_over(struct dev *d, int *ret_status)
{
    if (d->child <= 0 || waitpid(d->child, ret_status, WNOHANG) == 0)
        return d->child <= 0;
    d->child = 0;
    return true;
}

static void child_stop(struct dev *d, int sig)
{
    int64_t deadline = clock_deadline(STOP_MS);
    int status;

    if (d->child <= 0)
        return;
    kill(d->child, sig);
    while (!child_is_over(d, &status)) {
        if (clock_ms() > deadline)
            kill(d->child, SIGKILL);
        poll(NULL, 0, LOOK_MS / 10);
    }
}

/* ---- the loop ---- */

static int life_open(struct dev *d, struct error *reterr)
{
    return pipe2(d->life, O_CLOEXEC) < 0 ? error_sys(reterr, errno, "cannot make a pipe") : 0;
}

static void say(const char *what, const char *rest)
{
    char text[sizeof(struct error) + 80];

    snprintf(text, sizeof(text), "%s%s", what, rest);
    screen_message(text);
}

/*
 * A program that a linker still writes, or has taken away, is tried at every look until it can be
 * started: the file may not change any more when its writer is done.
 */
static void child_try(struct dev *d)
{
    struct error error = {};

    d->is_due = child_start(d, &error) < 0;
    if (d->is_due && !str_eq(error.text, d->failure.text))
        say(error.text, "; it is tried again");
    d->failure = error;
}

/* Until a signal comes. A server that has ended by itself waits for what is changed next. */
static int watch(struct dev *d, struct error *reterr)
{
    struct pollfd stop = {.fd = d->signals.fd, .events = POLLIN};
    int status, n, r = child_start(d, reterr);

    while (r == 0 && (n = poll(&stop, 1, LOOK_MS)) <= 0) {
        const char *name;

        if (d->child > 0 && child_is_over(d, &status))
            say("the server has ended; it starts again when something is changed", "");
        if (n < 0)
            continue;
        if (d->is_due) {
            child_try(d);
            continue;
        }
        if (!(name = files_changed(d)))
            continue;
        say(name, " has changed: the server starts again, its sandboxes stay");
        child_stop(d, SIGUSR2);
        child_try(d);
    }
    child_stop(d, SIGTERM);
    return r;
}

int api_dev_main(const struct verb_args *args)
{
    struct dev d = {.signals = {.fd = -1}, .life = {-1, -1}};
    char ui_dir[PATH_LEN];
    struct error error = {};
    int r = files_fill(&d, args, ui_dir, sizeof(ui_dir), &error);

    if (r == 0 && (r = argv_fill(&d, args, ui_dir, &error)) == 0 &&
        (r = env_fill(&d, &error)) == 0 && (r = life_open(&d, &error)) == 0) {
        stop_signals_block();
        if ((r = stop_signals_take(&d.signals, &error)) == 0)
            r = watch(&d, &error);
    }
    stop_signals_leave(&d.signals);
    fd_close_all(d.life, d.life[0] < 0 ? 0 : 2);
    free(d.env);
    return r < 0 ? verb_fail(&error) : 0;
}
