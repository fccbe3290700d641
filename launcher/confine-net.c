/* SPDX-License-Identifier: MIT */
/*
 * The network of a sandbox: lo, and where it has egress, every address local and listeners on the
 * allowed ports, which the parent hands to egress. A socket keeps the namespace it was made in, so
 * egress serves them from the host's.
 */
#include "launcher/confine-internal.h"

#include "base/fd.h"
#include "launcher/netlink.h"
#include "launcher/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { LISTEN_BACKLOG = 512, DNS_PORT = 53 };

static int bind_tcp(int family, uint16_t port)
{
    auto_fd int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int yes = 1, no = 0;
    int r;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0)
        return -1;
    if (family == AF_INET6) {
        if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) < 0)
            return -1;
        r = bind(fd, (const struct sockaddr *)&any6, sizeof(any6));
    } else {
        r = bind(fd, (const struct sockaddr *)&any4, sizeof(any4));
    }
    if (r < 0 || listen(fd, LISTEN_BACKLOG) < 0)
        return -1;
    return TAKE_FD(fd);
}

static int listen_tcp(uint16_t port, struct error *reterr)
{
    int fd = bind_tcp(AF_INET6, port);

    /* A host without IPv6. */
    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        fd = bind_tcp(AF_INET, port);
    return fd < 0 ? error_sys(reterr, errno, "cannot listen on port %u inside", port) : fd;
}

static int bind_dns(struct error *reterr)
{
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(DNS_PORT),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return error_sys(reterr, errno, "cannot bind the name server inside");
    return TAKE_FD(fd);
}

static int listeners_make(const struct launch_job *job, int *fds, size_t *ret_count,
                          struct error *reterr)
{
    *ret_count = 0;
    for (uint32_t i = 0; i < job->port_count; i++) {
        fds[i] = listen_tcp(job->ports[i], reterr);
        if (fds[i] < 0)
            return -1;
        (*ret_count)++;
    }
    fds[*ret_count] = bind_dns(reterr);
    if (fds[*ret_count] < 0)
        return -1;
    (*ret_count)++;
    return 0;
}

static int listeners_pass(struct confine *c, struct error *reterr)
{
    const struct launch_report report = {.step = LAUNCH_LISTENERS};
    int fds[JOB_PORTS + 1];
    size_t count;
    int r = listeners_make(c->job, fds, &count, reterr), point;

    if (r == 0 && (point = confine_failpoint("listener-fd-pass")) < 0)
        r = error_sys(reterr, -point, "cannot hand over the listeners");
    else if (r == 0 && fd_send(c->sock, &report, sizeof(report), fds, count) < 0)
        r = error_sys(reterr, errno, "cannot hand over the listeners");
    fd_close_all(fds, count);
    return r;
}

int confine_network(struct confine *c, struct error *reterr)
{
    int r;

    /* Degraded: the namespace is the host's, so nothing may be changed in it. */
    if (c->degraded & DEGRADED_NO_NETNS)
        return 0;
    if ((r = netlink_lo_up(reterr)) < 0)
        return r;
    if (c->job->network == JOB_NETWORK_NONE && !(c->job->flags & JOB_INSTALL_NETWORK))
        return 0;
    if ((r = netlink_any_ip_add(reterr)) < 0)
        return r;
    return listeners_pass(c, reterr);
}
