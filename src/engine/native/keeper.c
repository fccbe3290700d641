/* SPDX-License-Identifier: MIT */
/*
 * Keeper connection. Callers wait on one condition for the event with their serial; the reader
 * thread is the only one that receives. A keeper of a dead daemon is used again; a dead keeper's
 * socket file refuses connections and is replaced.
 */
#include "engine/native/keeper.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/spawn.h"
#include "engine/native/instance.h"
#include "engine/native/libexec.h"
#include "engine/native/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define KEEPER_SOCKET "keeper.sock"

enum { KEEPER_START_MS = 10000, KEEPER_BACKLOG = 16 };

struct waiter {
    uint64_t serial;
    const struct keeper_call *call;
    struct keeper_event *ret;
    bool done;
    struct waiter *next;
};

struct keeper {
    int sock;
    pid_t child; /* the keeper, when this process started it */
    pthread_t reader;
    struct keeper_handlers handlers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiter *waiters;
    uint64_t last_serial;
    bool lost;
};

/* ---- events ---- */

static bool event_is_final(const struct keeper_event *event)
{
    return event->kind != KEEPER_SANDBOX;
}

/* An answer for a waiter. Takes over `fd`. */
static void answer_deliver(struct keeper *k, const struct keeper_event *event, int fd)
{
    auto_fd int job_fd = fd;
    struct waiter *w;

    pthread_mutex_lock(&k->lock);
    for (w = k->waiters; w && w->serial != event->serial; w = w->next)
        ;
    if (w && !event_is_final(event)) {
        if (w->call->on_sandbox)
            w->call->on_sandbox(w->call->user, event, TAKE_FD(job_fd));
    } else if (w) {
        *w->ret = *event;
        w->done = true;
        pthread_cond_broadcast(&k->changed);
    }
    pthread_mutex_unlock(&k->lock);
}

static void *reader_main(void *arg)
{
    struct keeper *k = arg;
    struct keeper_event event;

    for (;;) {
        int fd = -1;
        size_t fds = 1;
        ssize_t n = fd_recv(k->sock, &event, sizeof(event), &fd, &fds);

        if (n <= 0 || keeper_event_check(&event, (size_t)n, NULL) < 0) {
            if (n > 0 && fds)
                close(fd);
            break;
        }
        if (event.serial) {
            answer_deliver(k, &event, fds ? fd : -1);
        } else {
            fd_close_all(&fd, fds);
            k->handlers.on_event(k->handlers.user, &event);
        }
    }
    pthread_mutex_lock(&k->lock);
    k->lost = true;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
    k->handlers.on_lost(k->handlers.user);
    return NULL;
}

/* ---- calls ---- */

static int request_fill(struct keeper_request *req, const struct keeper_call *call,
                        struct error *reterr)
{
    *req = (struct keeper_request){.magic = KEEPER_MAGIC, .op = call->op};
    if (call->id && snprintf(req->id, sizeof(req->id), "%s", call->id) >= (int)sizeof(req->id))
        return error_set(reterr, ERR_INVALID, "'%s' is no sandbox id", call->id);
    if (call->arg && snprintf(req->arg, sizeof(req->arg), "%s", call->arg) >= (int)sizeof(req->arg))
        return error_set(reterr, ERR_INVALID, "argument '%s' is too long", call->arg);
    return 0;
}

static void waiter_remove(struct keeper *k, struct waiter *w)
{
    struct waiter **p = &k->waiters;

    while (*p != w)
        p = &(*p)->next;
    *p = w->next;
}

static void waiter_wait(struct keeper *k, struct waiter *w)
{
    int64_t deadline = w->call->deadline;
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};

    while (!w->done && !k->lost) {
        if (deadline == CLOCK_FOREVER)
            pthread_cond_wait(&k->changed, &k->lock);
        else if (pthread_cond_timedwait(&k->changed, &k->lock, &until) == ETIMEDOUT)
            break;
    }
}

int keeper_call(struct keeper *k, const struct keeper_call *call, struct keeper_event *ret,
                struct error *reterr)
{
    struct keeper_event scratch;
    struct waiter w = {.call = call, .ret = ret ? ret : &scratch};
    struct keeper_request req;
    bool lost;
    int r = request_fill(&req, call, reterr);

    if (r < 0)
        return r;
    pthread_mutex_lock(&k->lock);
    req.serial = w.serial = ++k->last_serial;
    w.next = k->waiters;
    k->waiters = &w;
    /* Sent under the lock: SEQPACKET messages are small and the keeper always reads. */
    if (fd_send(k->sock, &req, sizeof(req), &call->fd, call->fd >= 0) < 0)
        k->lost = true;
    waiter_wait(k, &w);
    waiter_remove(k, &w);
    lost = k->lost;
    pthread_mutex_unlock(&k->lock);
    if (!w.done && lost)
        return error_set(reterr, ERR_UNAVAILABLE, "the keeper process has ended");
    if (!w.done)
        return error_set(reterr, ERR_TIMEOUT, "the keeper does not answer");
    if (w.ret->kind == KEEPER_FAILED) {
        r = error_set(reterr,
                      w.ret->code > 0 && w.ret->code < ERR_CODE_COUNT ? (enum error_code)w.ret->code
                                                                      : ERR_INTERNAL,
                      "%s", w.ret->text);
        if (reterr)
            reterr->sys = w.ret->sys;
        return r;
    }
    return 0;
}

/* ---- start ---- */

static int keeper_new(int sock, pid_t child, const struct keeper_handlers *handlers,
                      struct keeper **ret, struct error *reterr)
{
    struct keeper *k = calloc(1, sizeof(*k));
    pthread_condattr_t attr;
    int r;

    if (!k) {
        close(sock);
        return error_no_memory(reterr);
    }
    k->sock = sock;
    k->child = child;
    k->handlers = *handlers;
    if (handlers->drop_privileges && (r = privileges_drop(reterr)) < 0) {
        close(sock);
        free(k);
        return r;
    }
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, &attr);
    pthread_condattr_destroy(&attr);
    r = pthread_create(&k->reader, NULL, reader_main, k);
    if (r) {
        close(sock);
        free(k);
        return error_sys(reterr, r, "cannot start a thread");
    }
    *ret = k;
    return 0;
}

int keeper_connect(int instance_dir, const struct keeper_handlers *handlers, struct keeper **ret,
                   struct error *reterr)
{
    int sock = instance_socket_connect(instance_dir, KEEPER_SOCKET, SOCK_SEQPACKET);
    int r;

    if (sock < 0)
        return 0;
    r = keeper_new(sock, 0, handlers, ret, reterr);
    return r < 0 ? r : 1;
}

/* Bound here and handed over, so that connecting never has to wait for the keeper to be up. */
static int listener_make(int instance_dir, struct error *reterr)
{
    auto_fd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    unlinkat(instance_dir, KEEPER_SOCKET, 0);
    instance_socket_address(instance_dir, KEEPER_SOCKET, &address);
    if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(sock, KEEPER_BACKLOG) < 0)
        return error_sys(reterr, errno, "cannot make the keeper's socket");
    return TAKE_FD(sock);
}

static int helper_open(const char *name, struct error *reterr)
{
    char path[PATH_LEN];
    int r = libexec_find(name, path, sizeof(path), reterr);

    if (r < 0)
        return r;
    r = open(path, O_RDONLY | O_CLOEXEC);
    return r < 0 ? error_sys(reterr, errno, "cannot open '%s'", path) : r;
}

#ifndef SBX_FAILPOINTS
/* What an image build needs of the environment; nothing else gets into the privileged process. */
static bool env_is_passed(const char *entry)
{
    static const char *const names[] = {
        "PATH=",
        "HOME=",
        "TMPDIR=",
        "LANG=",
        "SANDBOX_",
        "XDG_",
        "SSL_CERT_",
        "CURL_CA_BUNDLE=",
        "NPM_CONFIG_",
        "npm_config_",
        "NODE_EXTRA_CA_CERTS=",
        "http_proxy=",
        "https_proxy=",
        "no_proxy=",
        "HTTP_PROXY=",
        "HTTPS_PROXY=",
        "NO_PROXY=",
        "APT_CONFIG=",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}
#endif

/*
 * The keeper's environment, as a vector to be freed; the image directory as the settings have it,
 * which may come from a file. A test arms failpoints by the environment, so there it is passed
 * whole.
 */
static char **keeper_env(char *image_dir)
{
    size_t count = 0, n = 0;
    char **env;

    for (char **e = environ; *e; e++)
        count++;
    env = calloc(count + 2, sizeof(*env));
    if (!env)
        return NULL;
    env[n++] = image_dir;
    for (char **e = environ; *e; e++) {
        if (strncmp(*e, "SANDBOX_IMAGE_DIR=", strlen("SANDBOX_IMAGE_DIR=")) == 0)
            continue;
#ifndef SBX_FAILPOINTS
        if (!env_is_passed(*e))
            continue;
#endif
        env[n++] = *e;
    }
    return env;
}

static int keeper_spawn(const int fds[KEEPER_FD_COUNT], const char *image_dir, pid_t *ret,
                        struct error *reterr)
{
    char launch[PATH_LEN], agent[PATH_LEN];
    char *argv[] = {launch, (char *)"--keeper", (char *)"--agent", agent, NULL};
    char image_dir_entry[PATH_LEN + 32];
    auto_free char **env = keeper_env(image_dir_entry);
    struct spawn_fd list[KEEPER_FD_COUNT];
    size_t count = 0;
    int r = libexec_find("sandbox-launch", launch, sizeof(launch), reterr);

    if (!env)
        return error_no_memory(reterr);
    snprintf(image_dir_entry, sizeof(image_dir_entry), "SANDBOX_IMAGE_DIR=%s", image_dir);
    if (r < 0 || (r = libexec_find("sandbox-agent", agent, sizeof(agent), reterr)) < 0)
        return r;
    list[count++] = (struct spawn_fd){.parent = STDERR_FILENO, .child = STDERR_FILENO};
    for (int fd = KEEPER_FD_DIR; fd < KEEPER_FD_COUNT; fd++)
        list[count++] = (struct spawn_fd){.parent = fds[fd], .child = fd};
    return spawn_start(&(struct spawn_options){.size = sizeof(struct spawn_options),
                                               .path = launch,
                                               .argv = argv,
                                               .env = env,
                                               .fds = list,
                                               .fd_count = count,
                                               .new_session = 1},
                       ret, reterr);
}

int keeper_start(int instance_dir, const struct egress_config *config,
                 const struct keeper_handlers *handlers, struct keeper **ret, struct error *reterr)
{
    auto_fd int listener = listener_make(instance_dir, reterr);
    auto_fd int init = -1, egress = -1, memfd = -1;
    int fds[KEEPER_FD_COUNT] = {}, sock, r;
    pid_t child = 0;

    if (listener < 0)
        return listener;
    if ((init = helper_open("sandbox-init", reterr)) < 0)
        return init;
    if ((egress = helper_open("sandbox-egress", reterr)) < 0)
        return egress;
    memfd = fd_memfd_sealed("egress-config", config, sizeof(*config));
    if (memfd < 0)
        return error_sys(reterr, errno, "cannot make a memfd");
    fds[KEEPER_FD_DIR] = instance_dir;
    fds[KEEPER_FD_LISTEN] = listener;
    fds[KEEPER_FD_INIT] = init;
    fds[KEEPER_FD_EGRESS] = egress;
    fds[KEEPER_FD_EGRESS_CONFIG] = memfd;
    if ((r = keeper_spawn(fds, handlers->image_dir, &child, reterr)) < 0)
        return r;
    /* Then a keeper that dies before it accepts us is seen at once. */
    close(TAKE_FD(listener));
    sock = instance_socket_connect(instance_dir, KEEPER_SOCKET, SOCK_SEQPACKET);
    if (sock < 0)
        return error_sys(reterr, errno, "cannot connect to the keeper");
    if ((r = keeper_new(sock, child, handlers, ret, reterr)) < 0)
        return r;
    r = keeper_call(*ret,
                    &(struct keeper_call){
                        .op = KEEPER_INFO, .fd = -1, .deadline = clock_deadline(KEEPER_START_MS)},
                    NULL, reterr);
    if (r < 0) {
        keeper_free(*ret);
        *ret = NULL;
    }
    return r;
}

bool keeper_is_lost(struct keeper *k)
{
    bool lost;

    pthread_mutex_lock(&k->lock);
    lost = k->lost;
    pthread_mutex_unlock(&k->lock);
    return lost;
}

void keeper_free(struct keeper *k)
{
    if (!k)
        return;
    shutdown(k->sock, SHUT_RDWR);
    pthread_join(k->reader, NULL);
    close(k->sock);
    /* A keeper that has ended already is reaped; one that lives on is init's or our subreaper's. */
    if (k->child > 0)
        waitpid(k->child, NULL, WNOHANG);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
    free(k);
}
