/* SPDX-License-Identifier: MIT */
/*
 * The sequences around a picture are ours, and nothing of its bytes goes to the terminal other than
 * in base64, or as sixels of which each character was looked at.
 */
#include "cli/term/image.h"

#include "base/base64.h"
#include "base/str.h"
#include "cli/term/picture_child.h"
#include "wire/image_header.h"

#include <stdio.h>

enum {
    ROWS_MAX = 24,
    SIDE_MAX = 4096, /* of what a terminal is given to decode */
    TERMINAL_PIXELS_MAX = 16 * 1000 * 1000,
    KITTY_CHUNK = 4096,
    OUT_MAX = 32 * 1024 * 1024,
};

struct request {
    const struct term_caps *caps;
    const unsigned char *data;
    size_t len;
    int stop_fd;
    struct image_header header;
    unsigned side;    /* the longest side that fits on the screen, in pixels */
    unsigned columns; /* how wide it is drawn; 0: as it is, it fits */
};

/* What of the size fits into a box of the screen. */
static void size_fit(struct request *r, unsigned columns)
{
    const struct image_header *h = &r->header;
    uint64_t box_width = MAX((uint64_t)columns * r->caps->cell_width, 1u);
    uint64_t box_height = (uint64_t)ROWS_MAX * r->caps->cell_height;
    uint64_t width = h->width, height = h->height, longest = MAX(width, height);

    if (width > box_width) {
        height = MAX(height * box_width / width, 1u);
        width = box_width;
    }
    if (height > box_height) {
        width = MAX(width * box_height / height, 1u);
        height = box_height;
    }
    r->side = (unsigned)MIN(MAX(width, height), (uint64_t)SIDE_MAX);
    if (r->side < longest)
        r->columns = (unsigned)MAX(width / r->caps->cell_width, 1u);
}

/* ---- kitty ---- */

static int kitty_write(const struct request *r, const void *data, size_t len, struct buf *ret)
{
    auto_buf struct buf text;
    int result = 0;

    buf_init(&text, OUT_MAX);
    if (base64_encode(&text, data, len) < 0)
        return -1;
    for (size_t at = 0; at < text.len && result == 0; at += KITTY_CHUNK) {
        size_t n = MIN(text.len - at, (size_t)KITTY_CHUNK);
        bool is_more = at + n < text.len;

        /* q=2: no answer, which would be read as if it had been typed. */
        if (buf_append_str(ret, at ? "\033_Gq=2," : "\033_Ga=T,f=100,q=2,") < 0 ||
            (at == 0 && r->columns && buf_printf(ret, "c=%u,", r->columns) < 0) ||
            buf_printf(ret, "m=%d;", is_more) < 0)
            return -1;
        result = buf_append(ret, text.data + at, n) < 0 ? -1 : buf_append_str(ret, "\033\\");
    }
    return result;
}

static int decode(const struct request *r, const char *mode, struct buf *ret, struct error *reterr)
{
    const struct picture_job job = {.mode = mode,
                                    .side = r->side,
                                    .data = r->data,
                                    .len = r->len,
                                    .time_ms = PICTURE_TIME_MS,
                                    .stop_fd = r->stop_fd};

    return picture_child_run(&job, ret, reterr);
}

/* A PNG of the size that is shown, from the child. */
static int png_make(const struct request *r, struct buf *ret, struct error *reterr)
{
    struct image_header h;
    int result = decode(r, "png", ret, reterr);

    if (result < 0)
        return result;
    if (image_header_parse(buf_str(ret), ret->len, &h, reterr) < 0 || h.kind != IMAGE_PNG ||
        MAX(h.width, h.height) > r->side)
        return error_set(reterr, ERR_INVALID, "the picture was not decoded well");
    return 0;
}

static bool is_small(const struct request *r)
{
    return image_pixels(&r->header) <= TERMINAL_PIXELS_MAX;
}

static int kitty_draw(const struct request *r, struct buf *ret, struct error *reterr)
{
    auto_buf struct buf png;
    int result;

    if (r->header.kind == IMAGE_PNG && is_small(r))
        return kitty_write(r, r->data, r->len, ret) < 0 ? error_no_memory(reterr) : 1;
    if (r->header.kind != IMAGE_PNG && r->header.kind != IMAGE_JPEG)
        return 0;
    buf_init(&png, OUT_MAX);
    if ((result = png_make(r, &png, reterr)) < 0)
        return result;
    return kitty_write(r, buf_str(&png), png.len, ret) < 0 ? error_no_memory(reterr) : 1;
}

/* ---- iTerm2 ---- */

static int iterm2_draw(const struct request *r, struct buf *ret, struct error *reterr)
{
    char width[16] = "auto";

    if (r->header.kind == IMAGE_WEBP || !is_small(r))
        return 0;
    if (r->columns)
        snprintf(width, sizeof(width), "%u", r->columns);
    if (buf_printf(ret,
                   "\033]1337;File=inline=1;size=%zu;width=%s;height=auto;"
                   "preserveAspectRatio=1:",
                   r->len, width) < 0 ||
        base64_encode(ret, r->data, r->len) < 0 || buf_append_byte(ret, '\a') < 0)
        return error_no_memory(reterr);
    return 1;
}

/* ---- sixel ---- */

/* Raster size, colours, bands: no control character can be among them. */
static bool is_sixel_body(const struct buf *body)
{
    if (body->len == 0 || body->data[0] != '"')
        return false;
    for (size_t i = 0; i < body->len; i++) {
        char c = body->data[i];

        if (!(c >= '?' && c <= '~') && !(c && strchr("0123456789;#!$-\"", c)))
            return false;
    }
    return true;
}

static int sixel_draw(const struct request *r, struct buf *ret, struct error *reterr)
{
    auto_buf struct buf body;
    int result;

    if (r->header.kind != IMAGE_PNG && r->header.kind != IMAGE_JPEG)
        return 0;
    buf_init(&body, OUT_MAX);
    if ((result = decode(r, "sixel", &body, reterr)) < 0)
        return result;
    if (!is_sixel_body(&body))
        return error_set(reterr, ERR_INVALID, "the picture was not decoded well");
    if (buf_append_str(ret, "\033P0;1;0q") < 0 || buf_append(ret, body.data, body.len) < 0 ||
        buf_append_str(ret, "\033\\") < 0)
        return error_no_memory(reterr);
    return 1;
}

/* ---- all ---- */

int image_encode(const struct term_caps *caps, unsigned columns, const struct image_source *source,
                 struct buf *ret, struct error *reterr)
{
    static int (*const draws[])(const struct request *r, struct buf *ret, struct error *reterr) = {
        [TERM_PICTURE_KITTY] = kitty_draw,
        [TERM_PICTURE_ITERM2] = iterm2_draw,
        [TERM_PICTURE_SIXEL] = sixel_draw,
    };
    struct request r = {
        .caps = caps, .data = source->data, .len = source->len, .stop_fd = source->stop_fd};
    int result;

    if (caps->picture == TERM_PICTURE_NONE)
        return 0;
    if (r.len > IMAGE_BYTES_MAX)
        return error_set(reterr, ERR_LIMIT, "the picture has more than %d MiB",
                         IMAGE_BYTES_MAX / 1024 / 1024);
    if ((result = image_header_parse(source->data, r.len, &r.header, reterr)) < 0)
        return result;
    if (!r.header.whole)
        return error_set(reterr, ERR_INVALID, "the picture is cut off");
    if (image_pixels(&r.header) > IMAGE_PIXELS_MAX)
        return error_set(reterr, ERR_LIMIT, "the picture has more than %d million pixels",
                         IMAGE_PIXELS_MAX / 1000000);
    size_fit(&r, columns);
    result = draws[caps->picture](&r, ret, reterr);
    if (result == 1 && buf_append_byte(ret, '\n') < 0)
        return error_no_memory(reterr);
    return result;
}

int image_print(struct term *t, const struct image_source *source, struct error *reterr)
{
    unsigned width = term_width(t);
    auto_buf struct buf out;
    int r;

    if (!term_caps(t)->is_tty)
        return 0;
    buf_init(&out, 2 * (size_t)OUT_MAX);
    r = image_encode(term_caps(t), width > 4 ? width - 2 : width, source, &out, reterr);
    if (r == 1)
        term_raw(t, buf_str(&out), out.len);
    return r;
}
