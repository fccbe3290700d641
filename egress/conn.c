/* SPDX-License-Identifier: MIT */
/*
 * Life of a connection. Sockets are watched edge-triggered for everything from the start, and the
 * readiness is kept in the relay ends, so no system call is spent on changing what epoll looks for.
 */
#include "egress/conn.h"

#include "egress/dial.h"
#include "egress/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    SHARE_MIN = 8, /* connections that every sandbox may have, however many there are */
};

/* ---- the end ---- */

/*
 * A client whose connection was accepted before it was refused must not take the end for an empty
 * answer: with no time to linger, close() sends a reset.
 */
static void socket_reset(int fd)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 0};

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* The one line of a connection. All its texts are ours or canonical names; log_line() escapes. */
static void conn_log(const struct egress *e, const struct conn *c, const char *verdict,
                     const char *reason)
{
    char addr[ADDR_TEXT] = "-";

    if (c->peer.family)
        addr_format(&c->peer, addr);
    else if (!c->name)
        addr_format(&c->dest, addr);
    log_line("sandbox=%s name=%s port=%u address=%s via=%s verdict=%s sent=%llu received=%llu "
             "ms=%lld%s%s%s",
             c->box->id, c->name ? c->name->text : "-", c->port, addr,
             c->by_proxy ? "proxy" : "direct", verdict, (unsigned long long)c->up.bytes,
             (unsigned long long)c->down.bytes, (long long)(e->now - c->started),
             reason ? " reason=\"" : "", reason ? reason : "", reason ? "\"" : "");
}

/* Leaves the sandbox's list; the memory stays until the turn is over. */
static void conn_unlink(struct conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->box->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

void conn_close(struct egress *e, struct conn *c, const char *verdict, const char *reason)
{
    struct sandbox *box = c->box;

    if (reason) {
        socket_reset(c->client.fd);
        socket_reset(c->server.fd);
    }
    conn_log(e, c, verdict, reason);
    box->refused += c->state != CONN_RELAYING;
    box->sent += c->up.bytes;
    box->received += c->down.bytes;
    box->conn_count--;
    e->conn_count--;
    watch_close(&c->client);
    watch_close(&c->server);
    flow_done(&c->up, &e->pipes);
    flow_done(&c->down, &e->pipes);
    buf_done(&c->answer);
    conn_unlink(c);
    c->state = CONN_DEAD;
    c->next = e->dead_conns;
    e->dead_conns = c;
}

/* One that is still in the list of busy ones is freed after it has left that. */
void conn_reap(struct egress *e)
{
    struct conn **p = &e->dead_conns;

    while (*p) {
        struct conn *c = *p;

        if (c->busy) {
            p = &c->next;
            continue;
        }
        *p = c->next;
        free(c);
    }
}

/* ---- relaying ---- */

static void conn_busy(struct egress *e, struct conn *c)
{
    if (c->busy)
        return;
    c->busy = true;
    c->busy_next = e->busy;
    e->busy = c;
}

static int64_t relay_deadline(const struct egress *e, const struct conn *c)
{
    return e->now + (c->up.shut || c->down.shut ? e->limits.half_ms : e->limits.idle_ms);
}

/* Pumps one direction; false when that ended the connection. */
static bool conn_pump(struct egress *e, struct conn *c, bool up)
{
    struct flow *f = up ? &c->up : &c->down;
    struct relay_end *from = up ? &c->client_end : &c->server_end;
    struct relay_end *to = up ? &c->server_end : &c->client_end;
    struct flow_result result;
    char reason[96];
    int r = flow_pump(f, &e->pipes, from, to, &result);

    if (result.moved)
        c->deadline = relay_deadline(e, c);
    if (result.more)
        conn_busy(e, c);
    if (r >= 0)
        return true;
    snprintf(reason, sizeof(reason), "%s: %s", up == result.from_failed ? "client" : "server",
             strerrordesc_np(-r));
    conn_close(e, c, "broken", reason);
    return false;
}

/*
 * Both directions, each up to its limit for one turn. The connection is over when both ends have
 * said so and everything is delivered.
 */
static void conn_relay_turn(struct egress *e, struct conn *c)
{
    bool half = c->up.shut || c->down.shut;

    if (!conn_pump(e, c, true) || !conn_pump(e, c, false))
        return;
    if (c->up.shut && c->down.shut)
        conn_close(e, c, "done", NULL);
    else if (!half && (c->up.shut || c->down.shut))
        conn_set_deadline(e, c, relay_deadline(e, c));
}

void conn_relay(struct egress *e, struct conn *c)
{
    c->state = CONN_RELAYING;
    buf_done(&c->answer);
    conn_set_deadline(e, c, relay_deadline(e, c));
    conn_relay_turn(e, c);
}

/* The list is taken first: who is still busy after this turn goes on a new one. */
void conn_run_busy(struct egress *e)
{
    struct conn *list = e->busy;

    e->busy = NULL;
    while (list) {
        struct conn *c = list;

        list = c->busy_next;
        c->busy = false;
        if (c->state == CONN_RELAYING)
            conn_relay_turn(e, c);
    }
}

/* ---- events ---- */

/* An error or a hang-up shows when it is read or written, with its own errno. */
static void end_note(struct relay_end *end, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        end->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        end->writable = true;
}

/*
 * While the way to the server is being made only a reset counts: a client that has said all it has
 * to say (RDHUP alone) still waits for its answer.
 */
static void client_ready(struct egress *e, struct watch *w, uint32_t events)
{
    struct conn *c = WATCH_OWNER(w, struct conn, client);

    end_note(&c->client_end, events);
    if (c->state == CONN_RELAYING)
        conn_relay_turn(e, c);
    else if (events & (EPOLLERR | EPOLLHUP))
        conn_close(e, c, "aborted", "the client gave up");
}

static void server_ready(struct egress *e, struct watch *w, uint32_t events)
{
    struct conn *c = WATCH_OWNER(w, struct conn, server);

    end_note(&c->server_end, events);
    if (c->state == CONN_RELAYING)
        conn_relay_turn(e, c);
    else
        dial_ready(e, c, events);
}

void conn_set_deadline(struct egress *e, struct conn *c, int64_t deadline)
{
    c->deadline = deadline;
    egress_wake(e, deadline);
}

void conn_tick(struct egress *e, struct conn *c)
{
    if (e->now < c->deadline)
        egress_wake(e, c->deadline);
    else if (c->state == CONN_RELAYING)
        conn_close(e, c, "idle", "no traffic for too long");
    else
        dial_expired(e, c);
}

void conn_resolved(struct egress *e, struct sandbox *box, const struct lookup *l)
{
    struct conn *next;

    for (struct conn *c = box->conns; c; c = next) {
        next = c->next;
        if (c->state == CONN_RESOLVING && c->waits_for == l->name)
            dial_resolved(e, c, l);
    }
}

/* ---- the beginning ---- */

static struct conn *conn_new(struct egress *e, struct sandbox *box, int fd)
{
    struct conn *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->box = box;
    c->client = (struct watch){fd, client_ready};
    c->server = (struct watch){-1, server_ready};
    c->client_end.fd = fd;
    c->server_end.fd = -1;
    flow_init(&c->up);
    flow_init(&c->down);
    buf_init(&c->answer, CONNECT_HEADER_MAX);
    c->started = e->now;
    c->dial_until = e->now + e->limits.dial_ms;
    c->deadline = c->dial_until;
    c->next = box->conns;
    if (c->next)
        c->next->prev = c;
    box->conns = c;
    box->conn_count++;
    box->accepted++;
    e->conn_count++;
    return c;
}

/* What the client dialled, from the socket itself. */
static int dest_read(struct conn *c, uint16_t port)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof(name);

    if (getsockname(c->client.fd, (struct sockaddr *)&name, &len) < 0 ||
        addr_from_sockaddr((struct sockaddr *)&name, &c->dest, &c->port) < 0 || c->port != port)
        return -1;
    addr_unmap(&c->dest);
    return 0;
}

static size_t fair_share(const struct egress *e)
{
    return egress_capacity(e) / e->sandbox_count;
}

static struct sandbox *greediest(const struct egress *e)
{
    struct sandbox *most = e->sandboxes;

    for (struct sandbox *box = most; box; box = box->next) {
        if (box->conn_count > most->conn_count)
            most = box;
    }
    return most;
}

bool conn_has_room(const struct egress *e, const struct sandbox *box)
{
    return e->conn_count < egress_capacity(e) || box->conn_count < fair_share(e);
}

/* Of its connections the oldest goes; new ones are put in front. */
void conn_make_room(struct egress *e)
{
    struct conn *oldest;

    if (e->conn_count < egress_capacity(e))
        return;
    oldest = greediest(e)->conns;
    while (oldest && oldest->next)
        oldest = oldest->next;
    if (oldest)
        conn_close(e, oldest, "evicted", "another sandbox has less than its share");
}

/*
 * Descriptors are shared out: however many sandboxes there are, each has its part, so one that
 * opens all it may leaves the others theirs.
 */
static const char *conn_check(struct egress *e, struct conn *c, uint16_t port)
{
    size_t share = MAX(fair_share(e), (size_t)SHARE_MIN);

    if (dest_read(c, port) < 0)
        return "its address cannot be read";
    if (addr_classify(&c->dest) == ADDR_FAKE) {
        c->name = names_by_addr(&c->box->names, c->dest.bytes);
        if (!c->name)
            return "an address that stands for no name";
    }
    if (c->box->conn_count > MIN(share, (size_t)e->limits.conns))
        return "too many connections of this sandbox";
    return NULL;
}

void conn_open(struct egress *e, struct sandbox *box, int fd, uint16_t port)
{
    const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    struct conn *c = conn_new(e, box, fd);
    const char *reason;
    int one = 1;

    if (!c) {
        socket_reset(fd);
        close(fd);
        log_line("sandbox=%s port=%u verdict=refused reason=\"out of memory\"", box->id, port);
        return;
    }
    reason = conn_check(e, c, port);
    if (!reason && watch_add(e, &c->client, events) < 0)
        reason = "it cannot be watched";
    if (reason) {
        conn_refuse(e, c, reason);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    dial_start(e, c);
}
