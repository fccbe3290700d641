/* SPDX-License-Identifier: MIT */
/*
 * Where a run begins. A new input is two checkpoints, as in LangGraph: one that has it before it,
 * and one that has it applied. A run whose former attempt was cut off goes on after the last
 * checkpoint that it wrote.
 */
#include "agent/agent-internal.h"

static bool given(yyjson_val *v)
{
    return v && !yyjson_is_null(v) && !(yyjson_is_obj(v) && yyjson_obj_size(v) == 0);
}

/* ---- loading ---- */

static int start_load(struct walk *w, struct error *reterr)
{
    const struct agent_run_spec *spec = w->spec;
    struct store_checkpoint head = {};
    struct agent_state state = {};
    const char *base = spec->checkpoint_id;
    int r = store_checkpoint_get(w->agent->store, spec->thread_id, NULL, &w->arena, &head, reterr);

    if (r < 0 && r != -ERR_NOT_FOUND)
        return r;
    if (r == 0) {
        memcpy(w->newest, head.id, UUID_LEN + 1);
        w->restarted = head.run_id && str_eq(head.run_id, spec->run_id);
    }
    if (w->restarted)
        base = NULL;
    w->restarted |= spec->recovered;
    r = agent_state_load(w->agent, spec->thread_id, base, &w->arena, &state, reterr);
    if (r < 0)
        return r;
    w->at = state.checkpoint;
    w->messages = state.messages;
    w->next = w->at.id ? agent_node_of(w->at.next) : NODE_END;
    if (w->at.id)
        memcpy(w->out->checkpoint_id, w->at.id, UUID_LEN + 1);
    return 0;
}

/* ---- input ---- */

static int input_apply(struct walk *w, yyjson_val *input, struct error *reterr)
{
    auto_transcript struct transcript after = {};
    int r;

    if ((r = transcript_copy(&w->messages, &after, reterr)) < 0)
        return r;
    if ((r = state_values_apply(&after, input, reterr)) < 0) {
        w->error_type = "ValueError";
        return r;
    }
    /* Where the input's own checkpoint is there already, only the rest is left to do. */
    if (!(w->restarted && w->next == NODE_START) &&
        (r = walk_save(w, "input", NODE_START, reterr)) < 0)
        return r;
    transcript_done(&w->messages);
    w->messages = after;
    after = (struct transcript){};
    if ((r = walk_save(w, "loop", NODE_MODEL, reterr)) < 0)
        return r;
    return walk_tell_values(w, NULL, reterr);
}

/* The checkpoint before an input does not have it; the oldest of those that follow it does. */
static int input_replay(struct walk *w, struct error *reterr)
{
    struct store_checkpoint *list = NULL;
    struct agent_state state = {};
    const char *child = NULL;
    size_t count = 0;
    int r = store_checkpoint_list(w->agent->store, w->spec->thread_id, NULL, NULL, 1000, &w->arena,
                                  &list, &count, reterr);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (list[i].parent && str_eq(list[i].parent, w->at.id))
            child = list[i].id;
    }
    if (!child)
        return walk_refuse(w, "ValueError", reterr, "the input of this checkpoint is not known");
    r = agent_state_load(w->agent, w->spec->thread_id, child, &w->arena, &state, reterr);
    if (r < 0)
        return r;
    transcript_done(&w->messages);
    w->messages = state.messages;
    if ((r = walk_save(w, "loop", NODE_MODEL, reterr)) < 0)
        return r;
    return walk_tell_values(w, NULL, reterr);
}

/* ---- commands ---- */

static int goto_find(struct walk *w, yyjson_val *to, enum agent_node *ret, struct error *reterr)
{
    yyjson_val *one = yyjson_is_arr(to) ? yyjson_arr_get_first(to) : to;
    const char *name = yyjson_is_obj(one) ? json_get_str(one, "node", NULL) : yyjson_get_str(one);

    if (!name || agent_node_parse(name, ret) < 0)
        return walk_refuse(w, "ValueError", reterr,
                           "goto needs a node of the graph: model, tools or __end__");
    if (*ret == NODE_START)
        *ret = NODE_MODEL;
    return 0;
}

/* A patch of the state and a jump are one checkpoint, which nothing waits at; but a patch beside an
 * answer leaves the question open. */
static int command_edit(struct walk *w, yyjson_val *command, bool resumes, struct error *reterr)
{
    yyjson_val *update = yyjson_obj_get(command, "update"), *to = yyjson_obj_get(command, "goto");
    const char *pending = w->at.pending, *tasks = w->at.tasks;
    enum agent_node next = w->next;
    int r;

    if (given(update) && (r = state_values_apply(&w->messages, update, reterr)) < 0) {
        w->error_type = "ValueError";
        return r;
    }
    if (given(to) && (r = goto_find(w, to, &next, reterr)) < 0)
        return r;
    if ((r = walk_save(w, "update", next, reterr)) < 0)
        return r;
    if (resumes) {
        w->at.pending = pending;
        w->at.tasks = tasks;
    }
    return 0;
}

static int command_apply(struct walk *w, yyjson_val *command, struct error *reterr)
{
    yyjson_val *resume = yyjson_obj_get(command, "resume");
    bool moves = given(yyjson_obj_get(command, "goto"));
    bool edits = moves || given(yyjson_obj_get(command, "update"));
    bool resumes = resume && !yyjson_is_null(resume) && !moves;
    int r;

    if (!w->at.id && !edits)
        return walk_refuse(w, "InvalidResume", reterr,
                           "nothing can be resumed: this thread has not run yet");
    if (resumes && w->next == NODE_END)
        return walk_refuse(w, "InvalidResume", reterr,
                           "nothing can be resumed: the last run has ended");
    if (edits && (r = command_edit(w, command, resumes, reterr)) < 0)
        return r;
    if (!edits && (r = walk_tell_checkpoint(w, reterr)) < 0)
        return r;
    w->resume = resumes ? resume : NULL;
    return walk_tell_values(w, NULL, reterr);
}

/* ---- all of it ---- */

/* Whether the run takes up what waits at `at`; if not, it is given up. */
static bool takes_up(const struct walk *w)
{
    return !w->restarted && !given(w->spec->input) &&
           !given(yyjson_obj_get(w->spec->command, "goto"));
}

int walk_start(struct walk *w, struct error *reterr)
{
    const struct agent_run_spec *spec = w->spec;
    bool pending_input;
    int r = start_load(w, reterr);

    if (r < 0)
        return r;
    if (!takes_up(w))
        agent_forget(w->agent, spec->thread_id);
    pending_input = given(spec->input) && (!w->restarted || w->next == NODE_START);
    if (pending_input)
        return input_apply(w, spec->input, reterr);
    w->goes_on = w->at.id;
    if (!w->restarted && given(spec->command))
        return command_apply(w, spec->command, reterr);
    if (!w->at.id)
        return walk_refuse(w, "ValueError", reterr,
                           "there is nothing to do: no input, and the thread has not run yet");
    if (w->next == NODE_START)
        return input_replay(w, reterr);
    if ((r = walk_tell_checkpoint(w, reterr)) < 0)
        return r;
    return walk_tell_values(w, NULL, reterr);
}
