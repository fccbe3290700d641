/* SPDX-License-Identifier: MIT */
/*
 * Targets, header fields and authorities. The first byte chooses. A path that is accepted must be
 * its own written form and lead nowhere else; an authority must be read again as it is written.
 */
#include "base/buf.h"
#include "base/str.h"
#include "wire/http.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void path_check(const struct http_target *t)
{
    if (t->path[0] != '/' || t->segment_count == 0 || strstr(t->path, "/../") ||
        strstr(t->path, "/./") || str_ends(t->path, "/..") || str_ends(t->path, "/."))
        __builtin_trap();
}

static void target_run(const char *data, size_t size)
{
    auto_arena struct arena arena = {.max = 4 << 20};
    struct http_target t, again;
    auto_buf struct buf escaped = {.max = 4 << 20};

    if (http_target_parse(data, size, &arena, &t, NULL) < 0)
        return;
    path_check(&t);
    for (const char *s = t.path; *s; s++) {
        bool keep = *s == '/' || strncmp(s, "%2F", 3) == 0 || strncmp(s, "%25", 3) == 0;

        if (keep && *s == '%') {
            if (buf_append(&escaped, s, 3) < 0)
                return;
            s += 2;
        } else if (buf_printf(&escaped, keep ? "/" : "%%%02x", (unsigned char)*s) < 0) {
            return;
        }
    }
    if (escaped.len > HTTP_TARGET_MAX)
        return;
    if (http_target_parse(escaped.data, escaped.len, &arena, &again, NULL) < 0 ||
        !str_eq(t.path, again.path))
        __builtin_trap();
}

static void field_run(const char *data, size_t size)
{
    const char *colon = memchr(data, ':', size);
    struct http_head head = {0};
    struct http_field f;

    if (!colon)
        return;
    f = (struct http_field){data, colon + 1, (size_t)(colon - data),
                            size - (size_t)(colon - data) - 1};
    if (http_head_add(&head, &f, NULL) == 0 &&
        (memchr(data, '\n', size) || memchr(data, '\r', size) || memchr(data, 0, size)))
        __builtin_trap();
    (void)!http_head_check(&head, 1, NULL);
}

static void authority_run(const char *data, size_t size)
{
    static const char *const origins[] = {"https://app.example", NULL};
    struct http_guard guard = {.port = 80, .origins = origins};
    struct http_authority a, again;
    struct http_field origin = {"Origin", data, 6, size};
    char text[HOST_PORT_TEXT];
    int len;

    if (http_authority_parse(data, size, &a) < 0)
        return;
    (void)http_guard_origin(&guard, &origin, &a);
    len = snprintf(text, sizeof(text), strchr(a.host, ':') ? "[%s]" : "%s", a.host);
    if (http_authority_parse(text, (size_t)len, &again) < 0 || !str_eq(a.host, again.host))
        __builtin_trap();
    if (http_guard_host(&guard, &a) && !str_eq(a.host, "localhost") &&
        !str_eq(a.host, "127.0.0.1") && !str_eq(a.host, "::1"))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const runs[])(const char *, size_t) = {target_run, field_run, authority_run};

    if (size > 0)
        runs[data[0] % ARRAY_LEN(runs)]((const char *)data + 1, size - 1);
    return 0;
}
