/* SPDX-License-Identifier: MIT */
/*
 * The node that does what the model called. Whatever is wrong with a call is answered to the model,
 * and the run goes on. What was begun and then cut off is never begun again by itself: nobody knows
 * how far it came.
 */
#include "agent/interrupt.h"

#include <stdio.h>

#define CUT_OFF \
    "the server was restarted during this call, and it is not known whether the call was done; " \
    "check before you repeat it"
#define LINE_LOST \
    "the call waited for a line of input, and was given up: the server was restarted, or it " \
    "waited too long"

/* ---- what is not run ---- */

static int item_check(struct tool_item *item, size_t at, struct error *reterr)
{
    char text[600];

    if (at >= BATCH_CALLS)
        snprintf(text, sizeof(text), "not run: at most %d calls are run at once; call it again",
                 BATCH_CALLS);
    else if (!tool_find(item->name))
        snprintf(text, sizeof(text), "there is no tool '%.100s'", item->name);
    else if (!item->args)
        snprintf(text, sizeof(text), "INVALID_INPUT: %.400s; write the arguments as a JSON object",
                 item->batch->asked.calls[at].problem ? item->batch->asked.calls[at].problem
                                                      : "the arguments are not a JSON object");
    else
        return 0;
    return batch_refuse(item, text, reterr);
}

static int rest_refuse(struct tool_batch *b, const char *text, struct error *reterr)
{
    int r = 0;

    for (size_t i = 0; i < b->count && r == 0; i++) {
        if (b->items[i].state != ITEM_DONE)
            r = batch_refuse(&b->items[i], text, reterr);
    }
    return r;
}

/* ---- after an interrupt ---- */

/* What was done before the line was asked for, from the checkpoint. */
static int done_restore(struct walk *w, struct tool_batch *b, yyjson_val *pending,
                        struct error *reterr)
{
    size_t i, max;
    yyjson_val *v;
    int r = 0;

    yyjson_arr_foreach(yyjson_obj_get(pending, "messages"), i, max, v)
    {
        const char *id = json_get_str(v, "tool_call_id", NULL);
        auto_message struct message *m = NULL;

        if (r == 0 && (r = message_parse(v, &m, reterr)) == 0 && !id) {
            message_unref(b->edited);
            b->edited = TAKE_PTR(m);
        }
        for (size_t n = 0; m && id && n < b->count; n++) {
            struct tool_item *item = &b->items[n];

            if (item->message || !str_eq(item->id, id))
                continue;
            item->message = TAKE_PTR(m);
            item->state = ITEM_DONE;
            item->told_start = item->told_end = true;
        }
    }
    return r < 0 ? r : rest_refuse(b, LINE_LOST, reterr);
}

/* An answer is used before anything is done by it, so that it cannot be used again. */
static int answer_use(struct walk *w, struct error *reterr)
{
    char used[128];
    auto_buf struct buf id;

    buf_init(&id, KIB);
    if (json_quote(&id, w->spec->run_id, strlen(w->spec->run_id)) < 0)
        return error_no_memory(reterr);
    snprintf(used, sizeof(used), "{\"used\":%.100s}", id.data);
    return walk_mark(w, NULL, NULL, used, reterr);
}

static bool needs_approval(struct walk *w, struct tool_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (approval_needed(w, &b->items[i]))
            return true;
    }
    return false;
}

static int asked_again(struct walk *w, struct tool_batch *b, yyjson_val *pending,
                       struct error *reterr)
{
    const char *used = json_get_str(pending, "used", NULL);
    const char *kind = json_get_str(pending, "kind", "");
    bool is_own = used && str_eq(used, w->spec->run_id);
    int r;

    approval_restore(b, pending);
    /* Calls that wait for an approval have certainly not been begun. */
    if (is_own || (w->restarted && !needs_approval(w, b)))
        return rest_refuse(b, CUT_OFF, reterr);
    if (used && w->resume)
        return resume_refuse(w, reterr, "the answer was used already");
    if (str_eq(kind, "input"))
        return done_restore(w, b, pending, reterr);
    if (!str_eq(kind, "approval") || !w->resume)
        return approval_ask(w, b, reterr);
    if ((r = approval_apply(w, b, pending, reterr)) < 0)
        return r;
    return answer_use(w, reterr);
}

/* ---- the step ---- */

/* A fresh batch: 0 when it runs, 1 when it needs an approval first. */
static int tools_begin(struct walk *w, yyjson_val *pending, struct tool_batch **ret,
                       struct error *reterr)
{
    auto_asked struct asked asked = {};
    int r = asked_load(&w->messages, &asked, reterr);

    if (r < 0 || (r = batch_new(w, &asked, ret, reterr)) < 0)
        return r;
    if (pending && json_get_str(pending, "checkpoint", NULL))
        snprintf((*ret)->key, sizeof((*ret)->key), "%s", json_get_str(pending, "checkpoint", ""));
    for (size_t i = 0; i < (*ret)->count && r == 0; i++)
        r = item_check(&(*ret)->items[i], i, reterr);
    if (r == 0)
        r = asked_again(w, *ret, pending, reterr);
    if (r == 0)
        batch_start(*ret);
    return r;
}

/* The messages in the order of the calls. */
static int results_collect(struct walk *w, struct tool_batch *b, struct error *reterr)
{
    int r = b->edited ? transcript_append(&w->update, b->edited, reterr) : 0;

    for (size_t i = 0; i < b->count && r == 0; i++)
        r = transcript_append(&w->update, b->items[i].message, reterr);
    return r;
}

static int tools_follow(struct walk *w, struct tool_batch **b, struct error *reterr)
{
    int r = batch_follow(*b, w, reterr);

    if (r == 0)
        return results_collect(w, *b, reterr);
    if (r < 0 || (r = input_ask(w, *b, reterr)) < 0) {
        batch_cancel(*b);
        return r;
    }
    agent_hold(w->agent, TAKE_PTR(*b));
    return 1;
}

int step_tools(struct walk *w, struct error *reterr)
{
    const char *text = w->at.pending ? w->at.pending : "{}";
    auto_json yyjson_doc *doc = NULL;
    auto_batch struct tool_batch *b = NULL;
    yyjson_val *pending;
    const char *key;
    int r = json_parse(text, strlen(text), &doc, reterr);

    if (r < 0)
        return r;
    pending = yyjson_doc_get_root(doc);
    key = json_get_str(pending, "checkpoint", w->at.id);
    b = agent_held_take(w->agent, w->spec->thread_id, key);
    if (!b) {
        r = tools_begin(w, pending, &b, reterr);
    } else if (w->resume && (r = input_apply(w, b, pending, reterr)) < 0) {
        agent_hold(w->agent, TAKE_PTR(b));
        return r;
    }
    return r == 0 ? tools_follow(w, &b, reterr) : r;
}
