/* SPDX-License-Identifier: MIT */
/* Messages from a client: what is accepted has the promised shape, and an error can be written. */
#include "wire/jsonrpc.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool shape_is_right(const struct jsonrpc_message *m)
{
    if (m->kind == JSONRPC_RESPONSE)
        return !m->result != !m->error;
    return m->method && strlen(m->method) <= JSONRPC_METHOD_MAX &&
           (m->kind == JSONRPC_REQUEST) == (m->id != NULL) &&
           (!m->params || yyjson_is_obj(m->params));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_json yyjson_doc *doc = NULL;
    struct jsonrpc_message m;
    struct error error = {};
    auto_buf struct buf text;
    int code, r = jsonrpc_parse((const char *)data, size, &doc, &m, &code, &error);

    if (r == 0 && !shape_is_right(&m))
        __builtin_trap();
    buf_init(&text, 64 * KIB);
    if (jsonrpc_format_error(m.id, &(struct jsonrpc_fault){code, error.text, NULL}, &text) < 0 ||
        memchr(text.data, '\n', text.len))
        __builtin_trap();
    return 0;
}
