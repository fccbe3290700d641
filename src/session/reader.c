/* SPDX-License-Identifier: MIT */
/*
 * A file of a session as a stream. The connection's thread fills one buffer while the reader
 * empties the other, and credit goes back as bytes are read: what is not read stays in the sandbox.
 */
#include "session/transfer-internal.h"

#include <string.h>

struct session_reader {
    struct file_stream stream; /* first */
    struct session_file_info info;
    size_t report_len;

    /* under the stream's lock */
    struct buf in;
    uint64_t received; /* of info.size */
    bool reported, flooded;

    /* of the reading thread */
    struct buf out;
    size_t out_at;
    uint64_t given;
};

static void data_take(struct session_reader *r, const struct frame *f)
{
    size_t n = (size_t)MIN((uint64_t)f->len, r->info.size - r->received);

    if (r->flooded || n == 0)
        return;
    /* It has a credit of its own to keep to. */
    r->flooded = buf_append(&r->in, f->payload, n) < 0;
    if (!r->flooded)
        r->received += n;
}

static void reader_frame(struct file_stream *s, const struct frame *f)
{
    struct session_reader *r = (struct session_reader *)s;

    if (f->type == FRAME_REPORT && !r->reported) {
        file_info_parse(f, &r->info, NULL);
        r->report_len = f->len;
        r->reported = true;
    } else if (f->type == FRAME_DATA && r->reported) {
        data_take(r, f);
    }
}

static int report_await(struct session_reader *r, struct error *reterr)
{
    struct file_stream *s = &r->stream;
    int n = 0;

    pthread_mutex_lock(&s->lock);
    while (n == 0 && !r->reported && !s->over)
        n = file_stream_wait(s, reterr);
    if (n == 0 && s->over && s->result < 0) {
        n = s->result;
        *reterr = s->why;
    } else if (n == 0 && !r->reported) {
        n = error_set(reterr, ERR_PROTOCOL, "the sandbox does not say what the file is");
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static int reader_start(struct session_reader *r, struct session_manager *m,
                        const struct session_path *at, struct error *reterr)
{
    struct file_stream *s = &r->stream;
    auto_buf struct buf payload;
    int n = file_stream_begin(s, m, at, &payload, reterr);

    if (n == 0)
        n = file_stream_start(s, FRAME_FILE_READ, &payload, reterr);
    if (n == 0)
        n = report_await(r, reterr);
    if (n == 0)
        control_credit(s->session->sandbox->control, &s->sink, r->report_len);
    return n;
}

int session_reader_open(struct session_manager *m, const struct session_path *at,
                        struct session_file_info *ret_info, struct session_reader **ret,
                        struct error *reterr)
{
    auto_session_reader struct session_reader *r = calloc(1, sizeof(*r));
    struct error error;
    int n;

    if (!r)
        return error_no_memory(reterr);
    file_stream_init(&r->stream, CALL_READ);
    r->stream.frame = reader_frame;
    r->stream.sink.holds_credit = true;
    buf_init(&r->in, FRAME_WINDOW + FRAME_BULK_MAX);
    buf_init(&r->out, FRAME_WINDOW + FRAME_BULK_MAX);
    n = reader_start(r, m, at, &error);
    if (n < 0) {
        if (reterr)
            *reterr = error;
        return n;
    }
    *ret_info = r->info;
    *ret = TAKE_PTR(r);
    return 0;
}

/* Why nothing more comes, when the file is not whole. Under the lock. */
static int end_check(const struct session_reader *r, struct error *reterr)
{
    const struct file_stream *s = &r->stream;

    if (r->received == r->info.size)
        return 0;
    if (r->flooded)
        return error_set(reterr, ERR_PROTOCOL, "the sandbox sent more than it was to send");
    if (s->result == 0)
        return error_set(reterr, ERR_SYSTEM,
                         "the file was cut short while it was read: %llu bytes of %llu came",
                         (unsigned long long)r->received, (unsigned long long)r->info.size);
    if (reterr)
        *reterr = s->why;
    return s->result;
}

/* Trades the empty buffer for what came meanwhile; waits until there is something. */
static int buffer_next(struct session_reader *r, struct error *reterr)
{
    struct file_stream *s = &r->stream;
    struct buf empty;
    int n = 0;

    buf_clear(&r->out);
    r->out_at = 0;
    pthread_mutex_lock(&s->lock);
    while (n == 0 && r->in.len == 0 && !s->over && !r->flooded && r->received < r->info.size)
        n = file_stream_wait(s, reterr);
    empty = r->out;
    r->out = r->in;
    r->in = empty;
    if (n == 0 && r->out.len == 0)
        n = end_check(r, reterr);
    pthread_mutex_unlock(&s->lock);
    return n;
}

ssize_t session_reader_read(struct session_reader *r, void *data, size_t len, struct error *reterr)
{
    struct file_stream *s = &r->stream;
    size_t n;
    int e;

    if (r->out_at == r->out.len && (e = buffer_next(r, reterr)) < 0)
        return e;
    n = MIN(len, r->out.len - r->out_at);
    if (n == 0)
        return 0;
    memcpy(data, r->out.data + r->out_at, n);
    r->out_at += n;
    r->given += n;
    if (r->given < r->info.size)
        control_credit(s->session->sandbox->control, &s->sink, n);
    return (ssize_t)n;
}

int copy_from_reader(struct session_reader *r, copy_fn *put, void *user, struct error *reterr)
{
    auto_free char *data = malloc(COPY_CHUNK);

    if (!data)
        return error_no_memory(reterr);
    for (;;) {
        ssize_t n = session_reader_read(r, data, COPY_CHUNK, reterr);
        int e = n > 0 ? put(user, data, (size_t)n, reterr) : (int)n;

        if (n <= 0 || e < 0)
            return e;
    }
}

void session_reader_close(struct session_reader *r)
{
    if (!r)
        return;
    file_stream_done(&r->stream, false);
    buf_done(&r->in);
    buf_done(&r->out);
    free(r);
}
