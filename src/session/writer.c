/* SPDX-License-Identifier: MIT */
/*
 * A file of a session that is being written. Init stages it beside its name and shows it at the
 * end; the socket holds a writer back that is faster than the sandbox's disk.
 */
#include "session/transfer-internal.h"

#include <stdio.h>

struct session_writer {
    struct file_stream stream; /* first */
};

static int writer_start(struct session_writer *w, struct session_manager *m,
                        const struct session_path *at, int64_t size, const char *mode,
                        struct error *reterr)
{
    auto_buf struct buf payload;
    int r = file_stream_begin(&w->stream, m, at, &payload, reterr);

    if (r < 0)
        return r;
    if (fields_add_int(&payload, "mkdirs", 1) < 0 || fields_add_str(&payload, "mode", mode) < 0 ||
        (size >= 0 && fields_add_int(&payload, "size", size) < 0))
        return error_no_memory(reterr);
    return file_stream_start(&w->stream, FRAME_FILE_WRITE, &payload, reterr);
}

int session_writer_open(struct session_manager *m, const struct session_path *at, int64_t size,
                        unsigned mode, struct session_writer **ret, struct error *reterr)
{
    auto_session_writer struct session_writer *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return error_no_memory(reterr);
    file_stream_init(&w->stream, CALL_WRITE);
    r = writer_start(w, m, at, size, mode & 0111 ? "755" : "644", reterr);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(w);
    return 0;
}

/* What the sandbox said at the end. Under the lock. */
static int result_take(const struct file_stream *s, struct error *reterr)
{
    struct error why = s->why;
    int r = s->result;

    if (r < 0)
        r = file_explain(s->session, &why);
    if (r < 0 && reterr)
        *reterr = why;
    return r;
}

/* The end comes early where it is a failure. */
static int failure_check(struct file_stream *s, struct error *reterr)
{
    int r = 0;

    pthread_mutex_lock(&s->lock);
    if (s->over) {
        r = result_take(s, reterr);
        if (r == 0)
            r = error_set(reterr, ERR_PROTOCOL, "the sandbox ended a file before its end");
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

int session_writer_write(struct session_writer *w, const void *data, size_t len,
                         struct error *reterr)
{
    struct file_stream *s = &w->stream;

    for (size_t done = 0; done < len;) {
        size_t n = MIN(len - done, (size_t)FRAME_BULK_MAX);
        int r = failure_check(s, reterr);

        if (r == 0)
            r = control_send(s->session->sandbox->control, FRAME_WRITE_DATA, s->sink.stream,
                             (const char *)data + done, n, reterr);
        if (r < 0)
            return r;
        done += n;
    }
    return 0;
}

int session_writer_commit(struct session_writer *w, struct error *reterr)
{
    struct file_stream *s = &w->stream;
    int r = failure_check(s, reterr);

    if (r == 0)
        r = control_send(s->session->sandbox->control, FRAME_WRITE_DATA, s->sink.stream, NULL, 0,
                         reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->lock);
    while (r == 0 && !s->over)
        r = file_stream_wait(s, reterr);
    if (r == 0)
        r = result_take(s, reterr);
    pthread_mutex_unlock(&s->lock);
    return r;
}

void session_writer_close(struct session_writer *w)
{
    if (!w)
        return;
    file_stream_done(&w->stream, true);
    free(w);
}
