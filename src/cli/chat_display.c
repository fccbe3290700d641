/* SPDX-License-Identifier: MIT */
/*
 * Displays of cells: text in the panel, everything else as a file whose path is told, and pictures
 * on the screen, too, where the terminal can. A display that the server keeps is fetched.
 */
#include "cli/chat.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/chat_result.h"
#include "cli/display.h"
#include "cli/term/image.h"

#include <stdio.h>

enum { DISPLAY_MAX = 64 << 20, SHA256_HEX = 64 };

/* Kinds that are read, not looked at. */
static bool is_text(const char *mime)
{
    static const char *const kinds[] = {"text/plain", "text/markdown", "text/latex",
                                        "application/json"};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_eq(kinds[i], mime))
            return true;
    }
    return false;
}

static bool is_picture(const char *mime)
{
    return str_eq(mime, "image/png") || str_eq(mime, "image/jpeg") || str_eq(mime, "image/gif");
}

static int blob_fetch(struct chat *c, const char *sha256, struct buf *ret, struct error *reterr)
{
    char path[CHAT_THREAD_SIZE + 128];
    struct http_reply reply;
    int r;

    if (!str_check_chars(sha256, "0123456789abcdef", SHA256_HEX))
        return error_set(reterr, ERR_PROTOCOL, "the display's name is malformed");
    snprintf(path, sizeof(path), "/threads/%s/blobs/%s", c->thread_id, sha256);
    r = chat_api_send(&c->api, &(struct chat_request){.method = "GET", .path = path}, &reply,
                      reterr);
    if (r < 0)
        return r;
    if (buf_append(ret, buf_str(&reply.body), reply.body.len) < 0)
        r = error_set(reterr, ERR_LIMIT, "the display is too large");
    buf_done(&reply.body);
    return r;
}

static int content_get(struct chat *c, yyjson_val *item, struct buf *ret, struct error *reterr)
{
    yyjson_val *blob = yyjson_obj_get(item, "blob"), *data = yyjson_obj_get(item, "data");
    bool base64;

    (void)display_suffix(json_get_str(item, "type", ""), &base64);
    if (yyjson_is_str(blob))
        return blob_fetch(c, yyjson_get_str(blob), ret, reterr);
    if (!data)
        return error_set(reterr, ERR_PROTOCOL, "the display is empty");
    if (!yyjson_is_str(data))
        return json_write(data, ret, reterr);
    if ((base64 ? base64_decode(ret, yyjson_get_str(data), yyjson_get_len(data))
                : buf_append(ret, yyjson_get_str(data), yyjson_get_len(data))) < 0)
        return error_set(reterr, ERR_PROTOCOL, "the display is malformed");
    return 0;
}

static int content_save(struct chat *c, const char *mime, const struct buf *content,
                        char ret[PATH_LEN], struct error *reterr)
{
    bool base64;
    const char *suffix = display_suffix(mime, &base64);
    auto_fd int fd = chat_place_display_create(&c->place, c->thread_id, suffix, ret, reterr);

    return fd < 0 ? fd : fd_write_full(fd, buf_str(content), content->len, reterr);
}

/* "image/png 640x480" */
static void kind_format(yyjson_val *item, char *ret, size_t size)
{
    yyjson_val *width = yyjson_obj_get(item, "width"), *height = yyjson_obj_get(item, "height");
    int len = snprintf(ret, size, "%.100s", json_get_str(item, "type", "?"));

    if (yyjson_is_uint(width) && yyjson_is_uint(height) && (size_t)len < size)
        snprintf(ret + len, size - (size_t)len, " %ux%u", (unsigned)yyjson_get_uint(width),
                 (unsigned)yyjson_get_uint(height));
}

/* What stands for the display where only text is shown; "" for a mere name of an object. */
static const char *alternative(yyjson_val *item)
{
    const char *text = json_get_str(item, "text", "");

    return text[0] == '<' ? "" : text;
}

static void text_show(struct panel *panel, const char *label, const char *text, size_t len)
{
    panel_rule(panel, label);
    panel_feed(panel, text, len);
}

/* The kind and the path, as a line of its own: so a path can be copied. */
static void saved_add(struct chat *c, const char *kind, const char *path, struct buf *ret)
{
    enum term_color color = term_color(c->term);
    auto_buf struct buf clean;

    buf_init(&clean, 4096);
    if (clean_line(kind, 100, &clean) == 0 &&
        style_text(ret, STYLE_FAINT, color, buf_str(&clean), clean.len) == 0 &&
        buf_append_str(ret, " → ") == 0 &&
        style_text(ret, STYLE_LINK, color, path, strlen(path)) == 0)
        (void)!buf_append_byte(ret, '\n');
}

static void problem_note(struct panel *panel, const char *kind, const struct error *error)
{
    char line[600];

    snprintf(line, sizeof(line), "%s: %s", kind, error->text);
    panel_note(panel, STYLE_WARNING, line);
}

void chat_display_show(struct chat *c, struct panel *panel, yyjson_val *item,
                       struct chat_shown *below)
{
    const char *mime = json_get_str(item, "type", ""), *text = alternative(item);
    char kind[160], path[PATH_LEN];
    auto_buf struct buf content;
    struct error error;

    buf_init(&content, DISPLAY_MAX);
    kind_format(item, kind, sizeof(kind));
    if (content_get(c, item, &content, &error) < 0) {
        problem_note(panel, kind, &error);
        return;
    }
    if (is_text(mime)) {
        text_show(panel, "display", buf_str(&content), content.len);
        return;
    }
    if (text[0] && !is_picture(mime))
        text_show(panel, "display", text, strlen(text));
    if (content_save(c, mime, &content, path, &error) < 0)
        problem_note(panel, kind, &error);
    else
        saved_add(c, kind, path, &below->saved);
    if (is_picture(mime) && term_caps(c->term)->picture != TERM_PICTURE_NONE &&
        below->count < CHAT_PICTURES) {
        below->pictures[below->count++] = content;
        buf_init(&content, 0);
    }
}

void chat_shown_print(struct chat *c, struct chat_shown *below)
{
    struct error error = {};

    for (size_t i = 0; i < below->count; i++) {
        struct buf *p = &below->pictures[i];
        const struct image_source source = {buf_str(p), p->len, c->signal_fd};

        /* Ctrl-C is for all of them. */
        if (error.code != ERR_CANCELLED && image_print(c->term, &source, &error) < 0)
            chat_say(c, STYLE_WARNING, "the picture is not shown: %s", error.text);
        buf_done(p);
    }
    below->count = 0;
    term_print(c->term, buf_str(&below->saved), below->saved.len);
    buf_done(&below->saved);
}
