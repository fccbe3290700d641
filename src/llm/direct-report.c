/* SPDX-License-Identifier: MIT */
/*
 * What a run gave, in a few lines for the person who wrote the code. The whole is in the tool's
 * result, which clients show; so long texts are cut here.
 */
#include "llm/direct-internal.h"

#include "base/str.h"
#include "wire/utf8.h"

enum { TEXT_SHOWN = 4000, FENCE_MAX = 64, DISPLAYS_SHOWN = 10 };

/* ---- text of others ---- */

/* The length of a sequence for a terminal (colours) that begins here, 0 for none. */
static size_t escape_length(const char *text, size_t len)
{
    size_t n = 2;

    if (len < 2 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (n < len && (unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x40)
        n++;
    return MIN(n + 1, len);
}

static int clean_append(struct buf *ret, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t skip = escape_length(text + i, len - i);

        if (skip == 0 && ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f))
            skip = 1;
        if (skip == 0 && buf_append_byte(ret, c) < 0)
            return -1;
        i += skip ? skip : 1;
    }
    return 0;
}

static size_t longest_run(const struct buf *text, char c)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < text->len; i++) {
        run = text->data[i] == c ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    return longest;
}

/* Within a fence that is longer than any in it; of tildes, where backticks would have to be many.
 */
static int fence_append(struct buf *ret, const struct buf *text)
{
    char c = longest_run(text, '`') < FENCE_MAX - 1 ? '`' : '~';
    size_t count = MAX(longest_run(text, c) + 1, (size_t)3);
    char fence[TEXT_SHOWN + 2];

    memset(fence, c, count);
    if (buf_append(ret, fence, count) < 0 || buf_append_str(ret, "text\n") < 0 ||
        buf_append(ret, text->data, text->len) < 0)
        return -1;
    if (text->data[text->len - 1] != '\n' && buf_append_byte(ret, '\n') < 0)
        return -1;
    return buf_append(ret, fence, count) < 0 ? -1 : buf_append_byte(ret, '\n');
}

/* `title` (NULL: none) and the text; nothing for a blank one. */
static int text_append(struct buf *ret, const char *title, const char *text, size_t len)
{
    size_t kept = utf8_cut(text, len, TEXT_SHOWN);
    auto_buf struct buf clean = {.max = TEXT_SHOWN};

    if (clean_append(&clean, text, kept) < 0)
        return -1;
    if (strspn(buf_str(&clean), " \t\n") == clean.len)
        return 0;
    if ((title && buf_printf(ret, "%s:\n", title) < 0) || fence_append(ret, &clean) < 0)
        return -1;
    return kept < len ? buf_printf(ret, "(%zu more bytes)\n", len - kept) : 0;
}

static int member_append(struct buf *ret, const char *title, yyjson_val *value)
{
    return yyjson_is_str(value)
               ? text_append(ret, title, yyjson_get_str(value), yyjson_get_len(value))
               : 0;
}

/* ---- parts of a payload ---- */

/* An object where the code raised it, text where a tool refused. */
static int error_append(struct buf *ret, yyjson_val *payload)
{
    yyjson_val *error = yyjson_obj_get(payload, "error");
    auto_buf struct buf text = {.max = MIB};

    if (!yyjson_is_obj(error))
        return member_append(ret, "Error", error);
    if (buf_printf(&text, "%s: %s", json_get_str(error, "type", "Error"),
                   json_get_str(error, "message", "")) < 0)
        return member_append(ret, "Error", yyjson_obj_get(error, "message"));
    return text_append(ret, "Error", text.data, text.len);
}

static int state_append(struct buf *ret, yyjson_val *payload)
{
    yyjson_val *code = yyjson_obj_get(payload, "exit_code");

    if (yyjson_is_int(code) && yyjson_get_sint(code) != 0 &&
        buf_printf(ret, "Exit code %lld.\n", (long long)yyjson_get_sint(code)) < 0)
        return -1;
    if (str_eq(json_get_str(payload, "status", ""), "timeout") &&
        buf_append_str(ret, "The time-out has passed.\n") < 0)
        return -1;
    if (str_eq(json_get_str(payload, "state", ""), "lost"))
        return buf_append_str(ret, "The variables are lost.\n");
    return 0;
}

/* As a tool gives it, or as a note that begins with the kind. */
static const char *display_type(yyjson_val *item)
{
    const char *note = yyjson_get_str(item);

    return note ? note : json_get_str(item, "type", "?");
}

static int displays_append(struct buf *ret, yyjson_val *displays)
{
    size_t count = yyjson_arr_size(displays), i, max;
    yyjson_val *item;

    if (count == 0)
        return 0;
    if (buf_printf(ret, count == 1 ? "1 display" : "%zu displays", count) < 0)
        return -1;
    yyjson_arr_foreach(displays, i, max, item)
    {
        const char *type = display_type(item);

        if (i == DISPLAYS_SHOWN)
            return buf_append_str(ret, ", ...\n");
        if (buf_printf(ret, "%s`%.*s`", i ? ", " : ": ", (int)strcspn(type, ",`\r\n"), type) < 0)
            return -1;
    }
    return buf_append_str(ret, ".\n");
}

static int failure_append(struct buf *ret, yyjson_val *payload)
{
    if (member_append(ret, "stderr", yyjson_obj_get(payload, "stderr")) < 0 ||
        error_append(ret, payload) < 0)
        return -1;
    return member_append(ret, "Message", yyjson_obj_get(payload, "message"));
}

int direct_report(struct buf *ret, yyjson_val *payload, const char *text)
{
    size_t before = ret->len;
    yyjson_val *result;

    if (!payload)
        return text_append(ret, NULL, text, strlen(text));
    result = yyjson_obj_get(yyjson_obj_get(payload, "result"), "text/plain");
    if (member_append(ret, NULL, yyjson_obj_get(payload, "stdout")) < 0 ||
        member_append(ret, "Result", result) < 0 || failure_append(ret, payload) < 0 ||
        displays_append(ret, yyjson_obj_get(payload, "display_outputs")) < 0 ||
        displays_append(ret, yyjson_obj_get(payload, "display_outputs_summary")) < 0 ||
        state_append(ret, payload) < 0)
        return -1;
    return ret->len == before ? buf_append_str(ret, "Done, without output.\n") : 0;
}
