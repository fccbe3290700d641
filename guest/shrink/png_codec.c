/* SPDX-License-Identifier: MIT */
/*
 * libpng, with as little of it as there can be: chunks that only describe are dropped, and rows go
 * straight into the reduction.
 */
#include "shrink/png_codec.h"

#include "shrink/fault.h"
#include "wire/image_header.h"

#include <png.h>
#include <string.h>

enum {
    INTERLACED_PIXELS_MAX = 16 * 1000 * 1000,
    CHUNK_BYTES_MAX = 4 * 1024 * 1024,
    CHUNKS_MAX = 64
};

static void on_error(png_structp png, png_const_charp message)
{
    fault_raise(png_get_error_ptr(png), "PNG", message);
}

/* A warning is about something that is not shown. */
static void on_warning(png_structp png, png_const_charp message)
{
}

/* ---- reading ---- */

struct reading {
    struct fault fault;
    const unsigned char *data;
    size_t left;
    uint32_t side;
    png_structp png;
    png_infop info;
    struct reduction reduction;
    unsigned char *rows; /* one, or all of an interlaced picture */
    struct error *err;
};

static void on_read(png_structp png, png_bytep to, size_t len)
{
    struct reading *r = png_get_io_ptr(png);

    if (len > r->left)
        png_error(png, "the data ends too early");
    memcpy(to, r->data, len);
    r->data += len;
    r->left -= len;
}

/* Whatever it is, rows come as 8-bit RGBA. */
static void format_set(struct reading *r)
{
    png_set_expand(r->png);
    png_set_scale_16(r->png);
    png_set_gray_to_rgb(r->png);
    png_set_add_alpha(r->png, 0xff, PNG_FILLER_AFTER);
}

static void rows_read(struct reading *r, uint32_t height, size_t stride, int passes)
{
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            unsigned char *row = r->rows + (passes > 1 ? y * stride : 0);

            png_read_row(r->png, row, NULL);
            if (pass == passes - 1)
                reduction_row(&r->reduction, row);
        }
    }
}

static int read_work(void *arg)
{
    struct reading *r = arg;
    uint32_t width, height;
    size_t stride;
    int passes;

    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, IMAGE_PIXELS_MAX, IMAGE_PIXELS_MAX);
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES_MAX);
    png_set_chunk_cache_max(r->png, CHUNKS_MAX);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(r->png, r->info);
    format_set(r);
    passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    width = png_get_image_width(r->png, r->info);
    height = png_get_image_height(r->png, r->info);
    stride = (size_t)width * 4;
    if ((uint64_t)width * height > (passes > 1 ? INTERLACED_PIXELS_MAX : IMAGE_PIXELS_MAX))
        return error_set(r->err, ERR_LIMIT, "PNG: more pixels than can be read");
    if (png_get_rowbytes(r->png, r->info) != stride)
        return error_set(r->err, ERR_INVALID, "PNG: an unknown pixel format");
    r->rows = calloc(passes > 1 ? height : 1, stride);
    if (!r->rows)
        return error_no_memory(r->err);
    if (reduction_init(&r->reduction, width, height, r->side, r->err) < 0)
        return -ERR_NO_MEMORY;
    rows_read(r, height, stride, passes);
    return 0;
}

int png_codec_read(const void *data, size_t len, uint32_t side, struct picture *ret,
                   struct error *reterr)
{
    struct reading r = {.data = data, .left = len, .side = side, .err = reterr};
    int n = -ERR_NO_MEMORY;

    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r.fault, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (r.info)
        n = fault_guard(&r.fault, read_work, &r, reterr);
    else
        (void)error_no_memory(reterr);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    if (n == 0) {
        *ret = r.reduction.out;
        r.reduction.out.pixels = NULL;
    }
    reduction_done(&r.reduction);
    return n;
}

/* ---- writing ---- */

struct writing {
    struct fault fault;
    const struct picture *picture;
    struct buf *out;
    png_structp png;
    png_infop info;
    unsigned char *row;
};

static void on_write(png_structp png, png_bytep data, size_t len)
{
    struct writing *w = png_get_io_ptr(png);

    if (buf_append(w->out, data, len) == 0)
        return;
    w->fault.code = ERR_LIMIT;
    png_error(png, "above the limit");
}

static void on_flush(png_structp png)
{
}

/* RGBA to as many channels as the picture needs: grey or colour, and alpha where there is some. */
static void row_pack(const unsigned char *from, uint32_t width, int color_type, unsigned char *to)
{
    for (uint32_t x = 0; x < width; x++, from += 4) {
        *to++ = from[0];
        if (color_type & PNG_COLOR_MASK_COLOR) {
            *to++ = from[1];
            *to++ = from[2];
        }
        if (color_type & PNG_COLOR_MASK_ALPHA)
            *to++ = from[3];
    }
}

static int write_work(void *arg)
{
    struct writing *w = arg;
    const struct picture *p = w->picture;
    bool opaque, gray;
    int color_type;

    picture_look(p, &opaque, &gray);
    color_type = (gray ? 0 : PNG_COLOR_MASK_COLOR) | (opaque ? 0 : PNG_COLOR_MASK_ALPHA);
    png_set_write_fn(w->png, w, on_write, on_flush);
    png_set_IHDR(w->png, w->info, p->width, p->height, 8, color_type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (uint32_t y = 0; y < p->height; y++) {
        row_pack(p->pixels + (size_t)y * p->width * 4, p->width, color_type, w->row);
        png_write_row(w->png, w->row);
    }
    png_write_end(w->png, w->info);
    return 0;
}

int png_codec_write(const struct picture *p, struct buf *ret, struct error *reterr)
{
    struct writing w = {.picture = p, .out = ret};
    size_t before = ret->len;
    int n = -ERR_NO_MEMORY;

    w.row = malloc((size_t)p->width * 4);
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w.fault, on_error, on_warning);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    if (w.row && w.info)
        n = fault_guard(&w.fault, write_work, &w, reterr);
    else
        (void)error_no_memory(reterr);
    png_destroy_write_struct(&w.png, &w.info);
    free(w.row);
    if (n < 0)
        ret->len = before;
    return n;
}
