/* SPDX-License-Identifier: MIT */
/*
 * Header grammar, targets and origins. A target is split at its raw slashes before anything is
 * decoded, so an encoded slash can never move a border between segments.
 */
#include "wire/http.h"

#include "base/str.h"

#include <strings.h>

/* ---- headers ---- */

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_is_token(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_token_char((unsigned char)s[i]))
            return false;
    }
    return len > 0;
}

bool http_is_value(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static struct http_field field_trim(const struct http_field *field)
{
    struct http_field f = *field;

    while (f.value_len > 0 && (f.value[0] == ' ' || f.value[0] == '\t'))
        f.value++, f.value_len--;
    while (f.value_len > 0 && (f.value[f.value_len - 1] == ' ' || f.value[f.value_len - 1] == '\t'))
        f.value_len--;
    return f;
}

static bool slice_is(const char *s, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

static int length_parse(const struct http_field *f, uint64_t *ret)
{
    uint64_t value = 0;

    if (f->value_len == 0 || f->value_len > 18)
        return -1;
    for (size_t i = 0; i < f->value_len; i++) {
        if (f->value[i] < '0' || f->value[i] > '9')
            return -1;
        value = value * 10 + (uint64_t)(f->value[i] - '0');
    }
    *ret = value;
    return 0;
}

int http_head_add(struct http_head *head, const struct http_field *field, struct error *reterr)
{
    struct http_field f = field_trim(field);

    if (!http_is_token(f.name, f.name_len))
        return error_set(reterr, ERR_INVALID, "a header's name is malformed");
    if (!http_is_value(f.value, f.value_len))
        return error_set(reterr, ERR_INVALID, "a header's value holds control characters");
    if (slice_is(f.name, f.name_len, "host")) {
        head->hosts++;
        head->host = f;
    } else if (slice_is(f.name, f.name_len, "origin")) {
        head->origins++;
        head->origin = f;
    } else if (slice_is(f.name, f.name_len, "content-length")) {
        head->lengths++;
        if (length_parse(&f, &head->length) < 0)
            return error_set(reterr, ERR_INVALID, "Content-Length is not a number");
    } else if (slice_is(f.name, f.name_len, "transfer-encoding")) {
        head->codings++;
        if (!slice_is(f.value, f.value_len, "chunked"))
            return error_set(reterr, ERR_INVALID, "Transfer-Encoding is other than chunked");
    }
    return 0;
}

int http_head_check(const struct http_head *head, unsigned minor, struct error *reterr)
{
    if (head->hosts != 1)
        return error_set(reterr, ERR_INVALID, "the request has %s",
                         head->hosts ? "several Hosts" : "no Host");
    if (head->origins > 1)
        return error_set(reterr, ERR_INVALID, "the request has several Origins");
    if (head->lengths > 1)
        return error_set(reterr, ERR_INVALID, "the request has several Content-Lengths");
    if (head->codings > 1 || (head->codings && head->lengths) || (head->codings && minor == 0))
        return error_set(reterr, ERR_INVALID, "where the request's body ends is ambiguous");
    return 0;
}

/* ---- the target ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What may stand raw in a path or a query. */
static bool is_target_char(unsigned char c)
{
    return c > 0x20 && c < 0x7f && !strchr("\"#<>\\^`{|}", c);
}

static int target_malformed(struct error *reterr)
{
    return error_set(reterr, ERR_INVALID, "the request's target is malformed");
}

/* Decodes into the arena; NULL is malformed, or no memory. */
static const char *escapes_decode(const char *s, size_t len, bool plus, struct arena *arena)
{
    char *out = arena_alloc(arena, len + 1);
    size_t n = 0;

    for (size_t i = 0; out && i < len; i++) {
        int high, low;

        if (s[i] == '+' && plus) {
            out[n++] = ' ';
        } else if (s[i] != '%') {
            out[n++] = s[i];
        } else {
            if (len - i < 3)
                return NULL;
            high = hex_digit(s[i + 1]);
            low = hex_digit(s[i + 2]);
            if (high < 0 || low < 0 || high + low == 0)
                return NULL;
            out[n++] = (char)(high << 4 | low);
            i += 2;
        }
    }
    return out;
}

/* Whether a decoded segment leads nowhere else, by itself or by its parts around slashes. */
static bool segment_check(const char *s)
{
    for (;;) {
        size_t len = strcspn(s, "/");

        if ((len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        if (!s[len])
            return true;
        s += len + 1;
    }
}

static int segments_parse(const char *s, size_t len, struct arena *arena, struct http_target *ret,
                          struct error *reterr)
{
    const char *end = s + len;

    while (s < end) {
        const char *begin = ++s; /* behind the slash */
        const char *slash = memchr(begin, '/', (size_t)(end - begin));

        s = slash ? slash : end;
        if (ret->segment_count == HTTP_SEGMENTS_MAX)
            return error_set(reterr, ERR_LIMIT, "the path has more than %d segments",
                             HTTP_SEGMENTS_MAX);
        ret->segments[ret->segment_count] =
            escapes_decode(begin, (size_t)(s - begin), false, arena);
        if (!ret->segments[ret->segment_count] || !segment_check(ret->segments[ret->segment_count]))
            return target_malformed(reterr);
        ret->segment_count++;
    }
    return 0;
}

static int query_parse(const char *s, size_t len, struct arena *arena, struct http_target *ret,
                       struct error *reterr)
{
    const char *end = s + len;
    size_t max = 1;

    for (size_t i = 0; i < len && max < HTTP_QUERY_MAX; i++)
        max += s[i] == '&';
    ret->query = arena_alloc(arena, max * sizeof(*ret->query));
    if (!ret->query)
        return error_no_memory(reterr);
    for (; s < end; s++) {
        const char *stop = memchr(s, '&', (size_t)(end - s));
        size_t size = (size_t)((stop ? stop : end) - s);
        const char *equals = memchr(s, '=', size);
        size_t name = equals ? (size_t)(equals - s) : size;
        struct http_pair pair = {"", ""};

        if (size > 0 && ret->query_count == HTTP_QUERY_MAX)
            return error_set(reterr, ERR_LIMIT, "the query has more than %d values",
                             HTTP_QUERY_MAX);
        pair.name = escapes_decode(s, name, true, arena);
        if (equals)
            pair.value = escapes_decode(equals + 1, size - name - 1, true, arena);
        if (!pair.name || !pair.value)
            return target_malformed(reterr);
        if (size > 0)
            ret->query[ret->query_count++] = pair;
        s += size;
    }
    return 0;
}

/* The one written form of the path. */
static const char *path_format(const struct http_target *t, size_t len, struct arena *arena)
{
    char *path = arena_alloc(arena, 3 * len + 1), *out = path;

    for (size_t i = 0; path && i < t->segment_count; i++) {
        *out++ = '/';
        for (const char *s = t->segments[i]; *s; s++) {
            if (*s == '/' || *s == '%') {
                memcpy(out, *s == '/' ? "%2F" : "%25", 3);
                out += 3;
            } else {
                *out++ = *s;
            }
        }
    }
    return path;
}

/* Takes "http://authority" off the absolute form. */
static int authority_take(const char **text, size_t *len, struct arena *arena,
                          struct http_target *ret)
{
    static const char scheme[] = "http://";
    size_t skip = sizeof(scheme) - 1, size;

    if (*len < skip || strncasecmp(*text, scheme, skip) != 0)
        return -1;
    for (size = 0; skip + size < *len && !strchr("/?", (*text)[skip + size]);)
        size++;
    if (skip + size == *len || (*text)[skip + size] != '/')
        return -1;
    ret->authority = arena_memdup(arena, *text + skip, size);
    *text += skip + size;
    *len -= skip + size;
    return ret->authority ? 0 : -1;
}

int http_target_parse(const char *text, size_t len, struct arena *arena, struct http_target *ret,
                      struct error *reterr)
{
    const char *mark;
    size_t path_len;
    int r;

    ret->authority = NULL;
    ret->query = NULL;
    ret->segment_count = ret->query_count = 0;
    if (len > HTTP_TARGET_MAX)
        return error_set(reterr, ERR_LIMIT, "the request's target is longer than %d bytes",
                         HTTP_TARGET_MAX);
    for (size_t i = 0; i < len; i++) {
        if (!is_target_char((unsigned char)text[i]))
            return target_malformed(reterr);
    }
    if (len == 0 || (text[0] != '/' && authority_take(&text, &len, arena, ret) < 0))
        return target_malformed(reterr);
    mark = memchr(text, '?', len);
    path_len = mark ? (size_t)(mark - text) : len;
    r = segments_parse(text, path_len, arena, ret, reterr);
    if (r == 0 && mark)
        r = query_parse(mark + 1, len - path_len - 1, arena, ret, reterr);
    if (r < 0)
        return r;
    ret->path = path_format(ret, path_len, arena);
    return ret->path ? 0 : error_no_memory(reterr);
}

/* ---- Host and Origin ---- */

static int port_parse(const char *s, size_t len, uint16_t *ret)
{
    unsigned value = 0;

    if (len == 0 || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        value = value * 10 + (unsigned)(s[i] - '0');
    }
    if (value == 0 || value > UINT16_MAX)
        return -1;
    *ret = (uint16_t)value;
    return 0;
}

static int host_canonical(const char *s, size_t len, char ret[HOST_SIZE])
{
    char text[HOST_SIZE];
    struct addr addr;

    if (len == 0 || len >= sizeof(text) || s[len - 1] == '.')
        return -1;
    memcpy(text, s, len);
    text[len] = 0;
    if (strlen(text) != len)
        return -1;
    if (addr_parse(text, &addr) == 0) {
        char canonical[ADDR_TEXT];

        /* An IPv6 address must be in brackets, or its last group would be a port. */
        if ((addr.family == 6) != (text[0] == '['))
            return -1;
        return str_copy(ret, HOST_SIZE, addr_format(&addr, canonical));
    }
    return host_parse(s, len, ret);
}

int http_authority_parse(const char *s, size_t len, struct http_authority *ret)
{
    const char *bracket = len > 0 && s[0] == '[' ? memchr(s, ']', len) : NULL;
    size_t skip = bracket ? (size_t)(bracket - s) : 0;
    const char *colon = memchr(s + skip, ':', len - skip);
    size_t host_len = colon ? (size_t)(colon - s) : len;

    *ret = (struct http_authority){};
    if (colon && port_parse(colon + 1, len - host_len - 1, &ret->port) < 0)
        return -1;
    return host_canonical(s, host_len, ret->host);
}

static bool is_loopback(const struct http_authority *a)
{
    return str_eq(a->host, "localhost") || str_eq(a->host, "127.0.0.1") || str_eq(a->host, "::1");
}

static bool is_own(const struct http_guard *guard, const struct http_authority *a, uint16_t port)
{
    return port == guard->port &&
           (is_loopback(a) || (guard->bound && str_eq(a->host, guard->bound)));
}

static bool host_entry_has(const char *entry, const struct http_authority *host)
{
    struct http_authority want;

    if (str_eq(entry, "*"))
        return true;
    return http_authority_parse(entry, strlen(entry), &want) == 0 &&
           str_eq(want.host, host->host) && (want.port == 0 || want.port == host->port);
}

bool http_guard_host(const struct http_guard *guard, const struct http_authority *host)
{
    if (is_own(guard, host, host->port ? host->port : 80))
        return true;
    for (const char *const *h = guard->hosts; h && *h; h++) {
        if (host_entry_has(*h, host))
            return true;
    }
    return false;
}

static bool origin_entry_has(const char *entry, const struct http_field *origin)
{
    size_t len = strlen(entry);

    if (str_eq(entry, "*"))
        return true;
    while (len > 0 && entry[len - 1] == '/')
        len--;
    return len == origin->value_len && strncasecmp(entry, origin->value, len) == 0;
}

/* A page of this server: by a loopback name, or by the name that the request is for. */
static bool origin_is_own(const struct http_guard *guard, const struct http_field *origin,
                          const struct http_authority *host)
{
    bool https = origin->value_len > 8 && strncasecmp(origin->value, "https://", 8) == 0;
    bool http = origin->value_len > 7 && strncasecmp(origin->value, "http://", 7) == 0;
    size_t skip = https ? 8 : 7;
    uint16_t standard = https ? 443 : 80, port;
    struct http_authority a;

    if ((!http && !https) ||
        http_authority_parse(origin->value + skip, origin->value_len - skip, &a) < 0)
        return false;
    port = a.port ? a.port : standard;
    if (http && (is_own(guard, &a, port) || (guard->loopback_origins && is_loopback(&a))))
        return true;
    return str_eq(a.host, host->host) && port == (host->port ? host->port : standard);
}

bool http_guard_origin(const struct http_guard *guard, const struct http_field *origin,
                       const struct http_authority *host)
{
    for (const char *const *o = guard->origins; o && *o; o++) {
        if (origin_entry_has(*o, origin) && !slice_is(origin->value, origin->value_len, "null"))
            return true;
    }
    return origin_is_own(guard, origin, host);
}
