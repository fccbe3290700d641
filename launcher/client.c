/* SPDX-License-Identifier: MIT */
/* Clients: a queue of answers each, and the list of what each of them waits for. */
#include "launcher/client.h"

#include "base/fd.h"
#include "base/str.h"
#include "launcher/build.h"
#include "launcher/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

enum { CLIENTS_MAX = 64, PENDING_MAX = 256, QUEUE_MAX = 4096 };

struct pending {
    uint64_t serial; /* 0: free */
    enum keeper_op op;
    char id[JOB_ID + 1];
};

struct message {
    struct message *next;
    struct keeper_event event;
    int fd; /* -1: none */
};

struct client {
    struct client *next;
    int fd;
    bool gone;
    struct pending pending[PENDING_MAX];
    struct message *first, **last;
    size_t queued;
};

struct keeper_event client_event(enum keeper_kind kind, const char *id)
{
    struct keeper_event event = {.magic = KEEPER_MAGIC, .kind = kind};

    memcpy(event.id, id, MIN(strlen(id), sizeof(event.id) - 1));
    return event;
}

void client_event_error(struct keeper_event *event, const struct error *err)
{
    event->code = (int32_t)err->code;
    event->sys = err->sys;
    memcpy(event->text, err->text, sizeof(event->text));
    event->text[sizeof(event->text) - 1] = 0;
}

static void message_free(struct message *message)
{
    if (message->fd >= 0)
        close(message->fd);
    free(message);
}

/* Sends what the socket takes; the rest waits for POLLOUT. */
static void client_flush(struct client *client)
{
    while (client->first && !client->gone) {
        struct message *message = client->first;
        int r = fd_send(client->fd, &message->event, sizeof(message->event), &message->fd,
                        message->fd >= 0);

        if (r < 0 && (errno == EAGAIN || errno == ENOBUFS))
            return;
        if (r < 0)
            client->gone = true;
        client->first = message->next;
        if (!client->first)
            client->last = &client->first;
        client->queued--;
        message_free(message);
    }
}

static void client_send(struct client *client, const struct keeper_event *event, int fd)
{
    struct message *message = client->queued < QUEUE_MAX ? malloc(sizeof(*message)) : NULL;

    if (!message) {
        client->gone = true;
        return;
    }
    *message = (struct message){.event = *event, .fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    *client->last = message;
    client->last = &message->next;
    client->queued++;
    client_flush(client);
}

static void client_fail(struct client *client, uint64_t serial, const char *id,
                        const struct error *err)
{
    struct keeper_event event = client_event(KEEPER_FAILED, id);

    event.serial = serial;
    client_event_error(&event, err);
    client_send(client, &event, -1);
}

static struct pending *pending_find(struct client *client, enum keeper_op op, const char *id)
{
    for (size_t i = 0; i < PENDING_MAX; i++) {
        struct pending *p = &client->pending[i];

        if (p->serial && p->op == op && str_eq(p->id, id))
            return p;
    }
    return NULL;
}

static struct pending *pending_new(struct client *client)
{
    for (size_t i = 0; i < PENDING_MAX; i++) {
        if (!client->pending[i].serial)
            return &client->pending[i];
    }
    return NULL;
}

void clients_answer(struct keeper *k, enum keeper_op op, const char *id,
                    const struct keeper_event *event)
{
    for (struct client *c = k->clients; c; c = c->next) {
        struct pending *p;

        while ((p = pending_find(c, op, id))) {
            struct keeper_event answer = *event;

            answer.serial = p->serial;
            p->serial = 0;
            client_send(c, &answer, -1);
        }
    }
}

void clients_tell(struct keeper *k, const struct keeper_event *event)
{
    for (struct client *c = k->clients; c; c = c->next) {
        if (event->kind != KEEPER_ENDED || !pending_find(c, KEEPER_CLOSE, event->id))
            client_send(c, event, -1);
    }
}

/* ---- requests ---- */

struct request {
    struct client *client;
    const struct keeper_request *message;
    struct pending *pending; /* a free place, for an answer that comes later */
    int fd;                  /* what came with it; -1: nothing */
};

static void request_wait(struct request *r, const char *id)
{
    *r->pending =
        (struct pending){.serial = r->message->serial, .op = (enum keeper_op)r->message->op};
    memcpy(r->pending->id, id, MIN(strlen(id), sizeof(r->pending->id) - 1));
}

static void request_done(struct request *r, enum keeper_kind kind)
{
    struct keeper_event event = client_event(kind, r->message->id);

    event.serial = r->message->serial;
    client_send(r->client, &event, -1);
}

static int op_info(struct keeper *k, struct request *r, struct error *reterr)
{
    struct keeper_event event = client_event(KEEPER_IS, "");

    (void)reterr;
    event.serial = r->message->serial;
    event.pid = getpid();
    for (struct sandbox *s = k->sandboxes; s; s = s->next)
        event.running++;
    if (!k->ids.root)
        event.degraded |= DEGRADED_EGRESS_UID;
    if (!k->ids.root && !k->ids.subordinate)
        event.degraded |= DEGRADED_ONE_UID;
    if (!cgroup_find(&k->groups, CGROUP_MEMORY))
        event.degraded |= DEGRADED_NO_MEMORY_CGROUP;
    if (!cgroup_find(&k->groups, CGROUP_PIDS))
        event.degraded |= DEGRADED_NO_PIDS_CGROUP;
    if (!cgroup_find(&k->groups, CGROUP_CPU))
        event.degraded |= DEGRADED_NO_CPU_CGROUP;
    if (!k->features.landlock_abi)
        event.degraded |= DEGRADED_NO_LANDLOCK;
    client_send(r->client, &event, -1);
    return 0;
}

static int op_open(struct keeper *k, struct request *r, struct error *reterr)
{
    char id[JOB_ID + 1];
    int n;

    if (r->fd < 0)
        return error_set(reterr, ERR_PROTOCOL, "no launch job came with the request");
    if (k->stopping)
        return error_set(reterr, ERR_UNAVAILABLE, "the keeper is stopping");
    n = sandbox_open(k, r->fd, id, reterr);
    if (n == 0)
        request_wait(r, id);
    return n;
}

static int op_close(struct keeper *k, struct request *r, struct error *reterr)
{
    struct sandbox *s = sandbox_find(k, r->message->id);

    if (!s)
        return error_set(reterr, ERR_NOT_FOUND, "there is no sandbox '%s'", r->message->id);
    request_wait(r, s->id);
    sandbox_close(s);
    return 0;
}

static int op_seal(struct keeper *k, struct request *r, struct error *reterr)
{
    struct sandbox *s = sandbox_find(k, r->message->id);
    int n;

    if (!s)
        return error_set(reterr, ERR_NOT_FOUND, "there is no sandbox '%s'", r->message->id);
    /* First, because the answer may be given at once. */
    request_wait(r, s->id);
    n = sandbox_seal(k, s, reterr);
    if (n < 0)
        r->pending->serial = 0;
    return n;
}

static int op_list(struct keeper *k, struct request *r, struct error *reterr)
{
    (void)reterr;
    for (struct sandbox *s = k->sandboxes; s; s = s->next) {
        struct keeper_event event = sandbox_event(s, KEEPER_SANDBOX);

        if (s->state != SANDBOX_RUNNING)
            continue;
        event.serial = r->message->serial;
        client_send(r->client, &event, s->job_fd);
    }
    request_done(r, KEEPER_DONE);
    return 0;
}

static int op_stop(struct keeper *k, struct request *r, struct error *reterr)
{
    (void)reterr;
    request_wait(r, "");
    k->stopping = true;
    return 0;
}

static int op_build(struct keeper *k, struct request *r, struct error *reterr)
{
    char id[BUILD_ID];
    int n;

    if (r->fd < 0)
        return error_set(reterr, ERR_PROTOCOL, "no descriptor to print to came with the request");
    n = build_start(k, r->message->arg, r->fd, id, reterr);
    if (n == 0)
        request_wait(r, id);
    return n;
}

static int op_unbuild(struct keeper *k, struct request *r, struct error *reterr)
{
    (void)reterr;
    builds_stop(k);
    request_done(r, KEEPER_DONE);
    return 0;
}

static int (*const operations[])(struct keeper *k, struct request *r, struct error *reterr) = {
    [KEEPER_INFO] = op_info,   [KEEPER_OPEN] = op_open,       [KEEPER_CLOSE] = op_close,
    [KEEPER_SEAL] = op_seal,   [KEEPER_LIST] = op_list,       [KEEPER_STOP] = op_stop,
    [KEEPER_BUILD] = op_build, [KEEPER_UNBUILD] = op_unbuild,
};

static void client_request(struct keeper *k, struct client *client,
                           const struct keeper_request *message, int fd)
{
    struct request request = {
        .client = client, .message = message, .pending = pending_new(client), .fd = fd};
    struct error err;
    int r;

    if (!request.pending)
        r = error_set(&err, ERR_LIMIT, "too many requests wait for their answers");
    else
        r = operations[message->op](k, &request, &err);
    if (r < 0)
        client_fail(client, message->serial, message->id, &err);
}

/* What is malformed ends the connection: the sender is not one of ours, or defective. */
static void client_ready(struct keeper *k, void *object, short revents)
{
    struct client *client = object;
    struct keeper_request message;
    int fd = -1;
    size_t count = 1;
    ssize_t n;

    if (client->gone)
        return;
    if (revents & POLLOUT)
        client_flush(client);
    if (!(revents & (POLLIN | POLLHUP | POLLERR)))
        return;
    n = fd_recv(client->fd, &message, sizeof(message), &fd, &count);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || keeper_request_check(&message, (size_t)n, NULL) < 0)
        client->gone = true;
    else
        client_request(k, client, &message, count ? fd : -1);
    if (n > 0 && count && fd >= 0)
        close(fd);
}

/* Our own user; root could become it. */
static bool peer_is_us(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void listener_ready(struct keeper *k, void *object, short revents)
{
    auto_fd int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct client *client;
    size_t count = 0;

    (void)object;
    (void)revents;
    for (struct client *c = k->clients; c; c = c->next)
        count++;
    if (fd < 0 || count >= CLIENTS_MAX || !peer_is_us(fd))
        return;
    client = calloc(1, sizeof(*client));
    if (!client)
        return;
    client->fd = TAKE_FD(fd);
    client->last = &client->first;
    client->next = k->clients;
    k->clients = client;
}

void clients_watch(struct keeper *k)
{
    keeper_watch(k, k->listen_fd, POLLIN, listener_ready, NULL);
    for (struct client *c = k->clients; c; c = c->next)
        keeper_watch(k, c->fd, (short)(POLLIN | (c->first ? POLLOUT : 0)), client_ready, c);
}

void clients_sweep(struct keeper *k)
{
    for (struct client **at = &k->clients, *c; (c = *at);) {
        if (!c->gone) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        for (struct message *m = c->first, *next; m; m = next) {
            next = m->next;
            message_free(m);
        }
        close(c->fd);
        free(c);
    }
}
