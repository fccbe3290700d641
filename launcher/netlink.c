/* SPDX-License-Identifier: MIT */
/* One request, one acknowledgement, on a socket of its own each time. */
#include "launcher/netlink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { LO_INDEX = 1 }; /* the kernel gives it to the first device of a namespace */

struct request {
    struct nlmsghdr head;
    union {
        struct ifinfomsg link;
        struct {
            struct rtmsg route;
            struct rtattr attr;
            uint32_t device;
        };
    };
};

/* Returns 0 or the kernel's negative errno. */
static int request_send(struct request *request)
{
    auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[1024];
    } answer;
    ssize_t n;

    if (fd < 0)
        return -errno;
    request->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (sendto(fd, request, request->head.nlmsg_len, 0, (const struct sockaddr *)&kernel,
               sizeof(kernel)) < 0)
        return -errno;
    do
        n = recv(fd, &answer, sizeof(answer), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if ((size_t)n < NLMSG_LENGTH(sizeof(struct nlmsgerr)) || answer.head.nlmsg_type != NLMSG_ERROR)
        return -EPROTO;
    return answer.error.error;
}

int netlink_lo_up(struct error *reterr)
{
    struct request request = {
        .head = {.nlmsg_type = RTM_NEWLINK, .nlmsg_len = NLMSG_LENGTH(sizeof(request.link))},
        .link = {.ifi_index = LO_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
    };
    int r = request_send(&request);

    return r < 0 ? error_sys(reterr, -r, "cannot bring up the loopback device") : 0;
}

static int any_ip(unsigned char family, bool add)
{
    struct request request = {
        .head = {.nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE,
                 .nlmsg_flags = add ? NLM_F_CREATE | NLM_F_REPLACE : 0,
                 .nlmsg_len = sizeof(request)},
        .route = {.rtm_family = family,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_BOOT,
                  .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                  .rtm_type = RTN_LOCAL},
        .attr = {.rta_type = RTA_OIF, .rta_len = RTA_LENGTH(sizeof(request.device))},
        .device = LO_INDEX,
    };

    return request_send(&request);
}

static bool family_is_off(int r)
{
    return r == -EAFNOSUPPORT || r == -EOPNOTSUPP || r == -ENODEV || r == -EACCES;
}

int netlink_any_ip_add(struct error *reterr)
{
    int r = any_ip(AF_INET, true);

    if (r == 0) {
        r = any_ip(AF_INET6, true);
        if (family_is_off(r))
            r = 0;
    }
    return r < 0 ? error_sys(reterr, -r, "cannot make every address local") : 0;
}

int netlink_any_ip_remove(struct error *reterr)
{
    int first = any_ip(AF_INET, false), second = any_ip(AF_INET6, false);

    if (second == -ESRCH || family_is_off(second))
        second = 0;
    if (first == -ESRCH)
        first = 0;
    if (first < 0 || second < 0)
        return error_sys(reterr, first < 0 ? -first : -second, "cannot remove the local routes");
    return 0;
}
