/* SPDX-License-Identifier: MIT */
/*
 * The answer of a proxy and its URL. The first byte chooses. An answer that is read in pieces must
 * end as it does when it is read whole.
 */
#include "wire/connect.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void reply_run(const char *data, size_t size)
{
    struct connect_reply whole, part;
    struct error error;
    int r = connect_reply_parse(data, size, &whole, &error);
    int p = 0;

    if (size > 512)
        return;
    for (size_t len = 0; len <= size && p == 0; len++)
        p = connect_reply_parse(data, len, &part, &error);
    if ((r > 0) != (p > 0) || (r > 0 && whole.length != part.length))
        __builtin_trap();
}

static void url_run(const char *data, size_t size)
{
    auto_buf struct buf request = {.max = 4096};
    char url[1024], target[HOST_PORT_TEXT];
    struct connect_proxy proxy;
    struct error error;

    if (size >= sizeof(url))
        return;
    memcpy(url, data, size);
    url[size] = 0;
    if (connect_proxy_parse(url, &proxy, &error) < 0)
        return;
    if (proxy.port == 0 || (!proxy.literal && !proxy.host[0]))
        __builtin_trap();
    if (connect_request_format(&proxy, connect_target_format("a", 1, target), &request) < 0 ||
        strcmp(request.data + request.len - 4, "\r\n\r\n") != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 2)
        reply_run((const char *)data + 1, size - 1);
    else
        url_run((const char *)data + 1, size - 1);
    return 0;
}
