/* SPDX-License-Identifier: MIT */
/*
 * The run's thread while calls run: it tells what their threads have left. Output is told at most
 * ten times a second for each call, and always before the call's end.
 */
#include "agent/batch.h"

#include "base/fd.h"

#include <errno.h>
#include <poll.h>

enum {
    TELL_MS = 100,
    PIECE_MAX = 16 * 1024, /* of one event */
    STOP_MS = 3000,        /* for calls that were told to stop */
};

static void item_emit(struct walk *w, const struct tool_item *item, enum agent_event_type type,
                      const char *json, size_t len)
{
    walk_emit(w, &(struct agent_event){.type = type,
                                       .json = json,
                                       .len = len,
                                       .tool_call_id = item->id,
                                       .tool_name = item->name});
}

/* ---- output ---- */

static int piece_emit(struct walk *w, const struct tool_item *item, const char *stream,
                      yyjson_mut_doc *doc, yyjson_mut_val *data, struct error *reterr)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf json;
    int r;

    buf_init(&json, MIB);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "type", stream);
    yyjson_mut_obj_add_val(doc, root, "data", data);
    if ((r = json_mut_write(doc, &json, reterr)) < 0)
        return r;
    item_emit(w, item, AGENT_TOOL_EVENT, json.data, json.len);
    buf_clear(&json);
    yyjson_mut_obj_remove_key(root, "data");
    yyjson_mut_obj_remove_key(root, "type");
    yyjson_mut_obj_add_str(doc, root, "type", "tool_output");
    yyjson_mut_obj_add_str(doc, root, "tool_call_id", item->id);
    yyjson_mut_obj_add_str(doc, root, "name", item->name);
    yyjson_mut_obj_add_str(doc, root, "stream", stream);
    yyjson_mut_obj_add_val(doc, root, "data", data);
    if ((r = json_mut_write(doc, &json, reterr)) < 0)
        return r;
    item_emit(w, item, AGENT_CUSTOM, json.data, json.len);
    return 0;
}

static int piece_tell(struct walk *w, const struct tool_item *item, const struct piece *piece,
                      struct error *reterr)
{
    const char *at = buf_str(&piece->data);
    size_t left = piece->data.len;
    int r = 0;

    if (str_eq(piece->stream, "display")) {
        auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

        return piece_emit(w, item, piece->stream, doc, yyjson_mut_raw(doc, at), reterr);
    }
    while (left && r == 0) {
        auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        size_t n = utf8_cut(at, left, PIECE_MAX);

        r = piece_emit(w, item, piece->stream, doc, json_mut_text(doc, at, n), reterr);
        at += n;
        left -= n;
    }
    return r;
}

static int dropped_tell(struct walk *w, const struct tool_item *item, size_t dropped,
                        struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

    if (!dropped)
        return 0;
    return piece_emit(w, item, "gap", doc, yyjson_mut_uint(doc, dropped), reterr);
}

/* What an item's thread has left, taken under the lock. */
struct news {
    enum item_state state;
    struct piece *pieces;
    size_t count, dropped;
    bool more; /* there is output whose time has not come */
};

static void news_done(struct news *n)
{
    for (size_t i = 0; i < n->count; i++)
        buf_done(&n->pieces[i].data);
    free(n->pieces);
}
#define auto_news __attribute__((cleanup(news_done)))

static void news_take(struct tool_item *item, struct news *ret)
{
    struct tool_batch *b = item->batch;

    pthread_mutex_lock(&b->lock);
    *ret = (struct news){.state = item->state};
    if (item->state == ITEM_DONE || item->state == ITEM_ASKS ||
        clock_ms() - item->told_ms >= TELL_MS) {
        ret->pieces = TAKE_PTR(item->pieces);
        ret->count = item->piece_count;
        ret->dropped = item->dropped;
        item->piece_count = item->piece_bytes = item->dropped = 0;
    }
    ret->more = item->piece_count || item->dropped;
    pthread_mutex_unlock(&b->lock);
}

/* ---- begin and end ---- */

static int args_write(const struct tool_item *item, struct buf *ret, struct error *reterr)
{
    buf_init(ret, AGENT_JSON_MAX);
    if (item->args)
        return json_write(item->args, ret, reterr);
    return buf_append_str(ret, "{}") < 0 ? error_no_memory(reterr) : 0;
}

static int start_tell(struct walk *w, struct tool_item *item, struct error *reterr)
{
    auto_buf struct buf args;
    int r = args_write(item, &args, reterr);

    if (r < 0)
        return r;
    item_emit(w, item, AGENT_TOOL_START, args.data, args.len);
    item->told_start = true;
    return 0;
}

/* So that they can be downloaded, also after this process has ended. */
static int exports_keep(struct walk *w, const struct tool_item *item, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    size_t i, max;
    yyjson_val *file;
    int r = 0;

    if (!str_eq(item->name, "export_files") ||
        json_parse(buf_str(&item->payload), item->payload.len, &doc, NULL) < 0)
        return 0;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "files"), i, max, file)
    {
        if (r == 0 && json_get_bool(file, "success", false))
            r = store_export_put(
                w->agent->store,
                &(struct store_export){.thread_id = w->spec->thread_id,
                                       .session_id = json_get_str(file, "session_id", ""),
                                       .path = json_get_str(file, "path", "")},
                reterr);
    }
    return r;
}

static int result_make(struct walk *w, struct tool_item *item, struct error *reterr)
{
    static const char large[] =
        "{\"success\":false,\"error\":\"the result was too large to be kept\"}";
    struct message_tool_result result = {
        .name = item->name, .tool_call_id = item->id, .is_error = item->is_error};
    auto_buf struct buf kept;
    int r;

    buf_init(&kept, AGENT_JSON_MAX);
    if (item->payload.len == 0)
        return batch_refuse(item, "the tool could not be started", reterr) < 0
                   ? -ERR_NO_MEMORY
                   : result_make(w, item, reterr);
    r = view_extract(buf_str(&item->payload), item->payload.len, w->agent->store,
                     w->spec->thread_id, &kept, reterr);
    if (r < 0)
        return r;
    result.content = buf_str(&kept);
    result.len = kept.len;
    if (kept.len > MESSAGE_BYTES_MAX / 4) {
        result.content = large;
        result.len = sizeof(large) - 1;
        result.is_error = true;
    }
    return message_make_tool(&result, &item->message, reterr);
}

static int end_tell(struct walk *w, struct tool_item *item, struct error *reterr)
{
    auto_message struct message *told = NULL;
    auto_buf struct buf args;
    int r = args_write(item, &args, reterr);

    if (r < 0 || (r = exports_keep(w, item, reterr)) < 0)
        return r;
    if (!item->message && (r = result_make(w, item, reterr)) < 0)
        return r;
    buf_done(&item->payload);
    if (!w->spec->inline_displays)
        told = message_ref(item->message);
    else if ((r = view_inline(item->message, w->agent->store, w->spec->thread_id, &told, reterr)) <
             0)
        return r;
    item->told_end = true;
    walk_emit(w, &(struct agent_event){.type = item->is_error ? AGENT_TOOL_ERROR : AGENT_TOOL_END,
                                       .json = told->json,
                                       .len = told->len,
                                       .tool_call_id = item->id,
                                       .tool_name = item->name,
                                       .input = buf_str(&args)});
    walk_emit(w, &(struct agent_event){.type = AGENT_MESSAGE,
                                       .json = told->json,
                                       .len = told->len,
                                       .message_id = told->id,
                                       .tool_call_id = item->id,
                                       .tool_name = item->name});
    return 0;
}

/* 1: there is more to tell, soon. */
static int item_tell(struct walk *w, struct tool_item *item, struct error *reterr)
{
    auto_news struct news news = {};
    int r = 0;

    news_take(item, &news);
    if (news.state != ITEM_WAITS && !item->told_start)
        r = start_tell(w, item, reterr);
    for (size_t i = 0; i < news.count && r == 0; i++)
        r = piece_tell(w, item, &news.pieces[i], reterr);
    if (r == 0)
        r = dropped_tell(w, item, news.dropped, reterr);
    if (news.count)
        item->told_ms = clock_ms();
    if (r == 0 && news.state == ITEM_DONE && !item->told_end)
        r = end_tell(w, item, reterr);
    return r < 0 ? r : news.more;
}

/* ---- waiting ---- */

enum batch_state { BATCH_RUNS, BATCH_ASKS, BATCH_DONE };

/* A group is where its first call is that has not ended. */
static enum batch_state batch_look(struct tool_batch *b)
{
    enum batch_state state = BATCH_DONE;
    uint64_t seen = 0;

    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count; i++) {
        uint64_t bit = UINT64_C(1) << (b->items[i].group % 64);

        if (b->items[i].state == ITEM_DONE || seen & bit)
            continue;
        seen |= bit;
        if (b->items[i].state != ITEM_ASKS)
            state = BATCH_RUNS;
        else if (state == BATCH_DONE)
            state = BATCH_ASKS;
        if (state == BATCH_RUNS)
            break;
    }
    pthread_mutex_unlock(&b->lock);
    return state;
}

static void batch_sleep(struct tool_batch *b, int cancel_fd, int ms)
{
    struct pollfd fds[] = {{.fd = b->wake, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
    uint64_t count;

    if (poll(fds, ARRAY_LEN(fds), ms) < 0)
        return;
    if (read(b->wake, &count, sizeof(count)) < 0)
        return;
}

/* Told to stop, calls get some time, so that the next run finds their sessions at rest. */
static int batch_stop(struct tool_batch *b, struct error *reterr)
{
    int64_t deadline = clock_deadline(STOP_MS);

    batch_cancel(b);
    for (;;) {
        bool runs = false;

        pthread_mutex_lock(&b->lock);
        for (size_t i = 0; i < b->count; i++)
            runs |= b->items[i].call != NULL;
        pthread_mutex_unlock(&b->lock);
        if (!runs || clock_ms() >= deadline)
            return error_set(reterr, ERR_CANCELLED, "stopped on request");
        batch_sleep(b, -1, clock_poll_ms(deadline));
    }
}

int batch_follow(struct tool_batch *b, struct walk *w, struct error *reterr)
{
    for (;;) {
        enum batch_state state = batch_look(b);
        int r = 0, soon = 0;

        if (walk_is_cancelled(w))
            return batch_stop(b, reterr);
        for (size_t i = 0; i < b->count; i++) {
            if ((r = item_tell(w, &b->items[i], reterr)) < 0)
                return r;
            soon |= r;
        }
        if (state != BATCH_RUNS)
            return state == BATCH_ASKS;
        batch_sleep(b, w->spec->cancel_fd, soon ? TELL_MS : -1);
    }
}
