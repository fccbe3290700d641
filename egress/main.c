/* SPDX-License-Identifier: MIT */
/*
 * sandbox-egress: the host-side end of every sandbox's network (docs/network.md). Started by the
 * keeper with two descriptors; it ends when the keeper does.
 */
#include "egress/confine.h"
#include "egress/conn.h"
#include "egress/log.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>

enum { EXIT_BAD_START = 3, ARENAS = 2 };

/* Without its seals, whoever holds the file could change it between the check and the use. */
static int config_check_file(int fd, struct error *reterr)
{
    const int need = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & need) != need)
        return error_set(reterr, ERR_PROTOCOL, "the configuration is not sealed");
    if (fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(struct egress_config))
        return error_set(reterr, ERR_PROTOCOL, "the configuration has another size");
    return 0;
}

static int config_read(int fd, struct egress_config *ret, struct error *reterr)
{
    int r = config_check_file(fd, reterr);

    if (r < 0)
        return r;
    if (pread(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
        return error_sys(reterr, errno, "cannot read the configuration");
    return egress_config_check(ret, reterr);
}

/*
 * The configuration holds the proxy's credentials: it is read once, wiped, and its file closed, so
 * only the policy has them from then on.
 */
static int policy_load(struct policy *ret, struct error *reterr)
{
    auto_free struct egress_config *config = calloc(1, sizeof(*config));
    int r;

    if (!config)
        return error_no_memory(reterr);
    r = config_read(EGRESS_FD_CONFIG, config, reterr);
    if (r == 0)
        r = policy_init(ret, config, reterr);
    explicit_bzero(config, sizeof(*config));
    close(EGRESS_FD_CONFIG);
    return r;
}

static int proxy_name_init(struct egress *e, struct error *reterr)
{
    size_t size = strlen(e->policy.proxy.host) + 1;

    e->proxy_name = calloc(1, sizeof(*e->proxy_name) + size);
    if (!e->proxy_name)
        return error_no_memory(reterr);
    memcpy(e->proxy_name->text, e->policy.proxy.host, size);
    return 0;
}

/* In the order that confine.h asks for. */
static int egress_start(struct egress *e, struct error *reterr)
{
    int r;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    mallopt(M_ARENA_MAX, ARENAS);
    limits_init(&e->limits);
    if ((r = confine_early(reterr)) < 0 || (r = policy_load(&e->policy, reterr)) < 0 ||
        (r = proxy_name_init(e, reterr)) < 0 || (r = resolver_init(&e->resolver, reterr)) < 0 ||
        (r = egress_init(e, EGRESS_FD_CONTROL, reterr)) < 0)
        return r;
    return confine_late(reterr);
}

int main(void)
{
    static struct egress egress;
    struct error error;

    if (egress_start(&egress, &error) < 0 || egress_run(&egress, &error) < 0) {
        log_line("%s", error.text);
        return EXIT_BAD_START;
    }
    return 0;
}
