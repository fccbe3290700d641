/* SPDX-License-Identifier: MIT */
/* Any text as each of the headers; and an element that is put behind it counts as it does alone. */
#include "wire/negotiate.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void preference_check(struct preference p)
{
    if (p.quality < 0 || p.quality > 1000 || p.match < 0 || p.match > 3)
        __builtin_trap();
    if (!p.match && p.quality)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024] = "", longer[1100];
    struct preference p;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    preference_check(accept_type(text, "application/json"));
    preference_check(accept_coding(text, "gzip"));
    preference_check(accept_type(text, "text/html"));
    (void)etag_is_known(text, "\"0123456789abcdef\"");

    /* A quote that is open would take the rest in. */
    snprintf(longer, sizeof(longer), "text/html;q=1,%s", text);
    p = accept_type(longer, "text/html");
    if (p.match != 3 || p.quality != 1000)
        __builtin_trap();
    return 0;
}
