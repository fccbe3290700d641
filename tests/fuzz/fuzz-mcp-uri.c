/* SPDX-License-Identifier: MIT */
/* URIs of resources: a path that comes out is a normal one, and its own URI leads back to it. */
#include "mcp/resource-uri.h"

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void path_expect(const char *path)
{
    if (path[0] != '/' || strstr(path, "//") || strstr(path, "/../") || strstr(path, "/./"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *uri = strndup((const char *)data, size);
    struct resource_place place, again;
    auto_buf struct buf text;

    buf_init(&text, RESOURCE_URI_MAX);
    if (!uri || resource_uri_parse(uri, &place) < 0 || place.is_display)
        return 0;
    path_expect(place.path);
    if (resource_uri_format(&text, place.id, place.path) < 0 ||
        resource_uri_parse(buf_str(&text), &again) < 0 || strcmp(place.id, again.id) != 0 ||
        strcmp(place.path, again.path) != 0)
        abort();
    return 0;
}
