/* SPDX-License-Identifier: MIT */
/* A kernel's MIME map: whatever it is, what comes out is JSON. The first byte is the limit. */
#include "base/json.h"
#include "session/session-internal.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void json_expect(const struct buf *b)
{
    auto_json yyjson_doc *doc = NULL;

    if (json_parse(buf_str(b), b->len, &doc, NULL) < 0 || !yyjson_is_obj(yyjson_doc_get_root(doc)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data + 1;
    auto_buf struct buf item, result;
    bool cut = false;

    buf_init(&item, MIB);
    buf_init(&result, MIB);
    if (size == 0)
        return 0;
    if (display_item(json, size - 1, data[0], &item, NULL) == 0)
        json_expect(&item);
    if (display_result(json, size - 1, data[0], &result, &cut, NULL) == 0)
        json_expect(&result);
    return 0;
}
