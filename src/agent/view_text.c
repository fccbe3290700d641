/* SPDX-License-Identifier: MIT */
/*
 * Texts for a model. What people cannot see they cannot object to, so in texts of tools it is
 * written out. Escapes have JSON's form: a payload stays valid JSON.
 */
#include "agent/view-internal.h"

#include "base/str.h"
#include "wire/utf8.h"

#include <stdio.h>
#include <strings.h>

enum { ESCAPE_SIZE = 24 };

/* ---- how much it is ---- */

int64_t view_tokens(const char *text, size_t len)
{
    size_t ascii = 0, others = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        ascii += c < 0x80;
        others += c >= 0xc0;
    }
    return (int64_t)((ascii + 3) / 4 + others);
}

/* By part of a name, in lower case; the first that fits. */
static const struct {
    const char *part;
    int64_t tokens;
} windows[] = {
    {"gpt-5", 400000},       {"gpt-4.1", 1047576},
    {"gpt-4o", 128000},      {"gpt-4-turbo", 128000},
    {"gpt-4-1106", 128000},  {"gpt-4-0125", 128000},
    {"gpt-4-32k", 32768},    {"gpt-4", 8192},
    {"gpt-3.5", 16385},      {"gpt-oss", 131072},
    {"o1-mini", 128000},     {"o1-preview", 128000},
    {"claude", 200000},      {"gemini-1.5-pro", 2097152},
    {"gemini-1.0", 32768},   {"gemini", 1048576},
    {"gemma-3", 131072},     {"gemma3", 131072},
    {"gemma", 8192},         {"llama-4", 1048576},
    {"llama4", 1048576},     {"llama-3.", 131072},
    {"llama3.", 131072},     {"llama-3", 8192},
    {"llama3", 8192},        {"llama2", 4096},
    {"llama-2", 4096},       {"codestral", 262144},
    {"devstral", 131072},    {"magistral", 40960},
    {"mistral-7b", 32768},   {"mixtral", 32768},
    {"mistral", 131072},     {"deepseek", 131072},
    {"qwen3-coder", 262144}, {"qwen3", 131072},
    {"qwen-3", 131072},      {"qwen2.5", 32768},
    {"qwen", 32768},         {"kimi-k2", 262144},
    {"glm-4", 131072},       {"grok-4", 262144},
    {"grok", 131072},        {"command-r", 131072},
    {"command-a", 262144},   {"phi-4", 16384},
    {"phi4", 16384},         {"phi-3", 131072},
    {"nova", 300000},
};

/* OpenAI's o-series is too short a name to be looked for in the middle of others. */
static bool is_o_series(const char *name)
{
    const char *slash = strrchr(name, '/');

    name = slash ? slash + 1 : name;
    return name[0] == 'o' && (name[1] == '1' || name[1] == '3' || name[1] == '4') &&
           (name[2] == 0 || name[2] == '-');
}

int64_t view_window(const char *model)
{
    if (!model)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        if (strcasestr(model, windows[i].part))
            return windows[i].tokens;
    }
    return is_o_series(model) ? 200000 : 0;
}

/* ---- what is hidden ---- */

static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0, 0x8},       {0xb, 0x1f},      {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_hidden(uint32_t c)
{
    if (c >= 0x20 && c < 0x7f)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
        if (c >= hidden[i].first && c <= hidden[i].last)
            return true;
    }
    return false;
}

/* One character of valid UTF-8; its length is never above `len`. */
static size_t char_read(const char *text, size_t len, uint32_t *ret)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned char c = (unsigned char)*text;
    size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    size = MIN(size, len);
    *ret = c & masks[size];
    for (size_t i = 1; i < size; i++)
        *ret = *ret << 6 | ((unsigned char)text[i] & 0x3f);
    return size;
}

/* What stays although it is of the set: line ends, and one selector that makes a sign an emoji. */
static bool is_harmless(uint32_t c, const char *rest, size_t len, bool after_hidden)
{
    if (c == '\r')
        return len > 0 && *rest == '\n';
    return (c == 0xfe0e || c == 0xfe0f) && !after_hidden;
}

static int escape_append(struct buf *ret, uint32_t c)
{
    char text[ESCAPE_SIZE];

    if (c < 0x10000)
        snprintf(text, sizeof(text), "\\u%04x", c);
    else
        snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                 0xdc00 + ((c - 0x10000) & 0x3ff));
    return buf_append_str(ret, text);
}

static int hostile_append(struct buf *ret, const char *text, size_t len)
{
    bool after_hidden = true;
    size_t from = 0, size;
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i += size) {
        uint32_t c = 0;
        bool stays;

        size = char_read(text + i, len - i, &c);
        stays = !is_hidden(c) || is_harmless(c, text + i + size, len - i - size, after_hidden);
        after_hidden = is_hidden(c);
        if (stays)
            continue;
        r = buf_append(ret, text + from, i - from);
        if (r == 0)
            r = escape_append(ret, c);
        from = i + size;
    }
    return r == 0 ? buf_append(ret, text + from, len - from) : r;
}

static int nul_append(struct buf *ret, const char *text, size_t len)
{
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i++) {
        if (text[i])
            r = buf_append_byte(ret, (unsigned char)text[i]);
    }
    return r;
}

char *view_text(struct arena *arena, const char *text, size_t len, bool hostile)
{
    auto_buf struct buf out;

    /* An escape is at most six times as long as what it stands for. */
    buf_init(&out, 6 * len);
    if (!hostile && !memchr(text, 0, len))
        return arena_memdup(arena, text, len);
    if ((hostile ? hostile_append(&out, text, len) : nul_append(&out, text, len)) < 0)
        return NULL;
    return arena_memdup(arena, buf_str(&out), out.len);
}

/* ---- cutting ---- */

static size_t tail_begin(const char *text, size_t len, size_t end)
{
    size_t at = len - end;

    while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

char *view_ends(struct arena *arena, const char *text, size_t end)
{
    size_t len = strlen(text), head, tail;

    if (len <= 2 * end)
        return arena_memdup(arena, text, len);
    head = utf8_cut(text, len, end);
    tail = tail_begin(text, len, end);
    return arena_printf(arena, "%.*s\n[... %zu characters left out here ...]\n%s", (int)head, text,
                        utf8_count(text + head, tail - head), text + tail);
}
