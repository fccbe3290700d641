/* SPDX-License-Identifier: MIT */
/*
 * The server gets a session of its own (setsid), so that a Ctrl-C at our terminal reaches only us:
 * we end it, in order, when we are done.
 */
#include "cli/local_server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/spawn.h"
#include "base/str.h"
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

static int client_open(const struct settings *s, struct http_client **ret, struct error *reterr)
{
    return http_client_new(
        &(struct http_client_options){.size = sizeof(struct http_client_options),
                                      .proxy = s->proxy,
                                      .no_proxy = s->no_proxy,
                                      .ca_file = s->extra_ca[0] ? s->extra_ca : NULL},
        ret, reterr);
}

static int get(struct http_client *client, const char *base, const char *path,
               struct http_reply *ret)
{
    char url[300];
    struct error error;

    snprintf(url, sizeof(url), "%s%s", base, path);
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

/* ---- starting one ---- */

/* The last start's lines stay, until there are many. */
static int log_open(const struct settings *s, char *ret_path, size_t size, struct error *reterr)
{
    char old[PATH_LEN];
    struct stat st;
    int fd, r = path_make_dirs(s->state_dir, 0700, reterr);

    if (r < 0 || (r = path_join(ret_path, size, s->state_dir, "server.log", reterr)) < 0 ||
        (r = path_join(old, sizeof(old), s->state_dir, "server.log.1", reterr)) < 0)
        return r;
    if (stat(ret_path, &st) == 0 && st.st_size > LOG_MAX)
        (void)!rename(ret_path, old);
    fd = open(ret_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? error_sys(reterr, errno, "cannot write '%s'", ret_path) : fd;
}

static int server_start(const struct settings *s, struct local_server *ret, const char *listen,
                        struct error *reterr)
{
    const char *argv[] = {"sandbox-agent", "api",         "--listen", listen,
                          "--env-file",    ret->env_file, NULL};
    auto_fd int log = log_open(s, ret->log, sizeof(ret->log), reterr);

    if (log < 0)
        return log;
    if (!ret->env_file)
        argv[4] = NULL;
    return spawn_start(&(struct spawn_options){.size = sizeof(struct spawn_options),
                                               .path = "/proc/self/exe",
                                               .argv = (char *const *)argv,
                                               .fds = (const struct spawn_fd[]){{log, 1}, {log, 2}},
                                               .fd_count = 2,
                                               .new_session = true},
                       &ret->pid, reterr);
}

/* Takes its status when it has ended. */
bool local_server_is_alive(struct local_server *s)
{
    int status;

    if (s->pid > 0 && waitpid(s->pid, &status, WNOHANG) != 0) {
        s->pid = -1;
        return false;
    }
    return s->pid >= 0;
}

/* The last line of its log is why it has ended. */
static int ended_fail(const struct local_server *s, struct error *reterr)
{
    static const char prefix[] = "sandbox-agent: ";
    char tail[TAIL_MAX + 1], *line;
    auto_fd int fd = open(s->log, O_RDONLY | O_CLOEXEC);
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

static int wait_for(struct http_client *client, struct local_server *s, struct error *reterr)
{
    int64_t deadline = clock_deadline(START_MS);

    while (!is_healthy(client, s->url)) {
        if (!local_server_is_alive(s))
            return ended_fail(s, reterr);
        if (is_stopped(s))
            return error_set(reterr, ERR_CANCELLED, "the start was stopped");
        if (clock_ms() > deadline)
            return error_set(reterr, ERR_TIMEOUT, "the server does not answer (log: %s)", s->log);
        poll(NULL, 0, STEP_MS);
    }
    return 0;
}

/* One start at a time: who comes second finds the server of the first. */
static int start_lock(const struct settings *settings, const struct local_server *s,
                      struct error *reterr)
{
    char path[PATH_LEN];
    auto_fd int fd = -1;
    int r = path_make_dirs(settings->state_dir, 0700, reterr);

    if (r < 0 ||
        (r = path_join(path, sizeof(path), settings->state_dir, "server.lock", reterr)) < 0)
        return r;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(reterr, errno, "cannot open '%s'", path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_sys(reterr, errno, "cannot lock '%s'", path);
        if (is_stopped(s))
            return error_set(reterr, ERR_CANCELLED, "the start was stopped");
        poll(NULL, 0, STEP_MS);
    }
    return TAKE_FD(fd);
}

/* 1: a server of ours answers; 0: nobody does. */
static int server_find(struct http_client *client, const char *url, struct error *reterr)
{
    enum answer who = who_answers(client, url);

    if (who == ANSWER_OTHER)
        return error_set(reterr, ERR_EXISTS, "something else than sandbox-agent answers at %.200s",
                         url);
    return who == ANSWER_OURS;
}

static int server_bring(const struct settings *settings, struct http_client *client,
                        struct local_server *s, struct error *reterr)
{
    char listen[300];
    auto_fd int lock = -1;
    int r = server_find(client, s->url, reterr);

    if (r != 0)
        return MIN(r, 0);
    if ((r = listen_fill(s->url, listen, sizeof(listen), reterr)) < 0)
        return r;
    lock = start_lock(settings, s, reterr);
    if (lock < 0)
        return lock;
    if ((r = server_find(client, s->url, reterr)) != 0)
        return MIN(r, 0);
    r = server_start(settings, s, listen, reterr);
    return r < 0 ? r : wait_for(client, s, reterr);
}

int local_server_ensure(const struct settings *settings, struct local_server *ret,
                        struct error *reterr)
{
    struct http_client *client = NULL;
    int r = url_fill(settings, ret->url, sizeof(ret->url), reterr);

    ret->log[0] = 0;
    ret->pid = 0;
    if (r < 0 || (r = client_open(settings, &client, reterr)) < 0)
        return r;
    r = server_bring(settings, client, ret, reterr);
    http_client_free(client);
    if (r < 0)
        local_server_done(ret);
    return r;
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
    }
    s->pid = 0;
}
