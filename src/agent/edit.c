/* SPDX-License-Identifier: MIT */
/* Edits of a state from outside, each as if the node it is in the name of had run. */
#include "agent/agent-internal.h"

/* Who wrote last, as far as it matters: what comes next is the same for all that could have. */
static enum agent_node last_writer(const struct store_checkpoint *c)
{
    enum agent_node next = agent_node_of(c->next);

    if (!c->id || next == NODE_START)
        return NODE_START;
    return next == NODE_MODEL ? NODE_TOOLS : NODE_MODEL;
}

static enum agent_node next_after(enum agent_node node, const struct transcript *t)
{
    if (node == NODE_END)
        return NODE_END;
    if (node == NODE_MODEL)
        return asked_any(t) ? NODE_TOOLS : NODE_END;
    return NODE_MODEL;
}

/* The same state beside its checkpoint, not after it. */
static int edit_copy(struct agent *a, const struct agent_edit *edit, struct agent_state *state,
                     const char *newest, struct arena *arena, struct store_checkpoint *ret,
                     struct error *reterr)
{
    const struct store_checkpoint *c = &state->checkpoint;
    struct store_checkpoint above = {.id = c->parent};

    if (!c->id)
        return error_set(reterr, ERR_INVALID, "there is no checkpoint to copy");
    return checkpoint_write(a, NULL,
                            &(struct checkpoint_plan){.thread_id = edit->thread_id,
                                                      .parent = c->parent ? &above : NULL,
                                                      .after = newest,
                                                      .source = "fork",
                                                      .step = c->step + 1,
                                                      .next = agent_node_of(c->next),
                                                      .metadata = edit->metadata},
                            &state->messages, arena, ret, reterr);
}

static int edit_apply(struct agent *a, const struct agent_edit *edit, struct agent_state *state,
                      const char *newest, struct arena *arena, struct store_checkpoint *ret,
                      struct error *reterr)
{
    const struct store_checkpoint *c = &state->checkpoint;
    bool has_values = edit->values && !yyjson_is_null(edit->values);
    enum agent_node node = last_writer(c), next = agent_node_of(c->next);
    int r;

    if (edit->as_node && agent_node_parse(edit->as_node, &node) < 0)
        return error_set(reterr, ERR_INVALID, "as_node '%.64s' is no node of the graph",
                         edit->as_node);
    if (has_values && (r = state_values_apply(&state->messages, edit->values, reterr)) < 0)
        return r;
    if (has_values || edit->as_node)
        next = next_after(node, &state->messages);
    return checkpoint_write(a, NULL,
                            &(struct checkpoint_plan){.thread_id = edit->thread_id,
                                                      .parent = c->id ? c : NULL,
                                                      .after = newest,
                                                      .source = "update",
                                                      .step = c->id ? c->step + 1 : 0,
                                                      .next = next,
                                                      .metadata = edit->metadata},
                            &state->messages, arena, ret, reterr);
}

int agent_state_edit(struct agent *a, const struct agent_edit *edit,
                     char ret_checkpoint[UUID_LEN + 1], struct error *reterr)
{
    auto_arena struct arena arena;
    struct store_checkpoint written, head = {};
    struct agent_state state = {};
    auto_transcript struct transcript messages = {};
    bool copies = edit->as_node && str_eq(edit->as_node, "__copy__");
    int r;

    arena_init(&arena, AGENT_ARENA_MAX);
    r = agent_state_load(a, edit->thread_id, edit->checkpoint_id, &arena, &state, reterr);
    if (r < 0)
        return r;
    messages = state.messages; /* for the end of the scope */
    r = store_checkpoint_get(a->store, edit->thread_id, NULL, &arena, &head, reterr);
    if (r < 0 && r != -ERR_NOT_FOUND)
        return r;
    r = (copies ? edit_copy : edit_apply)(a, edit, &state, r < 0 ? NULL : head.id, &arena, &written,
                                          reterr);
    messages = state.messages;
    if (r < 0)
        return r;
    agent_forget(a, edit->thread_id);
    memcpy(ret_checkpoint, written.id, UUID_LEN + 1);
    return 0;
}
