/* SPDX-License-Identifier: MIT */
/* Records go through a guard, so that what one says of names and sizes is never believed. */
#include "session/records.h"

#include <string.h>

enum { REASON_SHOWN = 360 };

void tree_records_init(struct tree_records *t, struct tree_sink *to)
{
    *t = (struct tree_records){.in = {.max = 2 * RECORD_MAX}};
    tree_guard_init(&t->guard, to);
}

void tree_records_done(struct tree_records *t)
{
    tree_guard_done(&t->guard);
    buf_done(&t->in);
}

static int reason_take(const struct record *r, struct error *reterr)
{
    char shown[REASON_SHOWN];

    record_show(shown, sizeof(shown), r->body, r->len - 1);
    return error_set(reterr, r->code, "%s", shown);
}

static int record_take(struct tree_records *t, const struct record *r, struct error *reterr)
{
    struct tree_sink *to = &t->guard.sink;
    const struct tree_entry e = {.type = (enum tree_type)r->kind,
                                 .path = r->path,
                                 .size = r->size,
                                 .executable = r->executable,
                                 .mtime_ms = r->mtime_ms,
                                 .target = r->kind == RECORD_LINK ? r->body : NULL};

    if (t->ended)
        return error_set(reterr, ERR_PROTOCOL, "a record behind the last one");
    if (r->kind == RECORD_ERROR)
        return reason_take(r, reterr);
    if (r->kind == RECORD_DATA)
        return to->data(to, r->body, r->len, reterr);
    if (r->kind != RECORD_END)
        return to->entry(to, &e, reterr);
    t->ended = true;
    return tree_guard_finish(&t->guard, reterr);
}

/* All whole records that wait. */
static int waiting_take(struct tree_records *t, struct error *reterr)
{
    size_t done = 0;
    ssize_t used = 0;
    int r = 0;

    while (r == 0) {
        struct record record;

        used = record_next(t->in.data + done, t->in.len - done, &record, reterr);
        if (used <= 0)
            break;
        r = record_take(t, &record, reterr);
        done += (size_t)used;
    }
    buf_consume(&t->in, done);
    return used < 0 ? (int)used : r;
}

int tree_records_feed(struct tree_records *t, const void *data, size_t len, struct error *reterr)
{
    int r = 0;

    while (r == 0 && len > 0) {
        size_t part = MIN(len, t->in.max - t->in.len);

        if (buf_append(&t->in, data, part) < 0)
            return error_no_memory(reterr);
        data = (const char *)data + part;
        len -= part;
        r = waiting_take(t, reterr);
    }
    return r < 0 ? r : t->ended;
}
