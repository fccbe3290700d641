/* SPDX-License-Identifier: MIT */
/*
 * URLs. Nothing is repaired: what another parser could read differently (a backslash, dots as
 * segments, an address as one number) is refused, so every reader finds the host that was checked.
 */
#include "wire/url.h"

#include "base/str.h"

#include <stdio.h>
#include <strings.h>

/* What some clouds call the address at which they serve credentials. */
static const char *const metadata_names[] = {
    "metadata",      "metadata.google.internal",   "metadata.goog", "metadata.azure.internal",
    "instance-data", "instance-data.ec2.internal",
};

/* Printable ASCII without what some parsers take for a separator, or for nothing at all. */
static bool chars_check(const char *text)
{
    for (const char *s = text; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f || strchr("\"<>\\^`{|}", *s))
            return false;
    }
    return true;
}

static int scheme_parse(const char **s, bool *ret_https)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);

        if (strncasecmp(*s, schemes[i], len) == 0) {
            *ret_https = i == 1;
            *s += len;
            return 0;
        }
    }
    return -1;
}

/* An IPv4-mapped address becomes the IPv4 address that would be connected to. */
static int host_read(const char *text, size_t len, char ret[HOST_SIZE])
{
    char copy[HOST_SIZE + 2] = "";
    struct addr a;

    if (len < 1 || len >= sizeof(copy))
        return -1;
    memcpy(copy, text, len);
    if (copy[0] == '[' || strspn(copy, "0123456789.") == len) {
        if (addr_parse(copy, &a) < 0)
            return -1;
        addr_unmap(&a);
        addr_format(&a, ret);
        return 0;
    }
    return host_parse(copy, len, ret);
}

/* The digits behind a colon, or nothing at all. */
static int port_read(const char *text, size_t len, uint16_t *ret)
{
    char copy[8] = "";
    int64_t value;

    if (len == 0)
        return 0;
    if (text[0] != ':' || len > 6)
        return -1;
    memcpy(copy, text + 1, len - 1);
    if (str_parse_int(copy, 1, 65535, &value) < 0)
        return -1;
    *ret = (uint16_t)value;
    return 0;
}

static int authority_parse(const char *s, size_t len, struct url *ret)
{
    const char *bracket = s[0] == '[' ? memchr(s, ']', len) : NULL;
    const char *colon = bracket ? bracket + 1 : memchr(s, ':', len);
    size_t host = colon ? (size_t)(colon - s) : len;

    ret->port = ret->https ? 443 : 80;
    if (host_read(s, host, ret->host) < 0)
        return -1;
    return port_read(s + host, len - host, &ret->port);
}

/* The next character of a path with its escape undone, and how many bytes it takes; 0: a broken
 * escape. */
static size_t char_read(const char *s, char *ret)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *high, *low;

    *ret = s[0];
    if (s[0] != '%')
        return 1;
    high = s[1] ? strchr(digits, s[1]) : NULL;
    low = high && s[2] ? strchr(digits, s[2]) : NULL;
    if (!low)
        return 0;
    *ret = (char)(((high - digits) % 16) << 4 | (low - digits) % 16);
    return 3;
}

/* Refuses "." and ".." also when they are escaped, and escapes of separators and control
 * characters. */
static int path_check(const char *s)
{
    while (*s) {
        size_t len = 0, dots = 0;

        for (s++; *s && *s != '/'; len++) {
            char c;
            size_t n = char_read(s, &c);

            if (n == 0 || (n > 1 && ((unsigned char)c < ' ' || c == 0x7f || strchr("/\\", c))))
                return -1;
            dots += c == '.';
            s += n;
        }
        if (len > 0 && len <= 2 && dots == len)
            return -1;
    }
    return 0;
}

/* The text of a refusal holds nothing of the URL: a user's password may be in it. */
int url_parse(const char *text, struct url *ret, struct error *reterr)
{
    const char *s = text;
    size_t len;

    *ret = (struct url){0};
    if (strlen(text) >= URL_MAX)
        return error_set(reterr, ERR_INVALID, "a URL has at most %d bytes", URL_MAX - 1);
    if (scheme_parse(&s, &ret->https) < 0)
        return error_set(reterr, ERR_INVALID, "a URL begins with http:// or https://");
    if (!chars_check(s) || strpbrk(s, "?#"))
        return error_set(reterr, ERR_INVALID,
                         "a URL here has no query, no fragment, no spaces and no special "
                         "characters");
    len = strcspn(s, "/");
    if (memchr(s, '@', len))
        return error_set(reterr, ERR_INVALID, "a URL here has no user and no password");
    if (authority_parse(s, len, ret) < 0)
        return error_set(reterr, ERR_INVALID,
                         "a URL needs a host name or an address, and a port from 1 to 65535");
    s += len;
    if (path_check(s) < 0)
        return error_set(reterr, ERR_INVALID,
                         "a URL's path has no dots as segments and no broken "
                         "escapes");
    len = strlen(s);
    while (len > 0 && s[len - 1] == '/')
        len--;
    memcpy(ret->path, s, len);
    return 0;
}

int url_origin_format(const struct url *u, char *ret, size_t size)
{
    bool v6 = strchr(u->host, ':') != NULL;
    int n = snprintf(ret, size, "%s://%s%s%s:%u", u->https ? "https" : "http", v6 ? "[" : "",
                     u->host, v6 ? "]" : "", u->port);

    if (n >= 0 && (size_t)n < size)
        return 0;
    if (size > 0)
        ret[0] = 0;
    return -1;
}

bool url_is_loopback(const struct url *u)
{
    struct addr a;

    if (addr_parse(u->host, &a) == 0)
        return addr_classify(&a) == ADDR_LOOPBACK;
    return str_eq(u->host, "localhost") || host_is_below(u->host, "localhost");
}

bool url_is_private(const struct url *u)
{
    struct addr a;

    if (addr_parse(u->host, &a) == 0)
        return addr_classify(&a) != ADDR_PUBLIC;
    for (size_t i = 0; i < ARRAY_LEN(metadata_names); i++) {
        if (str_eq(u->host, metadata_names[i]))
            return true;
    }
    return url_is_loopback(u);
}

/* Not isalnum(): what is a letter must not depend on the locale. */
static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

int url_percent_append(struct buf *ret, const char *text)
{
    int r = 0;

    for (; *text && r == 0; text++) {
        unsigned char c = (unsigned char)*text;

        r = is_unreserved(c) ? buf_append_byte(ret, c) : buf_printf(ret, "%%%02X", c);
    }
    return r;
}
