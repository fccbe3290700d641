/* SPDX-License-Identifier: MIT */
/*
 * Any text as a URL. What is taken, written out and read again, is the same; and it holds nothing
 * that would end a line of a request.
 */
#include "base/str.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void text_check(const char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f || strchr("\\@?#", *s))
            __builtin_trap();
    }
}

/* A path may have what a host may not. */
static void path_check(const char *s)
{
    if (*s && (*s != '/' || s[strlen(s) - 1] == '/' || strstr(s, "/../") || strstr(s, "/./")))
        __builtin_trap();
    for (; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f || strchr("\\?#", *s))
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[URL_MAX + HOST_SIZE] = "", origin[HOST_SIZE + 32];
    struct url once, again;
    struct addr a;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    if (url_parse(text, &once, NULL) < 0)
        return 0;
    text_check(once.host);
    path_check(once.path);
    if (url_is_loopback(&once) && !url_is_private(&once))
        __builtin_trap();
    if (addr_parse(once.host, &a) == 0 &&
        (addr_classify(&a) != ADDR_PUBLIC) != url_is_private(&once))
        __builtin_trap();
    if (url_origin_format(&once, origin, sizeof(origin)) < 0)
        __builtin_trap();
    snprintf(text, sizeof(text), "%s%s", origin, once.path);
    if (strlen(text) >= URL_MAX) /* with its port it may have grown */
        return 0;
    if (url_parse(text, &again, NULL) < 0 || memcmp(&once, &again, sizeof(once)) != 0)
        __builtin_trap();
    return 0;
}
