/* SPDX-License-Identifier: MIT */
/* Any JSON as a message: what is taken is the same after it was stored, and parsed once more. */
#include "agent/message.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_expect(const struct message *a, const struct message *b)
{
    if (a->type != b->type || a->has_calls != b->has_calls || a->len != b->len ||
        memcmp(a->json, b->json, a->len) != 0 || strcmp(a->id, b->id) != 0)
        abort();
}

static void stable_expect(const struct message *m)
{
    auto_message struct message *loaded = NULL, *parsed = NULL;
    auto_json yyjson_doc *doc = NULL;

    if (message_load(m->json, m->len, 0, &loaded, NULL) < 0 ||
        json_parse(m->json, m->len, &doc, NULL) < 0 ||
        message_parse(yyjson_doc_get_root(doc), &parsed, NULL) < 0)
        abort();
    same_expect(m, loaded);
    same_expect(m, parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    auto_message struct message *m = NULL, *stored = NULL;
    auto_transcript struct transcript t = {};
    auto_json yyjson_doc *doc = NULL;
    auto_buf struct buf out;

    buf_init(&out, 64 * KIB);
    if (message_load(text, size, 0, &stored, NULL) == 0)
        (void)!message_text(stored, &out, NULL);
    if (json_parse(text, size, &doc, NULL) < 0)
        return 0;
    if (message_parse(yyjson_doc_get_root(doc), &m, NULL) == 0)
        stable_expect(m);
    if (transcript_apply(&t, yyjson_doc_get_root(doc), NULL) == 0)
        (void)!transcript_write(&t, &out, NULL);
    return 0;
}
