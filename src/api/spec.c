/* SPDX-License-Identifier: MIT */
/* From the row of a run to what the agent is asked to do. */
#include "api/live-internal.h"
#include "api/run_params.h"
#include "base/str.h"

/* "*" or an array of names, as the agent takes it; NULL for none. */
static int names_parse(yyjson_val *value, struct arena *arena, const char *const **ret,
                       struct error *reterr)
{
    size_t count = yyjson_is_str(value) ? 1 : yyjson_arr_size(value), i, max;
    const char **names;
    yyjson_val *name;

    *ret = NULL;
    if (count == 0)
        return 0;
    names = arena_alloc(arena, (count + 1) * sizeof(char *));
    if (!names)
        return error_no_memory(reterr);
    if (yyjson_is_str(value))
        names[0] = yyjson_get_str(value);
    yyjson_arr_foreach(value, i, max, name) names[i] = yyjson_get_str(name);
    *ret = names;
    return 0;
}

/* A comma list of the settings. */
static int list_parse(const char *text, struct arena *arena, const char *const **ret,
                      struct error *reterr)
{
    size_t count = 1, n = 0;
    char *copy = arena_strdup(arena, text), *save = NULL;
    const char **names;

    *ret = NULL;
    for (const char *s = text; *s; s++)
        count += *s == ',';
    names = arena_alloc(arena, (count + 1) * sizeof(char *));
    if (!copy || !names)
        return error_no_memory(reterr);
    for (char *word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save))
        names[n++] = word;
    if (n > 0)
        *ret = names;
    return 0;
}

static int approve_parse(struct api *api, yyjson_val *configurable, struct arena *arena,
                         struct agent_run_spec *ret, struct error *reterr)
{
    yyjson_val *own = yyjson_obj_get(configurable, "approve_tools");

    /* What the operator asks for, no run can do without. */
    if (api->settings->approve_tools[0])
        return list_parse(api->settings->approve_tools, arena, &ret->approve, reterr);
    if (yyjson_is_str(own) && !str_eq(yyjson_get_str(own), "*"))
        return list_parse(yyjson_get_str(own), arena, &ret->approve, reterr);
    return names_parse(own, arena, &ret->approve, reterr);
}

static void start_parse(const struct store_run *row, yyjson_val *kwargs, struct agent_run_spec *ret)
{
    ret->checkpoint_id = json_get_str(kwargs, "checkpoint_id", NULL);
    ret->input = yyjson_obj_get(kwargs, "input");
    ret->command = yyjson_obj_get(kwargs, "command");
    if (yyjson_is_null(ret->input))
        ret->input = NULL;
    if (yyjson_is_null(ret->command))
        ret->command = NULL;
    /* A former attempt has begun: the agent knows by its checkpoints what of the input is done, but
     * an answer to an interrupt counts once. */
    if (row->attempt > 1 && row->checkpoint) {
        ret->checkpoint_id = row->checkpoint;
        ret->command = NULL;
        ret->recovered = true;
    }
}

int spec_parse(struct api *api, const struct store_run *row, yyjson_val *kwargs,
               struct arena *arena, struct agent_run_spec *ret, struct error *reterr)
{
    yyjson_val *config = yyjson_obj_get(kwargs, "config");
    yyjson_val *configurable = yyjson_obj_get(config, "configurable");
    yyjson_val *limit = yyjson_obj_get(config, "recursion_limit");
    struct owner_settings own = {.network = -1};
    int r;

    ret->fence = (struct store_fence){.run_id = row->id, .attempt = row->attempt};
    ret->run_id = row->id;
    ret->thread_id = row->thread_id;
    ret->owner = row->owner;
    ret->assistant_id = row->assistant_id;
    ret->graph_id = json_get_str(kwargs, "graph_id", AGENT_GRAPH);
    ret->metadata = row->metadata;
    ret->system_prompt = json_get_str(configurable, "system_prompt", NULL);
    ret->max_steps = api->settings->max_iterations;
    if (yyjson_is_int(limit) && yyjson_get_sint(limit) > 0)
        ret->max_steps = MIN(ret->max_steps, yyjson_get_sint(limit));
    ret->answers_input = json_get_bool(configurable, "answers_input", true);
    ret->inline_displays = json_get_bool(configurable, "inline_displays", false);
    start_parse(row, kwargs, ret);
    r = names_parse(yyjson_obj_get(kwargs, "interrupt_before"), arena, &ret->interrupt_before,
                    reterr);
    if (r == 0)
        r = names_parse(yyjson_obj_get(kwargs, "interrupt_after"), arena, &ret->interrupt_after,
                        reterr);
    if (r == 0)
        r = approve_parse(api, configurable, arena, ret, reterr);
    if (r == 0)
        r = api_owner_settings(api, row->owner, arena, &own, reterr);
    ret->network_off = own.network == 0;
    return r < 0 ? r : api_model_resolve(api, row->owner, configurable, arena, &ret->model, reterr);
}
