/* SPDX-License-Identifier: MIT */
/*
 * The server gets a session of its own (setsid), so that a Ctrl-C at our terminal reaches only us:
 * we end it, in order, when we are done. Its standard input is a pipe that only we write to: when
 * we are killed, its end tells the server. The files that it needs are opened below a directory
 * that was looked at first, because a log that is somebody else's link or FIFO is a trap.
 */
#include "cli/local_server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/spawn.h"
#include "base/str.h"
#include "cli/port_owner.h"
#include "http/client.h"
#include "wire/url.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    PROBE_MS = 2000,
    START_MS = 60000, /* a database that is far, a host that is busy */
    STOP_MS = 30000,
    STEP_MS = 50,
    LOG_MAX = 1 << 20,
    TAIL_MAX = 4096,
};

static const char standard_url[] = "http://127.0.0.1:8000";

enum answer { ANSWER_NONE, ANSWER_OURS, ANSWER_OTHER };

/* ---- who answers ---- */

static int get(struct http_client *client, const char *base, const char *path,
               struct http_reply *ret)
{
    auto_free char *url = NULL;
    struct error error;

    if (asprintf(&url, "%s%s", base, path) < 0) {
        url = NULL;
        return -1;
    }
    return http_client_call(client,
                            &(struct http_call){.size = sizeof(struct http_call),
                                                .method = "GET",
                                                .url = url,
                                                .cancel_fd = -1,
                                                .connect_timeout_ms = PROBE_MS,
                                                .total_timeout_ms = PROBE_MS,
                                                .reply_max = 64 * KIB},
                            ret, &error);
}

/* By /info, which needs no key. */
static enum answer who_answers(struct http_client *client, const char *url)
{
    struct http_reply reply = {};
    auto_json yyjson_doc *doc = NULL;
    enum answer who = ANSWER_NONE;

    if (get(client, url, "/info", &reply) == 0) {
        who = ANSWER_OTHER;
        if (reply.status == 200 && json_parse(reply.body.data, reply.body.len, &doc, NULL) == 0 &&
            str_eq(json_get_str(yyjson_doc_get_root(doc), "name", ""), "sandbox-agent"))
            who = ANSWER_OURS;
    }
    buf_done(&reply.body);
    return who;
}

int local_server_find(struct http_client *client, const char *url, struct error *reterr)
{
    enum answer who = who_answers(client, url);
    struct url u;
    int r;

    if (who == ANSWER_OTHER)
        return error_set(reterr, ERR_EXISTS, "something else than sandbox-agent answers at %.200s",
                         url);
    if (who == ANSWER_NONE)
        return 0;
    if ((r = url_parse(url, &u, reterr)) < 0)
        return error_wrap(reterr, "API_BASE_URL");
    r = url_is_loopback(&u) ? port_owner_check(&u, reterr) : 0;
    return r < 0 ? r : 1;
}

static bool is_healthy(struct http_client *client, const char *url)
{
    struct http_reply reply = {};
    bool healthy = get(client, url, "/health", &reply) == 0 && reply.status == 200;

    buf_done(&reply.body);
    return healthy;
}

/* ---- where ---- */

/* API_BASE_URL; where nobody has set it, what leads to SANDBOX_LISTEN. */
static int url_fill(const struct settings *s, char *ret, size_t size, struct error *reterr)
{
    const char *base = s->api_base_url, *listen = s->listen;
    int len;

    if (!str_eq(base, standard_url) || str_ends(listen, ":0"))
        len = snprintf(ret, size, "%s", base);
    else if (str_starts(listen, "0.0.0.0:"))
        len = snprintf(ret, size, "http://127.0.0.1%s", strrchr(listen, ':'));
    else if (str_starts(listen, "[::]:"))
        len = snprintf(ret, size, "http://[::1]%s", strrchr(listen, ':'));
    else
        len = snprintf(ret, size, "http://%s", listen);
    while (len > 0 && (size_t)len < size && ret[len - 1] == '/')
        ret[--len] = 0;
    return len > 0 && (size_t)len < size
               ? 0
               : error_set(reterr, ERR_INVALID, "API_BASE_URL cannot be used");
}

/* "HOST:PORT" to start one at, if the URL is this host's. */
static int listen_fill(const char *url, char *ret, size_t size, struct error *reterr)
{
    struct url u;
    int r = url_parse(url, &u, reterr);

    if (r < 0)
        return error_wrap(reterr, "API_BASE_URL");
    if (u.https || u.path[0] || !url_is_loopback(&u))
        return error_set(reterr, ERR_UNAVAILABLE,
                         "no server answers at %.200s (API_BASE_URL); one can be started here only "
                         "for http:// and a loopback address",
                         url);
    snprintf(ret, size, strchr(u.host, ':') ? "[%s]:%u" : "%s:%u", u.host, u.port);
    return 0;
}

/* ---- its files ---- */

/* With a sticky bit others can add to it, but not take the place of what is ours. */
static int state_open(const char *path, struct error *reterr)
{
    auto_fd int dir = -1;
    struct stat st;
    int r = path_make_dirs(path, 0700, reterr);

    if (r < 0 || (r = dir = path_open_dir(AT_FDCWD, path, reterr)) < 0)
        return r;
    if (fstat(dir, &st) < 0)
        return error_sys(reterr, errno, "cannot look at '%s'", path);
    if (st.st_uid != geteuid() || ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)))
        return error_set(reterr, ERR_DENIED,
                         "the state directory '%s' is not its user's alone: it must belong to user "
                         "%u, and nobody else may write to it",
                         path, (unsigned)geteuid());
    return TAKE_FD(dir);
}

static int file_open(int dir, const char *name, int flags, struct error *reterr)
{
    auto_fd int fd =
        openat(dir, name, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(reterr, errno, "cannot open '%s' of the state directory", name);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return error_set(reterr, ERR_DENIED, "'%s' of the state directory is no file of ours",
                         name);
    return TAKE_FD(fd);
}

/* The last start's lines stay, until there are many. */
static int log_open(int dir, struct error *reterr)
{
    static const char name[] = "server.log";
    auto_fd int fd = file_open(dir, name, O_WRONLY | O_APPEND, reterr);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= LOG_MAX ||
        renameat(dir, name, dir, "server.log.1") < 0)
        return TAKE_FD(fd);
    return file_open(dir, name, O_WRONLY | O_APPEND, reterr);
}

/* ---- starting one ---- */

static int server_start(int dir, struct local_server *s, const char *listen, struct error *reterr)
{
    const char *argv[] = {"sandbox-agent", "api",        "--until-eof", "--listen",
                          listen,          "--env-file", s->env_file,   NULL};
    auto_fd int log = log_open(dir, reterr), theirs = -1, ours = -1;
    int ends[2], r;

    if (log < 0)
        return log;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot make a pipe");
    theirs = ends[0];
    ours = ends[1];
    if (!s->env_file)
        argv[5] = NULL;
    r = spawn_start(
        &(struct spawn_options){.size = sizeof(struct spawn_options),
                                .path = "/proc/self/exe",
                                .argv = (char *const *)argv,
                                .fds = (const struct spawn_fd[]){{theirs, 0}, {log, 1}, {log, 2}},
                                .fd_count = 3,
                                .new_session = true},
        &s->pid, reterr);
    if (r == 0)
        s->life = TAKE_FD(ours);
    return r;
}

static void server_forget(struct local_server *s, pid_t pid)
{
    close(s->life);
    s->life = -1;
    s->pid = pid;
}

/* Takes its status when it has ended. */
bool local_server_is_alive(struct local_server *s)
{
    int status;

    if (s->pid > 0 && waitpid(s->pid, &status, WNOHANG) != 0) {
        server_forget(s, -1);
        return false;
    }
    return s->pid >= 0;
}

/* The last line of its log is why it has ended. */
static int ended_fail(const struct local_server *s, struct error *reterr)
{
    static const char prefix[] = "sandbox-agent: ";
    char tail[TAIL_MAX + 1], *line;
    auto_fd int fd = open(s->log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t len = fd < 0 ? 0 : pread(fd, tail, TAIL_MAX, MAX(size - TAIL_MAX, 0));

    tail[MAX(len, 0)] = 0;
    for (; len > 0 && tail[len - 1] == '\n'; len--)
        tail[len - 1] = 0;
    line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    line += str_starts(line, prefix) ? strlen(prefix) : 0;
    return error_set(reterr, ERR_UNAVAILABLE, "the server has not started: %.250s (log: %.90s)",
                     line, s->log);
}

static bool is_stopped(const struct local_server *s)
{
    return s->stop && __atomic_load_n(s->stop, __ATOMIC_ACQUIRE);
}

/* Whoever else is at the port makes ours end: what answers counts only while ours lives. */
static int wait_for(struct http_client *client, struct local_server *s, struct error *reterr)
{
    int64_t deadline = clock_deadline(START_MS);
    struct error other;

    while (local_server_is_alive(s)) {
        if (local_server_find(client, s->url, &other) > 0 && is_healthy(client, s->url) &&
            local_server_is_alive(s))
            return 0;
        if (is_stopped(s))
            return error_set(reterr, ERR_CANCELLED, "the start was stopped");
        if (clock_ms() > deadline)
            return error_set(reterr, ERR_TIMEOUT, "the server does not answer (log: %s)", s->log);
        poll(NULL, 0, STEP_MS);
    }
    return ended_fail(s, reterr);
}

/* One start at a time: who comes second finds the server of the first. */
static int start_lock(int dir, const struct local_server *s, struct error *reterr)
{
    auto_fd int fd = file_open(dir, "server.lock", O_RDWR, reterr);

    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_sys(reterr, errno, "cannot lock the start of a server");
        if (is_stopped(s))
            return error_set(reterr, ERR_CANCELLED, "the start was stopped");
        poll(NULL, 0, STEP_MS);
    }
    return TAKE_FD(fd);
}

static int server_bring(const struct settings *settings, struct http_client *client,
                        struct local_server *s, struct error *reterr)
{
    char listen[300];
    auto_fd int dir = -1, lock = -1;
    int r = local_server_find(client, s->url, reterr);

    if (r != 0)
        return MIN(r, 0);
    if ((r = listen_fill(s->url, listen, sizeof(listen), reterr)) < 0 ||
        (r = dir = state_open(settings->state_dir, reterr)) < 0)
        return r;
    lock = start_lock(dir, s, reterr);
    if (lock < 0)
        return lock;
    if ((r = local_server_find(client, s->url, reterr)) != 0)
        return MIN(r, 0);
    if ((r = path_join(s->log, sizeof(s->log), settings->state_dir, "server.log", reterr)) == 0)
        r = server_start(dir, s, listen, reterr);
    return r < 0 ? r : wait_for(client, s, reterr);
}

int local_server_ensure(const struct settings *settings, struct local_server *ret,
                        struct error *reterr)
{
    struct http_client *client = NULL;
    int r = url_fill(settings, ret->url, sizeof(ret->url), reterr);

    ret->log[0] = 0;
    ret->pid = 0;
    ret->life = -1;
    if (r < 0 || (r = http_client_new_by(settings, &client, reterr)) < 0)
        return r;
    r = server_bring(settings, client, ret, reterr);
    http_client_free(client);
    if (r < 0)
        local_server_done(ret);
    return r;
}

void local_server_adopt(struct local_server *s, const struct local_server *found)
{
    if (found->pid == 0 && s->pid > 0 && str_eq(s->url, found->url) && local_server_is_alive(s))
        return;
    local_server_done(s);
    *s = *found;
}

void local_server_done(struct local_server *s)
{
    int64_t deadline = clock_deadline(STOP_MS);
    struct error error;
    int status;

    if (s->pid <= 0)
        return;
    kill(s->pid, SIGTERM);
    while (local_server_is_alive(s) && clock_ms() < deadline)
        poll(NULL, 0, STEP_MS);
    if (s->pid > 0) {
        /* Its second signal: it waits for nothing any more. */
        kill(s->pid, SIGTERM);
        if (spawn_wait(s->pid, &status, &error) < 0)
            log_warn("%s", error.text);
        server_forget(s, 0);
    }
    s->pid = 0;
}
