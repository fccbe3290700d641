/* SPDX-License-Identifier: MIT */
/* What the last AI message calls, and what of it has its answer: the same id in another turn is
 * another call, so only the messages after it count. */
#include "agent/agent-internal.h"

static struct message *last_ai(const struct transcript *t, size_t *ret_at)
{
    for (size_t i = t->count; i > 0; i--) {
        if (t->items[i - 1]->type == MESSAGE_AI) {
            *ret_at = i - 1;
            return t->items[i - 1];
        }
        /* A new question of a person leaves the calls before it behind. */
        if (t->items[i - 1]->type == MESSAGE_HUMAN)
            return NULL;
    }
    return NULL;
}

static void calls_add(struct asked *a, yyjson_val *list, bool valid)
{
    size_t i, max;
    yyjson_val *call;

    yyjson_arr_foreach(list, i, max, call)
    {
        yyjson_val *args = yyjson_obj_get(call, "args");
        bool good = valid && yyjson_is_obj(args);

        a->calls[a->count++] = (struct asked_call){
            .id = json_get_str(call, "id", ""),
            .name = json_get_str(call, "name", ""),
            .args = good ? args : NULL,
            .problem =
                good ? NULL : json_get_str(call, "error", "the arguments are not a JSON object")};
    }
}

static void answer_note(struct asked *a, const struct message *m)
{
    auto_json yyjson_doc *doc = NULL;
    const char *id;

    if (m->type != MESSAGE_TOOL || json_parse(m->json, m->len, &doc, NULL) < 0)
        return;
    id = json_get_str(yyjson_doc_get_root(doc), "tool_call_id", "");
    /* Of two calls with one id, the first that has no answer gets it. */
    for (size_t i = 0; i < a->count; i++) {
        if (!a->calls[i].is_answered && str_eq(a->calls[i].id, id)) {
            a->calls[i].is_answered = true;
            return;
        }
    }
}

int asked_load(const struct transcript *t, struct asked *ret, struct error *reterr)
{
    size_t at = 0;
    struct message *ai = last_ai(t, &at);
    yyjson_val *root, *valid, *invalid;
    auto_asked struct asked a = {};
    int r;

    if (!ai) {
        *ret = (struct asked){};
        return 0;
    }
    if ((r = json_parse(ai->json, ai->len, &a.doc, reterr)) < 0)
        return r;
    root = yyjson_doc_get_root(a.doc);
    valid = yyjson_obj_get(root, "tool_calls");
    invalid = yyjson_obj_get(root, "invalid_tool_calls");
    a.calls =
        calloc(yyjson_arr_size(valid) + yyjson_arr_size(invalid) + 1, sizeof(struct asked_call));
    if (!a.calls)
        return error_no_memory(reterr);
    a.ai = message_ref(ai);
    calls_add(&a, valid, true);
    calls_add(&a, invalid, false);
    for (size_t i = at + 1; i < t->count; i++)
        answer_note(&a, t->items[i]);
    *ret = a;
    a = (struct asked){};
    return 0;
}

void asked_done(struct asked *a)
{
    message_unref(a->ai);
    yyjson_doc_free(a->doc);
    free(a->calls);
    *a = (struct asked){};
}

bool asked_any(const struct transcript *t)
{
    auto_asked struct asked a = {};

    if (asked_load(t, &a, NULL) < 0)
        return false;
    for (size_t i = 0; i < a.count; i++) {
        if (!a.calls[i].is_answered)
            return true;
    }
    return false;
}
