/* SPDX-License-Identifier: MIT */
/*
 * Watches the sockets from outside. The library's own time-out starts anew with every byte, so one
 * byte in nine seconds would hold a thread for ever; the kernel's counters of each socket tell how
 * much really came and was taken, without a word to the thread that serves it.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/http-internal.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { LINGER_MS = 1000 };

/* Counts connections that were not cut; the list is newest first. `addr` NULL: of all peers. */
static unsigned conns_count(struct http_server *server, const struct addr *addr,
                            struct http_conn **ret_oldest)
{
    unsigned count = 0;

    *ret_oldest = NULL;
    for (struct http_conn *conn = server->conns; conn; conn = conn->next) {
        if (atomic_load(&conn->cut) || (addr && !addr_eq(addr, &conn->addr)))
            continue;
        count++;
        if (conn->phase == CONN_FRESH || conn->phase == CONN_IDLE)
            *ret_oldest = conn;
    }
    return count;
}

void conn_admit(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_conn *oldest;

    conn->next = server->conns;
    if (conn->next)
        conn->next->prev = conn;
    server->conns = conn;
    /* The new one waits for its request, too, so there is always one to cut. */
    if (!(server->loopback_exempt && addr_classify(&conn->addr) == ADDR_LOOPBACK) &&
        conns_count(server, &conn->addr, &oldest) > server->options.connections_per_ip)
        conn_cut(oldest, HTTP_GONE_SLOW);
    if (conns_count(server, NULL, &oldest) > server->options.connections)
        conn_cut(oldest, HTTP_GONE_SLOW);
}

/* Bytes received from the peer, or acknowledged by it, since the socket was made. */
static uint64_t socket_count(int fd, bool received)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return 0;
    return received ? info.tcpi_bytes_received : info.tcpi_bytes_acked;
}

void http_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void http_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};

    pthread_cond_timedwait(cond, lock, &until);
}

void conn_phase_set(struct http_conn *conn, enum conn_phase phase)
{
    uint64_t mark =
        phase == CONN_SEND || phase == CONN_IDLE ? socket_count(conn->fd, phase == CONN_IDLE) : 0;

    pthread_mutex_lock(&conn->server->lock);
    conn->phase = phase;
    conn->since = clock_ms();
    conn->mark = mark;
    conn->coming = false;
    pthread_mutex_unlock(&conn->server->lock);
}

void conn_cut(struct http_conn *conn, enum http_gone why)
{
    int none = 0;

    atomic_compare_exchange_strong(&conn->cut, &none, 1 + (int)why);
    shutdown(conn->fd, SHUT_RDWR);
}

bool conn_is_half_closed(const struct http_conn *conn)
{
    struct pollfd p = {.fd = conn->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0;
}

void conn_linger(const struct http_conn *conn)
{
    int64_t deadline = clock_deadline(LINGER_MS);
    char dropped[16384];

    shutdown(conn->fd, SHUT_WR);
    while (!atomic_load(&conn->cut) && fd_wait(conn->fd, POLLIN, deadline) > 0) {
        if (recv(conn->fd, dropped, sizeof(dropped), MSG_DONTWAIT) <= 0)
            return;
    }
}

void conn_reset(const struct http_conn *conn)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    /* A TCP socket that is connected to nothing resets what it was connected to. */
    (void)!connect(conn->fd, &none, sizeof(none));
}

static bool headers_are_late(struct http_conn *conn, int64_t now)
{
    const struct http_options *o = &conn->server->options;

    if (!conn->coming && socket_count(conn->fd, true) > conn->mark) {
        conn->coming = true;
        if (conn->phase == CONN_IDLE)
            conn->since = now;
    }
    return now - conn->since >=
           (conn->coming || conn->phase == CONN_FRESH ? o->header_timeout_ms : o->idle_timeout_ms);
}

static bool body_is_late(const struct http_conn *conn, int64_t now)
{
    const struct http_options *o = &conn->server->options;
    uint64_t allowed = o->body_timeout_ms + atomic_load(&conn->body) * 1000 / o->min_rate;

    return (uint64_t)(now - conn->since) >= allowed;
}

/* Something waits to be taken, and in a whole window too little was. */
static bool reader_is_slow(struct http_conn *conn, int64_t now)
{
    const struct http_options *o = &conn->server->options;
    int waiting = 0;
    uint64_t taken;

    if (now - conn->since < o->send_timeout_ms / 4)
        return false;
    if (ioctl(conn->fd, SIOCOUTQ, &waiting) == 0 && waiting == 0) {
        conn->since = now;
        conn->mark = socket_count(conn->fd, false);
        return false;
    }
    if (now - conn->since < o->send_timeout_ms)
        return false;
    taken = socket_count(conn->fd, false) - conn->mark;
    if (taken < (uint64_t)o->min_rate * o->send_timeout_ms / 1000)
        return true;
    conn->since = now;
    conn->mark += taken;
    return false;
}

static const char *conn_check(struct http_conn *conn, int64_t now)
{
    switch (conn->phase) {
    case CONN_FRESH:
    case CONN_IDLE:
        return headers_are_late(conn, now) ? "headers" : NULL;
    case CONN_BODY:
        return body_is_late(conn, now) ? "body" : NULL;
    case CONN_SEND:
        return reader_is_slow(conn, now) ? "answer" : NULL;
    case CONN_HANDLER:
        break;
    }
    return NULL;
}

static void conns_check(struct http_server *server)
{
    int64_t now = clock_ms();

    for (struct http_conn *conn = server->conns; conn; conn = conn->next) {
        const char *late = atomic_load(&conn->cut) ? NULL : conn_check(conn, now);

        if (!late)
            continue;
        log_debug("http connection is cut late=%s", late);
        conn_cut(conn, HTTP_GONE_SLOW);
    }
}

void *conn_watch_main(void *arg)
{
    struct http_server *server = arg;

    pthread_mutex_lock(&server->lock);
    while (!server->watch_stop) {
        conns_check(server);
        http_cond_wait(&server->watch_wake, &server->lock, clock_deadline(server->options.tick_ms));
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}
