/* SPDX-License-Identifier: MIT */
/* The threads that run a step's calls, and what they leave for the run's thread to tell. */
#include "agent/batch.h"

#include "session/session.h"

#include <errno.h>
#include <sys/eventfd.h>

enum { PIECES_MAX = 256, PIECE_BYTES = 512 * 1024, DISPLAY_LIVE = 16 * 1024 };
#define PAYLOAD_MAX (256 * MIB)

/* ---- life ---- */

static void item_done(struct tool_item *item)
{
    for (size_t i = 0; i < item->piece_count; i++)
        buf_done(&item->pieces[i].data);
    free(item->pieces);
    free(item->question);
    buf_done(&item->payload);
    message_unref(item->message);
}

void batch_unref(struct tool_batch *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < b->count; i++)
        item_done(&b->items[i]);
    free(b->items);
    asked_done(&b->asked);
    for (size_t i = 0; i < b->edit_count; i++)
        yyjson_doc_free(b->edits[i]);
    message_unref(b->edited);
    arena_done(&b->arena);
    free(b->thread_id);
    if (b->wake >= 0)
        close(b->wake);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static int context_fill(struct tool_batch *b, struct error *reterr)
{
    const char *url = b->agent->public_url;

    b->context.manager = b->agent->manager;
    b->context.owner = b->thread_id;
    if (url[0]) {
        b->context.download_base =
            arena_printf(&b->arena, "%s/threads/%s/files/download", url, b->thread_id);
        if (!b->context.download_base)
            return error_no_memory(reterr);
    }
    return tool_roots(b->agent->settings, b->thread_id, &b->arena, &b->context.roots, reterr);
}

/* Calls of one session, and all that name none, are a group. */
static size_t group_find(struct tool_batch *b, const struct tool_item *item)
{
    const char *session = json_get_str(item->args, "session_id", "");

    for (size_t i = 0; i < b->count; i++) {
        if (str_eq(json_get_str(b->items[i].args, "session_id", ""), session))
            return b->items[i].group;
    }
    return b->group_count++;
}

static void items_fill(struct tool_batch *b)
{
    for (size_t i = 0; i < b->asked.count; i++) {
        const struct asked_call *call = &b->asked.calls[i];
        struct tool_item *item = &b->items[b->count];

        if (call->is_answered)
            continue;
        *item =
            (struct tool_item){.batch = b, .id = call->id, .name = call->name, .args = call->args};
        buf_init(&item->payload, PAYLOAD_MAX);
        item->group = group_find(b, item);
        b->count++;
    }
}

static int batch_init(struct tool_batch *b, struct walk *w, struct error *reterr)
{
    b->agent = w->agent;
    b->answers_input = w->spec->answers_input;
    b->context.network_off = w->spec->network_off;
    b->thread_id = strdup(w->spec->thread_id);
    memcpy(b->key, w->at.id, UUID_LEN + 1);
    b->items = calloc(b->asked.count + 1, sizeof(*b->items));
    b->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!b->thread_id || !b->items)
        return error_no_memory(reterr);
    if (b->wake < 0)
        return error_sys(reterr, errno, "eventfd");
    items_fill(b);
    return context_fill(b, reterr);
}

int batch_new(struct walk *w, struct asked *asked, struct tool_batch **ret, struct error *reterr)
{
    struct tool_batch *b = calloc(1, sizeof(*b));
    int r;

    if (!b)
        return error_no_memory(reterr);
    b->refs = 1;
    b->wake = -1;
    pthread_mutex_init(&b->lock, NULL);
    arena_init(&b->arena, MIB);
    b->asked = *asked;
    *asked = (struct asked){};
    if ((r = batch_init(b, w, reterr)) < 0) {
        batch_unref(b);
        return r;
    }
    *ret = b;
    return 0;
}

int batch_keep(struct tool_batch *b, yyjson_doc *doc, struct error *reterr)
{
    if (b->edit_count == ARRAY_LEN(b->edits)) {
        yyjson_doc_free(doc);
        return error_set(reterr, ERR_LIMIT, "more than %d calls are edited", BATCH_CALLS);
    }
    b->edits[b->edit_count++] = doc;
    return 0;
}

/* ---- results that no tool gave ---- */

static int refusal_write(const char *text, struct buf *ret)
{
    if (buf_append_str(ret, "{\"success\":false,\"error\":") < 0 ||
        json_quote(ret, text, strlen(text)) < 0)
        return -1;
    return buf_append_byte(ret, '}');
}

int batch_refuse(struct tool_item *item, const char *text, struct error *reterr)
{
    buf_clear(&item->payload);
    if (refusal_write(text, &item->payload) < 0)
        return error_no_memory(reterr);
    item->is_error = true;
    item->state = ITEM_DONE;
    return 0;
}

/* ---- from the threads of calls ---- */

static void batch_wake(struct tool_batch *b)
{
    uint64_t one = 1;

    /* It fails only when the counter is full, and then the reader is awake. */
    if (write(b->wake, &one, sizeof(one)) < 0)
        return;
}

/* The piece that more of this stream goes to; NULL when there is no room. Under the lock. */
static struct piece *piece_get(struct tool_item *item, const char *stream, bool joins)
{
    struct piece *last = item->piece_count ? &item->pieces[item->piece_count - 1] : NULL;

    if (last && joins && str_eq(last->stream, stream))
        return last;
    if (item->piece_count == PIECES_MAX)
        return NULL;
    if (!item->pieces && !(item->pieces = calloc(PIECES_MAX, sizeof(*item->pieces))))
        return NULL;
    last = &item->pieces[item->piece_count++];
    *last = (struct piece){.stream = stream};
    buf_init(&last->data, PIECE_BYTES);
    return last;
}

/* Nobody waits for a slow reader: what does not fit is left out of the live output, and is in the
 * result. */
static void piece_add(struct tool_item *item, const char *stream, const char *data, size_t len,
                      bool joins)
{
    struct piece *piece;

    pthread_mutex_lock(&item->batch->lock);
    piece = item->piece_bytes + len > PIECE_BYTES ? NULL : piece_get(item, stream, joins);
    if (!piece || buf_append(&piece->data, data, len) < 0)
        item->dropped += len;
    else
        item->piece_bytes += len;
    pthread_mutex_unlock(&item->batch->lock);
    batch_wake(item->batch);
}

static void on_output(struct tool_item *item, const char *stream, const struct run_event *e)
{
    struct utf8_repair *repair = &item->repair[stream[3] == 'e'];
    auto_buf struct buf text;

    buf_init(&text, 4 * (e->data.len + 8));
    if (utf8_repair_feed(repair, buf_str(&e->data), e->data.len, &text) == 0 && text.len)
        piece_add(item, stream, text.data, text.len, true);
}

/* A large one is only named; it comes with the result. */
static void on_display(struct tool_item *item, const struct run_event *e)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_json yyjson_doc *parsed = NULL;
    auto_buf struct buf json;

    if (e->data.len <= DISPLAY_LIVE) {
        piece_add(item, "display", buf_str(&e->data), e->data.len, false);
        return;
    }
    buf_init(&json, DISPLAY_LIVE);
    if (json_parse(buf_str(&e->data), e->data.len, &parsed, NULL) < 0)
        return;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "type",
                           json_get_str(yyjson_doc_get_root(parsed), "type", ""));
    yyjson_mut_obj_add_uint(doc, root, "size", e->data.len);
    if (json_mut_write(doc, &json, NULL) == 0)
        piece_add(item, "display", buf_str(&json), json.len, false);
}

static void on_question(struct tool_item *item, const struct run_event *e)
{
    pthread_mutex_lock(&item->batch->lock);
    free(item->question);
    item->question = strdup(buf_str(&e->data));
    item->questions++;
    item->state = ITEM_ASKS;
    pthread_mutex_unlock(&item->batch->lock);
    batch_wake(item->batch);
}

static void on_event(void *user, const struct run_event *e)
{
    struct tool_item *item = user;

    if (e->type == RUN_EVENT_STDOUT || e->type == RUN_EVENT_LATE_STDOUT)
        on_output(item, "stdout", e);
    else if (e->type == RUN_EVENT_STDERR || e->type == RUN_EVENT_LATE_STDERR)
        on_output(item, "stderr", e);
    else if (e->type == RUN_EVENT_DISPLAY)
        on_display(item, e);
    else if (e->type == RUN_EVENT_INPUT)
        on_question(item, e);
}

static void item_run(struct tool_item *item)
{
    struct tool_batch *b = item->batch;
    struct tool_observer observer = {
        .event = on_event, .user = item, .answers_input = b->answers_input};
    auto_tool_call struct tool_call *call = NULL;
    bool ok = false, wanted = false;

    if (tool_call_new(&b->context, tool_find(item->name), &observer, &call, NULL) == 0) {
        pthread_mutex_lock(&b->lock);
        /* Whoever cancels from now on finds the call. */
        wanted = !b->cancelled;
        item->call = wanted ? call : NULL;
        item->state = ITEM_RUNS;
        pthread_mutex_unlock(&b->lock);
    }
    if (wanted) {
        batch_wake(b);
        ok = tool_call_run(call, item->args, &item->payload);
    }
    pthread_mutex_lock(&b->lock);
    item->call = NULL;
    item->is_error = !ok;
    item->state = ITEM_DONE;
    pthread_mutex_unlock(&b->lock);
    batch_wake(b);
}

struct worker {
    struct tool_batch *batch;
    size_t group;
};

/* The next of the group; NULL when there is none, or nobody wants it any more. */
static struct tool_item *group_next(struct tool_batch *b, size_t group)
{
    struct tool_item *next = NULL;

    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count && !next && !b->cancelled; i++) {
        if (b->items[i].group == group && b->items[i].state == ITEM_WAITS)
            next = &b->items[i];
    }
    pthread_mutex_unlock(&b->lock);
    return next;
}

static void worker_end(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->workers--;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void *worker_main(void *arg)
{
    struct worker worker = *(struct worker *)arg;
    struct agent *a = worker.batch->agent;
    struct tool_item *item;

    free(arg);
    while ((item = group_next(worker.batch, worker.group)))
        item_run(item);
    batch_unref(worker.batch);
    worker_end(a);
    return NULL;
}

static int worker_start(struct tool_batch *b, size_t group)
{
    struct worker *worker = malloc(sizeof(*worker));
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    if (!worker)
        return -1;
    *worker = (struct worker){b, group};
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    pthread_mutex_lock(&b->agent->lock);
    b->agent->workers++;
    pthread_mutex_unlock(&b->agent->lock);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, worker_main, worker);
    pthread_attr_destroy(&attr);
    if (r == 0)
        return 0;
    free(worker);
    batch_unref(b);
    worker_end(b->agent);
    return -1;
}

void batch_start(struct tool_batch *b)
{
    for (size_t group = 0; group < b->group_count; group++) {
        struct tool_item *item = group_next(b, group);

        /* Without a thread its calls run here: later than they could, and nobody hears of it. */
        if (!item || worker_start(b, group) == 0)
            continue;
        b->answers_input = false;
        while ((item = group_next(b, group)))
            item_run(item);
    }
}

/* ---- from others ---- */

void batch_answer(struct tool_item *item, const char *line, size_t len)
{
    struct tool_batch *b = item->batch;

    pthread_mutex_lock(&b->lock);
    if (item->state == ITEM_ASKS && item->call) {
        item->state = ITEM_RUNS;
        /* The call lives while the lock is held; a cell that has ended has no use for a line. */
        if (tool_call_input(item->call, line, len, NULL) < 0)
            batch_wake(b);
    }
    pthread_mutex_unlock(&b->lock);
}

void batch_cancel(struct tool_batch *b)
{
    pthread_mutex_lock(&b->lock);
    b->cancelled = true;
    for (size_t i = 0; i < b->count; i++) {
        if (b->items[i].call)
            tool_call_cancel(b->items[i].call);
    }
    pthread_mutex_unlock(&b->lock);
}
