/* SPDX-License-Identifier: MIT */
/* Any conversation in windows of any size: calls and results stay pairs, and no text is missing or
 * holds what people cannot see. The first byte chooses the window. */
#include "agent/view.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void part_check(const struct llm_part *part, bool is_tools)
{
    require(part->kind != LLM_TEXT || (part->text && *part->text) || part->raw);
    require(part->kind != LLM_IMAGE || (part->mime && part->data) || part->url);
    require(!is_tools || part->kind != LLM_TEXT || !strpbrk(part->text, "\x1b\x7f"));
}

static void messages_check(const struct llm_message *m, size_t count)
{
    size_t images = 0;

    for (size_t i = 0; i < count; i++) {
        require(m[i].part_count + m[i].call_count > 0);
        require(m[i].role != LLM_SYSTEM || i == 0);
        for (size_t n = 0; n < m[i].part_count; n++) {
            part_check(&m[i].parts[n], m[i].role == LLM_TOOL);
            images += m[i].parts[n].kind == LLM_IMAGE;
        }
    }
    require(images <= 8);
}

static void pairs_check(const struct llm_message *m, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t reply = i;

        require(m[i].role != LLM_TOOL);
        for (size_t n = 0; n < m[reply].call_count; n++) {
            i++;
            require(i < count && m[i].role == LLM_TOOL);
            require(strcmp(m[i].tool_call_id, m[reply].calls[n].id) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view_options options = {
        .images = true, .system = "be good", .model = {.provider = "anthropic"}};
    auto_transcript struct transcript t = {};
    auto_json yyjson_doc *doc = NULL;
    auto_arena struct arena arena;
    struct llm_message *messages = NULL;
    size_t count = 0;

    arena_init(&arena, 256 * MIB);
    if (size == 0 || json_parse((const char *)data + 1, size - 1, &doc, NULL) < 0 ||
        transcript_apply(&t, yyjson_doc_get_root(doc), NULL) < 0)
        return 0;
    options.window_tokens = 1 + 16 * data[0];
    require(view_make(&t, &options, &arena, &messages, &count, NULL) == 0);
    messages_check(messages, count);
    pairs_check(messages, count);
    return 0;
}
