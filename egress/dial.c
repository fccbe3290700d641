/* SPDX-License-Identifier: MIT */
/*
 * The address that is checked is the address that is dialled; a name is never handed to anything
 * that would resolve it again, except to the proxy that the operator named. An address of this very
 * host is refused even where it is public: which one that is, the kernel's choice of a source
 * address tells without sending anything.
 */
#include "egress/dial.h"

#include "egress/log.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static struct target conn_target(const struct conn *c)
{
    return (struct target){.network = c->box->network,
                           .name = c->name ? c->name->text : NULL,
                           .addr = &c->dest,
                           .port = c->port};
}

static void proxy_dial(struct egress *e, struct conn *c);

/* ---- connecting ---- */

/* Begins to connect to c->peer. TCP_NODELAY: a relay must not add its own waiting to the ends'. */
static int server_socket(struct egress *e, struct conn *c, uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t len = addr_to_sockaddr(&c->peer, port, &to);
    int one = 1, domain = c->peer.family == 4 ? AF_INET : AF_INET6;
    auto_fd int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
        return -errno;
    c->server.fd = c->server_end.fd = TAKE_FD(fd);
    c->server_end.readable = c->server_end.writable = false;
    return watch_add(e, &c->server, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

/* Dials the next address; `failure` is what became of the last one. */
static void dial_next(struct egress *e, struct conn *c, int failure)
{
    uint16_t port = c->by_proxy ? e->policy.proxy.port : c->port;
    char reason[96];

    while (c->try_next < c->try_count) {
        int64_t until = c->dial_until;

        watch_close(&c->server);
        c->peer = c->tries[c->try_next++];
        if (c->try_next < c->try_count)
            until = MIN(until, e->now + e->limits.connect_ms);
        failure = server_socket(e, c, port);
        if (failure < 0)
            continue;
        c->state = CONN_DIALLING;
        conn_set_deadline(e, c, until);
        return;
    }
    snprintf(reason, sizeof(reason), "cannot connect%s: %s", c->by_proxy ? " to the proxy" : "",
             failure ? strerrordesc_np(-failure) : "no address");
    conn_refuse(e, c, reason);
}

/* ---- addresses ---- */

static void try_add(struct conn *c, const struct addr *a)
{
    if (c->try_count < CONN_TRIES)
        c->tries[c->try_count++] = *a;
}

/* Whether an address is the host's own. Connecting a datagram socket sends nothing. */
static bool addr_is_own(const struct addr *a)
{
    struct sockaddr_storage to, from;
    socklen_t to_len = addr_to_sockaddr(a, 9, &to), from_len = sizeof(from);
    auto_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct addr source;
    uint16_t port;

    return fd >= 0 && connect(fd, (struct sockaddr *)&to, to_len) == 0 &&
           getsockname(fd, (struct sockaddr *)&from, &from_len) == 0 &&
           addr_from_sockaddr((struct sockaddr *)&from, &source, &port) == 0 && addr_eq(&source, a);
}

static const char *addr_refusal(const struct egress *e, const struct conn *c, const struct addr *a)
{
    const struct target t = conn_target(c);
    const char *reason = policy_check(&e->policy, &t, a);

    if (!reason && !policy_is_allowed(&e->policy, &t, a) && addr_is_own(a))
        reason = "this host's own";
    return reason;
}

static void refuse_addr(struct egress *e, struct conn *c, const struct addr *a, const char *class)
{
    char reason[128], text[ADDR_TEXT];

    snprintf(reason, sizeof(reason), "%s is a refused address (%s)", addr_format(a, text), class);
    conn_refuse(e, c, reason);
}

/* Servers on the host listen on one of the two, or on both. */
static void dial_host(struct egress *e, struct conn *c)
{
    try_add(c, &(struct addr){4, {127, 0, 0, 1}});
    try_add(c, &(struct addr){6, {[15] = 1}});
    dial_next(e, c, 0);
}

/*
 * Checked in every case, also where a proxy will dial: it may stand in a network in which the
 * address is reachable.
 */
static void dial_literal(struct egress *e, struct conn *c)
{
    const char *class = addr_refusal(e, c, &c->dest);

    if (class) {
        refuse_addr(e, c, &c->dest, class);
    } else if (c->route == ROUTE_PROXY) {
        proxy_dial(e, c);
    } else {
        try_add(c, &c->dest);
        dial_next(e, c, 0);
    }
}

/* ---- names ---- */

/* Waits for a name, or goes on at once when it was resolved a moment ago. */
static void name_lookup(struct egress *e, struct conn *c, const struct name *name)
{
    int error;
    const struct lookup *l;

    c->state = CONN_RESOLVING;
    c->waits_for = name;
    conn_set_deadline(e, c, MIN(c->dial_until, e->now + e->limits.resolve_ms));
    l = lookup_get(e, c->box, name, &error);
    if (l)
        dial_resolved(e, c, l);
    else if (error < 0)
        conn_refuse(e, c, "too many names are being resolved");
}

static void resolve_failed(struct egress *e, struct conn *c, const char *what, int failure)
{
    char reason[128];

    snprintf(reason, sizeof(reason), "cannot resolve %s: %s", what, gai_strerror(failure));
    conn_refuse(e, c, reason);
}

/* Keeps the addresses that may be dialled, and returns the first one that may not. */
static const struct addr *addrs_filter(const struct egress *e, struct conn *c,
                                       const struct lookup *l, const char **ret_class)
{
    const struct addr *refused = NULL;

    for (size_t i = 0; i < l->job.count; i++) {
        const struct addr *a = &l->job.addrs[i];
        const char *class = addr_refusal(e, c, a);

        if (class && !refused) {
            refused = a;
            *ret_class = class;
        }
        /* Behind a proxy only what lies inside is dialled directly. */
        if (!class && (c->route != ROUTE_INSPECT || addr_classify(a) != ADDR_PUBLIC))
            try_add(c, a);
    }
    return refused;
}

/*
 * Refused addresses are left out rather than refusing the name: some hosts publish their inner
 * addresses beside the outer ones. They are told of only when nothing else is left.
 */
static void target_resolved(struct egress *e, struct conn *c, const struct lookup *l)
{
    const char *class = NULL;
    const struct addr *refused = addrs_filter(e, c, l, &class);

    if (c->try_count > 0)
        dial_next(e, c, 0);
    else if (c->route == ROUTE_INSPECT)
        proxy_dial(e, c);
    else if (refused)
        refuse_addr(e, c, refused, class);
    else
        resolve_failed(e, c, "the name", l->job.failure ? l->job.failure : EAI_NONAME);
}

/* The operator named the proxy, so wherever it lies is right. */
static void proxy_resolved(struct egress *e, struct conn *c, const struct lookup *l)
{
    for (size_t i = 0; i < l->job.count; i++)
        try_add(c, &l->job.addrs[i]);
    if (c->try_count > 0)
        dial_next(e, c, 0);
    else
        resolve_failed(e, c, "the proxy", l->job.failure ? l->job.failure : EAI_NONAME);
}

void dial_resolved(struct egress *e, struct conn *c, const struct lookup *l)
{
    if (c->by_proxy)
        proxy_resolved(e, c, l);
    else
        target_resolved(e, c, l);
}

void dial_start(struct egress *e, struct conn *c)
{
    const struct target t = conn_target(c);
    const char *reason;

    c->route = policy_route(&e->policy, &t, &reason);
    if (c->route == ROUTE_REFUSE)
        conn_refuse(e, c, reason);
    else if (c->route == ROUTE_HOST)
        dial_host(e, c);
    else if (!c->name)
        dial_literal(e, c);
    else if (c->route == ROUTE_PROXY)
        proxy_dial(e, c);
    else
        name_lookup(e, c, c->name);
}

/* ---- the proxy ---- */

static void proxy_dial(struct egress *e, struct conn *c)
{
    c->by_proxy = true;
    if (e->policy.proxy.literal) {
        try_add(c, &e->policy.proxy.addr);
        dial_next(e, c, 0);
    } else {
        name_lookup(e, c, e->proxy_name);
    }
}

/* A fresh socket's buffer takes the request whole. */
static int proxy_ask(const struct egress *e, struct conn *c)
{
    auto_buf struct buf request = {.max = 4096};
    char addr[ADDR_TEXT], target[HOST_PORT_TEXT];
    ssize_t n;

    connect_target_format(c->name ? c->name->text : addr_format(&c->dest, addr), c->port, target);
    if (connect_request_format(&e->policy.proxy, target, &request) < 0)
        return -ENOMEM;
    n = send(c->server.fd, request.data, request.len, MSG_NOSIGNAL);
    return n == (ssize_t)request.len ? 0 : n < 0 ? -errno : -ENOBUFS;
}

/* What came behind the headers is the tunnel's. */
static void proxy_answered(struct egress *e, struct conn *c, size_t length)
{
    size_t rest = c->answer.len - length;

    if (rest > 0 && flow_prime(&c->down, &e->pipes, c->answer.data + length, rest) < 0)
        conn_refuse(e, c, "out of descriptors");
    else
        conn_relay(e, c);
}

/*
 * Reads until the headers end. Never more than the limit is read, so a proxy that goes on for ever
 * finds its own socket full.
 */
static void proxy_read(struct egress *e, struct conn *c)
{
    struct connect_reply reply;
    struct error error;
    ssize_t n = 0;
    int r = 0;

    if (buf_reserve(&c->answer, CONNECT_HEADER_MAX - c->answer.len) < 0) {
        conn_refuse(e, c, "out of memory");
        return;
    }
    while (r == 0) {
        n = recv(c->server.fd, c->answer.data + c->answer.len, CONNECT_HEADER_MAX - c->answer.len,
                 0);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            conn_refuse(e, c, "the proxy closed the connection");
            return;
        }
        c->answer.len += (size_t)n;
        r = connect_reply_parse(c->answer.data, c->answer.len, &reply, &error);
    }
    if (r < 0)
        conn_refuse(e, c, error.text);
    else
        proxy_answered(e, c, reply.length);
}

/* The TCP connection stands; behind a proxy the tunnel is still to be made. */
static void server_connected(struct egress *e, struct conn *c)
{
    int r;

    if (!c->by_proxy) {
        conn_relay(e, c);
        return;
    }
    c->state = CONN_ASKING;
    conn_set_deadline(e, c, c->dial_until);
    r = proxy_ask(e, c);
    if (r < 0)
        conn_refuse(e, c, strerrordesc_np(-r));
    else
        proxy_read(e, c);
}

void dial_ready(struct egress *e, struct conn *c, uint32_t events)
{
    int failure = 0;
    socklen_t len = sizeof(failure);

    if (c->state == CONN_ASKING) {
        proxy_read(e, c);
        return;
    }
    if (c->state != CONN_DIALLING)
        return;
    if (getsockopt(c->server.fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
        failure = errno;
    if (failure)
        dial_next(e, c, -failure);
    else if (events & EPOLLOUT)
        server_connected(e, c);
}

void dial_expired(struct egress *e, struct conn *c)
{
    if (c->state == CONN_RESOLVING)
        conn_refuse(e, c, "the name was not resolved in time");
    else if (c->state == CONN_ASKING)
        conn_refuse(e, c, "the proxy did not answer in time");
    else
        dial_next(e, c, -ETIMEDOUT);
}
