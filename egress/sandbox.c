/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes come and go by the keeper's messages. A sandbox that is over its rate of connections or
 * questions is not refused: its sockets are left alone for a moment, and the kernel queues, or
 * drops what it cannot queue.
 */
#include "egress/sandbox.h"

#include "egress/conn.h"
#include "egress/log.h"
#include "egress/lookup.h"
#include "wire/dns.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    ACCEPT_TURN = 16, /* connections of one listener before others get their turn */
    DNS_TURN = 32,
    PAUSE_MS = 20,
    FULL_LOG_MS = 10000,
};

/* ---- accepting ---- */

static void listeners_set(struct egress *e, struct sandbox *box, uint32_t events)
{
    for (size_t i = 0; i < box->listener_count; i++)
        watch_set(e, &box->listeners[i].watch, events);
}

static void accept_pause(struct egress *e, struct sandbox *box)
{
    if (!box->accept_at)
        listeners_set(e, box, 0);
    box->accept_at = e->now + PAUSE_MS;
    egress_wake(e, box->accept_at);
}

/* Takes a few, then lets the others have their turn; epoll comes back to what is left. */
static void listener_ready(struct egress *e, struct watch *w, uint32_t events)
{
    struct listener *l = WATCH_OWNER(w, struct listener, watch);

    for (int i = 0; i < ACCEPT_TURN; i++) {
        int fd;

        if (!bucket_has(&l->box->conn_bucket, e->now) || !conn_has_room(e, l->box)) {
            accept_pause(e, l->box);
            return;
        }
        fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            conn_make_room(e);
            bucket_take(&l->box->conn_bucket);
            conn_open(e, l->box, fd, l->port);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EINVAL) { /* shut down by its other holder; it would wake us for ever */
            watch_remove(e, w);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO) {
            accept_pause(e, l->box);
            return;
        }
    }
}

/* ---- the stub ---- */

static struct name *name_get(struct egress *e, struct sandbox *box, const char *text)
{
    struct name *name = names_find(&box->names, text);

    if (name)
        return name;
    name = names_add(&box->names, text, e->now);
    if (!name && e->now - box->full_logged >= FULL_LOG_MS) {
        box->full_logged = e->now;
        log_line("sandbox=%s refuses new names: %zu are known, at most %d and %d a second", box->id,
                 box->names.count, (int)NAMES_MAX, (int)NAMES_PER_SECOND);
    }
    return name;
}

/* Decides about the name alone, so that all types of one name get the same rcode. */
static enum dns_rcode stub_resolve(struct egress *e, struct sandbox *box, const char *text,
                                   uint8_t ret[4])
{
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    const struct name *name;

    if (str_eq(text, "localhost") || host_is_below(text, "localhost")) {
        memcpy(ret, loopback, sizeof(loopback));
        return DNS_NOERROR;
    }
    if (!text[0] || !policy_has_name(&e->policy, box->network, text))
        return DNS_NXDOMAIN;
    name = name_get(e, box, text);
    if (!name)
        return DNS_NXDOMAIN;
    names_addr(&box->names, name, ret);
    return DNS_NOERROR;
}

static size_t stub_answer(struct egress *e, struct sandbox *box, const struct dns_question *q,
                          uint8_t ret[DNS_PACKET_MAX])
{
    bool wants_a = q->type == DNS_TYPE_A || q->type == DNS_TYPE_ANY;
    uint8_t a[4];
    enum dns_rcode rcode = stub_resolve(e, box, q->name, a);

    return dns_answer_format(q, rcode, rcode == DNS_NOERROR && wants_a ? a : NULL, ret);
}

static void stub_serve(struct egress *e, struct sandbox *box, const uint8_t *data, size_t len,
                       const struct sockaddr_storage *from, socklen_t from_len)
{
    uint8_t answer[DNS_PACKET_MAX];
    struct dns_question q;
    int rcode = dns_question_parse(data, len, &q);

    if (rcode < 0)
        return;
    if (rcode == DNS_NOERROR)
        len = stub_answer(e, box, &q, answer);
    else
        len = dns_answer_format(&q, (enum dns_rcode)rcode, NULL, answer);
    /* A client that is gone, or a full socket, is the client's loss. */
    (void)!sendto(box->dns.fd, answer, len, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)from, from_len);
}

/* A flood fills the socket's buffer in the kernel, and costs us only what the bucket gives. */
static void dns_ready(struct egress *e, struct watch *w, uint32_t events)
{
    struct sandbox *box = WATCH_OWNER(w, struct sandbox, dns);

    for (int i = 0; i < DNS_TURN; i++) {
        uint8_t packet[4096];
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        ssize_t n;

        if (!bucket_has(&box->dns_bucket, e->now)) {
            watch_set(e, &box->dns, 0);
            box->dns_at = e->now + PAUSE_MS;
            egress_wake(e, box->dns_at);
            return;
        }
        n = recvfrom(w->fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&from,
                     &from_len);
        if (n < 0)
            return;
        bucket_take(&box->dns_bucket);
        stub_serve(e, box, packet, (size_t)n, &from, from_len);
    }
}

void sandbox_tick(struct egress *e, struct sandbox *box)
{
    if (box->accept_at && e->now >= box->accept_at) {
        box->accept_at = 0;
        listeners_set(e, box, EPOLLIN);
    }
    if (box->dns_at && e->now >= box->dns_at) {
        box->dns_at = 0;
        watch_set(e, &box->dns, EPOLLIN);
    }
    if (box->accept_at)
        egress_wake(e, box->accept_at);
    if (box->dns_at)
        egress_wake(e, box->dns_at);
}

/* ---- adding and removing ---- */

static int option_get(int fd, int option)
{
    int value = -1;
    socklen_t len = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

/*
 * O_NONBLOCK belongs to the socket and not to the descriptor, so the keeper's copy gets it too; it
 * never accepts.
 */
static int socket_check(int fd, int type, struct error *reterr)
{
    int domain = option_get(fd, SO_DOMAIN);

    if ((domain != AF_INET && domain != AF_INET6) || option_get(fd, SO_TYPE) != type)
        return error_set(reterr, ERR_PROTOCOL, "a descriptor is not the socket it should be");
    if (type == SOCK_STREAM && option_get(fd, SO_ACCEPTCONN) != 1)
        return error_set(reterr, ERR_PROTOCOL, "a TCP socket does not listen");
    if (fd_set_nonblock(fd, true) < 0)
        return error_sys(reterr, errno, "cannot make a socket non-blocking");
    return 0;
}

static int add_check(const struct egress *e, const struct egress_msg *msg, const int *fds,
                     size_t count, struct error *reterr)
{
    if (count != msg->port_count + 1)
        return error_set(reterr, ERR_PROTOCOL, "%zu sockets came for %u ports", count,
                         msg->port_count);
    if (sandbox_find(e, msg->id))
        return error_set(reterr, ERR_EXISTS, "it is there already");
    for (size_t i = 0; i < count; i++) {
        int type = i < msg->port_count ? SOCK_STREAM : SOCK_DGRAM;

        if (i < msg->port_count && msg->ports[i] == 0)
            return error_set(reterr, ERR_PROTOCOL, "port 0");
        if (socket_check(fds[i], type, reterr) < 0)
            return -ERR_PROTOCOL;
    }
    return 0;
}

/* Hash seed and first address are random: see names.h. */
static struct sandbox *sandbox_new(const struct egress *e, const struct egress_msg *msg)
{
    const struct limits *l = &e->limits;
    struct sandbox *box = calloc(1, sizeof(*box));
    uint32_t random[2];

    if (!box || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random) ||
        !(box->listeners = calloc(msg->port_count + 1, sizeof(*box->listeners)))) {
        free(box);
        return NULL;
    }
    memcpy(box->id, msg->id, sizeof(box->id));
    box->network = (enum job_network)msg->network;
    box->dns = (struct watch){-1, dns_ready};
    box->full_logged = INT64_MIN / 2;
    names_init(&box->names, random[0], random[1]);
    bucket_init(&box->conn_bucket, l->conn_rate, l->conn_burst, e->now);
    bucket_init(&box->dns_bucket, l->dns_rate, l->dns_burst, e->now);
    return box;
}

/* Takes every descriptor over, also after a failure, so that removing the sandbox closes them. */
static int sockets_watch(struct egress *e, struct sandbox *box, const struct egress_msg *msg,
                         int *fds)
{
    int r = 0;

    for (uint32_t i = 0; i < msg->port_count; i++) {
        struct listener *l = &box->listeners[i];

        *l = (struct listener){{TAKE_FD(fds[i]), listener_ready}, box, msg->ports[i]};
        box->listener_count++;
        if (watch_add(e, &l->watch, EPOLLIN) < 0)
            r = -1;
    }
    box->dns.fd = TAKE_FD(fds[msg->port_count]);
    e->listener_count += box->listener_count + 1;
    return watch_add(e, &box->dns, EPOLLIN) < 0 ? -1 : r;
}

int sandbox_add(struct egress *e, const struct egress_msg *msg, int *fds, size_t count,
                struct error *reterr)
{
    struct sandbox *box;
    int r = add_check(e, msg, fds, count, reterr);

    if (r < 0) {
        fd_close_all(fds, count);
        return r;
    }
    box = sandbox_new(e, msg);
    if (!box) {
        fd_close_all(fds, count);
        return error_no_memory(reterr);
    }
    box->next = e->sandboxes;
    e->sandboxes = box;
    e->sandbox_count++;
    if (sockets_watch(e, box, msg, fds) < 0) {
        r = error_sys(reterr, errno, "cannot watch its sockets");
        sandbox_remove(e, box);
    }
    return r;
}

struct sandbox *sandbox_find(const struct egress *e, const char *id)
{
    struct sandbox *box = e->sandboxes;

    while (box && !str_eq(box->id, id))
        box = box->next;
    return box;
}

static void sandbox_unlink(struct egress *e, struct sandbox *box)
{
    struct sandbox **p = &e->sandboxes;

    while (*p != box)
        p = &(*p)->next;
    *p = box->next;
    e->sandbox_count--;
}

void sandbox_remove(struct egress *e, struct sandbox *box)
{
    while (box->conns)
        conn_close(e, box->conns, "closed", "the sandbox ended");
    lookup_drop_all(box);
    for (size_t i = 0; i < box->listener_count; i++)
        watch_remove(e, &box->listeners[i].watch);
    watch_remove(e, &box->dns);
    e->listener_count -= box->listener_count + 1;
    log_line("sandbox=%s ended accepted=%llu refused=%llu sent=%llu received=%llu names=%zu",
             box->id, (unsigned long long)box->accepted, (unsigned long long)box->refused,
             (unsigned long long)box->sent, (unsigned long long)box->received, box->names.count);
    sandbox_unlink(e, box);
    box->next = e->dead_sandboxes;
    e->dead_sandboxes = box;
}

void sandbox_reap(struct egress *e)
{
    while (e->dead_sandboxes) {
        struct sandbox *box = e->dead_sandboxes;

        e->dead_sandboxes = box->next;
        names_done(&box->names);
        free(box->listeners);
        free(box);
    }
}
