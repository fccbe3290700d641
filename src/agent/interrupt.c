/* SPDX-License-Identifier: MIT */
/* Questions and answers of a step; see interrupt.h. The forms are those of LangChain's middleware
 * for people in the loop, and the older ones of its inbox. */
#include "agent/interrupt.h"

#include <stdio.h>

enum { DESCRIPTION_MAX = 4000 };

int resume_refuse(struct walk *w, struct error *reterr, const char *why)
{
    w->keeps_question = true;
    return walk_refuse(w, "InvalidResume", reterr, "%s; the question stays open", why);
}

/* ---- the answer to one question ---- */

static bool is_id(const char *s, size_t len)
{
    return len == INTERRUPT_ID && strspn(s, "0123456789abcdef") == INTERRUPT_ID;
}

/* An object with nothing but ids of interrupts as keys says which answer is for which. */
static bool is_map(yyjson_val *resume)
{
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_obj_foreach(resume, i, max, key, value)
    {
        if (!is_id(yyjson_get_str(key), yyjson_get_len(key)))
            return false;
    }
    return yyjson_is_obj(resume) && yyjson_obj_size(resume) > 0;
}

/* NULL: none. A plain answer is for the first question. */
static yyjson_val *answer_find(yyjson_val *resume, const char *id, bool is_first)
{
    if (is_map(resume))
        return yyjson_obj_get(resume, id);
    return is_first ? resume : NULL;
}

static int map_check(struct walk *w, yyjson_val *asked, struct error *reterr)
{
    size_t i, j, max, count;
    yyjson_val *key, *value, *one;

    if (!is_map(w->resume))
        return 0;
    yyjson_obj_foreach(w->resume, i, max, key, value)
    {
        bool known = false;

        yyjson_arr_foreach(asked, j, count, one)
        {
            known |= str_eq(json_get_str(one, "id", ""), yyjson_get_str(key));
        }
        if (!known)
            return resume_refuse(w, reterr, "the answer names an interrupt that is not open");
    }
    return 0;
}

/* ---- approval: the question ---- */

bool approval_needed(const struct walk *w, const struct tool_item *item)
{
    const char *const *list = w->spec->approve;

    if (item->state == ITEM_DONE || item->asked)
        return item->state != ITEM_DONE;
    for (; list && *list; list++) {
        if (str_eq(*list, "*") || str_eq(*list, item->name))
            return true;
    }
    return false;
}

void approval_restore(struct tool_batch *b, yyjson_val *pending)
{
    size_t i, max;
    yyjson_val *id;

    yyjson_arr_foreach(yyjson_obj_get(pending, "calls"), i, max, id)
    {
        for (size_t n = 0; n < b->count; n++)
            b->items[n].asked |= yyjson_equals_str(id, b->items[n].id);
    }
}

/* Over everything that the approval is about. */
static int approval_id(const struct walk *w, const struct tool_batch *b, char ret[INTERRUPT_ID + 1],
                       struct error *reterr)
{
    auto_buf struct buf all;

    buf_init(&all, AGENT_JSON_MAX);
    for (size_t i = 0; i < b->count; i++) {
        const struct tool_item *item = &b->items[i];

        if (!approval_needed(w, item))
            continue;
        if (json_quote(&all, item->id, strlen(item->id)) < 0 ||
            json_quote(&all, item->name, strlen(item->name)) < 0 ||
            json_write(item->args, &all, reterr) < 0)
            return error_no_memory(reterr);
    }
    agent_digest(ret, (const char *const[]){"approval", b->thread_id, b->key, buf_str(&all), NULL});
    return 0;
}

/* What is asked, as plain text in which nothing can hide. */
static yyjson_mut_val *description_make(yyjson_mut_doc *doc, const struct tool_item *item)
{
    const struct tool_entry *entry = tool_find(item->name);
    auto_free char *args = yyjson_val_write(item->args, YYJSON_WRITE_ESCAPE_UNICODE, NULL);
    auto_buf struct buf text;

    buf_init(&text, MIB);
    if (!args ||
        buf_printf(&text, "%s (%s) with exactly these arguments: %.*s",
                   entry ? entry->title : item->name, item->name, DESCRIPTION_MAX, args) < 0)
        return NULL;
    if (strlen(args) > DESCRIPTION_MAX && buf_append_str(&text, "... (see args for the rest)") < 0)
        return NULL;
    return json_mut_text(doc, text.data, text.len);
}

static void request_add(yyjson_mut_doc *doc, yyjson_mut_val *requests, yyjson_mut_val *configs,
                        const struct tool_item *item)
{
    static const char *const decisions[] = {"approve", "edit", "reject"};
    yyjson_mut_val *request = yyjson_mut_arr_add_obj(doc, requests);
    yyjson_mut_val *config = yyjson_mut_arr_add_obj(doc, configs);

    yyjson_mut_obj_add_strcpy(doc, request, "name", item->name);
    yyjson_mut_obj_add_val(doc, request, "args", yyjson_val_mut_copy(doc, item->args));
    yyjson_mut_obj_add_val(doc, request, "description", description_make(doc, item));
    yyjson_mut_obj_add_strcpy(doc, config, "action_name", item->name);
    yyjson_mut_obj_add_val(
        doc, config, "allowed_decisions",
        yyjson_mut_arr_with_str(doc, (const char **)(uintptr_t)decisions, ARRAY_LEN(decisions)));
}

static yyjson_mut_val *interrupt_make(yyjson_mut_doc *doc, const char *id, yyjson_mut_val *value)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_strcpy(doc, o, "id", id);
    yyjson_mut_obj_add_val(doc, o, "value", value);
    return o;
}

/* The walk's two texts, from the list of interrupts and what else is to be remembered. */
static int question_write(struct walk *w, yyjson_mut_doc *doc, yyjson_mut_val *interrupts,
                          yyjson_mut_val *pending, struct error *reterr)
{
    int r;

    yyjson_mut_doc_set_root(doc, interrupts);
    if ((r = json_mut_write(doc, &w->interrupts, reterr)) < 0)
        return r;
    yyjson_mut_obj_add_val(doc, pending, "interrupts", interrupts);
    yyjson_mut_doc_set_root(doc, pending);
    return json_mut_write(doc, &w->pending, reterr);
}

static yyjson_mut_val *pending_make(yyjson_mut_doc *doc, const struct tool_batch *b,
                                    const char *kind)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, o, "kind", kind);
    yyjson_mut_obj_add_str(doc, o, "checkpoint", b->key);
    return o;
}

int approval_ask(struct walk *w, struct tool_batch *b, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *value = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    yyjson_mut_val *requests = yyjson_mut_obj_add_arr(doc, value, "action_requests");
    yyjson_mut_val *configs = yyjson_mut_obj_add_arr(doc, value, "review_configs");
    yyjson_mut_val *pending = pending_make(doc, b, "approval");
    yyjson_mut_val *calls = yyjson_mut_obj_add_arr(doc, pending, "calls");
    char id[INTERRUPT_ID + 1];
    int r;

    for (size_t i = 0; i < b->count; i++) {
        if (!approval_needed(w, &b->items[i]))
            continue;
        request_add(doc, requests, configs, &b->items[i]);
        yyjson_mut_arr_add_strcpy(doc, calls, b->items[i].id);
    }
    if (yyjson_mut_arr_size(requests) == 0)
        return 0;
    if ((r = approval_id(w, b, id, reterr)) < 0)
        return r;
    yyjson_mut_arr_add_val(list, interrupt_make(doc, id, value));
    r = question_write(w, doc, list, pending, reterr);
    return r < 0 ? r : 1;
}

/* ---- approval: the answer ---- */

enum decision_kind { DECISION_NONE, DECISION_APPROVE, DECISION_EDIT, DECISION_REJECT };

struct decision {
    enum decision_kind kind;
    const char *message; /* of a refusal */
    const char *name;    /* of an edit; NULL: the same tool */
    yyjson_val *args;
};

static const struct {
    const char *word;
    enum decision_kind kind;
} decision_words[] = {
    {"approve", DECISION_APPROVE}, {"accept", DECISION_APPROVE}, {"edit", DECISION_EDIT},
    {"reject", DECISION_REJECT},   {"ignore", DECISION_REJECT},  {"response", DECISION_REJECT},
    {"respond", DECISION_REJECT},
};

/* {"edited_action":{"name","args"}}, or {"args":{"action","args"}} as the inbox has it. */
static bool edit_parse(yyjson_val *v, struct decision *ret)
{
    yyjson_val *action = yyjson_obj_get(v, "edited_action");
    yyjson_val *args = yyjson_obj_get(v, "args");

    if (!action && yyjson_is_obj(yyjson_obj_get(args, "args")))
        action = args;
    ret->name = json_get_str(action, "name", json_get_str(action, "action", NULL));
    ret->args = yyjson_obj_get(action, "args");
    return yyjson_is_obj(ret->args) && (!ret->name || tool_find(ret->name));
}

static bool decision_parse(yyjson_val *v, struct decision *ret)
{
    const char *word = json_get_str(v, "type", "");

    *ret = (struct decision){};
    for (size_t i = 0; i < ARRAY_LEN(decision_words); i++) {
        if (str_eq(decision_words[i].word, word))
            ret->kind = decision_words[i].kind;
    }
    ret->message = json_get_str(v, "message", json_get_str(v, "args", NULL));
    return ret->kind == DECISION_EDIT ? edit_parse(v, ret) : ret->kind != DECISION_NONE;
}

/* One decision for each call that was asked about, in their order. */
static int decisions_parse(struct walk *w, yyjson_val *answer, struct decision *ret, size_t count,
                           struct error *reterr)
{
    yyjson_val *list = yyjson_is_obj(answer) ? yyjson_obj_get(answer, "decisions") : answer;
    size_t i, max;
    yyjson_val *v;

    if (!yyjson_is_arr(list) || yyjson_arr_size(list) != count)
        return resume_refuse(w, reterr,
                             "resume needs {\"decisions\": [...]} with one decision for each "
                             "action request");
    yyjson_arr_foreach(list, i, max, v)
    {
        if (!decision_parse(v, &ret[i]))
            return resume_refuse(w, reterr,
                                 "a decision is {\"type\": \"approve\"}, {\"type\": \"edit\", "
                                 "\"edited_action\": {\"name\", \"args\"}} or {\"type\": "
                                 "\"reject\", \"message\"}");
    }
    return 0;
}

/* The AI message with the call's new name and arguments. */
static int message_edit(struct tool_batch *b, const char *id, const struct decision *d,
                        const char *name, struct error *reterr)
{
    struct message *from = b->edited ? b->edited : b->asked.ai;
    auto_json_mut yyjson_mut_doc *doc = NULL;
    auto_json yyjson_doc *parsed = NULL;
    struct message *made = NULL;
    yyjson_mut_arr_iter iter;
    yyjson_mut_val *call;
    int r = json_parse(from->json, from->len, &parsed, reterr);

    if (r < 0)
        return r;
    doc = yyjson_doc_mut_copy(parsed, NULL);
    iter = yyjson_mut_arr_iter_with(yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "tool_calls"));
    while ((call = yyjson_mut_arr_iter_next(&iter))) {
        if (!yyjson_mut_equals_str(yyjson_mut_obj_get(call, "id"), id))
            continue;
        yyjson_mut_obj_put(call, yyjson_mut_str(doc, "name"), yyjson_mut_str(doc, name));
        yyjson_mut_obj_put(call, yyjson_mut_str(doc, "args"), yyjson_val_mut_copy(doc, d->args));
        break;
    }
    if ((r = message_make(doc, &made, reterr)) < 0)
        return r;
    message_unref(b->edited);
    b->edited = made;
    return 0;
}

/* The run's input does not outlive the run, a batch may. */
static int edit_keep(struct tool_batch *b, yyjson_val *args, yyjson_val **ret, struct error *reterr)
{
    auto_buf struct buf text;
    yyjson_doc *doc = NULL;
    int r;

    buf_init(&text, LLM_ARGUMENTS_BYTES);
    if ((r = json_write(args, &text, reterr)) < 0 ||
        (r = json_parse(text.data, text.len, &doc, reterr)) < 0)
        return r;
    *ret = yyjson_doc_get_root(doc);
    return batch_keep(b, doc, reterr);
}

static int decision_apply(struct tool_batch *b, struct tool_item *item, const struct decision *d,
                          struct error *reterr)
{
    auto_buf struct buf text;
    int r;

    buf_init(&text, MIB);
    if (d->kind == DECISION_REJECT) {
        if (buf_printf(&text, "the user did not allow this call%s%.*s", d->message ? ": " : "",
                       DESCRIPTION_MAX, d->message ? d->message : "") < 0)
            return error_no_memory(reterr);
        return batch_refuse(item, text.data, reterr);
    }
    if (d->kind == DECISION_APPROVE)
        return 0;
    if (d->name)
        item->name = tool_find(d->name)->name;
    if ((r = message_edit(b, item->id, d, item->name, reterr)) < 0)
        return r;
    return edit_keep(b, d->args, &item->args, reterr);
}

int approval_apply(struct walk *w, struct tool_batch *b, yyjson_val *pending, struct error *reterr)
{
    yyjson_val *asked = yyjson_obj_get(pending, "interrupts");
    const char *open = json_get_str(yyjson_arr_get_first(asked), "id", "");
    struct decision decisions[BATCH_CALLS];
    struct tool_item *items[BATCH_CALLS];
    char id[INTERRUPT_ID + 1];
    yyjson_val *answer;
    size_t count = 0;
    int r;

    for (size_t i = 0; i < b->count && count < BATCH_CALLS; i++) {
        if (approval_needed(w, &b->items[i]))
            items[count++] = &b->items[i];
    }
    if ((r = approval_id(w, b, id, reterr)) < 0 || (r = map_check(w, asked, reterr)) < 0)
        return r;
    if (!str_eq(id, open))
        return resume_refuse(w, reterr, "the calls are not those that were asked about");
    answer = answer_find(w->resume, id, true);
    if ((r = decisions_parse(w, answer, decisions, count, reterr)) < 0)
        return r;
    for (size_t i = 0; i < count && r == 0; i++)
        r = decision_apply(b, items[i], &decisions[i], reterr);
    return r < 0 ? r : 0;
}

/* ---- cells that wait for a line ---- */

static void input_id(const struct tool_item *item, char ret[INTERRUPT_ID + 1])
{
    char number[16];

    snprintf(number, sizeof(number), "%u", item->questions);
    agent_digest(ret,
                 (const char *const[]){"input", item->batch->thread_id, item->batch->key, item->id,
                                       number, item->question ? item->question : "", NULL});
}

static yyjson_mut_val *input_value(yyjson_mut_doc *doc, const struct tool_item *item)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    auto_json yyjson_doc *question = NULL;
    const char *text = item->question ? item->question : "{}";

    if (json_parse(text, strlen(text), &question, NULL) < 0)
        return o;
    yyjson_mut_obj_add_str(doc, o, "type", "input_request");
    yyjson_mut_obj_add_strcpy(doc, o, "prompt",
                              json_get_str(yyjson_doc_get_root(question), "prompt", ""));
    yyjson_mut_obj_add_bool(doc, o, "password",
                            json_get_bool(yyjson_doc_get_root(question), "password", false));
    yyjson_mut_obj_add_strcpy(doc, o, "tool_call_id", item->id);
    yyjson_mut_obj_add_strcpy(doc, o, "session_id", json_get_str(item->args, "session_id", ""));
    return o;
}

int input_ask(struct walk *w, struct tool_batch *b, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *interrupts = yyjson_mut_arr(doc), *pending = pending_make(doc, b, "input");
    yyjson_mut_val *messages = yyjson_mut_obj_add_arr(doc, pending, "messages");
    char id[INTERRUPT_ID + 1];
    int r;

    if (b->edited)
        yyjson_mut_arr_add_val(messages, yyjson_mut_raw(doc, b->edited->json));
    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count; i++) {
        const struct tool_item *item = &b->items[i];

        if (item->message)
            yyjson_mut_arr_add_val(messages, yyjson_mut_raw(doc, item->message->json));
        if (item->state != ITEM_ASKS)
            continue;
        input_id(item, id);
        yyjson_mut_arr_add_val(interrupts, interrupt_make(doc, id, input_value(doc, item)));
    }
    pthread_mutex_unlock(&b->lock);
    r = question_write(w, doc, interrupts, pending, reterr);
    return r < 0 ? r : 1;
}

/* A string, or an object that has one under a name that clients use. NULL for anything else. */
static yyjson_val *line_of(yyjson_val *answer)
{
    static const char *const keys[] = {"value", "text", "line", "input"};

    for (size_t i = 0; i < ARRAY_LEN(keys) && yyjson_is_obj(answer); i++) {
        yyjson_val *v = yyjson_obj_get(answer, keys[i]);

        if (yyjson_is_str(v))
            return v;
    }
    return yyjson_is_str(answer) ? answer : NULL;
}

struct line {
    struct tool_item *item;
    yyjson_val *text;
};

/* The item that asked what has this id; NULL: it asks no longer. */
static struct tool_item *asking_find(struct tool_batch *b, const char *id)
{
    struct tool_item *found = NULL;
    char own[INTERRUPT_ID + 1];

    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count && !found; i++) {
        input_id(&b->items[i], own);
        if (b->items[i].state == ITEM_ASKS && str_eq(own, id))
            found = &b->items[i];
    }
    pthread_mutex_unlock(&b->lock);
    return found;
}

int input_apply(struct walk *w, struct tool_batch *b, yyjson_val *pending, struct error *reterr)
{
    yyjson_val *asked = yyjson_obj_get(pending, "interrupts"), *one;
    struct line lines[BATCH_CALLS];
    size_t i, max, count = 0;
    int r = map_check(w, asked, reterr);

    if (r < 0)
        return r;
    yyjson_arr_foreach(asked, i, max, one)
    {
        const char *id = json_get_str(one, "id", "");
        yyjson_val *answer = answer_find(w->resume, id, i == 0);

        if (!answer || count == BATCH_CALLS)
            continue;
        lines[count] = (struct line){asking_find(b, id), line_of(answer)};
        if (!lines[count++].text)
            return resume_refuse(w, reterr,
                                 "resume needs the line as a string, or {\"value\": \"...\"}");
    }
    for (i = 0; i < count; i++) {
        if (lines[i].item)
            batch_answer(lines[i].item, yyjson_get_str(lines[i].text),
                         yyjson_get_len(lines[i].text));
    }
    return 0;
}
