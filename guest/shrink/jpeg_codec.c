/* SPDX-License-Identifier: MIT */
/*
 * libjpeg. The decoder itself reduces by 2, 4 or 8 while that leaves enough; the rest is the area
 * reduction. Memory has a limit that the library keeps, and the number of scans has one, because a
 * small progressive file may ask for any number of passes over a large picture.
 */
#include "shrink/jpeg_codec.h"

#include "shrink/fault.h"
#include "wire/image_header.h"

/* jpeglib.h needs both before it. */
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>
#include <string.h>

enum { MEMORY_MAX = 160 * 1024 * 1024, SCANS_MAX = 100, OUT_CHUNK = 16384, FINE_QUALITY = 80 };

/* What a library's object points to as client_data. */
struct common {
    struct fault fault;
    struct jpeg_error_mgr errors;
};

static void on_error(j_common_ptr j)
{
    struct common *c = j->client_data;
    char message[JMSG_LENGTH_MAX];

    c->errors.format_message(j, message);
    fault_raise(&c->fault, "JPEG", message);
}

/* A negative level is a warning: the data is damaged and the library goes on with a guess. */
static void on_message(j_common_ptr j, int level)
{
    if (level < 0)
        j->err->num_warnings++;
}

static void on_output(j_common_ptr j)
{
}

static void errors_init(struct common *c, j_common_ptr j)
{
    j->client_data = c;
    j->err = jpeg_std_error(&c->errors);
    c->errors.error_exit = on_error;
    c->errors.emit_message = on_message;
    c->errors.output_message = on_output;
}

/* ---- reading ---- */

struct reading {
    struct common common;
    struct jpeg_decompress_struct j;
    struct jpeg_progress_mgr progress;
    const unsigned char *data;
    size_t len;
    uint32_t side;
    struct reduction reduction;
    unsigned char *row, *rgba;
    struct error *err;
};

static void on_progress(j_common_ptr j)
{
    struct common *c = j->client_data;

    if (((j_decompress_ptr)j)->input_scan_number > SCANS_MAX)
        fault_raise(&c->fault, "JPEG", "too many scans");
}

/* The strongest reduction of the decoder that leaves at least `side`. */
static unsigned denominator_choose(uint32_t longest, uint32_t side)
{
    unsigned d = 8;

    while (d > 1 && longest / d < side)
        d /= 2;
    return d;
}

/* Printers' colours, as the files that exist have them: inverted. */
static void cmyk_convert(const unsigned char *cmyk, uint32_t width, unsigned char *rgba)
{
    for (uint32_t x = 0; x < width; x++, cmyk += 4, rgba += 4) {
        for (int i = 0; i < 3; i++)
            rgba[i] = (unsigned char)(cmyk[i] * cmyk[3] / 255);
        rgba[3] = 255;
    }
}

static void rows_read(struct reading *r, bool cmyk)
{
    while (r->j.output_scanline < r->j.output_height) {
        JSAMPROW row = cmyk ? r->row : r->rgba;

        if (jpeg_read_scanlines(&r->j, &row, 1) != 1)
            fault_raise(&r->common.fault, "JPEG", "the data ends too early");
        if (cmyk)
            cmyk_convert(r->row, r->j.output_width, r->rgba);
        reduction_row(&r->reduction, r->rgba);
    }
}

static int read_work(void *arg)
{
    struct reading *r = arg;
    j_decompress_ptr j = &r->j;
    bool cmyk;

    jpeg_create_decompress(j);
    j->mem->max_memory_to_use = MEMORY_MAX;
    r->progress.progress_monitor = on_progress;
    j->progress = &r->progress;
    jpeg_mem_src(j, r->data, r->len);
    (void)jpeg_read_header(j, TRUE);
    if ((uint64_t)j->image_width * j->image_height > IMAGE_PIXELS_MAX)
        return error_set(r->err, ERR_LIMIT, "JPEG: more pixels than can be read");
    cmyk = j->num_components == 4;
    j->out_color_space = cmyk ? JCS_CMYK : JCS_EXT_RGBA;
    j->scale_num = 1;
    j->scale_denom = denominator_choose(MAX(j->image_width, j->image_height), r->side);
    (void)jpeg_start_decompress(j);
    r->row = malloc((size_t)j->output_width * 4);
    r->rgba = malloc((size_t)j->output_width * 4);
    if (!r->row || !r->rgba)
        return error_no_memory(r->err);
    if (reduction_init(&r->reduction, j->output_width, j->output_height, r->side, r->err) < 0)
        return -ERR_NO_MEMORY;
    rows_read(r, cmyk);
    return r->common.errors.num_warnings ? error_set(r->err, ERR_INVALID, "JPEG: damaged data") : 0;
}

int jpeg_codec_read(const void *data, size_t len, uint32_t side, struct picture *ret,
                    struct error *reterr)
{
    struct reading r = {.data = data, .len = len, .side = side, .err = reterr};
    int n;

    errors_init(&r.common, (j_common_ptr)&r.j);
    n = fault_guard(&r.common.fault, read_work, &r, reterr);
    jpeg_destroy_decompress(&r.j);
    free(r.row);
    free(r.rgba);
    if (n == 0) {
        *ret = r.reduction.out;
        r.reduction.out.pixels = NULL;
    }
    reduction_done(&r.reduction);
    return n;
}

/* ---- writing ---- */

struct writing {
    struct common common;
    struct jpeg_compress_struct j;
    struct jpeg_destination_mgr to;
    const struct picture *picture;
    int quality;
    struct buf *out;
    unsigned char *row;
    unsigned char chunk[OUT_CHUNK];
};

static void out_start(j_compress_ptr j)
{
    struct writing *w = (struct writing *)j->client_data;

    w->to.next_output_byte = w->chunk;
    w->to.free_in_buffer = sizeof(w->chunk);
}

static void out_append(struct writing *w, size_t len)
{
    if (buf_append(w->out, w->chunk, len) == 0)
        return;
    w->common.fault.code = ERR_LIMIT;
    fault_raise(&w->common.fault, "JPEG", "above the limit");
}

static boolean out_full(j_compress_ptr j)
{
    out_append((struct writing *)j->client_data, OUT_CHUNK);
    out_start(j);
    return TRUE;
}

static void out_end(j_compress_ptr j)
{
    struct writing *w = (struct writing *)j->client_data;

    out_append(w, sizeof(w->chunk) - w->to.free_in_buffer);
}

static void row_flatten(const unsigned char *rgba, uint32_t width, unsigned char *rgb)
{
    for (uint32_t x = 0; x < width; x++, rgba += 4) {
        for (int i = 0; i < 3; i++)
            *rgb++ = (unsigned char)((rgba[i] * rgba[3] + 255 * (255 - rgba[3]) + 127) / 255);
    }
}

static int write_work(void *arg)
{
    struct writing *w = arg;
    const struct picture *p = w->picture;
    JSAMPROW row = w->row;

    jpeg_create_compress(&w->j);
    w->to = (struct jpeg_destination_mgr){.init_destination = out_start,
                                          .empty_output_buffer = out_full,
                                          .term_destination = out_end};
    w->j.dest = &w->to;
    w->j.image_width = p->width;
    w->j.image_height = p->height;
    w->j.input_components = 3;
    w->j.in_color_space = JCS_RGB;
    jpeg_set_defaults(&w->j);
    jpeg_set_quality(&w->j, w->quality, TRUE);
    /* Thin coloured lines do not survive halved colour. */
    if (w->quality >= FINE_QUALITY)
        w->j.comp_info[0].h_samp_factor = w->j.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&w->j, TRUE);
    for (uint32_t y = 0; y < p->height; y++) {
        row_flatten(p->pixels + (size_t)y * p->width * 4, p->width, w->row);
        (void)jpeg_write_scanlines(&w->j, &row, 1);
    }
    jpeg_finish_compress(&w->j);
    return 0;
}

int jpeg_codec_write(const struct picture *p, int quality, struct buf *ret, struct error *reterr)
{
    auto_free struct writing *w = calloc(1, sizeof(*w));
    auto_free unsigned char *row = malloc((size_t)p->width * 3);
    size_t before = ret->len;
    int n;

    if (!w || !row)
        return error_no_memory(reterr);
    w->picture = p;
    w->quality = quality;
    w->out = ret;
    w->row = row;
    errors_init(&w->common, (j_common_ptr)&w->j);
    n = fault_guard(&w->common.fault, write_work, w, reterr);
    jpeg_destroy_compress(&w->j);
    if (n < 0)
        ret->len = before;
    return n;
}
