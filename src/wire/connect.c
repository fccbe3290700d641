/* SPDX-License-Identifier: MIT */
/*
 * The answer to CONNECT is read strictly. A proxy that sends a Location with its 2xx wants to lead
 * us elsewhere (captive portals do that), which is no tunnel; all other headers of a 2xx carry no
 * meaning for a tunnel and are skipped.
 */
#include "wire/connect.h"

#include "base/base64.h"
#include "base/str.h"

#include <stdio.h>
#include <strings.h>

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, c | 0x20) : NULL;

    return p ? (int)(p - digits) : -1;
}

/* Undoes %XX; control characters are refused, since a header line is made of the result. */
static int percent_decode(const char *s, size_t len, struct buf *ret)
{
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)s[i];

        if (c == '%') {
            if (len - i < 3 || hex_value(s[i + 1]) < 0 || hex_value(s[i + 2]) < 0)
                return -1;
            c = hex_value(s[i + 1]) * 16 + hex_value(s[i + 2]);
            i += 2;
        }
        if (c < 0x20 || c == 0x7f || buf_append_byte(ret, (unsigned char)c) < 0)
            return -1;
    }
    return 0;
}

static int auth_encode(const char *s, size_t len, char ret[CONNECT_AUTH_SIZE])
{
    auto_buf struct buf plain = {.max = 768}, coded = {.max = CONNECT_AUTH_SIZE - 1};
    const char *colon = memchr(s, ':', len);
    size_t user = colon ? (size_t)(colon - s) : len;
    int r;

    /* All room at once: a buffer that grows leaves copies behind. */
    r = buf_reserve(&plain, plain.max) < 0 || buf_reserve(&coded, coded.max) < 0 ? -1 : 0;
    if (r == 0)
        r = percent_decode(s, user, &plain);
    if (r == 0)
        r = buf_append_byte(&plain, ':');
    if (r == 0 && colon)
        r = percent_decode(colon + 1, len - user - 1, &plain);
    if (r == 0)
        r = base64_encode(&coded, plain.data, plain.len);
    if (r == 0)
        r = str_copy(ret, CONNECT_AUTH_SIZE, buf_str(&coded));
    if (plain.data)
        explicit_bzero(plain.data, plain.cap);
    if (coded.data)
        explicit_bzero(coded.data, coded.cap);
    return r;
}

static int proxy_host_parse(const char *s, struct connect_proxy *ret, struct error *reterr)
{
    char host[HOST_SIZE];

    if (addr_split_port(s, host, &ret->port, NULL) < 0)
        return error_set(reterr, ERR_INVALID, "the proxy's URL has no valid host and port");
    if (ret->port == 0)
        ret->port = 80;
    ret->literal = addr_parse(host, &ret->addr) == 0;
    if (!ret->literal && host_parse(host, strlen(host), ret->host) < 0)
        return error_set(reterr, ERR_INVALID, "the proxy's URL has no valid host");
    return 0;
}

int connect_proxy_parse(const char *url, struct connect_proxy *ret, struct error *reterr)
{
    char host[HOST_PORT_TEXT];
    const char *at, *end;
    size_t len;

    *ret = (struct connect_proxy){};
    if (strncasecmp(url, "http://", 7) != 0)
        return error_set(reterr, ERR_INVALID, "the proxy's URL does not begin with http://");
    url += 7;
    end = url + strcspn(url, "/?#");
    at = memrchr(url, '@', (size_t)(end - url));
    if (at && auth_encode(url, (size_t)(at - url), ret->auth) < 0)
        return error_set(reterr, ERR_INVALID, "the proxy's credentials are malformed");
    if (at)
        url = at + 1;
    len = (size_t)(end - url);
    if (len >= sizeof(host) || (*end && !str_eq(end, "/")))
        return error_set(reterr, ERR_INVALID, "the proxy's URL is more than a host and a port");
    memcpy(host, url, len);
    host[len] = 0;
    ret->used = true;
    return proxy_host_parse(host, ret, reterr);
}

const char *connect_target_format(const char *host, uint16_t port, char ret[HOST_PORT_TEXT])
{
    snprintf(ret, HOST_PORT_TEXT, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    return ret;
}

int connect_request_format(const struct connect_proxy *proxy, const char *target, struct buf *ret)
{
    if (buf_printf(ret, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target) < 0)
        return -1;
    if (proxy->auth[0] && buf_printf(ret, "Proxy-Authorization: Basic %s\r\n", proxy->auth) < 0)
        return -1;
    return buf_append_str(ret, "\r\n");
}

/* ---- the answer ---- */

static int reply_garbage(struct error *reterr)
{
    return error_set(reterr, ERR_PROTOCOL, "the proxy's answer is not HTTP");
}

/* "HTTP/1.x NNN" and then a space or the end. `len` is without the line's end. */
static int status_parse(const char *line, size_t len, int *ret)
{
    static const char form[] = "HTTP/1.d ddd";

    if (len < sizeof(form) - 1)
        return -1;
    for (size_t i = 0; i < sizeof(form) - 1; i++) {
        if (form[i] == 'd' ? line[i] < '0' || line[i] > '9' : line[i] != form[i])
            return -1;
    }
    if (len > sizeof(form) - 1 && line[sizeof(form) - 1] != ' ')
        return -1;
    *ret = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    return *ret >= 100 ? 0 : -1;
}

/* What has come of the first line can still become a status line. */
static bool status_may_begin(const char *data, size_t len)
{
    static const char form[] = "HTTP/1.";

    return memcmp(data, form, MIN(len, sizeof(form) - 1)) == 0;
}

static bool line_check(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static int status_check(int status, bool location, struct error *reterr)
{
    if (status == 407)
        return error_set(reterr, ERR_DENIED,
                         "the proxy wants other credentials (407); check SANDBOX_PROXY");
    if (status >= 300 && status < 400)
        return error_set(reterr, ERR_UPSTREAM, "the proxy answered with a redirect (%d)", status);
    if (status < 200 || status >= 300)
        return error_set(reterr, ERR_UPSTREAM, "the proxy refused (%d)", status);
    if (location)
        return error_set(reterr, ERR_UPSTREAM, "the proxy answered %d and a redirect", status);
    return 1;
}

/* The next line of `data` behind `at`; its length without CR LF, or -1 when it has no end yet. */
static ssize_t line_next(const char *data, size_t len, size_t *at)
{
    const char *begin = data + *at;
    const char *end = memchr(begin, '\n', len - *at);
    size_t size;

    if (!end)
        return -1;
    size = (size_t)(end - begin);
    *at += size + 1;
    return (ssize_t)(size > 0 && begin[size - 1] == '\r' ? size - 1 : size);
}

static bool is_location(const char *line, size_t len)
{
    return len >= 9 && strncasecmp(line, "location:", 9) == 0;
}

int connect_reply_parse(const char *data, size_t len, struct connect_reply *ret,
                        struct error *reterr)
{
    size_t window = MIN(len, (size_t)CONNECT_HEADER_MAX), at = 0, begin = 0;
    bool location = false;
    ssize_t line;

    *ret = (struct connect_reply){};
    if (!status_may_begin(data, window))
        return reply_garbage(reterr);
    while ((line = line_next(data, window, &at)) >= 0) {
        if (!line_check(data + begin, (size_t)line))
            return reply_garbage(reterr);
        if (begin == 0 && status_parse(data, (size_t)line, &ret->status) < 0)
            return reply_garbage(reterr);
        if (begin > 0 && line == 0) {
            ret->length = at;
            return status_check(ret->status, location, reterr);
        }
        location |= begin > 0 && is_location(data + begin, (size_t)line);
        begin = at;
    }
    if (len >= CONNECT_HEADER_MAX)
        return error_set(reterr, ERR_LIMIT, "the proxy's headers pass %d bytes",
                         (int)CONNECT_HEADER_MAX);
    return 0;
}
