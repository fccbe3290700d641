/* SPDX-License-Identifier: MIT */
/* Checkpoints are written here and nowhere else: their ids grow, and each says where it is from. */
#include "agent/agent-internal.h"

#include "base/timestamp.h"

/* The run's own members first: a client's may add to them, but not stand for them. */
static int metadata_write(const struct checkpoint_plan *plan, struct buf *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const char *const own[][2] = {{"run_id", plan->run_id},
                                  {"thread_id", plan->thread_id},
                                  {"graph_id", plan->graph_id},
                                  {"assistant_id", plan->assistant_id}};
    auto_json yyjson_doc *given = NULL;
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "source", plan->source);
    yyjson_mut_obj_add_int(doc, root, "step", plan->step);
    yyjson_mut_obj_add_obj(doc, root, "parents");
    for (i = 0; i < ARRAY_LEN(own); i++) {
        if (own[i][1])
            yyjson_mut_obj_add_str(doc, root, own[i][0], own[i][1]);
    }
    if (plan->metadata && json_parse(plan->metadata, strlen(plan->metadata), &given, NULL) == 0)
        yyjson_obj_foreach(yyjson_doc_get_root(given), i, max, key, value)
        {
            const char *name = yyjson_get_str(key);

            if (!yyjson_mut_obj_get(root, name))
                yyjson_mut_obj_add_val(doc, root, name, yyjson_val_mut_copy(doc, value));
        }
    return json_mut_write(doc, ret, reterr);
}

static int plan_fill(const struct checkpoint_plan *plan, struct arena *arena,
                     struct store_checkpoint *ret, struct error *reterr)
{
    const struct store_checkpoint *parent = plan->parent;
    auto_buf struct buf metadata;
    char id[UUID_LEN + 1];
    int r;

    buf_init(&metadata, MIB);
    if ((r = uuid_v6(plan->after, id, reterr)) < 0 ||
        (r = metadata_write(plan, &metadata, reterr)) < 0)
        return r;
    *ret = (struct store_checkpoint){.thread_id = plan->thread_id,
                                     .id = arena_strdup(arena, id),
                                     .parent = parent ? parent->id : NULL,
                                     .step = plan->step,
                                     .source = plan->source,
                                     .next = agent_node_next(plan->next),
                                     .tasks = "[]",
                                     .metadata = arena_strdup(arena, buf_str(&metadata)),
                                     .pending = plan->pending,
                                     .run_id = plan->run_id,
                                     .created_us = timestamp_now()};
    return ret->id && ret->metadata ? 0 : error_no_memory(reterr);
}

int checkpoint_write(struct agent *a, const struct store_fence *fence,
                     const struct checkpoint_plan *plan, struct transcript *messages,
                     struct arena *arena, struct store_checkpoint *ret, struct error *reterr)
{
    auto_free struct store_message *list = calloc(messages->count + 1, sizeof(*list));
    struct store_checkpoint c;
    int r;

    if (!list)
        return error_no_memory(reterr);
    if ((r = plan_fill(plan, arena, &c, reterr)) < 0)
        return r;
    for (size_t i = 0; i < messages->count; i++) {
        const struct message *m = messages->items[i];

        list[i] = (struct store_message){.ref = m->ref, .json = m->json, .len = m->len};
    }
    r = store_checkpoint_put(a->store, fence, &c, list, messages->count, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < messages->count; i++)
        messages->items[i]->ref = list[i].ref;
    *ret = c;
    return 0;
}

/* ---- those of a run ---- */

int walk_save(struct walk *w, const char *source, enum agent_node next, struct error *reterr)
{
    const struct agent_run_spec *spec = w->spec;
    struct checkpoint_plan plan = {.thread_id = spec->thread_id,
                                   .parent = w->at.id ? &w->at : NULL,
                                   .after = w->newest[0] ? w->newest : NULL,
                                   .source = source,
                                   .run_id = spec->run_id,
                                   .step = w->at.id ? w->at.step + 1 : -1,
                                   .next = next,
                                   .graph_id = spec->graph_id,
                                   .assistant_id = spec->assistant_id,
                                   .metadata = spec->metadata};
    struct store_checkpoint c;
    int r = checkpoint_write(w->agent, &spec->fence, &plan, &w->messages, &w->arena, &c, reterr);

    w->fence_lost = r == -ERR_CANCELLED;
    if (r < 0)
        return r;
    w->at = c;
    w->next = next;
    memcpy(w->newest, c.id, UUID_LEN + 1);
    memcpy(w->out->checkpoint_id, c.id, UUID_LEN + 1);
    return walk_tell_checkpoint(w, reterr);
}

int walk_mark(struct walk *w, const char *error, const char *interrupts, const char *pending,
              struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_arr(doc);
    auto_buf struct buf tasks;
    const char *kept, *remembered = pending ? arena_strdup(&w->arena, pending) : NULL;
    int r;

    buf_init(&tasks, AGENT_JSON_MAX);
    yyjson_mut_doc_set_root(doc, root);
    if (error || interrupts)
        yyjson_mut_arr_add_val(root, task_make(doc, &(struct task_view){.id = w->task_id,
                                                                        .node = w->node,
                                                                        .error = error,
                                                                        .interrupts = interrupts}));
    if ((r = json_mut_write(doc, &tasks, reterr)) < 0)
        return r;
    kept = arena_strdup(&w->arena, buf_str(&tasks));
    if (!kept || (pending && !remembered))
        return error_no_memory(reterr);
    r = store_checkpoint_set_tasks(w->agent->store, &w->spec->fence, w->spec->thread_id, w->at.id,
                                   kept, remembered, reterr);
    w->fence_lost = r == -ERR_CANCELLED;
    if (r < 0)
        return r;
    w->at.tasks = kept;
    w->at.pending = remembered;
    return 0;
}
