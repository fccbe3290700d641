/* SPDX-License-Identifier: MIT */
/*
 * By the kernel's tables, not by a question to the listener: what it says of itself it can make up.
 * Every listener that could take the connection must be trusted, because which of them does is not
 * known.
 */
#include "cli/port_owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_LEN = 512, STATE_LISTEN = 0x0a, WORD_DIGITS = 8 };

struct search {
    const struct url *url;
    struct addr wanted; /* family 0: the URL has a name, of any loopback address */
    unsigned count, stranger;
    bool is_strange;
};

/* The tables hold addresses as words of the host's own byte order. */
static int addr_read(const char *hex, struct addr *ret)
{
    size_t words = strlen(hex) / WORD_DIGITS;

    if (words != 1 && words != 4)
        return -1;
    *ret = (struct addr){.family = words == 1 ? 4 : 6};
    for (size_t i = 0; i < words; i++) {
        uint32_t word;

        if (sscanf(hex + i * WORD_DIGITS, "%8x", &word) != 1)
            return -1;
        memcpy(ret->bytes + i * sizeof(word), &word, sizeof(word));
    }
    return 0;
}

static bool is_taken_by(const struct search *s, struct addr a)
{
    bool dual = a.family == 6;

    addr_unmap(&a);
    if (addr_classify(&a) == ADDR_UNSPECIFIED)
        return s->wanted.family != 6 || dual;
    return s->wanted.family ? addr_eq(&a, &s->wanted) : addr_classify(&a) == ADDR_LOOPBACK;
}

static void line_look(struct search *s, const char *line)
{
    unsigned port, state, uid;
    struct addr local;
    char hex[33];

    if (sscanf(line, "%*d: %32[0-9A-F]:%4x %*32[0-9A-F]:%*4x %2x %*s %*s %*s %u", hex, &port,
               &state, &uid) != 4 ||
        state != STATE_LISTEN || port != s->url->port || addr_read(hex, &local) < 0 ||
        !is_taken_by(s, local))
        return;
    s->count++;
    if (uid == 0 || uid == geteuid())
        return;
    s->is_strange = true;
    s->stranger = uid;
}

static int table_look(struct search *s, const char *path, struct error *reterr)
{
    FILE *f = fopen(path, "re");
    char line[LINE_MAX_LEN];

    if (!f) /* a host without IPv6 */
        return errno == ENOENT ? 0 : error_sys(reterr, errno, "cannot read '%s'", path);
    while (fgets(line, sizeof(line), f))
        line_look(s, line);
    fclose(f);
    return 0;
}

int port_owner_check(const struct url *url, struct error *reterr)
{
    struct search s = {.url = url};
    int r;

    if (addr_parse(url->host, &s.wanted) < 0)
        s.wanted.family = 0;
    if ((r = table_look(&s, "/proc/net/tcp", reterr)) < 0 ||
        (r = table_look(&s, "/proc/net/tcp6", reterr)) < 0)
        return r;
    if (s.is_strange)
        return error_set(reterr, ERR_DENIED,
                         "user %u listens at port %u of this host, not you and not root: nothing "
                         "is sent there",
                         s.stranger, url->port);
    if (!s.count)
        return error_set(reterr, ERR_DENIED,
                         "whose the server at port %u of this host is cannot be seen: nothing is "
                         "sent there",
                         url->port);
    return 0;
}
