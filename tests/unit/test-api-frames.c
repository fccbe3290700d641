/* SPDX-License-Identifier: MIT */
/* What an agent does, as frames of each mode: names, their order, and their data. */
#include "api/frames-internal.h"
#include "base/str.h"
#include "tests/lib/rawhttp.h"

static struct frame_log *shown;

static void follow(struct http_request *req)
{
    struct error error;

    if (frame_log_follow(req, &(struct follow_options){.log = shown, .tags = MODE_ALL}, &error) < 0)
        http_fail(req, 500, &error);
}

static const struct route_entry routes[] = {{"GET", "/log", "", follow, 0, NULL}, {}};
static const struct route_table tables[] = {{.entries = routes}, {}};
static const char *const hosts[] = {"h", NULL};

/* What is shown is a test's own. */
static void log_forget(struct frame_log ***log)
{
    frame_log_unref(**log);
    **log = NULL;
}

static void frames_forget(struct frames **f)
{
    frames_free(*f);
}
#define auto_frames __attribute__((cleanup(frames_forget)))

#define JSON(text) .json = text, .len = sizeof(text) - 1
#define ASKED "[{\"id\":\"0123456789abcdef0123456789abcdef\",\"value\":1}]"
#define CHUNK "{\"type\":\"AIMessageChunk\",\"content\":\"4\"}"
#define TOOL "{\"type\":\"tool\",\"content\":\"out\"}"

static const struct llm_delta text_delta = {.kind = LLM_DELTA_TEXT, .text = "4", .len = 1};
static const struct llm_delta more_delta = {.kind = LLM_DELTA_TEXT, .text = "2", .len = 1};

/* A turn of everything: an answer in two pieces, a tool, and a question at the end. */
static const struct agent_event turn[] = {
    {AGENT_VALUES, JSON("{\"messages\":[1]}")},
    {AGENT_CHECKPOINT, JSON("{\"next\":[]}"), .step = -1, .checkpoint_id = "c"},
    {AGENT_TASK, NODE_MODEL, "t", 1, JSON("{\"id\":\"t\"}")},
    {AGENT_MODEL_START, NODE_MODEL, "t", 1, JSON("[[]]"), .message_id = "m"},
    {AGENT_CHUNK, NODE_MODEL, "t", 1, JSON(CHUNK), .message_id = "m", .delta = &text_delta},
    {AGENT_CHUNK, NODE_MODEL, "t", 1, JSON(CHUNK), .message_id = "m", .delta = &more_delta},
    {AGENT_CHUNK, NODE_MODEL, "t", 1, JSON(CHUNK), .message_id = "m"},
    {AGENT_MODEL_END, NODE_MODEL, "t", 1, JSON("{}"), .message_id = "m"},
    {AGENT_TASK_RESULT, NODE_MODEL, "t", 1, JSON("{\"id\":\"t\",\"error\":null}")},
    {AGENT_UPDATE, NODE_MODEL, "t", 1, JSON("{\"messages\":[2]}")},
    {AGENT_TOOL_START, NODE_TOOLS, "u", 2, JSON("{\"code\":\"1\"}"), .tool_call_id = "k",
     .tool_name = "execute_code"},
    {AGENT_TOOL_EVENT, NODE_TOOLS, "u", 2, JSON("{\"type\":\"stdout\",\"data\":\"x\"}"),
     .tool_call_id = "k", .tool_name = "execute_code"},
    {AGENT_CUSTOM, NODE_TOOLS, "u", 2, JSON("{\"type\":\"tool_output\"}"),
     .tool_name = "execute_code"},
    {AGENT_TOOL_END, NODE_TOOLS, "u", 2, JSON(TOOL), .tool_call_id = "k",
     .tool_name = "execute_code"},
    {AGENT_MESSAGE, NODE_TOOLS, "u", 2, JSON(TOOL), .message_id = "n", .tool_call_id = "k",
     .tool_name = "execute_code"},
    {AGENT_INTERRUPT, JSON(ASKED), .step = 2},
    {AGENT_VALUES, JSON("{\"messages\":[1]}"), .interrupts = ASKED},
};

/* The frames of a mode, between none and `end`: "name name ..."; and what is in their data. */
static const struct mode_case {
    uint32_t modes;
    const char *names, *has[4];
} mode_cases[] = {
    {0, "end", {"data: {\"status\":\"success\"}\nid: 7-1\n\n"}},
    {MODE_VALUES,
     "values values end",
     {"data: {\"messages\":[1]}\nid: 7-1\n\n",
      "data: {\"messages\":[1],\"__interrupt__\":" ASKED "}\n"}},
    {MODE_UPDATES,
     "updates updates end",
     {"data: {\"model\":{\"messages\":[2]}}\n", "data: {\"__interrupt__\":" ASKED "}\n"}},
    {MODE_MESSAGES_TUPLE,
     "messages messages messages messages end",
     {"data: [" CHUNK ",{\"run_id\":\"r\",\"thread_id\":\"h\",",
      "\"langgraph_node\":\"model\",\"langgraph_step\":1,", "\"checkpoint_ns\":\"model:t\"",
      "data: [" TOOL ",{"}},
    {MODE_MESSAGES,
     "messages/metadata messages/partial messages/partial messages/partial messages/metadata "
     "messages/complete end",
     {"data: {\"m\":{\"metadata\":{\"run_id\":\"r\"", "data: [{\"content\":\"4\",",
      "data: [{\"content\":\"42\",", "data: [" TOOL "]\n"}},
    {MODE_CUSTOM, "custom end", {"data: {\"type\":\"tool_output\"}\n"}},
    {MODE_DEBUG,
     "debug debug debug end",
     {"{\"step\":-1,\"timestamp\":\"", "\"type\":\"checkpoint\",\"payload\":{\"next\":[]}}",
      "\"type\":\"task\",\"payload\":{\"id\":\"t\"}}", "\"type\":\"task_result\","}},
    {MODE_TASKS,
     "tasks tasks end",
     {"data: {\"id\":\"t\"}\n", "data: {\"id\":\"t\",\"error\":null}\n"}},
    {MODE_CHECKPOINTS, "checkpoints end", {"data: {\"next\":[]}\n"}},
    {MODE_TOOLS,
     "tools tools tools end",
     {"{\"event\":\"on_tool_start\",\"toolCallId\":\"k\",\"name\":\"execute_code\",\"input\":{"
      "\"code\":\"1\"}}",
      "{\"event\":\"on_tool_event\",", "\"data\":{\"type\":\"stdout\",\"data\":\"x\"}}",
      "\"output\":" TOOL "}"}},
    {MODE_EVENTS,
     "events events events events events events events events events events events events events "
     "end",
     {"\"event\":\"on_chain_start\",\"name\":\"LangGraph\",\"run_id\":\"r\"",
      "\"event\":\"on_chat_model_stream\"", "\"data\":{\"chunk\":" CHUNK "}",
      "\"parent_ids\":[\"r\"]"}},
    {MODE_VALUES | MODE_CUSTOM, "values custom values end", {"id: 7-4\n"}},
};

static struct frames *frames_make(uint32_t modes, int64_t attempt)
{
    struct frames_options options = {.log = shown,
                                     .modes = modes,
                                     .run_id = "r",
                                     .thread_id = "h",
                                     .assistant_id = "a",
                                     .graph_id = "g",
                                     .attempt = attempt};
    struct frames *f = NULL;
    struct error err = {0};

    assert_ok(frames_new(&options, &f, &err), err);
    frames_set_model(f, "openai", "fake");
    return f;
}

static void log_make(void)
{
    struct frame_log_options options = {.max_bytes = MIB, .epoch_ms = 7};
    struct error err = {0};

    assert_ok(frame_log_new(&options, &shown, &err), err);
}

/* All that a client of the log is sent. */
static struct raw *log_read(const struct served *s)
{
    struct raw *r = raw_open(s->port, 0);

    frame_log_close(shown);
    raw_text(r, "GET /log HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(raw_wait(r, "\r\n0\r\n\r\n", RAW_WAIT_MS));
    return r;
}

static void names_expect(const struct raw *r, const char *want)
{
    static const char mark[] = "event: ";
    char names[1000] = "";
    size_t len = 0;

    for (const char *at = r->data; (at = strstr(at, mark)); at++) {
        /* Not the member of that name. */
        if (at != r->data && at[-1] == '\n')
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s", len ? " " : "",
                                    (int)strcspn(at + strlen(mark), "\n"), at + strlen(mark));
        assert_true(len < sizeof(names));
    }
    assert_str_eq(names, want);
}

TEST(each_mode_has_its_frames)
{
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});

    for (size_t i = 0; i < ARRAY_LEN(mode_cases); i++) {
        const struct mode_case *c = &mode_cases[i];
        auto_cleanup(log_forget) struct frame_log **log = &shown;
        auto_frames struct frames *f = NULL;
        auto_raw struct raw *r = NULL;

        (void)log;
        log_make();
        f = frames_make(c->modes, 1);
        frames_begin(f);
        for (size_t n = 0; n < ARRAY_LEN(turn); n++)
            frames_event(f, &turn[n]);
        frames_end(f, "success", NULL, "{}");
        r = log_read(&s);
        names_expect(r, c->names);
        for (size_t n = 0; n < ARRAY_LEN(c->has) && c->has[n]; n++)
            assert_str_has(r->data, c->has[n]);
    }
}

TEST(a_failure_is_an_error_and_then_the_end)
{
    auto_served struct served s =
        served_start((struct http_options){.tables = tables, .hosts = hosts});
    auto_cleanup(log_forget) struct frame_log **log = &shown;
    auto_frames struct frames *f = NULL;
    auto_raw struct raw *r = NULL;

    (void)log;
    log_make();
    f = frames_make(MODE_VALUES, 2);
    frames_begin(f);
    frames_end(f, "error", "{\"error\":\"ValueError\",\"message\":\"no\"}", "{}");
    r = log_read(&s);
    names_expect(r, "metadata error end");
    assert_str_has(r->data, "data: {\"run_id\":\"r\",\"attempt\":2}\n");
    assert_str_has(r->data, "data: {\"error\":\"ValueError\",\"message\":\"no\"}\n");
    assert_str_has(r->data, "data: {\"status\":\"error\"}\n");
}

TEST(what_nobody_asked_for_is_not_written)
{
    auto_cleanup(log_forget) struct frame_log **log = &shown;
    auto_frames struct frames *few = NULL, *all = NULL;

    (void)log;
    log_make();
    few = frames_make(MODE_VALUES, 1);
    all = frames_make(MODE_ALL, 1);
    assert_uint_eq(frames_skip_bits(few),
                   1u << AGENT_TASK | 1u << AGENT_CHECKPOINT | 1u << AGENT_MODEL_START);
    assert_uint_eq(frames_skip_bits(all), 0);
}
