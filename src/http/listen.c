/* SPDX-License-Identifier: MIT */
/* The server's options, and the socket that it listens on. */
#include "base/fd.h"
#include "base/str.h"
#include "http/http-internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
    CONNS_MOST = 4096,
    CONNS_LEAST = 64,
    FDS_OTHER = 256, /* that are for other things than connections */
};
/* Raises the soft limit of descriptors to the hard one; how many there may be. */
static uint64_t descriptors_raise(void)
{
    struct rlimit limit = {.rlim_cur = FDS_OTHER + 2 * CONNS_LEAST};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        struct rlimit more = {limit.rlim_max, limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            limit = more;
    }
    return limit.rlim_cur;
}

/* As many as there are descriptors for: a stream has two. */
static unsigned connections_default(void)
{
    uint64_t fds = descriptors_raise();

    return fds < FDS_OTHER + 2 * CONNS_LEAST
               ? CONNS_LEAST
               : (unsigned)MIN((fds - FDS_OTHER) / 2, (uint64_t)CONNS_MOST);
}

void http_options_fill(struct http_server *server, const struct http_options *given)
{
    const struct http_options defaults = {
        .body_max = 32 * MIB,
        .body_total = 256 * MIB,
        .stream_buffer = MIB,
        .connections = connections_default(),
        .connections_per_ip = 256,
        .min_rate = 1024,
        .header_timeout_ms = 10000,
        .idle_timeout_ms = 60000,
        .body_timeout_ms = 10000,
        .send_timeout_ms = 30000,
        .keep_alive_ms = 15000,
        .tick_ms = 250,
    };
    struct http_options *o = &server->options;

    memcpy(o, given, MIN(given->size, sizeof(*o)));
    server->loopback_exempt = o->connections_per_ip == 0;
#define FILL(name) o->name = o->name ? o->name : defaults.name
    FILL(body_max);
    FILL(body_total);
    FILL(stream_buffer);
    FILL(connections);
    FILL(connections_per_ip);
    FILL(min_rate);
    FILL(header_timeout_ms);
    FILL(idle_timeout_ms);
    FILL(body_timeout_ms);
    FILL(send_timeout_ms);
    FILL(keep_alive_ms);
    FILL(tick_ms);
#undef FILL
}

/* "HOST:PORT" with an address, or localhost. */
static int listen_parse(const char *text, struct addr *ret, uint16_t *ret_port,
                        struct error *reterr)
{
    const char *colon = strrchr(text, ':');
    char host[HOST_SIZE];
    int64_t port;

    if (!colon || (size_t)(colon - text) >= sizeof(host) ||
        str_parse_int(colon + 1, 0, UINT16_MAX, &port) < 0)
        return error_set(reterr, ERR_INVALID, "'%s' is not HOST:PORT", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    if (addr_parse(str_eq(host, "localhost") ? "127.0.0.1" : host, ret) < 0)
        return error_set(reterr, ERR_INVALID, "'%s' is no address to listen on", host);
    *ret_port = (uint16_t)port;
    return 0;
}

static int listen_fail(uint16_t port, const char *address, struct error *reterr)
{
    return error_sys(reterr, errno, "cannot listen on port %u of '%s'", port, address);
}

static int socket_bind(const struct addr *addr, uint16_t port, struct error *reterr)
{
    struct sockaddr_storage sa;
    socklen_t len = addr_to_sockaddr(addr, port, &sa);
    auto_fd int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&sa, len) < 0) {
        char text[ADDR_TEXT];

        return listen_fail(port, addr_format(addr, text), reterr);
    }
    return TAKE_FD(fd);
}

void http_listener_close(struct http_listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

int http_listener_open(const char *listen, bool remote, struct http_listener *ret,
                       struct error *reterr)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    struct addr addr;
    auto_fd int fd = -1;
    int r;

    *ret = (struct http_listener){.fd = -1};
    if ((r = listen_parse(listen, &addr, &ret->port, reterr)) < 0)
        return r;
    addr_format(&addr, ret->address);
    ret->is_any = addr_classify(&addr) == ADDR_UNSPECIFIED;
    if (addr_classify(&addr) != ADDR_LOOPBACK && !remote)
        return error_set(reterr, ERR_DENIED,
                         "'%s' can be reached from other machines; listen on 127.0.0.1",
                         ret->address);
    fd = socket_bind(&addr, ret->port, reterr);
    if (fd < 0)
        return fd;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
        addr_from_sockaddr((struct sockaddr *)&sa, &addr, &ret->port) < 0)
        return error_sys(reterr, errno, "cannot tell the port that is listened on");
    snprintf(ret->url, sizeof(ret->url), addr.family == 6 ? "http://[%s]:%u" : "http://%s:%u",
             ret->address, ret->port);
    ret->fd = TAKE_FD(fd);
    return 0;
}

int http_listen(struct http_server *server, struct error *reterr)
{
    const struct http_options *o = &server->options;
    struct http_listener own = {.fd = -1}, *l = o->listener ? o->listener : &own;
    int r = o->listener ? 0 : http_listener_open(o->listen, o->allow_remote, &own, reterr);

    if (r < 0)
        return r;
    server->at = *l;
    l->fd = -1;
    if (listen(server->at.fd, SOMAXCONN) < 0)
        return listen_fail(server->at.port, server->at.address, reterr);
    server->guard = (struct http_guard){
        .port = server->at.port,
        .bound = server->at.is_any ? NULL : server->at.address,
        .hosts = o->hosts,
        .origins = o->origins,
        .loopback_origins = o->loopback_origins,
    };
    return 0;
}
