/* SPDX-License-Identifier: MIT */
/*
 * Filters: one SPAWN, its stdin as INPUT frames, its stdout collected. The environment is fixed, so
 * that nothing which a session was given changes what our program does.
 */
#include "session/filter.h"

#include "base/clock.h"
#include "session/session-internal.h"

#include <string.h>

enum { REASON_BYTES = 200, GRACE_MS = 5000 };

struct filtering {
    const struct session_filter *f;
    struct buf *ret;
    bool full;
    char reason[REASON_BYTES];
    size_t reason_len;
};

static void reason_add(struct filtering *x, const char *text, size_t len)
{
    len = MIN(len, sizeof(x->reason) - 1 - x->reason_len);
    memcpy(x->reason + x->reason_len, text, len);
    x->reason_len += len;
}

static bool on_frame(void *user, const struct frame *frame)
{
    struct filtering *x = user;

    if (frame->type == FRAME_STDERR)
        reason_add(x, frame->payload, frame->len);
    if (frame->type == FRAME_STDOUT && buf_append(x->ret, frame->payload, frame->len) < 0)
        x->full = true;
    return !x->full;
}

static int input_feed(struct control *c, uint32_t stream, void *user, struct error *reterr)
{
    const struct filtering *x = user;
    size_t done = 0;

    while (done < x->f->in_len) {
        size_t n = MIN(x->f->in_len - done, (size_t)FRAME_BULK_MAX);
        int r = control_send(c, FRAME_INPUT, stream, (const char *)x->f->in + done, n, reterr);

        if (r < 0)
            return r;
        done += n;
    }
    return control_send(c, FRAME_INPUT, stream, NULL, 0, reterr);
}

static int request_build(const struct session_filter *f, struct buf *ret, struct error *reterr)
{
    int r = 0;

    for (const char *const *word = f->argv; *word && r == 0; word++)
        r = fields_add_str(ret, "argv", *word);
    if (r < 0 || fields_add_str(ret, "env", "LC_ALL=C.UTF-8") < 0 ||
        fields_add_str(ret, "cwd", "/") < 0 || fields_add_str(ret, "user", "sandbox") < 0 ||
        fields_add_int(ret, "timeout_ms", f->timeout_ms) < 0 || fields_add_int(ret, "stdin", 1) < 0)
        return error_no_memory(reterr);
    return 0;
}

static int filter_run(struct session *s, struct filtering *x, struct error *reterr)
{
    auto_buf struct buf payload;
    struct error error = {};
    int r;

    buf_init(&payload, 64 * KIB);
    if ((r = request_build(x->f, &payload, reterr)) < 0)
        return r;
    r = control_call(
        s->sandbox->control,
        &(struct control_request){.type = FRAME_SPAWN,
                                  .payload = &payload,
                                  .on_frame = on_frame,
                                  .user = x,
                                  .feed = input_feed,
                                  .deadline = clock_deadline(x->f->timeout_ms + GRACE_MS)},
        &error);
    if (x->full)
        return error_set(reterr, ERR_LIMIT, "'%s' printed more than %zu bytes", x->f->argv[0],
                         x->ret->max);
    if (r == 0)
        return 0;
    x->reason[strcspn(x->reason, "\n")] = 0;
    return error_set(reterr, error.code, "%s", x->reason[0] ? x->reason : error.text);
}

int session_filter(struct session_manager *m, const struct session_filter *f, struct buf *ret,
                   struct error *reterr)
{
    struct filtering x = {.f = f, .ret = ret};
    struct session *s = session_find(m, f->id, f->owner, reterr);
    int r;

    if (!s)
        return -ERR_NOT_FOUND;
    r = session_call_begin(s, CALL_PROCESS, reterr);
    if (r == 0) {
        r = filter_run(s, &x, reterr);
        session_call_end(s, CALL_PROCESS);
    }
    session_unref(s);
    return r;
}
