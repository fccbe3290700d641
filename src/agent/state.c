/* SPDX-License-Identifier: MIT */
/*
 * States as clients read them. What a checkpoint does not say about its tasks follows from its
 * `next`, so most checkpoints store none.
 */
#include "agent/agent-internal.h"

#include "base/timestamp.h"

int agent_state_load(struct agent *a, const char *thread_id, const char *checkpoint_id,
                     struct arena *arena, struct agent_state *ret, struct error *reterr)
{
    struct store_message *stored;
    struct store_checkpoint c = {.thread_id = thread_id};
    auto_transcript struct transcript messages = {};
    int r = store_checkpoint_get(a->store, thread_id, checkpoint_id, arena, &c, reterr);

    if (r == -ERR_NOT_FOUND && !checkpoint_id) {
        *ret = (struct agent_state){.checkpoint = {.thread_id = thread_id}};
        return 0;
    }
    if (r < 0)
        return r;
    stored = arena_alloc(arena, (c.ref_count + 1) * sizeof(*stored));
    if (!stored)
        return error_no_memory(reterr);
    r = store_messages_get(a->store, thread_id, c.refs, c.ref_count, arena, stored, reterr);
    for (size_t i = 0; i < c.ref_count && r == 0; i++) {
        auto_message struct message *m = NULL;

        r = message_load(stored[i].json, stored[i].len, c.refs[i], &m, reterr);
        if (r == 0)
            r = transcript_append(&messages, m, reterr);
    }
    if (r < 0)
        return r;
    *ret = (struct agent_state){.checkpoint = c, .messages = messages};
    messages = (struct transcript){};
    return 0;
}

/* ---- values ---- */

static int full(struct error *reterr)
{
    return error_set(reterr, ERR_LIMIT, "the state is above its limit");
}

int state_messages_write(struct agent *a, const char *thread_id, const struct transcript *t,
                         bool inline_displays, struct buf *ret, struct error *reterr)
{
    if (!inline_displays)
        return transcript_write(t, ret, reterr);
    if (buf_append_byte(ret, '[') < 0)
        return full(reterr);
    for (size_t i = 0; i < t->count; i++) {
        auto_message struct message *m = NULL;
        int r = view_inline(t->items[i], a->store, thread_id, &m, reterr);

        if (r < 0)
            return r;
        if ((i && buf_append_byte(ret, ',') < 0) || buf_append(ret, m->json, m->len) < 0)
            return full(reterr);
    }
    return buf_append_byte(ret, ']') < 0 ? full(reterr) : 0;
}

int state_values_write(struct agent *a, const char *thread_id, const struct transcript *t,
                       bool inline_displays, struct buf *ret, struct error *reterr)
{
    int r;

    if (buf_append_str(ret, "{\"messages\":") < 0)
        return full(reterr);
    if ((r = state_messages_write(a, thread_id, t, inline_displays, ret, reterr)) < 0)
        return r;
    return buf_append_byte(ret, '}') < 0 ? full(reterr) : 0;
}

/* One object of values, or one [channel, value]. */
static int value_apply(struct transcript *t, yyjson_val *value, struct error *reterr)
{
    yyjson_val *messages = yyjson_obj_get(value, "messages");

    if (yyjson_is_arr(value) && yyjson_equals_str(yyjson_arr_get(value, 0), "messages"))
        messages = yyjson_arr_get(value, 1);
    else if (!yyjson_is_obj(value) && !yyjson_is_arr(value))
        return error_set(reterr, ERR_INVALID, "values are no object");
    return messages && !yyjson_is_null(messages) ? transcript_apply(t, messages, reterr) : 0;
}

int state_values_apply(struct transcript *t, yyjson_val *values, struct error *reterr)
{
    size_t i, max;
    yyjson_val *v;
    int r = 0;

    if (!yyjson_is_arr(values))
        return value_apply(t, values, reterr);
    yyjson_arr_foreach(values, i, max, v)
    {
        if (r == 0)
            r = value_apply(t, v, reterr);
    }
    return r;
}

/* ---- tasks ---- */

static yyjson_mut_val *raw(yyjson_mut_doc *doc, const char *json)
{
    return json ? yyjson_mut_raw(doc, json) : yyjson_mut_null(doc);
}

yyjson_mut_val *task_make(yyjson_mut_doc *doc, const struct task_view *task)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc), *path;
    const char *name = agent_node_name(task->node);

    yyjson_mut_obj_add_strcpy(doc, o, "id", task->id);
    yyjson_mut_obj_add_str(doc, o, "name", name);
    path = yyjson_mut_obj_add_arr(doc, o, "path");
    yyjson_mut_arr_add_str(doc, path, "__pregel_pull");
    yyjson_mut_arr_add_str(doc, path, name);
    yyjson_mut_obj_add_val(
        doc, o, "error", task->error ? yyjson_mut_strcpy(doc, task->error) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, o, "interrupts",
                           task->interrupts ? yyjson_mut_raw(doc, task->interrupts)
                                            : yyjson_mut_arr(doc));
    yyjson_mut_obj_add_null(doc, o, "checkpoint");
    yyjson_mut_obj_add_null(doc, o, "state");
    yyjson_mut_obj_add_null(doc, o, "result");
    return o;
}

/* As stored, or what `next` says. */
static yyjson_mut_val *tasks_make(yyjson_mut_doc *doc, const struct store_checkpoint *c)
{
    enum agent_node node = agent_node_of(c->next);
    yyjson_mut_val *list;
    char id[UUID_LEN + 1];

    if (c->tasks && !str_eq(c->tasks, "[]"))
        return yyjson_mut_raw(doc, c->tasks);
    list = yyjson_mut_arr(doc);
    if (!c->id || node == NODE_END)
        return list;
    agent_task_id(c->id, node, id);
    yyjson_mut_arr_add_val(list, task_make(doc, &(struct task_view){.id = id, .node = node}));
    return list;
}

/* All tasks' interrupts in one list. */
static yyjson_mut_val *interrupts_make(yyjson_mut_doc *doc, const char *tasks)
{
    auto_json yyjson_doc *parsed = NULL;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    size_t i, j, max, count;
    yyjson_val *task, *one;

    if (!tasks || json_parse(tasks, strlen(tasks), &parsed, NULL) < 0)
        return list;
    yyjson_arr_foreach(yyjson_doc_get_root(parsed), i, max, task)
    {
        yyjson_arr_foreach(yyjson_obj_get(task, "interrupts"), j, count, one)
        {
            yyjson_mut_arr_add_val(list, yyjson_val_mut_copy(doc, one));
        }
    }
    return list;
}

/* ---- the whole ---- */

static yyjson_mut_val *place_make(yyjson_mut_doc *doc, const char *thread_id, const char *id)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    if (!id)
        return yyjson_mut_null(doc);
    yyjson_mut_obj_add_strcpy(doc, o, "thread_id", thread_id);
    yyjson_mut_obj_add_str(doc, o, "checkpoint_ns", "");
    yyjson_mut_obj_add_strcpy(doc, o, "checkpoint_id", id);
    yyjson_mut_obj_add_null(doc, o, "checkpoint_map");
    return o;
}

static yyjson_mut_val *config_make(yyjson_mut_doc *doc, const char *thread_id, const char *id)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    if (!id)
        return yyjson_mut_null(doc);
    yyjson_mut_obj_add_val(doc, o, "configurable", place_make(doc, thread_id, id));
    return o;
}

static yyjson_mut_val *text_or_null(yyjson_mut_doc *doc, const char *text)
{
    return text ? yyjson_mut_strcpy(doc, text) : yyjson_mut_null(doc);
}

/* {"messages":[{"id"},...]} */
static int state_ids_write(const struct transcript *t, struct buf *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "messages");

    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < t->count; i++)
        yyjson_mut_obj_add_str(doc, yyjson_mut_arr_add_obj(doc, list), "id", t->items[i]->id);
    return json_mut_write(doc, ret, reterr);
}

int agent_state_write(struct agent *a, const struct agent_state *state, bool inline_displays,
                      struct buf *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const struct store_checkpoint *c = &state->checkpoint;
    char created[TIMESTAMP_TEXT];
    auto_buf struct buf values;
    int r = 0;

    buf_init(&values, AGENT_JSON_MAX);
    if (c->id && state->ids_only)
        r = state_ids_write(&state->messages, &values, reterr);
    else if (c->id)
        r = state_values_write(a, c->thread_id, &state->messages, inline_displays, &values, reterr);
    if (r < 0)
        return r;
    timestamp_format(c->created_us, created);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "values", yyjson_mut_raw(doc, c->id ? values.data : "{}"));
    yyjson_mut_obj_add_val(doc, root, "next", yyjson_mut_raw(doc, c->id ? c->next : "[]"));
    yyjson_mut_obj_add_val(doc, root, "tasks", tasks_make(doc, c));
    yyjson_mut_obj_add_val(doc, root, "interrupts", interrupts_make(doc, c->tasks));
    yyjson_mut_obj_add_val(doc, root, "metadata", raw(doc, c->id ? c->metadata : "{}"));
    yyjson_mut_obj_add_val(doc, root, "created_at", text_or_null(doc, c->id ? created : NULL));
    yyjson_mut_obj_add_val(doc, root, "checkpoint", place_make(doc, c->thread_id, c->id));
    yyjson_mut_obj_add_val(doc, root, "parent_checkpoint",
                           place_make(doc, c->thread_id, c->parent));
    yyjson_mut_obj_add_val(doc, root, "checkpoint_id", text_or_null(doc, c->id));
    yyjson_mut_obj_add_val(doc, root, "parent_checkpoint_id", text_or_null(doc, c->parent));
    return json_mut_write(doc, ret, reterr);
}

int state_debug_write(struct agent *a, const struct agent_state *state, bool inline_displays,
                      struct buf *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const struct store_checkpoint *c = &state->checkpoint;
    auto_buf struct buf values;
    int r;

    buf_init(&values, AGENT_JSON_MAX);
    r = state_values_write(a, c->thread_id, &state->messages, inline_displays, &values, reterr);
    if (r < 0)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "config", config_make(doc, c->thread_id, c->id));
    yyjson_mut_obj_add_val(doc, root, "parent_config", config_make(doc, c->thread_id, c->parent));
    yyjson_mut_obj_add_val(doc, root, "values", yyjson_mut_raw(doc, values.data));
    yyjson_mut_obj_add_val(doc, root, "metadata", raw(doc, c->metadata));
    yyjson_mut_obj_add_val(doc, root, "next", yyjson_mut_raw(doc, c->next));
    yyjson_mut_obj_add_val(doc, root, "tasks", tasks_make(doc, c));
    yyjson_mut_obj_add_val(doc, root, "checkpoint", place_make(doc, c->thread_id, c->id));
    yyjson_mut_obj_add_val(doc, root, "parent_checkpoint",
                           place_make(doc, c->thread_id, c->parent));
    return json_mut_write(doc, ret, reterr);
}
