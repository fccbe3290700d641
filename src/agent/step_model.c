/* SPDX-License-Identifier: MIT */
/* The node that thinks: what the model is shown, its answer as it comes, and the message of it. */
#include "agent/chunk.h"
#include "tools/tool.h"

enum { TOOLS_MAX = 32 };

/* The names that clients know of the failures of a model's service. */
static const char *const type_names[ERR_CODE_COUNT] = {
    [ERR_INVALID] = "BadRequestError",     [ERR_DENIED] = "AuthenticationError",
    [ERR_LIMIT] = "RateLimitError",        [ERR_TIMEOUT] = "APITimeoutError",
    [ERR_UPSTREAM] = "APIConnectionError", [ERR_PROTOCOL] = "APIError",
};

static bool shows_images(const struct walk *w)
{
    const struct agent_model *m = &w->spec->model;

    if (m->vision >= 0)
        return m->vision > 0;
    return llm_vision_get(w->agent->llm, &m->model) != LLM_VISION_NO;
}

static size_t tools_fill(struct llm_tool *ret)
{
    size_t n = 0;

    for (; tool_table[n] && n < TOOLS_MAX; n++)
        ret[n] = (struct llm_tool){tool_table[n]->name, tool_table[n]->description,
                                   tool_table[n]->input_schema};
    return n;
}

/* [[message, ...]] */
static int tell_start(struct walk *w, const char *message_id, struct error *reterr)
{
    auto_buf struct buf json;
    int r;

    buf_init(&json, AGENT_JSON_MAX);
    if (walk_skips(w, AGENT_MODEL_START)) {
        walk_emit(w, &(struct agent_event){.type = AGENT_MODEL_START, .message_id = message_id});
        return 0;
    }
    if (buf_append_byte(&json, '[') < 0)
        return error_no_memory(reterr);
    r = state_messages_write(w->agent, w->spec->thread_id, &w->messages, w->spec->inline_displays,
                             &json, reterr);
    if (r < 0)
        return r;
    if (buf_append_byte(&json, ']') < 0)
        return error_no_memory(reterr);
    walk_emit(w, &(struct agent_event){.type = AGENT_MODEL_START,
                                       .json = buf_str(&json),
                                       .len = json.len,
                                       .message_id = message_id});
    return 0;
}

static int model_ask(struct walk *w, struct chunks *chunks, struct arena *arena,
                     struct llm_reply *reply, struct error *reterr)
{
    const struct agent_run_spec *spec = w->spec;
    struct view_options view = {.store = w->agent->store,
                                .thread_id = spec->thread_id,
                                .images = shows_images(w),
                                .window_tokens = w->agent->settings->history_tokens,
                                .system =
                                    spec->system_prompt ? spec->system_prompt : agent_prompt(),
                                .model = spec->model.model};
    struct llm_tool tools[TOOLS_MAX];
    struct llm_request request = {.size = sizeof(request),
                                  .model = spec->model.model,
                                  .tools = tools,
                                  .tool_count = tools_fill(tools),
                                  .cancel_fd = spec->cancel_fd};
    struct llm_message *messages = NULL;
    int r = view_make(&w->messages, &view, arena, &messages, &request.message_count, reterr);

    if (r < 0)
        return r;
    request.messages = messages;
    r = llm_call(w->agent->llm, &request, chunks_delta, chunks, arena, reply, reterr);
    if (r < 0)
        w->error_type = reterr->code < ERR_CODE_COUNT ? type_names[reterr->code] : NULL;
    return r;
}

static void tell_end(struct walk *w, const struct message *m, const struct llm_reply *reply)
{
    walk_emit(w, &(struct agent_event){.type = AGENT_MODEL_END,
                                       .json = m->json,
                                       .len = m->len,
                                       .message_id = m->id,
                                       .usage = &reply->usage,
                                       .finish_reason = reply->finish_reason});
}

static int budget_check(struct walk *w, struct error *reterr)
{
    int r = agent_budget_take(w->agent, w->spec->thread_id, reterr);

    if (r < 0)
        w->error_type = "BudgetError";
    return r;
}

int step_model(struct walk *w, struct error *reterr)
{
    const char *provider = w->spec->model.model.provider;
    auto_arena struct arena arena;
    auto_chunks struct chunks chunks = {};
    auto_message struct message *m = NULL;
    struct llm_reply reply = {};
    int r;

    arena_init(&arena, AGENT_ARENA_MAX);
    if (w->messages.count == 0)
        return walk_refuse(w, "ValueError", reterr, "there is no message to answer");
    if ((r = budget_check(w, reterr)) < 0 || (r = chunks_init(&chunks, w, reterr)) < 0 ||
        (r = tell_start(w, chunks.id, reterr)) < 0 ||
        (r = model_ask(w, &chunks, &arena, &reply, reterr)) < 0 ||
        (r = view_reply(&reply, chunks.id, provider, &m, reterr)) < 0 ||
        (r = chunks_finish(&chunks, &reply, m, reterr)) < 0)
        return r;
    tell_end(w, m, &reply);
    return transcript_append(&w->update, m, reterr);
}
