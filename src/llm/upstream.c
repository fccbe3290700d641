/* SPDX-License-Identifier: MIT */
/*
 * What a provider says when it fails, as an error that people may see. Services repeat what they
 * were sent, and proxies what they were configured with, so keys are masked by what they are and by
 * what they look like.
 */
#include "base/str.h"
#include "llm/llm-internal.h"
#include "wire/utf8.h"

enum { MESSAGE_SHOWN = 300, MESSAGE_READ = 4096, KEY_START = 4, KEY_WORD_MIN = 8 };

static const char mask[] = "***";

/* ---- masking ---- */

static const char *const key_starts[] = {"sk-", "sk_", "AIza", "gsk_", "xai-", "hf_"};

static bool word_is_secret(const char *word, size_t len, const char *key)
{
    if (len < KEY_WORD_MIN)
        return false;
    /* Parts of a key, as some services show them: sk-ab***yz. */
    if (strlen(key) >= KEY_WORD_MIN && strncmp(word, key, KEY_START) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(key_starts); i++) {
        if (str_starts(word, key_starts[i]))
            return true;
    }
    return false;
}

static int words_mask(const struct buf *text, const char *key, struct buf *ret)
{
    static const char between[] = " \t\"'`,;:=()[]{}<>";
    const char *s = buf_str(text);

    while (*s) {
        size_t gap = strspn(s, between), len = strcspn(s + gap, between);
        const char *word = s + gap;
        bool secret = word_is_secret(word, len, key);

        if (buf_append(ret, s, gap) < 0 ||
            buf_append(ret, secret ? mask : word, secret ? sizeof(mask) - 1 : len) < 0)
            return -1;
        s = word + len;
    }
    return 0;
}

static int key_mask(const char *text, size_t len, const char *key, struct buf *ret)
{
    size_t key_len = strlen(key);

    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];

        if (key_len && len - i >= key_len && memcmp(text + i, key, key_len) == 0) {
            if (buf_append_str(ret, mask) < 0)
                return -1;
            i += key_len;
        } else if (buf_append_byte(ret, c < ' ' || c == 0x7f ? ' ' : c) < 0) {
            return -1;
        } else {
            i++;
        }
    }
    return 0;
}

int upstream_mask(const char *text, size_t len, const char *key, struct buf *ret)
{
    auto_buf struct buf exact = {.max = 4 * MESSAGE_READ}, all = {.max = 4 * MESSAGE_READ};

    key = key ? key : "";
    if (key_mask(text, utf8_cut(text, len, MESSAGE_READ), key, &exact) < 0 ||
        words_mask(&exact, key, &all) < 0)
        return -1;
    return buf_append(ret, buf_str(&all), utf8_cut(buf_str(&all), all.len, MESSAGE_SHOWN));
}

/* ---- messages ---- */

static yyjson_val *message_find(yyjson_val *v)
{
    static const char *const members[] = {"error", "message", "detail", "error_description", "msg"};

    /* A few levels are all that anybody nests: [{"error": {"message": "..."}}]. */
    for (int level = 0; level < 4 && v && !yyjson_is_str(v); level++) {
        yyjson_val *inner = yyjson_is_arr(v) ? yyjson_arr_get_first(v) : NULL;

        for (size_t i = 0; !inner && i < ARRAY_LEN(members); i++)
            inner = yyjson_obj_get(v, members[i]);
        v = inner;
    }
    return yyjson_is_str(v) ? v : NULL;
}

int upstream_message(const char *body, size_t len, struct buf *ret)
{
    auto_json yyjson_doc *doc = NULL;
    struct utf8_repair u = {0};
    yyjson_val *message;

    if (len == 0)
        return 0;
    if (json_parse(body, len, &doc, NULL) == 0) {
        message = message_find(yyjson_doc_get_root(doc));
        return message ? buf_append(ret, yyjson_get_str(message), yyjson_get_len(message)) : 0;
    }
    /* A page for people says nothing in its first bytes. */
    if (body[strspn(body, " \t\r\n")] == '<')
        return 0;
    return utf8_repair_feed(&u, body, MIN(len, (size_t)MESSAGE_READ), ret);
}

/* ---- errors ---- */

static enum error_code status_code(unsigned status)
{
    static const struct {
        unsigned status;
        enum error_code code;
    } codes[] = {{400, ERR_INVALID}, {401, ERR_DENIED},  {403, ERR_DENIED},  {404, ERR_INVALID},
                 {413, ERR_INVALID}, {415, ERR_INVALID}, {422, ERR_INVALID}, {429, ERR_LIMIT}};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].status == status)
            return codes[i].code;
    }
    return ERR_UPSTREAM;
}

static bool status_is_passing(unsigned status)
{
    return status == 408 || status == 409 || status == 429 || (status >= 500 && status < 600);
}

int stream_fail(struct llm_stream *s, unsigned status, const char *message, struct error *reterr)
{
    auto_buf struct buf shown = {.max = 4 * MESSAGE_SHOWN};
    enum error_code code = status_code(status);
    const char *text = message ? message : "", *title = s->provider->title;

    s->again = status_is_passing(status);
    if (upstream_mask(text, strlen(text), s->request->model.api_key, &shown) < 0)
        return error_no_memory(reterr);
    if (!status)
        return error_set(reterr, code, "%s failed: %s", title, buf_str(&shown));
    return error_set(reterr, code, "%s answered %u%s%s", title, status, shown.len ? ": " : "",
                     buf_str(&shown));
}
