/* SPDX-License-Identifier: MIT */
/* Records leave in pieces of a few pages, so that small files do not cost a system call each. */
#include "archive/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 160, WAITING_MAX = 2 * RECORD_MAX };

void output_init(struct output *o,
                 int (*send)(struct output *, const void *, size_t, struct error *))
{
    o->send = send;
    buf_init(&o->waiting, WAITING_MAX);
}

void output_done(struct output *o)
{
    buf_done(&o->waiting);
}

int entry_refuse(const struct entry *e, struct error *reterr, const char *fmt, ...)
{
    char shown[SHOWN], why[SHOWN];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    record_show(shown, sizeof(shown), e->name, e->name_len);
    return error_set(reterr, ERR_INVALID, "entry '%s' %s", shown, why);
}

int entry_wrap(const struct entry *e, struct error *reterr)
{
    char shown[SHOWN];

    record_show(shown, sizeof(shown), e->name, e->name_len);
    return error_wrap(reterr, "entry '%s'", shown);
}

static int output_flush(struct output *o, struct error *reterr)
{
    int r = o->waiting.len ? o->send(o, o->waiting.data, o->waiting.len, reterr) : 0;

    buf_clear(&o->waiting);
    return r;
}

static int output_record(struct output *o, const struct record *r, struct error *reterr)
{
    if (record_append(&o->waiting, r) < 0)
        return error_no_memory(reterr);
    return o->waiting.len >= RECORD_DATA_MAX ? output_flush(o, reterr) : 0;
}

/*
 * Without "." and empty components; a leading slash stays, so that the daemon sees and refuses it.
 * Whether there was one behind the name, as folders have it, is told apart.
 */
static int name_clean(const struct entry *e, char ret[RECORD_TEXT_MAX], bool *ret_slash,
                      struct error *reterr)
{
    const char *p = e->name, *end = e->name + e->name_len;
    size_t out = 0;

    if (e->name_len == 0)
        return entry_refuse(e, reterr, "has no name");
    if (e->name_len >= RECORD_TEXT_MAX)
        return entry_refuse(e, reterr, "has a path of more than %d bytes", RECORD_TEXT_MAX - 1);
    if (memchr(e->name, 0, e->name_len))
        return entry_refuse(e, reterr, "has a NUL byte in its name");
    if (*p == '/')
        ret[out++] = *p;
    while (p < end) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        size_t len = (size_t)((slash ? slash : end) - p);

        if (len > 0 && !(len == 1 && *p == '.')) {
            if (out > 0 && ret[out - 1] != '/')
                ret[out++] = '/';
            memcpy(ret + out, p, len);
            out += len;
        }
        p += len + (slash ? 1 : 0);
    }
    ret[out] = 0;
    *ret_slash = end[-1] == '/';
    return 0;
}

static int target_copy(const struct entry *e, char ret[RECORD_TEXT_MAX], struct error *reterr)
{
    if (e->target_len == 0)
        return entry_refuse(e, reterr, "is a link without a target");
    if (e->target_len >= RECORD_TEXT_MAX || memchr(e->target, 0, e->target_len))
        return entry_refuse(e, reterr, "is a link whose target is malformed");
    memcpy(ret, e->target, e->target_len);
    ret[e->target_len] = 0;
    return 0;
}

int output_entry(struct output *o, const struct entry *e, struct error *reterr)
{
    char path[RECORD_TEXT_MAX] = "", target[RECORD_TEXT_MAX];
    struct record record = {.kind = e->kind, .path = path, .mtime_ms = e->mtime_ms};
    bool slash = false;
    int r = name_clean(e, path, &slash, reterr);

    if (r < 0)
        return r;
    if (!*path && e->kind == RECORD_DIR)
        return 0;
    if (!*path)
        return entry_refuse(e, reterr, "has no name");
    if (slash && e->kind != RECORD_DIR)
        return entry_refuse(e, reterr, "is not a folder, but its name ends with '/'");
    if (e->kind == RECORD_FILE) {
        record.size = e->size;
        record.executable = e->executable;
    } else if (e->kind == RECORD_LINK) {
        if ((r = target_copy(e, target, reterr)) < 0)
            return r;
        record.body = target;
        record.len = e->target_len + 1;
    }
    return output_record(o, &record, reterr);
}

int output_data(struct output *o, const void *data, size_t len, struct error *reterr)
{
    return output_record(o, &(struct record){.kind = RECORD_DATA, .body = data, .len = len},
                         reterr);
}

int output_finish(struct output *o, const struct error *why, struct error *reterr)
{
    struct record record = {.kind = RECORD_END};
    int r;

    if (why) {
        record.kind = RECORD_ERROR;
        record.code = why->code;
        record.body = why->text;
        record.len = strlen(why->text) + 1;
    }
    r = output_record(o, &record, reterr);
    return r < 0 ? r : output_flush(o, reterr);
}
