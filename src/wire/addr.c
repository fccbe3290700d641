/* SPDX-License-Identifier: MIT */
/*
 * What an address is for is read from one table, the most special prefixes first. In IPv6 only
 * 2000::/3 is handed out to the world, so everything that the table does not name is refused there.
 */
#include "wire/addr.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

struct addr_range {
    uint8_t family;
    uint8_t bits;
    uint8_t prefix[16];
    enum addr_class class;
};

static const struct addr_range addr_ranges[] = {
    {4, 32, {169, 254, 169, 254}, ADDR_METADATA},
    {4, 32, {169, 254, 170, 2}, ADDR_METADATA},
    {4, 32, {100, 100, 100, 200}, ADDR_METADATA},
    {4, 32, {168, 63, 129, 16}, ADDR_METADATA},
    {4, 32, {192, 0, 0, 192}, ADDR_METADATA},
    {4, 8, {0}, ADDR_UNSPECIFIED},
    {4, 8, {10}, ADDR_PRIVATE},
    {4, 10, {100, 64}, ADDR_SHARED},
    {4, 8, {127}, ADDR_LOOPBACK},
    {4, 16, {169, 254}, ADDR_LINK_LOCAL},
    {4, 12, {172, 16}, ADDR_PRIVATE},
    {4, 24, {192, 0, 0}, ADDR_RESERVED},
    {4, 24, {192, 88, 99}, ADDR_TRANSLATED},
    {4, 16, {192, 168}, ADDR_PRIVATE},
    {4, 15, {198, 18}, ADDR_FAKE},
    {4, 4, {224}, ADDR_MULTICAST},
    {4, 32, {255, 255, 255, 255}, ADDR_MULTICAST},
    {4, 4, {240}, ADDR_RESERVED},
    {4, 0, {0}, ADDR_PUBLIC},
    {6, 128, {0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, ADDR_METADATA},
    {6, 128, {0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54}, ADDR_METADATA},
    {6, 128, {0xfd, 0, 0, 0x42, [15] = 0x42}, ADDR_METADATA},
    {6, 128, {0}, ADDR_UNSPECIFIED},
    {6, 128, {[15] = 1}, ADDR_LOOPBACK},
    {6, 96, {[10] = 0xff, [11] = 0xff}, ADDR_MAPPED},
    {6, 96, {0}, ADDR_MAPPED},
    {6, 96, {[8] = 0xff, [9] = 0xff}, ADDR_TRANSLATED},
    {6, 96, {0, 0x64, 0xff, 0x9b}, ADDR_TRANSLATED},
    {6, 48, {0, 0x64, 0xff, 0x9b, 0, 1}, ADDR_TRANSLATED},
    {6, 32, {0x20, 0x01}, ADDR_TRANSLATED},
    {6, 28, {0x20, 0x01, 0, 0x10}, ADDR_RESERVED},
    {6, 28, {0x20, 0x01, 0, 0x20}, ADDR_RESERVED},
    {6, 16, {0x20, 0x02}, ADDR_TRANSLATED},
    {6, 7, {0xfc}, ADDR_PRIVATE},
    {6, 10, {0xfe, 0x80}, ADDR_LINK_LOCAL},
    {6, 10, {0xfe, 0xc0}, ADDR_PRIVATE},
    {6, 8, {0xff}, ADDR_MULTICAST},
    {6, 3, {0x20}, ADDR_PUBLIC},
    {6, 0, {0}, ADDR_RESERVED},
};

static size_t addr_size(const struct addr *a)
{
    return a->family == 4 ? 4 : 16;
}

static bool bits_eq(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned rest = bits % 8;

    if (memcmp(a, b, bits / 8) != 0)
        return false;
    return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) & (0xff << (8 - rest)) & 0xff) == 0;
}

enum addr_class addr_classify(const struct addr *a)
{
    for (size_t i = 0; i < ARRAY_LEN(addr_ranges); i++) {
        const struct addr_range *range = &addr_ranges[i];

        if (range->family == a->family && bits_eq(a->bytes, range->prefix, range->bits))
            return range->class;
    }
    return ADDR_RESERVED;
}

const char *addr_class_name(enum addr_class class)
{
    static const char *const names[ADDR_CLASS_COUNT] = {
        [ADDR_PUBLIC] = "public",
        [ADDR_UNSPECIFIED] = "unspecified",
        [ADDR_LOOPBACK] = "loopback",
        [ADDR_PRIVATE] = "private",
        [ADDR_LINK_LOCAL] = "link-local",
        [ADDR_METADATA] = "metadata",
        [ADDR_SHARED] = "carrier-grade NAT",
        [ADDR_FAKE] = "benchmark",
        [ADDR_MULTICAST] = "multicast",
        [ADDR_MAPPED] = "IPv4-mapped",
        [ADDR_TRANSLATED] = "translated",
        [ADDR_RESERVED] = "reserved",
    };

    return (unsigned)class < ADDR_CLASS_COUNT ? names[class] : "unknown";
}

int addr_parse(const char *s, struct addr *ret)
{
    char text[ADDR_TEXT + 2];
    size_t len = strlen(s);

    *ret = (struct addr){.family = 4};
    if (inet_pton(AF_INET, s, ret->bytes) == 1)
        return 0;
    ret->family = 6;
    if (s[0] == '[') {
        if (len < 2 || len >= sizeof(text) || s[len - 1] != ']')
            return -1;
        memcpy(text, s + 1, len - 2);
        text[len - 2] = 0;
        s = text;
    }
    return inet_pton(AF_INET6, s, ret->bytes) == 1 ? 0 : -1;
}

const char *addr_format(const struct addr *a, char ret[ADDR_TEXT])
{
    if (!inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, ret, ADDR_TEXT))
        ret[0] = 0;
    return ret;
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, addr_size(a)) == 0;
}

bool addr_in_prefix(const struct addr *a, const struct addr *prefix, unsigned bits)
{
    return a->family == prefix->family && bits <= 8 * addr_size(a) &&
           bits_eq(a->bytes, prefix->bytes, bits);
}

int addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret, uint16_t *ret_port)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    *ret = (struct addr){};
    if (sa->sa_family == AF_INET) {
        memcpy(&v4, sa, sizeof(v4));
        ret->family = 4;
        memcpy(ret->bytes, &v4.sin_addr, 4);
        *ret_port = ntohs(v4.sin_port);
        return 0;
    }
    if (sa->sa_family == AF_INET6) {
        memcpy(&v6, sa, sizeof(v6));
        ret->family = 6;
        memcpy(ret->bytes, &v6.sin6_addr, 16);
        *ret_port = ntohs(v6.sin6_port);
        return 0;
    }
    return -1;
}

socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memset(ret, 0, sizeof(*ret));
    if (a->family == 4) {
        memcpy(&v4.sin_addr, a->bytes, 4);
        memcpy(ret, &v4, sizeof(v4));
        return sizeof(v4);
    }
    memcpy(&v6.sin6_addr, a->bytes, 16);
    memcpy(ret, &v6, sizeof(v6));
    return sizeof(v6);
}

void addr_unmap(struct addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (a->family != 6 || memcmp(a->bytes, mapped, sizeof(mapped)) != 0)
        return;
    a->family = 4;
    memmove(a->bytes, a->bytes + 12, 4);
    memset(a->bytes + 4, 0, 12);
}

/* ---- names ---- */

static char char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool char_is_host(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* Labels of 1 to 63 characters, no hyphen at their ends. */
static bool labels_check(const char *name)
{
    while (*name) {
        size_t len = strcspn(name, ".");

        if (len < 1 || len > 63 || name[0] == '-' || name[len - 1] == '-')
            return false;
        name += len;
        if (*name == '.' && !*++name)
            return false;
    }
    return true;
}

/* The last label is decimal, octal or hexadecimal: "1", "017", "0x7f", "0x". */
static bool host_ends_in_number(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;

    if (last[0] == '0' && last[1] == 'x')
        return strspn(last + 2, "0123456789abcdef") == strlen(last + 2);
    return strspn(last, "0123456789") == strlen(last);
}

int host_parse(const char *s, size_t len, char ret[HOST_SIZE])
{
    ret[0] = 0;
    if (len > 0 && s[len - 1] == '.')
        len--;
    if (len < 1 || len >= HOST_SIZE)
        return -1;
    for (size_t i = 0; i < len; i++) {
        ret[i] = char_lower(s[i]);
        if (!char_is_host(ret[i])) {
            ret[0] = 0;
            return -1;
        }
    }
    ret[len] = 0;
    if (labels_check(ret) && !host_ends_in_number(ret))
        return 0;
    ret[0] = 0;
    return -1;
}

bool host_is_below(const char *name, const char *suffix)
{
    size_t len = strlen(name), tail = strlen(suffix);

    return tail > 0 && len > tail + 1 && name[len - tail - 1] == '.' &&
           memcmp(name + len - tail, suffix, tail) == 0;
}

/* ---- rules ---- */

int addr_rule_parse(const char *host, uint16_t port, struct addr_rule *ret, struct error *reterr)
{
    *ret = (struct addr_rule){.kind = ADDR_RULE_NAME, .port = port};
    if (addr_parse(host, &ret->addr) == 0) {
        ret->kind = ADDR_RULE_ADDRESS;
        addr_unmap(&ret->addr);
        return 0;
    }
    if (str_starts(host, "*.")) {
        ret->kind = ADDR_RULE_SUFFIX;
        host += 2;
    }
    if (host_parse(host, strlen(host), ret->host) < 0)
        return error_set(reterr, ERR_INVALID,
                         "'%.100s' is no host name, no address and no \"*.suffix\"", host);
    return 0;
}

bool addr_rule_has_name(const struct addr_rule *rule, const char *name)
{
    if (rule->kind == ADDR_RULE_NAME)
        return str_eq(rule->host, name);
    return rule->kind == ADDR_RULE_SUFFIX && host_is_below(name, rule->host);
}

bool addr_rule_has_addr(const struct addr_rule *rule, const struct addr *a)
{
    return rule->kind == ADDR_RULE_ADDRESS && addr_eq(&rule->addr, a);
}

bool addr_rule_has_port(const struct addr_rule *rule, uint16_t port)
{
    return rule->port == 0 || rule->port == port;
}

/* Where the port begins, behind its colon; NULL: there is none. A bare IPv6 address has none. */
static const char *port_find(const char *s)
{
    const char *colon = strrchr(s, ':');
    const char *bracket = strrchr(s, ']');

    if (!colon || (bracket && bracket > colon))
        return NULL;
    if (!bracket && strchr(s, ':') != colon)
        return NULL;
    return colon + 1;
}

int addr_split_port(const char *s, char ret_host[HOST_SIZE], uint16_t *ret_port,
                    struct error *reterr)
{
    const char *port = port_find(s);
    size_t len = port ? (size_t)(port - s) - 1 : strlen(s);
    int64_t value = 0;

    ret_host[0] = 0;
    if (len < 1 || len >= HOST_SIZE)
        return error_set(reterr, ERR_INVALID, "'%.100s' names no host", s);
    if (port && str_parse_int(port, 1, 65535, &value) < 0)
        return error_set(reterr, ERR_INVALID, "'%.100s' has no port from 1 to 65535", s);
    memcpy(ret_host, s, len);
    ret_host[len] = 0;
    *ret_port = (uint16_t)value;
    return 0;
}
