/* SPDX-License-Identifier: MIT */
/* The result object of a run (design section 6), built once from what the run collected. */
#include "session/session-internal.h"

#include "base/json.h"

/* `key` with the punctuation around it. */
static int text_member(struct buf *ret, const char *key, struct text_keep *t, bool *truncated)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_buf struct buf text;

    buf_init(&text, FRAME_PAYLOAD_MAX);
    *truncated |= text_keep_format(t, &text);
    yyjson_mut_doc_set_root(doc, json_mut_text(doc, buf_str(&text), text.len));
    if (buf_append_str(ret, key) < 0)
        return -1;
    return json_mut_write(doc, ret, NULL);
}

static int string_member(struct buf *ret, const char *key, const char *value)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

    yyjson_mut_doc_set_root(doc, json_mut_text(doc, value, strlen(value)));
    if (buf_printf(ret, ",\"%s\":", key) < 0)
        return -1;
    return json_mut_write(doc, ret, NULL);
}

static int object_member(struct buf *ret, const char *key, const struct buf *json)
{
    return buf_printf(ret, ",\"%s\":%s", key, json->len ? buf_str(json) : "null");
}

static int cause_members(struct run *r, struct buf *ret)
{
    int n = r->cause[0] ? string_member(ret, "cause", r->cause)
                        : buf_append_str(ret, ",\"cause\":null");

    if (n < 0)
        return -1;
    return r->message[0] ? string_member(ret, "message", r->message) : 0;
}

static int late_member(struct run *r, struct buf *ret, bool *truncated)
{
    if (r->late_out.bytes == 0 && r->late_err.bytes == 0)
        return 0;
    if (text_member(ret, ",\"late_output\":{\"stdout\":", &r->late_out, truncated) < 0 ||
        text_member(ret, ",\"stderr\":", &r->late_err, truncated) < 0)
        return -1;
    return buf_append_byte(ret, '}');
}

static int code_members(struct run *r, struct buf *ret, bool *truncated)
{
    if (object_member(ret, "result", &r->result) < 0 ||
        object_member(ret, "error", &r->error) < 0 ||
        buf_printf(ret, ",\"display_outputs\":[%s]", buf_str(&r->displays)) < 0)
        return -1;
    return late_member(r, ret, truncated);
}

static int command_members(struct run *r, struct buf *ret)
{
    const struct run_outcome *o = &r->outcome;

    if (o->exit_code >= 0)
        return buf_printf(ret, ",\"exit_code\":%d", o->exit_code);
    /* As a shell would tell it, so that a caller who reads only this number sees a failure. */
    return buf_printf(ret, ",\"exit_code\":%d,\"signal\":%d", o->signal ? 128 + o->signal : -1,
                      o->signal);
}

static int result_format(struct run *r, struct buf *ret)
{
    const struct run_outcome *o = &r->outcome;
    bool truncated = r->truncated;

    if (buf_printf(ret, "{\"success\":%s,\"status\":\"%s\"", o->status == RUN_OK ? "true" : "false",
                   run_status_name(o->status)) < 0 ||
        buf_printf(ret, ",\"state\":\"%s\"", o->state_kept ? "kept" : "lost") < 0 ||
        cause_members(r, ret) < 0 || text_member(ret, ",\"stdout\":", &r->out, &truncated) < 0 ||
        text_member(ret, ",\"stderr\":", &r->err, &truncated) < 0)
        return -1;
    if ((r->kind == RUN_CODE ? code_members(r, ret, &truncated) : command_members(r, ret)) < 0)
        return -1;
    return buf_printf(
        ret,
        ",\"duration_ms\":%.3f,\"output\":{\"stdout_bytes\":%llu,\"stderr_bytes\":%llu,"
        "\"truncated\":%s}}",
        o->duration_ms, (unsigned long long)o->stdout_bytes, (unsigned long long)o->stderr_bytes,
        truncated ? "true" : "false");
}

int run_result_json(struct run *r, struct buf *ret, struct error *reterr)
{
    int n;

    if (!run_log_is_closed(&r->log))
        return error_set(reterr, ERR_INVALID, "the run has not ended");
    pthread_mutex_lock(&r->lock);
    n = result_format(r, ret);
    pthread_mutex_unlock(&r->lock);
    return n < 0 ? error_set(reterr, ERR_LIMIT, "the result is above its limit") : 0;
}
