/* SPDX-License-Identifier: MIT */
/*
 * A run: supersteps until nothing is left to do. Each is committed before it is told, so what a
 * client has seen in full is never lost. What fails inside a step is the run's outcome, not a
 * failure of agent_run(); only a lost fence is, since then another server tells the story.
 */
#include "agent/agent-internal.h"

#include <poll.h>
#include <stdio.h>

/* ---- telling ---- */

void walk_emit(struct walk *w, const struct agent_event *e)
{
    struct agent_event copy = *e;

    copy.node = w->node;
    copy.task_id = w->task_id;
    if (copy.type != AGENT_CHECKPOINT && copy.type != AGENT_VALUES && copy.type != AGENT_INTERRUPT)
        copy.step = w->at.step + 1;
    if (w->event)
        w->event(w->user, &copy);
}

bool walk_skips(const struct walk *w, enum agent_event_type type)
{
    return w->spec->skip & 1u << type;
}

static void tell(struct walk *w, enum agent_event_type type, const struct buf *json)
{
    walk_emit(w, &(struct agent_event){.type = type, .json = buf_str(json), .len = json->len});
}

int walk_tell_values(struct walk *w, const char *interrupts, struct error *reterr)
{
    auto_buf struct buf values;
    int r;

    buf_init(&values, AGENT_JSON_MAX);
    r = state_values_write(w->agent, w->spec->thread_id, &w->messages, w->spec->inline_displays,
                           &values, reterr);
    if (r < 0)
        return r;
    walk_emit(w, &(struct agent_event){.type = AGENT_VALUES,
                                       .json = buf_str(&values),
                                       .len = values.len,
                                       .step = w->at.step,
                                       .interrupts = interrupts,
                                       .checkpoint_id = w->at.id,
                                       .parent_id = w->at.parent,
                                       .source = w->at.source});
    return 0;
}

int walk_tell_checkpoint(struct walk *w, struct error *reterr)
{
    struct agent_state state = {.checkpoint = w->at, .messages = w->messages};
    auto_buf struct buf json;
    int r;

    buf_init(&json, AGENT_JSON_MAX);
    if (!walk_skips(w, AGENT_CHECKPOINT) &&
        (r = state_debug_write(w->agent, &state, w->spec->inline_displays, &json, reterr)) < 0)
        return r;
    walk_emit(w, &(struct agent_event){.type = AGENT_CHECKPOINT,
                                       .json = buf_str(&json),
                                       .len = json.len,
                                       .step = w->at.step,
                                       .checkpoint_id = w->at.id,
                                       .parent_id = w->at.parent,
                                       .source = w->at.source});
    return 0;
}

static int tell_task(struct walk *w, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *triggers;
    const char *name = agent_node_name(w->node);
    auto_buf struct buf values, json;
    char trigger[32];
    int r;

    buf_init(&values, AGENT_JSON_MAX);
    buf_init(&json, AGENT_JSON_MAX);
    if (walk_skips(w, AGENT_TASK)) {
        tell(w, AGENT_TASK, &json);
        return 0;
    }
    r = state_values_write(w->agent, w->spec->thread_id, &w->messages, w->spec->inline_displays,
                           &values, reterr);
    if (r < 0)
        return r;
    snprintf(trigger, sizeof(trigger), "branch:to:%s", name);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "id", w->task_id);
    yyjson_mut_obj_add_str(doc, root, "name", name);
    yyjson_mut_obj_add_val(doc, root, "input", yyjson_mut_raw(doc, values.data));
    triggers = yyjson_mut_obj_add_arr(doc, root, "triggers");
    yyjson_mut_arr_add_str(doc, triggers, trigger);
    if ((r = json_mut_write(doc, &json, reterr)) == 0)
        tell(w, AGENT_TASK, &json);
    return r;
}

static int tell_result(struct walk *w, const char *error, const char *result,
                       const char *interrupts, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf json;
    int r;

    buf_init(&json, AGENT_JSON_MAX);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "id", w->task_id);
    yyjson_mut_obj_add_str(doc, root, "name", agent_node_name(w->node));
    yyjson_mut_obj_add_val(doc, root, "error",
                           error ? yyjson_mut_str(doc, error) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, root, "result", yyjson_mut_raw(doc, result ? result : "{}"));
    yyjson_mut_obj_add_val(doc, root, "interrupts",
                           yyjson_mut_raw(doc, interrupts ? interrupts : "[]"));
    if ((r = json_mut_write(doc, &json, reterr)) == 0)
        tell(w, AGENT_TASK_RESULT, &json);
    return r;
}

/* ---- what happens to a walk ---- */

bool walk_is_cancelled(const struct walk *w)
{
    struct pollfd fd = {.fd = w->spec->cancel_fd, .events = POLLIN};

    return w->spec->cancel_fd >= 0 && poll(&fd, 1, 0) > 0;
}

int walk_refuse(struct walk *w, const char *type, struct error *reterr, const char *fmt, ...)
{
    char text[sizeof(((struct error *)0)->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    w->error_type = type;
    return error_set(reterr, ERR_INVALID, "%s", text);
}

static bool list_has(const char *const *list, const char *name)
{
    for (; list && *list; list++) {
        if (str_eq(*list, name) || str_eq(*list, "*"))
            return true;
    }
    return false;
}

/* `json` is told, with the state as it is. */
static int walk_interrupt(struct walk *w, const char *json, struct error *reterr)
{
    w->out->end = AGENT_INTERRUPTED;
    walk_emit(w, &(struct agent_event){.type = AGENT_INTERRUPT,
                                       .json = json,
                                       .len = strlen(json),
                                       .step = w->at.step,
                                       .checkpoint_id = w->at.id});
    return walk_tell_values(w, json, reterr);
}

static void walk_fail(struct walk *w, const struct error *error)
{
    struct agent_outcome *out = w->out;
    const char *type = w->error_type ? w->error_type : error_entry(error->code)->python_class;

    if (walk_is_cancelled(w)) {
        out->end = AGENT_CANCELLED;
        return;
    }
    out->end = AGENT_FAILED;
    out->error = *error;
    if (error->code == ERR_OK)
        error_no_memory(&out->error); /* a buffer's failure, which has no words */
    if (str_copy(out->error_type, sizeof(out->error_type), type ? type : "RuntimeError") < 0)
        out->error_type[0] = 0;
}

/* A step failed: its checkpoint says so, unless that is what cannot be written. */
static void step_fail(struct walk *w, const struct error *error)
{
    struct error other;

    if (walk_is_cancelled(w) || w->fence_lost || w->keeps_question)
        return;
    if (walk_mark(w, error->text, NULL, NULL, &other) < 0 ||
        tell_result(w, error->text, NULL, NULL, &other) < 0)
        return;
}

/* ---- steps ---- */

/* The messages with the step's own; what was before stays in `before`. */
static int update_apply(struct walk *w, struct transcript *before, struct error *reterr)
{
    auto_transcript struct transcript after = {};
    int r = transcript_copy(&w->messages, &after, reterr);

    for (size_t i = 0; i < w->update.count && r == 0; i++)
        r = transcript_add(&after, w->update.items[i], reterr);
    if (r < 0)
        return r;
    *before = w->messages;
    w->messages = after;
    after = (struct transcript){};
    return 0;
}

static int step_save(struct walk *w, struct error *reterr)
{
    auto_transcript struct transcript before = {};
    enum agent_node next = NODE_MODEL;
    int r;

    if ((r = update_apply(w, &before, reterr)) < 0)
        return r;
    if (w->node == NODE_MODEL)
        next = asked_any(&w->messages) ? NODE_TOOLS : NODE_END;
    if ((r = walk_save(w, "loop", next, reterr)) == 0)
        return 0;
    transcript_done(&w->messages);
    w->messages = before; /* what is not saved did not happen */
    before = (struct transcript){};
    return r;
}

static int step_finish(struct walk *w, struct error *reterr)
{
    auto_buf struct buf update;
    int r;

    buf_init(&update, AGENT_JSON_MAX);
    r = state_values_write(w->agent, w->spec->thread_id, &w->update, w->spec->inline_displays,
                           &update, reterr);
    if (r < 0 || (r = tell_result(w, NULL, buf_str(&update), NULL, reterr)) < 0)
        return r;
    tell(w, AGENT_UPDATE, &update);
    if ((r = step_save(w, reterr)) < 0)
        return r;
    return walk_tell_values(w, NULL, reterr);
}

/* What the step asks for is committed before anybody hears of it. */
static int step_interrupt(struct walk *w, struct error *reterr)
{
    const char *json = buf_str(&w->interrupts);
    int r = walk_mark(w, NULL, json, buf_str(&w->pending), reterr);

    if (r < 0 || (r = tell_result(w, NULL, NULL, json, reterr)) < 0)
        return r;
    return walk_interrupt(w, json, reterr);
}

/* 0 goes on, 1 ends. */
static int step_run(struct walk *w, struct error *reterr)
{
    int r;

    w->node = w->next;
    agent_task_id(w->at.id, w->node, w->task_id);
    if ((r = tell_task(w, reterr)) < 0)
        return r;
    buf_clear(&w->interrupts);
    buf_clear(&w->pending);
    r = (w->node == NODE_MODEL ? step_model : step_tools)(w, reterr);
    if (r > 0)
        r = step_interrupt(w, reterr) < 0 ? -1 : 1;
    else if (r == 0)
        r = step_finish(w, reterr);
    transcript_done(&w->update);
    w->resume = NULL;
    w->restarted = false;
    w->steps++;
    return r;
}

static int walk_limit(struct walk *w, struct error *reterr)
{
    return walk_refuse(w, "GraphRecursionError", reterr,
                       "Recursion limit of %lld reached without hitting a stop condition; raise "
                       "MAX_ITERATIONS, or recursion_limit in the config of the run",
                       (long long)w->spec->max_steps);
}

static int walk_steps(struct walk *w, struct error *reterr)
{
    const struct agent_run_spec *spec = w->spec;
    int r = 0;

    while (r == 0 && w->next != NODE_END) {
        const char *name = agent_node_name(w->next);

        if (walk_is_cancelled(w))
            return error_set(reterr, ERR_CANCELLED, "stopped on request");
        if (!w->goes_on && list_has(spec->interrupt_before, name))
            return walk_interrupt(w, "[]", reterr);
        w->goes_on = false;
        if (w->steps >= spec->max_steps)
            return walk_limit(w, reterr);
        r = step_run(w, reterr);
        if (r < 0)
            step_fail(w, reterr);
        if (r == 0 && w->next != NODE_END && list_has(spec->interrupt_after, name))
            return walk_interrupt(w, "[]", reterr);
    }
    return r;
}

/* ---- the run ---- */

/* {task: [interrupt, ...]} of the checkpoint where it stands. */
static int outcome_interrupts(struct walk *w, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const char *tasks = w->at.id && w->at.tasks ? w->at.tasks : "[]";
    auto_json yyjson_doc *parsed = NULL;
    size_t i, max;
    yyjson_val *task;
    int r = json_parse(tasks, strlen(tasks), &parsed, reterr);

    if (r < 0)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_arr_foreach(yyjson_doc_get_root(parsed), i, max, task)
    {
        yyjson_val *asked = yyjson_obj_get(task, "interrupts");

        if (yyjson_arr_size(asked))
            yyjson_mut_obj_add_val(doc, root, json_get_str(task, "id", ""),
                                   yyjson_val_mut_copy(doc, asked));
    }
    return json_mut_write(doc, &w->out->interrupts, reterr);
}

/* What the caller stores and answers with. */
static int outcome_fill(struct walk *w, struct error *reterr)
{
    struct agent_outcome *out = w->out;
    int r;

    out->waits = w->at.id && w->next != NODE_END;
    r = state_values_write(w->agent, w->spec->thread_id, &w->messages, w->spec->inline_displays,
                           &out->values, reterr);
    if (r < 0)
        return r;
    if (out->end == AGENT_INTERRUPTED) {
        out->values.len--; /* the closing brace */
        if (buf_printf(&out->values, ",\"__interrupt__\":%s}",
                       w->interrupts.len ? w->interrupts.data : "[]") < 0)
            return error_no_memory(reterr);
    }
    return outcome_interrupts(w, reterr);
}

static void walk_done(struct walk *w)
{
    transcript_done(&w->messages);
    transcript_done(&w->update);
    buf_done(&w->interrupts);
    buf_done(&w->pending);
    arena_done(&w->arena);
}

int agent_run(struct agent *a, const struct agent_run_spec *spec, agent_event_fn *event, void *user,
              struct agent_outcome *ret, struct error *reterr)
{
    auto_cleanup(walk_done) struct walk w = {
        .agent = a, .spec = spec, .event = event, .user = user, .out = ret};
    struct error error = {};
    int r;

    *ret = (struct agent_outcome){};
    arena_init(&w.arena, AGENT_ARENA_MAX);
    buf_init(&w.interrupts, AGENT_JSON_MAX);
    buf_init(&w.pending, AGENT_JSON_MAX);
    buf_init(&ret->values, AGENT_JSON_MAX);
    buf_init(&ret->interrupts, AGENT_JSON_MAX);
    r = walk_start(&w, &error);
    if (r >= 0)
        r = walk_steps(&w, &error);
    if (r < 0 && w.fence_lost) {
        if (reterr)
            *reterr = error;
        return r;
    }
    if (r < 0)
        walk_fail(&w, &error);
    if ((r = outcome_fill(&w, reterr)) < 0) {
        buf_done(&ret->values);
        buf_done(&ret->interrupts);
    }
    return r;
}
